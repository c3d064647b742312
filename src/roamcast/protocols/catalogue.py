"""Protocols by name: ours, those of installed packages, and those in a file beside a scenario.

* ours: listed below;
* of another package: the name of its entry point in the group `roamcast.protocols`, which must be an `Entry`;
* in a file: `path/to/file.py:name`, where `name` is an `Entry`; the path is relative to the scenario's folder.
"""

import importlib
import importlib.metadata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from roamcast.config.errors import nearest
from roamcast.outside import from_file, is_file_name
from roamcast.protocols.entry import Entry, ProtocolError

GROUP: Final = "roamcast.protocols"


_OURS: Final = {
    "flooding": "flooding:ENTRY",
    "gossip": "gossip:ENTRY",
    "counter": "counter:ENTRY",
    "hint": "hint:ENTRY",
    "maodv": "tree.broker:MAODV",
    "coman": "tree.broker:COMAN",
    "opportunistic": "opportunistic.broker:ENTRY",
    "odmrp": "odmrp.broker:ENTRY",
    "context": "context.broker:ENTRY",
    "roam": "roam.broker:ENTRY",
}
"""The module of each of our protocols, and the name of its entry there."""


class Catalogue(Mapping[str, Entry]):
    """Our protocols by name. A protocol is imported when it is first asked for: a node runs one of them."""

    def __getitem__(self, name: str) -> Entry:
        module, _, entry = _OURS[name].partition(":")
        found: Entry = getattr(importlib.import_module(f"roamcast.protocols.{module}"), entry)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_OURS)

    def __len__(self) -> int:
        return len(_OURS)

    def __contains__(self, name: object) -> bool:
        return name in _OURS


CATALOGUE: Final = Catalogue()


def known() -> list[str]:
    """The names of our protocols and those of installed packages."""
    return sorted({*CATALOGUE, *importlib.metadata.entry_points(group=GROUP).names})


def find(name: str, folder: Path = Path()) -> Entry:
    """The protocol of that name; `folder` is where a relative file name starts."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    if is_file_name(name):
        return _checked(from_file(name, folder, "protocol", ProtocolError), repr(name))
    offered = {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}
    if name in offered:
        return _checked(offered[name].load(), f"entry point {name!r}")
    close = nearest(name, known())
    hint = f"did you mean {close!r}? " if close else ""
    raise ProtocolError(
        f"no protocol is named {name!r}; {hint}known are {', '.join(known())}; one of your own is 'file.py:name'"
    )


def _checked(thing: object, where: str) -> Entry:
    if not isinstance(thing, Entry):
        raise ProtocolError(f"protocol {where} is {type(thing).__name__}, not an Entry of roamcast.protocols.entry")
    return thing
