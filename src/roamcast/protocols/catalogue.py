"""Protocols by name: ours, those of installed packages, and those in a file beside a scenario.

* ours: listed below;
* of another package: the name of its entry point in the group `roamcast.protocols`, which must be an `Entry`;
* in a file: `path/to/file.py:name`, where `name` is an `Entry`; the path is relative to the scenario's folder.
"""

import importlib.metadata
from pathlib import Path
from typing import Final

from roamcast.config.errors import nearest
from roamcast.outside import from_file, is_file_name
from roamcast.protocols import counter, flooding, gossip, hint
from roamcast.protocols.context import broker as context
from roamcast.protocols.entry import Entry, ProtocolError
from roamcast.protocols.odmrp import broker as odmrp
from roamcast.protocols.opportunistic import broker as opportunistic
from roamcast.protocols.roam import broker as roam
from roamcast.protocols.tree import broker as tree

GROUP: Final = "roamcast.protocols"


_OURS: Final = (
    flooding.ENTRY,
    gossip.ENTRY,
    counter.ENTRY,
    hint.ENTRY,
    tree.MAODV,
    tree.COMAN,
    opportunistic.ENTRY,
    odmrp.ENTRY,
    context.ENTRY,
    roam.ENTRY,
)
CATALOGUE: Final = {entry.name: entry for entry in _OURS}


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
