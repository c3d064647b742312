"""`roamcast sub`: prints the events that match."""

import asyncio
import base64
import contextlib
import json
import signal
from typing import TYPE_CHECKING, Any

import click

from roamcast.cli.connection import Connection, connecting, read_context, with_node
from roamcast.content.document import document_of
from roamcast.content.event import Event
from roamcast.content.text import parse_filter
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import ContentError, RoamcastError

if TYPE_CHECKING:
    from roamcast.live.client import Client, Events


@click.command()
@click.argument("filter", required=False)
@click.option("--xpath", metavar="EXPRESSION", help="XPath expression instead of FILTER.")
@click.option("--xml", "documents", is_flag=True, help="Print the XML document of an event that carries one.")
@click.option("--count", type=click.IntRange(1), help="Exit after this many events.  [default: run until interrupted]")
@click.option("--id", "number", type=click.IntRange(0), help="The subscription's id.  [default: chosen by the node]")
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
@click.option(
    "--end", type=click.IntRange(0), metavar="ID", help="End the durable subscription with this id, and exit."
)
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
    connection: Connection,
) -> None:
    """Print the events that match FILTER (default: all events), one JSON object per line, until interrupted.

    If events are dropped because they were not read in time, their number is printed on stderr.

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
    # What cannot be read is refused here, with a caret under the place.
    wanted = filter_from_xpath(xpath) if xpath is not None else parse_filter(filter or "true")
    relevant, domain = read_context(interest), read_context(publishers)

    async def listen(client: "Client") -> None:
        events = client.subscribe(
            wanted,
            id=number,
            durable=durable,
            lifetime=lifetime,
            interest=relevant,
            publication_domain=domain,
            on_missed=_tell_missed,
        )
        await _print(events, count, documents)

    with_node(connection, listen)


async def _print(events: "Events", count: int | None, documents: bool) -> None:
    polite = asyncio.Event()  # SIGTERM is how a service is ended; an interrupt stays one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, polite.set)
    async with events:
        click.echo(f"subscribed: {events.subscription}", err=True)
        listening: asyncio.Task[Any] = asyncio.create_task(_print_all(events, count, documents))
        waiting: asyncio.Task[Any] = asyncio.create_task(polite.wait())
        try:
            await asyncio.wait((listening, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        if await listening != count:
            raise RoamcastError("the node has ended, and the subscription with it")


async def _print_all(events: "Events", count: int | None, documents: bool) -> int:
    printed = 0
    async for event in events:
        click.echo(json.dumps(_shown(event, events, documents), ensure_ascii=False))
        printed += 1
        if printed == count:
            break
    return printed


def _shown(event: Event, events: "Events", documents: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": event.id,
        "type": event.type,
        "attributes": {name: values[0] if len(values) == 1 else values for name, values in event.attributes.items()},
        "hops": events.hops,
        "via": events.via,
    }
    document = _document(event) if documents else None
    if document is not None:
        shown["document"] = document
    elif event.payload:
        shown["payload"] = base64.b64encode(event.payload).decode()
    return shown


def _document(event: Event) -> str | None:
    try:
        found = document_of(event)
        return None if found is None else found.decode()
    except (ContentError, UnicodeDecodeError):  # then its bytes are shown, as of any payload
        return None


def _tell_missed(count: int) -> None:
    click.echo(f"missed: {count}", err=True)
