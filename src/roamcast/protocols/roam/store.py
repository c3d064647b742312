"""The store: the events that a node carries until their lives end, also on disk, and what it has received.

Both are bounded, and the oldest make room. What was received is remembered a little longer than it lives, so that a
neighbour whose clock is behind does not send it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import Event, EventId
from roamcast.errors import ContentError
from roamcast.protocols.api import Port
from roamcast.protocols.roam.messages import MAX_BEHIND, MAX_PUBLISHERS, Digest, Name, Received, encode
from roamcast.units import SECOND

_KEPT: Final = "carried/"
_MARGIN: Final = 10 * SECOND
_UNMERGED: Final = 8
_FAR: Final = 1e9
_WHOLE: Final = (1 << MAX_BEHIND) - 1


class _Record(msgspec.Struct, frozen=True, array_like=True):
    event: Event
    hops: int
    expires: int


_decode: Final = msgspec.msgpack.Decoder(_Record).decode


@dataclass(slots=True, eq=False)
class Held:
    """An event that a node carries."""

    event: Event
    hops: int
    """How often it was transmitted on its way here."""
    expires: int
    arrived: int
    jitter: int = 0
    """A random part of the wait before it is forwarded."""
    due: int | None = None
    """When it will be sent, unless somebody else makes that needless."""
    gains: dict[Name, float] = field(default_factory=dict)
    """For which subscribers that is: a claim below this distance takes one away."""
    copies: int = 1
    """How often it was heard."""
    enough: int = 0
    """At so many copies it is not sent."""
    listing: bool = True
    """Whether it is sent with claims."""
    counting: bool = False
    """Whether it is forwarded unless enough copies are heard, whoever wants it."""
    repair: bool = False
    """Whether that is for a neighbour that lacks it."""
    heard: int = 0
    """When the last copy was heard or sent."""
    _claims: list[Mapping[Name, float]] = field(default_factory=list)  # of copies; most are never looked at

    def hear(self, now: int, claims: Mapping[Name, float]) -> None:
        """Notes the claims of a copy, which are merged when somebody asks."""
        self.heard = now
        self._claims.append(claims)
        if len(self._claims) > _UNMERGED:
            _ = self.claims

    @property
    def claims(self) -> dict[Name, float]:
        """The shortest distance to each subscriber that a sender of the event has claimed."""
        claims: dict[Name, float] = {}
        for heard in self._claims:
            if not claims:
                claims.update(heard)
                continue
            for name, distance in heard.items():
                if distance < claims.get(name, _FAR):
                    claims[name] = distance
        self._claims = [claims]
        return claims


class Store:
    def __init__(self, port: Port, capacity: int, window: int) -> None:
        self._port = port
        self._capacity = capacity
        self._window = window
        self._held: dict[EventId, Held] = {}  # in order of arrival
        self.get: Final = self._held.get
        self._received: dict[EventId, int] = {}  # until when each is remembered
        self._next_purge = 0
        self.digest: Digest = {}
        """What was received, the publisher heard last at the end."""

    def received(self, id: EventId) -> bool:
        return id in self._received

    def put(self, held: Held, encoded: msgspec.Raw | None = None) -> EventId | None:
        """Carries a new event, which may be encoded already; returns the one that had to make room."""
        id = held.event.id
        evicted = put(self._held, id, held, self._capacity)
        if evicted is not None:
            self._port.forget(f"{_KEPT}{evicted}")
        self._port.keep(f"{_KEPT}{id}", encode((encoded or held.event, held.hops, held.expires)))
        self._remember(held)
        return evicted

    def _remember(self, held: Held) -> None:
        evicted = put(self._received, held.event.id, held.expires + _MARGIN, self._window)
        if evicted is not None:
            self._leave(evicted)
        self._enter(held.event.id)

    def _enter(self, id: EventId) -> None:
        """Enters an event into the digest, its publisher as the newest."""
        publisher, serial = id >> 32, id & 0xFFFFFFFF
        top, mask = self.digest.get(publisher, (serial, 0))
        behind = top - serial
        if behind < 0:
            top, mask = serial, (mask << min(-behind, MAX_BEHIND)) & _WHOLE | 1
        elif behind < MAX_BEHIND:
            mask |= 1 << behind
        put(self.digest, publisher, (top, mask), MAX_PUBLISHERS)

    def _leave(self, id: EventId) -> None:
        """Removes an event from the digest."""
        publisher, serial = id >> 32, id & 0xFFFFFFFF
        top, mask = self.digest.get(publisher, (serial, 0))
        if 0 <= top - serial < MAX_BEHIND:
            mask &= ~(1 << top - serial)
        if mask:
            above = (mask & -mask).bit_length() - 1  # serials above the highest that is left
            self.digest[publisher] = top - above, mask >> above
        else:
            self.digest.pop(publisher, None)

    def restore(self, now: int, kept: Mapping[str, bytes]) -> None:
        """Restores what was carried before a restart; forgets what has expired or cannot be read any more."""
        found = []
        for key, value in kept.items():
            if not key.startswith(_KEPT):
                continue
            try:
                record = _decode(value)
            except (msgspec.MsgspecError, ContentError):
                self._port.forget(key)
                continue
            if record.expires <= now:
                self._port.forget(key)
            else:
                found.append(record)
        for record in sorted(found, key=lambda record: (record.expires, record.event.id)):
            held = Held(record.event, record.hops, record.expires, now)
            put(self._held, held.event.id, held, self._capacity)
            self._remember(held)

    def expire(self, now: int) -> None:
        for id in [id for id, held in self._held.items() if held.expires <= now]:
            del self._held[id]
            self._port.forget(f"{_KEPT}{id}")
        if now < self._next_purge:
            return
        self._next_purge = now + _MARGIN
        gone = [id for id, until in self._received.items() if until <= now]
        for id in gone:
            del self._received[id]
            self._leave(id)

    def summary(self) -> tuple[Received, ...]:
        """The digest as a hello has it."""
        return tuple(
            [
                Received(publisher, top, mask.to_bytes((mask.bit_length() + 7) // 8, "little"))
                for publisher, (top, mask) in self.digest.items()
            ]
        )

    def missing(self, theirs: Digest) -> list[Held]:
        """The events carried here that a neighbour with this digest lacks, latest first by publisher."""
        found: list[Held] = []
        if theirs == self.digest:  # so it is most often
            return found
        for publisher, mine in self.digest.items():
            told = theirs.get(publisher)
            if told == mine:
                continue
            top, mask = mine
            if told is not None:
                lacking = mask & ~_shifted(told[1], top - told[0])
            elif len(theirs) < MAX_PUBLISHERS:
                lacking = mask
            else:  # the digest was too small for it
                continue
            serial = top
            while lacking:
                skipped = (lacking & -lacking).bit_length() - 1
                serial, lacking = serial - skipped, lacking >> skipped + 1
                held = self._held.get(publisher << 32 | serial)
                serial -= 1
                if held is not None:
                    found.append(held)
        return found

    def __iter__(self) -> Iterator[Held]:
        """In order of arrival."""
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    @property
    def remembered(self) -> int:
        return len(self._received)


def lacks(digest: Digest, id: EventId) -> bool:
    """Whether a neighbour with this digest has not received an event."""
    publisher, serial = id >> 32, id & 0xFFFFFFFF
    if publisher not in digest:
        return len(digest) < MAX_PUBLISHERS
    top, mask = digest[publisher]
    return serial > top or (top - serial < MAX_BEHIND and not mask >> top - serial & 1)


def _shifted(mask: int, ahead: int) -> int:
    """The mask for a highest serial that is so much greater. What is too old for a mask counts as received."""
    if ahead >= 0:
        return mask << min(ahead, MAX_BEHIND)
    return mask >> min(-ahead, MAX_BEHIND) | -1 << max(0, MAX_BEHIND + ahead)
