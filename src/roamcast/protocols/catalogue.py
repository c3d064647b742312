"""Protocols by name: ours, those that installed packages offer, and those in a file beside a scenario.

* ours: listed below;
* of another package: the name of its entry point in the group `roamcast.protocols`, which must give an `Entry`;
* in a file: `path/to/file.py:name`, `name` being an `Entry` in it; the path is relative to the scenario's folder.
"""

import difflib
import functools
import importlib.metadata
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from roamcast.errors import RoamcastError
from roamcast.protocols import flooding, gossip, hint
from roamcast.protocols.api import Broker
from roamcast.protocols.codec import Codec
from roamcast.protocols.messages import Beacon, Data, Hinted, Message
from roamcast.protocols.tree import broker as tree
from roamcast.protocols.tree.coman import Coman
from roamcast.protocols.tree.forwarding_messages import Routed, Routes
from roamcast.protocols.tree.maodv import Maodv
from roamcast.protocols.tree.messages import Ack, ChkUp, Grph, Hello, Mact, Rrep, Rreq

GROUP: Final = "roamcast.protocols"


class ProtocolError(RoamcastError):
    """A protocol that cannot be found or used."""


@dataclass(frozen=True)
class Entry:
    """All a world needs to host a protocol."""

    name: str
    summary: str
    parameters: type[msgspec.Struct]
    """A frozen struct whose fields have defaults; a scenario's `[protocol.parameters]` is decoded into it."""
    broker: type[Broker[Any]]
    messages: tuple[type[Message], ...]
    """Every class of message its brokers send."""

    def __post_init__(self) -> None:
        if not self.messages:
            raise ProtocolError(f"protocol {self.name!r} names no messages: what it sends must be listed")

    def codec(self) -> Codec:
        return Codec(self.messages)


CATALOGUE: Final = {
    entry.name: entry
    for entry in (
        Entry(
            "flooding",
            "who hears an event for the first time passes it on",
            flooding.Flooding,
            flooding.FloodingBroker,
            (Data,),
        ),
        Entry(
            "gossip",
            "who hears an event for the first time passes it on with probability p",
            gossip.Gossip,
            gossip.GossipBroker,
            (Data,),
        ),
        Entry(
            "hint",
            "by broadcast, towards those last met near here (Baldoni et al. 2005)",
            hint.Hint,
            hint.HintBroker,
            (Beacon, Hinted),
        ),
        Entry(
            "maodv",
            "along a tree that repairs itself as MAODV's does (Royer, Perkins 1999)",
            Maodv,
            tree.MaodvBroker,
            (Hello, Rreq, Rrep, Mact, Grph, Routes, Routed),
        ),
        Entry(
            "coman",
            "along a tree whose repairs change few routes (Mottola, Cugola, Picco 2008)",
            Coman,
            tree.ComanBroker,
            (Hello, Rreq, Rrep, Mact, Grph, ChkUp, Ack, Routes, Routed),
        ),
    )
}


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
        raise ProtocolError(f"protocol {where} is {type(thing).__name__}, not an Entry of roamcast.protocols.catalogue")
    return thing
