"""`roamcast sub`: prints the events that match."""

import asyncio
import base64
import contextlib
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roamcast.cli.connection import connecting, read_context, with_node
from roamcast.content.event import Event
from roamcast.content.text import parse_filter
from roamcast.errors import RoamcastError

if TYPE_CHECKING:
    from roamcast.live.client import Client, Events


@click.command()
@click.argument("filter", default="true")
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
    filter: str,
    count: int | None,
    number: int | None,
    durable: bool,
    lifetime: float | None,
    interest: str | None,
    publishers: str | None,
    end: int | None,
    control: str,
    token_file: Path | None,
) -> None:
    """Print the events that match FILTER (default: all events), one JSON object per line, until interrupted.

    If events are dropped because they were not read in time, their number is printed on stderr.

    \b
    Example:
      roamcast sub 'type = "offer" and price < 20'
    """
    if end is not None:
        with_node(control, token_file, lambda client: client.unsubscribe(end))
        return
    if durable and number is None:
        raise click.UsageError("--durable needs --id, so that you can find the subscription again")
    wanted = parse_filter(filter)  # refused here, with a caret under the place
    contexts = {"interest": read_context(interest), "publication_domain": read_context(publishers)}

    async def listen(client: "Client") -> None:
        events = client.subscribe(
            wanted, id=number, durable=durable, lifetime=lifetime, on_missed=_tell_missed, **contexts
        )
        await _print(events, count)

    with_node(control, token_file, listen)


async def _print(events: "Events", count: int | None) -> None:
    polite = asyncio.Event()  # SIGTERM is how a service is ended; an interrupt stays one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, polite.set)
    async with events:
        click.echo(f"subscribed: {events.subscription}", err=True)
        listening: asyncio.Task[Any] = asyncio.create_task(_print_all(events, count))
        waiting: asyncio.Task[Any] = asyncio.create_task(polite.wait())
        try:
            await asyncio.wait((listening, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        if await listening != count:
            raise RoamcastError("the node has ended, and the subscription with it")


async def _print_all(events: "Events", count: int | None) -> int:
    printed = 0
    async for event in events:
        click.echo(json.dumps(_shown(event, events), ensure_ascii=False))
        printed += 1
        if printed == count:
            break
    return printed


def _shown(event: Event, events: "Events") -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": event.id,
        "type": event.type,
        "attributes": {name: values[0] if len(values) == 1 else values for name, values in event.attributes.items()},
        "hops": events.hops,
        "via": events.via,
    }
    if event.payload:
        shown["payload"] = base64.b64encode(event.payload).decode()
    return shown


def _tell_missed(count: int) -> None:
    click.echo(f"missed: {count}", err=True)
