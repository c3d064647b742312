"""`roamcast protocols`: lists the protocols, or explains the parameters of one."""

from pathlib import Path

import click
import msgspec

from roamcast.cli.completion import complete_protocols
from roamcast.cli.screen import screen_width
from roamcast.config.explain import as_text, explain
from roamcast.protocols.catalogue import CATALOGUE, find


@click.command()
@click.argument("name", required=False, shell_complete=complete_protocols)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list, or the parameters of one.  [default: text]")
def protocols(name: str | None, as_json: bool) -> None:
    """List the protocols, or explain the parameters of one.

    NAME is a protocol of the list, or file.py:name for one of your own.
    """
    if name is None:
        if as_json:
            _print([{"name": entry.name, "summary": entry.summary} for entry in CATALOGUE.values()])
            return
        widest = max(map(len, CATALOGUE))
        for entry in CATALOGUE.values():
            click.echo(f"{entry.name:{widest}}  {entry.summary}")
        return
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
