"""`roamcast protocols`: lists the protocols, or explains the parameters of one."""

from pathlib import Path
from typing import Final

import click
import msgspec

from roamcast.cli.completion import complete_protocols
from roamcast.cli.screen import screen_width
from roamcast.config.explain import as_text, explain

SUMMARIES: Final = {
    "flooding": "every node that hears an event for the first time passes it on",
    "gossip": "every node that hears an event for the first time passes it on with probability p",
    "counter": "every node passes an event on after a random wait, unless it has heard enough copies by then "
    "(Ni et al. 1999)",
    "hint": "broadcast, forwarded by nodes that met a subscriber recently (Baldoni et al. 2005)",
    "maodv": "along a tree that repairs itself as MAODV's does (Royer, Perkins 1999)",
    "coman": "along a tree whose repairs change few routes (Mottola, Cugola, Picco 2008)",
    "opportunistic": "documents that their carriers offer to the nodes they meet (Haillot and Guidec 2008)",
    "odmrp": "a mesh of forwarders for each content, kept by floods (Yoneki, Bacon 2004), or for fixed channels",
    "context": "events and subscriptions held in the regions they concern, matched there (Frey and Roman 2007)",
    "roam": "towards subscribers with few transmissions; carried and handed over where there is no path",
}
"""Each protocol's own summary, so that the list needs none of their modules."""


@click.command()
@click.argument("name", required=False, shell_complete=complete_protocols)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list, or the parameters of one.  [default: text]")
def protocols(name: str | None, as_json: bool) -> None:
    """List the protocols, or explain the parameters of one.

    NAME is a protocol of the list, or file.py:name for one of your own.
    """
    if name is None:
        if as_json:
            _print([{"name": each, "summary": summary} for each, summary in SUMMARIES.items()])
            return
        widest = max(map(len, SUMMARIES))
        for each, summary in SUMMARIES.items():
            click.echo(f"{each:{widest}}  {summary}")
        return
    from roamcast.protocols.catalogue import find

    entry = find(name, Path())
    sections = explain(entry.parameters, "protocol.parameters")
    if as_json:
        fields = [field for section in sections for field in section.fields]
        _print({"name": entry.name, "summary": entry.summary, "parameters": fields})
        return
    click.echo(f"{entry.name}: {entry.summary}\n")
    click.echo(as_text(sections, screen_width()))


def _print(found: object) -> None:
    click.echo(msgspec.json.encode(found))
