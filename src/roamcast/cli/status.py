"""`roamcast status`: shows a node's neighbours, tables and counters."""

import asyncio
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from roamcast.cli.connection import NodeOptions, connecting, with_node

if TYPE_CHECKING:
    from roamcast.live.client import Client

_UNKNOWN = "unknown"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--watch",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Show it again every so many seconds, until interrupted; with --json, one object per line.",
)
@connecting
def status(as_json: bool, watch: float | None, connection: NodeOptions) -> None:
    """Show a node's neighbours, subscriptions, tables and counters."""

    async def show(client: "Client") -> None:
        while True:
            known = await client.status()
            if watch is not None and not as_json:
                click.clear()
            click.echo(json.dumps(known) if as_json else "\n".join(_lines(known)))
            if watch is None:
                return
            await asyncio.sleep(watch)

    with_node(connection, show)


def _lines(known: dict[str, Any]) -> Iterator[str]:
    parameters = ", ".join(f"{name} {value}" for name, value in known["parameters"].items())
    yield f"node {known['node']}, {known['protocol']} ({parameters}), at {known['now_s']:.1f} s"
    yield f"key        {known['key'] or 'none: insecure'}"
    yield f"authors    {_authors(known['authors'])}"
    yield f"api        {known['api']}"
    if known["mqtt"] is not None:
        spoken = known["mqtt"]
        yield f"mqtt       {spoken['address']}: {spoken['connected']} connected, {spoken['sessions']} sessions"
    here = known["here"]
    yield f"here       {f'{here[0]:g} m, {here[1]:g} m' if here else _UNKNOWN}"
    attributes = ", ".join(f"{name} = {json.dumps(value)}" for name, value in known["attributes"].items())
    yield f"attributes {attributes or 'none'}"
    yield f"neighbours {len(known['neighbours']) or 'none'}"
    for neighbour in known["neighbours"]:
        yield f"  {neighbour['node']}: heard {neighbour['heard_s_ago']:.1f} s ago"
    for other in known["other_protocols"]:
        ignored = f"runs another protocol, {other['protocol']}, and is ignored"
        yield f"  {other['node']}: {ignored}; heard {other['heard_s_ago']:.1f} s ago"
    yield f"subscriptions {len(known['subscriptions']) or 'none'}"
    for each in known["subscriptions"]:
        words = ["durable"] if each["durable"] else []
        words += ["listening"] if each["listening"] else ["nobody listens"]
        words += [f"{each['waiting']} waiting"] if each["waiting"] else []
        words += [f"{each['missed']} missed"] if each["missed"] else []
        yield f"  {each['id']}: {each['filter']} ({', '.join(words)})"
    yield f"tables     {_listed(known['tables'])}"
    for name in ("node", "link", "notes", "senses"):
        yield f"{name:<10} {_listed(known['counters'][name])}"
    for kind, counted in known["counters"]["sent"].items():
        yield f"{kind:<10} {_listed(counted)}"


def _authors(known: dict[str, Any] | None) -> str:
    if known is None:
        return "not checked: unsigned"
    words = [f"{known['known']} known by {known['trust']}", f"this one is {known['identity']}"]
    words += [] if known["certified"] else ["NOT CERTIFIED"]
    words += [f"revoked {', '.join(map(str, known['revoked']))}"] if known["revoked"] else []
    return ", ".join(words)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
