"""`roamcast pub`: publishes an event, or many from stdin."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roamcast.cli.connection import connecting, read_context, with_node
from roamcast.config.values import typed_value
from roamcast.content.event import Event
from roamcast.errors import ContentError

if TYPE_CHECKING:
    from roamcast.live.client import Client


@click.command()
@click.argument("attributes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--type", "kind", default="", help="The event's type.  [default: empty]")
@click.option(
    "--payload",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File whose bytes the event carries.  [default: none]",
)
@click.option(
    "--lifetime",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Do not deliver the event after this time. Not every protocol supports lifetimes.  [default: no limit]",
)
@click.option(
    "--relevant",
    metavar="CONTEXT",
    help="Context of relevance, such as 'within(circle(500, 500, 100))'. Not every protocol supports contexts.  "
    "[default: everywhere]",
)
@click.option(
    "--subscribers", metavar="CONTEXT", help="Subscription domain: which subscribers may get the event.  [default: all]"
)
@click.option(
    "--lines",
    is_flag=True,
    help='Read events from stdin, one per line: {"type": …, "attributes": {…}}.',
)
@connecting
def pub(
    attributes: tuple[str, ...],
    kind: str,
    file: Path | None,
    lifetime: float | None,
    relevant: str | None,
    subscribers: str | None,
    lines: bool,
    control: str,
    token_file: Path | None,
) -> None:
    """Publish an event, and print its id once the node has stored it on disk.

    VALUE is written as in TOML: 12, 12.5, true, "text", or [1, 2] for several values; anything else is text. Giving a
    name twice gives it both values.

    \b
    Examples:
      roamcast pub --type offer category=jazz price=12.5
      roamcast pub --type accident --lifetime 600 --relevant 'within(rect(20, 0, 32, 1)) and heading = "east"'
      generate-events | roamcast pub --lines
    """
    options = {
        "lifetime": lifetime,
        "relevance": read_context(relevant),
        "subscription_domain": read_context(subscribers),
    }
    if lines and (attributes or kind or file or any(value is not None for value in options.values())):
        raise click.UsageError(
            "--lines reads whole events from stdin and cannot be combined with other options about the event"
        )
    event = None if lines else Event.of(kind, _attributes(attributes), _payload(file))
    with_node(control, token_file, lambda client: _publish(client, event, options))


async def _publish(client: "Client", event: Event | None, options: dict[str, Any]) -> None:
    if event is not None:
        click.echo(await client.publish(event, **options))
        return
    number = 0
    while line := await asyncio.to_thread(sys.stdin.readline):
        number += 1
        if line.strip():
            click.echo(await client.publish(_event(line, number)))


def _event(line: str, number: int) -> Event:
    try:
        raw = json.loads(line)
        unknown = sorted(set(raw) - {"type", "attributes"})
        if unknown:
            raise ContentError(f"an event has type and attributes, not {', '.join(unknown)}")
        return Event.of(raw.get("type", ""), raw.get("attributes", {}))
    except (ValueError, TypeError, AttributeError) as problem:
        raise ContentError(f"line {number}: {problem}") from None


def _attributes(words: tuple[str, ...]) -> dict[str, list[Any]]:
    named: dict[str, list[Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ContentError(f"{word!r}: expected NAME=VALUE, such as price=12.5")
        value = _value(text)
        named.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return named


def _value(text: str) -> Any:  # noqa: ANN401  # any value of TOML that an event may have
    parsed = typed_value(text)
    simple = isinstance(parsed, str | int | float | list)
    return parsed if simple else text  # a date is text


def _payload(file: Path | None) -> bytes:
    if file is None:
        return b""
    try:
        return file.read_bytes()
    except OSError as problem:
        raise ContentError(f"{file}: cannot be read: {problem.strerror}") from None
