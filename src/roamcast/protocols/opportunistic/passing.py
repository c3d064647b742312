"""Documents that a node passes on for others, as a relay.

A relay passes on the pieces of a document that it has, from this broadcast or from earlier ones, as soon as it has all
that are being sent, or when no piece has arrived for `gather`. With whole documents only, it passes on all or nothing.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from roamcast.bounded import put
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.messages import MAX_HOPS
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.forwarding import Forwarding
from roamcast.protocols.opportunistic.messages import MAX_SCOPE, Header
from roamcast.protocols.opportunistic.outgoing import Job, Outgoing
from roamcast.protocols.opportunistic.params import Opportunistic
from roamcast.protocols.pieces import Partial
from roamcast.units import seconds

_LATEST: Final = 2048
"""How many of other nodes' broadcasts a node remembers, to recognise duplicates."""

Broadcast = tuple[Node, int, int]
"""The key of a broadcast of pieces: its source, its number, and which bulk of the document it is."""


class Gather(NamedTuple):
    """The key of a timer that fires when no more pieces of a broadcast are expected."""

    broadcast: Broadcast


@dataclass(slots=True, eq=False)
class Passed:
    """A broadcast of pieces that this node passes on."""

    header: Header
    latest: Time
    """When a piece of it was last heard."""
    done: bool = False
    waiting: bool = False


class Passing:
    def __init__(self, params: Opportunistic, port: Port, forwarding: Forwarding, outgoing: Outgoing) -> None:
        self._whole = params.whole
        self._gather = seconds(params.gather)
        self._port = port
        self._forwarding = forwarding
        self._outgoing = outgoing
        self._heard: dict[Broadcast, Passed | None] = {}  # None: this node does not pass it on

    def hear(self, now: Time, header: Header) -> Passed | None:
        """Notes a piece of a broadcast; returns the broadcast if this node is yet to pass it on."""
        key = self._broadcast(header)
        passed = self._heard.get(key)
        if passed is None:
            if self._forwarding.chosen(header.relays, key not in self._heard):
                passed = Passed(header, now)
            elif key in self._heard:
                return None
            put(self._heard, key, passed, _LATEST)
        return None if passed is None or passed.done else passed

    def is_gathered(self, passed: Passed, partial: Partial[Document]) -> bool:
        """Whether all that is to be passed on is here."""
        return not self._needed(passed.header) & ~partial.have

    def gather(self, now: Time, passed: Passed, partial: Partial[Document]) -> None:
        """Called when more of a document is here: passes it on if it is complete, else waits for the rest."""
        passed.latest = now
        if self.is_gathered(passed, partial):
            self.send(now, passed, partial.whole, partial)
        elif not passed.waiting:
            passed.waiting = True
            self._port.set_timer(now + self._gather, Gather(self._broadcast(passed.header)))

    def ripe(self, now: Time, key: Gather) -> Passed | None:
        """The broadcast that this timer ends the waiting for, if any."""
        passed = self._heard.get(key.broadcast)
        if passed is None or passed.done:
            return None
        if now - passed.latest < self._gather:
            self._port.set_timer(passed.latest + self._gather, key)
            return None
        return passed

    def send(self, now: Time, passed: Passed, document: Document | None, partial: Partial[Document] | None) -> None:
        """Passes on the part of what was sent that is here, or all of it."""
        passed.done = True
        header = passed.header
        pieces = self._needed(header) & (header.cut.all if partial is None else partial.have)
        octets = None if partial is None else partial.octets
        if not pieces or (partial is None and document is not None and document.length != header.length):
            return
        scope = min(header.scope, MAX_SCOPE) - 1
        copy = msgspec.structs.replace(header, scope=scope, hops=min(header.hops + 1, MAX_HOPS))
        if self._outgoing.pass_on(now, Job(copy, pieces, document, octets, now)):
            self._port.decide(header.document, "forwarded")
        else:
            self._port.note("too busy to pass on")
            self._port.decide(header.document, "given up")

    def give_up(self, passed: Passed) -> None:
        passed.done = True
        self._port.decide(passed.header.document, "given up")

    def _needed(self, header: Header) -> int:
        """The pieces that this node passes on if all of them arrive."""
        return header.cut.all if self._whole else header.sent << header.first

    def _broadcast(self, header: Header) -> Broadcast:
        return header.source, header.serial, 0 if self._whole else header.chunk
