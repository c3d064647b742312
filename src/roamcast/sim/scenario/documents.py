"""Events of a scenario that come from XML documents, and the documents' files.

A scenario names files; checking it replaces the names with the files' contents, so that a run is defined by its
scenario alone, wherever it runs. A text that begins with `<` is already a document.
"""

import functools
from pathlib import Path

from roamcast.content.document import Carry, event_of_document
from roamcast.content.event import Event
from roamcast.content.xml import MAX_DOCUMENT, Schema
from roamcast.errors import ContentError
from roamcast.sim.mobility import ScenarioError


def with_contents(names: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The documents; those named by a file are read from it."""
    return tuple(name if is_document(name) else _read(folder / name) for name in names)


def is_document(text: str) -> bool:
    return text.lstrip().startswith("<")


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_DOCUMENT:
            raise ScenarioError(f"{file}: is longer than {MAX_DOCUMENT} bytes")
        text = file.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ScenarioError(f"{file}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ScenarioError(f"{file}: is not UTF-8: {problem}") from None
    if not is_document(text):
        raise ScenarioError(f"{file}: is not XML: it does not begin with '<'")
    return text


@functools.lru_cache(maxsize=16)
def events_of(documents: tuple[str, ...], schema: str | None, carry: Carry) -> tuple[Event, ...]:
    """The events of documents, in order. Errors name the document's number, from 0."""
    known = None if schema is None else Schema.from_xsd(schema)
    events = []
    for number, document in enumerate(documents):
        try:
            events.append(event_of_document(document, carry, known))
        except ContentError as problem:
            raise ContentError(f"[{number}]: {problem}") from None
    return tuple(events)
