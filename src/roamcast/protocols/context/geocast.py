"""Geocast: brings a message to all hosts in a region. Receiver-based: no host needs to know its neighbours.

The rules this file owns:

* **Progress.** A host outside the region that hears a message for the first time passes it on if it is nearer to the
  region than the sender. It waits first, shorter the more progress it offers, so that the nearest host sends first.
* **Suppression.** A host that hears a copy from a host nearer to the region than itself does not send its own.
* **Inside the region** every host passes it on once, after a short random wait. A message without a region is for all.
* **Duplicates** are recognised by the message's `key`. Messages that different hosts make with the same key are one
  message: an originator that waits and hears a nearer host send it does not send its own either.
* **Local minimum.** A host outside the region that hears nobody nearer pass on what it sent repeats it; after `repeats`
  times it gives up and records that (`LocalMinimum`). With `carry` it keeps the message for that long and tries again
  every `CARRIED`, since hosts move.

The paper (section 4) has "a custom implementation of a receiver-based geocast protocol" and does not describe it;
waits, repetitions and the rule of suppression are ours.
"""

import random
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self

import msgspec
from msgspec import Meta

from roamcast.bounded import put
from roamcast.content.event import EventId
from roamcast.content.geometry import Point
from roamcast.content.region import Region
from roamcast.protocols.api import Port, Time
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.facts import Decided, Fact
from roamcast.protocols.messages import MAX_HOPS, Message, kind_of
from roamcast.units import SECOND, seconds

_TIMER: Final = "geocast"
CARRIED: Final = SECOND
"""Time between two attempts to send a message from a local minimum, ns; each varies by up to a tenth."""


class LocalMinimum(Fact, frozen=True):
    """A message got no nearer to its region: no host is nearer, or none heard it."""

    table: ClassVar[str] = "local_minimum"

    kind: str
    event: EventId | None
    """The event that the message is about, if any."""
    distance: float
    """Distance from the region, m."""


class Routed(Message, frozen=True, kw_only=True, dict=True):
    """A message to a region. What all its receivers work out of it is worked out once (`dict`)."""

    longest: ClassVar[int | None] = 2**15  # a filter or a context of the greatest length, and attributes

    presence: Presence
    """The presence of this copy's sender."""
    region: Region | None
    """None: everywhere."""
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)] = 0
    """How many times it was transmitted before."""

    @cached_property
    def key(self) -> Hashable:
        """Identifies the message; all copies have the same key."""
        raise NotImplementedError

    @cached_property
    def distance(self) -> float:
        """The sender's distance from the region."""
        return _distance(self.region, self.presence.host.location)

    def onward(self, presence: Presence, waited: Time) -> Self:
        """The message as the next host sends it, `waited` after it arrived."""
        return msgspec.structs.replace(self, presence=presence, hops=self.next_hops)

    @property
    def next_hops(self) -> int:
        """How many times it was transmitted, this copy included."""
        return min(self.hops + 1, MAX_HOPS)


Heard = Literal["copy", "outside", "inside"]
"""What a message means to the host that hears it: heard before; new, and for others; or new, and for this host."""


class Settings(NamedTuple):
    """How a geocast behaves; see `params.py` for the meaning."""

    reach: float = 200.0
    wait: Time = seconds(0.03)
    jitter: Time = seconds(0.01)
    repeats: int = 1
    carry: Time = 0
    window: int = 4096


class _Pending:
    """A message that this host is about to send, or has sent without hearing a nearer host pass it on."""

    __slots__ = ("arrived", "attempt", "distance", "message", "sent")

    def __init__(self, message: Routed, arrived: Time | None, distance: float) -> None:
        self.message = message
        """As it was received, or made here."""
        self.arrived = arrived
        """When it was received; None: it was made here."""
        self.distance = distance
        """Distance from the region; `_INSIDE` if in it, where nobody can be nearer."""
        self.attempt = 0
        self.sent: Time | None = None
        """When it was first sent."""


_INSIDE: Final = -1.0


class Geocast:
    def __init__(
        self,
        port: Port,
        rng: random.Random,
        settings: Settings,
        presence: Callable[[Time], Presence],
        here: Callable[[Time], Point | None] | None = None,
    ) -> None:
        """`here` replaces the port's."""
        self._port = port
        self._here = here or port.here
        self._rng = rng
        self._settings = settings
        self._presence = presence
        self._seen: dict[Hashable, None] = {}  # oldest first
        self._pending: dict[Hashable, _Pending] = {}
        self.spoken: Time | None = None
        """When this host last sent."""

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def remembered(self) -> int:
        return len(self._seen)

    def knows(self, key: Hashable) -> bool:
        """Whether a message with this key was heard or sent."""
        return key in self._seen

    def _remember(self, key: Hashable) -> None:
        """Remembers a key that is new."""
        self._seen[key] = None
        if len(self._seen) > self._settings.window:
            del self._seen[next(iter(self._seen))]

    # --- Sending ----------------------------------------------------------------------------------------------------

    def send(self, now: Time, message: Routed, delay: Time = 0) -> None:
        """Sends a new message from here after the delay, unless a nearer host is heard sending it first."""
        key = message.key
        if key in self._seen:
            return
        self._remember(key)
        here, region = message.presence.host.location, message.region
        inside = region is None or (here is not None and region.contains(*here))
        pending = _Pending(message, None, _INSIDE if inside else _distance(region, here))
        if delay:
            self._plan(now + delay, key, pending)
        else:
            self._transmit(now, key, pending, message)

    def _plan(self, at: Time, key: Hashable, pending: _Pending) -> None:
        """Sets only a timer: the message is made when it is sent, since most that wait are never sent."""
        put(self._pending, key, pending, self._settings.window)
        self._port.set_timer(at, (_TIMER, key, pending.attempt))

    def _transmit(self, now: Time, key: Hashable, pending: _Pending, message: Routed) -> None:
        self.spoken = now
        if pending.sent is None:
            pending.sent = now
        self._decide(message, "forwarded")
        self._port.broadcast(message)
        if pending.distance == _INSIDE:
            self._pending.pop(key, None)
            return
        # A nearer host should be heard soon.
        pending.attempt += 1
        later = round((2 + self._rng.random()) * self._settings.jitter)  # not in step with whoever collided with it
        self._plan(now + self._settings.wait + later, key, pending)

    # --- Hearing ----------------------------------------------------------------------------------------------------

    def hear(self, now: Time, message: Routed) -> Heard:
        """Handles a received message, and passes it on if the rules say so."""
        key = message.key
        if key in self._seen:
            if key in self._pending:
                self._hear_copy(key, message)
            return "copy"
        self._remember(key)
        region = message.region
        here = None if region is None else self._here(now)
        if region is None or (here is not None and region.contains(*here)):
            delay = round(self._rng.random() * self._settings.jitter)
            self._plan(now + delay, key, _Pending(message, now, _INSIDE))
            return "inside"
        if here is None:
            self._decide(message, "no route")
            return "outside"
        mine, theirs = region.distance(*here), message.distance
        if mine < theirs:
            progress = min((theirs - mine) / self._settings.reach, 1.0)
            delay = round((1 - progress) * self._settings.wait + self._rng.random() * self._settings.jitter)
            self._plan(now + delay, key, _Pending(message, now, mine))
        else:
            self._decide(message, "not chosen")
        return "outside"

    def _hear_copy(self, key: Hashable, copy: Routed) -> None:
        pending = self._pending[key]
        if _distance(pending.message.region, copy.presence.host.location) < pending.distance:
            del self._pending[key]
            if pending.sent is None:
                self._port.note("suppressed")
                self._decide(copy, "suppressed")

    def _decide(self, message: Routed, decision: Decided) -> None:
        event = message.event_id
        if event is not None:
            self._port.decide(event, decision)

    # --- Timers -----------------------------------------------------------------------------------------------------

    def timer(self, now: Time, key: Any) -> bool:  # noqa: ANN401  # any key that was set, by whomever
        """Whether the timer belongs to the geocast: it is time to send, or nobody nearer was heard."""
        if not (isinstance(key, tuple) and len(key) == 3 and key[0] == _TIMER):
            return False
        pending = self._pending.get(key[1])
        if pending is not None and pending.attempt == key[2]:
            if pending.sent is None:
                self._transmit(now, key[1], pending, self._made(now, pending))
            else:
                self._try_again(now, key[1], pending, pending.sent)
        return True

    def _made(self, now: Time, pending: _Pending) -> Routed:
        """The message as this host sends it now."""
        message, presence = pending.message, self._presence(now)
        if pending.arrived is None:
            return msgspec.structs.replace(message, presence=presence)
        return message.onward(presence, now - pending.arrived)

    def _try_again(self, now: Time, key: Hashable, pending: _Pending, since: Time) -> None:
        region, here = pending.message.region, self._here(now)
        if here is None or region is None or region.contains(*here):
            del self._pending[key]  # this host has entered the region itself, and has the message
            return
        pending.distance = region.distance(*here)
        if pending.attempt <= self._settings.repeats:
            self._transmit(now, key, pending, self._made(now, pending))
            return
        if pending.attempt == self._settings.repeats + 1:
            event, kind = pending.message.event_id, kind_of(type(pending.message))
            self._port.record(LocalMinimum(kind, event, pending.distance))
        if now - since >= self._settings.carry:
            del self._pending[key]
            self._decide(pending.message, "given up")
        elif pending.attempt % 2 == self._settings.repeats % 2:
            self._transmit(now, key, pending, self._made(now, pending))
        else:
            pending.attempt += 1
            self._plan(now + round(CARRIED * (0.9 + 0.2 * self._rng.random())), key, pending)


def _distance(region: Region | None, place: Point | None) -> float:
    """Distance from the region; infinite if the position is unknown."""
    if region is None:
        return 0.0
    return float("inf") if place is None else region.distance(*place)
