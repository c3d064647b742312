"""`roamcast sub`: prints the events that match."""

import asyncio
import base64
import contextlib
import json
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import click

from roamcast.bounded import put
from roamcast.cli.connection import NodeOptions, connecting, read_context, with_node
from roamcast.content.text import parse_filter
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import ContentError

if TYPE_CHECKING:
    from roamcast.live.client import Client, Events, Received

_ID: Final = click.IntRange(0, 2**63 - 1)
_RETRY: Final = 1.0
"""Seconds between two attempts to reach a node that has stopped."""
_REMEMBERED: Final = 4096
"""Events that are not shown again: a node that carries events gives them to every new subscription, also to this one's
next."""


@click.command()
@click.argument("filter", required=False)
@click.option("--xpath", metavar="EXPRESSION", help="XPath expression instead of FILTER.")
@click.option("--xml", "documents", is_flag=True, help="Print the XML document of an event that carries one.")
@click.option("--count", type=click.IntRange(1), help="Exit after this many events.  [default: run until interrupted]")
@click.option("--id", "number", type=_ID, help="The subscription's id.  [default: chosen by the node]")
@click.option(
    "--durable", is_flag=True, help="Keep the subscription when this command ends or the node restarts. Needs --id."
)
@click.option(
    "--lifetime",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="End the subscription after this time. Not every protocol supports lifetimes.  [default: no limit]",
)
@click.option(
    "--interest",
    metavar="CONTEXT",
    help="Context of interest, such as 'within(rect(0, 0, 100, 100))'. Not every protocol supports contexts.  "
    "[default: anywhere]",
)
@click.option(
    "--publishers",
    metavar="CONTEXT",
    help="Publication domain: from which publishers events are wanted.  [default: all]",
)
@click.option("--end", type=_ID, metavar="ID", help="End the durable subscription with this id, and exit.")
@connecting
def sub(
    filter: str | None,
    xpath: str | None,
    documents: bool,
    count: int | None,
    number: int | None,
    durable: bool,
    lifetime: float | None,
    interest: str | None,
    publishers: str | None,
    end: int | None,
    connection: NodeOptions,
) -> None:
    """Subscribe: print matching events until interrupted.

    Events that match FILTER (default: all) are printed as one JSON object per line.

    If events are dropped because they were not read in time, their number is printed on stderr. If the node stops, this
    command waits until it is back and subscribes again; only a durable subscription gets what was published meanwhile.

    \b
    Examples:
      roamcast sub 'type = "offer" and price < 20'
      roamcast sub --xpath '/CD[category="jazz"][price < 20]' --xml
    """
    if end is not None:
        with_node(connection, lambda client: client.unsubscribe(end))
        return
    if durable and number is None:
        raise click.UsageError("--durable needs --id, so that you can find the subscription again")
    if xpath is not None and filter is not None:
        raise click.UsageError("--xpath takes the place of FILTER: give one of them")
    # Parsed here, so that a mistake is shown with a caret under its place.
    wanted = filter_from_xpath(xpath) if xpath is not None else parse_filter(filter or "true")
    relevant, domain = read_context(interest), read_context(publishers)

    def subscribe(client: "Client", lifetime: float | None, after: int | None) -> "Events":
        return client.subscribe(
            wanted,
            id=number,
            durable=durable,
            lifetime=lifetime,
            interest=relevant,
            publication_domain=domain,
            after=after,
            on_missed=lambda count: click.echo(f"missed: {count}", err=True),
        )

    with_node(connection, lambda client: _until_terminated(_listen(client, subscribe, documents, count, lifetime)))


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work`; ends quietly on SIGTERM, which is how services are stopped. An interrupt is still an error."""
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    working, waiting = asyncio.create_task(work), asyncio.create_task(terminated.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def _listen(
    client: "Client",
    subscribe: Callable[["Client", float | None, int | None], "Events"],
    documents: bool,
    count: int | None,
    lifetime: float | None,
) -> None:
    """Shows events until there were `count`, or the subscription is over. If the node stops, it waits for it to come
    back: events published meanwhile are missed, unless the subscription is durable; no event is shown twice."""
    from roamcast.live.client import Unreachable

    clock = asyncio.get_running_loop().time
    deadline = None if lifetime is None else clock() + lifetime
    shown, known, lost, position = 0, False, False, None
    ids: dict[int, None] = {}
    while deadline is None or clock() < deadline:
        events = subscribe(client, None if deadline is None else deadline - clock(), position)
        try:
            async with events:
                click.echo(f"subscribed{' again' if known else ''}: {events.subscription}", err=True)
                known, lost = True, False
                async for event in events:
                    if event.id in ids:
                        continue
                    put(ids, event.id, None, _REMEMBERED)
                    click.echo(json.dumps(_shown(event, documents), ensure_ascii=False))
                    shown += 1
                    if shown == count:
                        return
        except Unreachable:
            if not known:
                raise
        position = events.position
        if events.over:
            return
        if not lost:
            click.echo("the node has stopped; waiting for it to come back (Ctrl-C ends this)", err=True)
            lost = True
        await asyncio.sleep(_RETRY)


def _shown(event: "Received", documents: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": str(event.id),
        "type": event.type,
        "attributes": event.attributes,
        "hops": event.hops,
        "via": event.via,
        "author": event.author,
        "verified": event.verified,
        "published": event.published,
    }
    document = _document(event) if documents else None
    if document is not None:
        shown["document"] = document
    elif event.payload:
        shown["payload"] = base64.b64encode(event.payload).decode()
    return shown


def _document(event: "Received") -> str | None:
    try:
        found = event.document
        return None if found is None else found.decode()
    except (ContentError, UnicodeDecodeError):  # then its bytes are shown like any payload
        return None
