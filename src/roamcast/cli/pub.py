"""`roamcast pub`: publishes an event, or many from stdin."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from roamcast.cli.connection import NodeOptions, connecting, read_context, with_node
from roamcast.cli.options import FILE
from roamcast.config.values import typed_value
from roamcast.content.document import Carry
from roamcast.content.event import Event
from roamcast.errors import ContentError

if TYPE_CHECKING:
    from roamcast.live.client import Client

T = TypeVar("T")

_KINDS: Final = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_ALMOST_A_NUMBER: Final = re.compile(r"[+-]?(\d+,\d+|\d+\.|\.\d+)")
"""Read as text, it would match no filter that compares numbers."""


@click.command()
@click.argument("attributes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--type", "kind", default="", show_default=False, help="The event's type.  [default: empty]")
@click.option(
    "--xml",
    "document",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Publish an XML document: its root is the event's type, its leaves are the attributes. - reads stdin.",
)
@click.option(
    "--schema",
    type=FILE,
    help="With --xml: XML schema that the document must fit and that gives the types.  [default: types by their form]",
)
@click.option(
    "--carry",
    type=click.Choice(get_args(Carry)),
    help="With --xml: whether the event carries the document, as it is or compressed.  [default: plain]",
)
@click.option(
    "--payload",
    "file",
    type=FILE,
    help="File whose bytes the event carries.  [default: none]",
)
@click.option(
    "--lifetime",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Do not deliver the event after this time. Not every protocol supports lifetimes.  [default: as long as nodes "
    "carry it; with context: 0, only to subscribers that it finds at once]",
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
@click.option("--quiet", is_flag=True, help="Do not say on stderr how each VALUE was read.")
@connecting
def pub(
    attributes: tuple[str, ...],
    kind: str,
    document: Path | None,
    schema: Path | None,
    carry: Carry | None,
    file: Path | None,
    lifetime: float | None,
    relevant: str | None,
    subscribers: str | None,
    lines: bool,
    quiet: bool,
    connection: NodeOptions,
) -> None:
    """Publish an event.

    Its id is printed once the node has stored it on disk. VALUE is written as in TOML: 12, 12.5, true, "text", or
    [1, 2] for several values; anything else is text. Repeat a NAME to give it several values. A line on stderr says how
    each value was read.

    \b
    Examples:
      roamcast pub --type offer category=jazz price=12.5
      roamcast pub --type accident --lifetime 600 --relevant 'within(rect(20, 0, 32, 1)) and heading = "east"'
      roamcast pub --xml cd.xml --carry compressed
      generate-events | roamcast pub --lines
    """
    options = {
        "lifetime": lifetime,
        "relevance": read_context(relevant),
        "subscription_domain": read_context(subscribers),
    }
    described = bool(attributes or kind or file)
    if document is not None and (described or lines):
        raise click.UsageError(
            "--xml takes the event from a document and cannot be combined with other options about the event"
        )
    if document is None and (schema or carry):
        raise click.UsageError("--schema and --carry need --xml")
    if lines and (described or any(value is not None for value in options.values())):
        raise click.UsageError(
            "--lines reads whole events from stdin and cannot be combined with other options about the event"
        )
    if document is not None:
        event: Event | None = _from_xml(document, carry or "plain", schema)
    else:
        event = None if lines else Event.of(kind, _attributes(attributes), _bytes(file) if file else b"")
    with_node(connection, lambda client: _publish(client, event, options))
    if event is not None and attributes and not quiet:
        click.echo(f"read as: {', '.join(_readings(event))}", err=True)


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
        try:
            value = _value(text)
        except ContentError as problem:
            raise ContentError(f"{name}={problem}") from None
        named.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return named


def _readings(event: Event) -> Iterator[str]:
    """Each attribute as it was read, such as `price = 12.5 (number)`."""
    for name, values in event.attributes.items():
        shown = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        kinds = ", ".join(dict.fromkeys(_KINDS[type(value)] for value in values))
        yield f"{name} = {shown if len(values) == 1 else f'[{shown}]'} ({kinds})"


def _value(text: str) -> Any:  # noqa: ANN401  # any value of TOML that an event may have
    if _ALMOST_A_NUMBER.fullmatch(text):
        number = float(text.replace(",", "."))
        raise ContentError(f"{text}: is not a number as TOML writes it; write {number:g}, or '\"{text}\"' for a text")
    parsed = typed_value(text)
    simple = isinstance(parsed, str | int | float | list)
    return parsed if simple else text  # a date is text


def _from_xml(file: Path, carry: Carry, schema: Path | None) -> Event:
    from roamcast.content.document import event_of_document
    from roamcast.content.xml import Schema

    known = None if schema is None else _read(schema, Schema.from_xsd)
    return _read(file, lambda document: event_of_document(document, carry, known))


def _read(file: Path, make: Callable[[bytes], T]) -> T:
    octets = _bytes(file)
    try:
        return make(octets)
    except ContentError as problem:
        raise ContentError(f"{file}: {problem}") from None


def _bytes(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as problem:
        raise ContentError(f"{file}: cannot be read: {problem.strerror}") from None
