"""Protocols by name: ours, those that installed packages offer, and those in a file beside a scenario.

* ours: listed below;
* of another package: the name of its entry point in the group `roamcast.protocols`, which must give an `Entry`;
* in a file: `path/to/file.py:name`, `name` being an `Entry` in it; the path is relative to the scenario's folder.
"""

import difflib
import functools
import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from roamcast.protocols import flooding, gossip, hint
from roamcast.protocols.context import broker as context
from roamcast.protocols.entry import Entry, ProtocolError
from roamcast.protocols.tree import broker as tree

GROUP: Final = "roamcast.protocols"


_OURS: Final = (flooding.ENTRY, gossip.ENTRY, hint.ENTRY, tree.MAODV, tree.COMAN, context.ENTRY)
CATALOGUE: Final = {entry.name: entry for entry in _OURS}


def find(name: str, folder: Path = Path()) -> Entry:
    """The protocol of that name; `folder` is where a relative file name starts."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    if ":" in name:
        return _from_file(name, folder)
    offered = {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}
    if name in offered:
        return _checked(offered[name].load(), f"entry point {name!r}")
    known = sorted({*CATALOGUE, *offered})
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ProtocolError(
        f"no protocol is named {name!r}; {hint}known are {', '.join(known)}; one of your own is 'file.py:name'"
    )


def _from_file(name: str, folder: Path) -> Entry:
    file, _, attribute = name.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise ProtocolError(f"protocol {name!r}: there is no file {path}")
    try:
        contents = _contents(path.resolve(), path.stat().st_mtime_ns)
    except (Exception, SystemExit) as problem:
        raise ProtocolError(f"protocol {name!r}: {path} raised {type(problem).__name__}: {problem}") from problem
    if attribute not in contents:
        raise ProtocolError(f"protocol {name!r}: {path} defines no {attribute!r}")
    return _checked(contents[attribute], f"{name!r}")


@functools.cache
def _contents(path: Path, changed: int) -> dict[str, Any]:
    """What a file defines. It runs once for each change, as a module that stays: annotations are looked up in it."""
    module = ModuleType(f"{path}@{changed}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(path.read_bytes(), path, "exec"), vars(module))
    return vars(module)


def _checked(thing: object, where: str) -> Entry:
    if not isinstance(thing, Entry):
        raise ProtocolError(f"protocol {where} is {type(thing).__name__}, not an Entry of roamcast.protocols.entry")
    return thing
