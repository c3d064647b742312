"""The neighbours of a host, from what they send; and when to send a beacon.

Section 3.1: hosts tell their neighbours where they are, where they were and their key attributes, in beacons that are
sent only in the absence of other traffic.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, overload

from roamcast.content.context.host import HostView, Situation
from roamcast.protocols.api import Node, Time
from roamcast.protocols.context.geocast import Geocast
from roamcast.protocols.context.presence import Presence, Whereabouts

BEACON: Final = "beacon"


class _Neighbour:
    __slots__ = ("last", "presence", "watched")

    def __init__(self, now: Time, presence: Presence) -> None:
        self.last = now
        self.presence = presence
        self.watched = now


class _Neighbours(Sequence[HostView]):
    """The neighbours heard since a time, listed only when a context looks at them: most do not."""

    def __init__(self, heard: dict[Node, _Neighbour], since: Time) -> None:
        self._heard = heard
        self._since = since

    @cached_property
    def _hosts(self) -> tuple[HostView, ...]:
        return tuple(known.presence.host for known in self._heard.values() if known.last >= self._since)

    def __len__(self) -> int:
        return len(self._hosts)

    @overload
    def __getitem__(self, index: int) -> HostView: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HostView]: ...
    def __getitem__(self, index: int | slice) -> HostView | Sequence[HostView]:
        return self._hosts[index]


class Surroundings:
    """What a host knows about itself and its neighbours, in the form that contexts read.

    Bounded: when it is full, the neighbour silent for longest makes room. Every received frame passes through here, so
    hearing a known neighbour must cost next to nothing.
    """

    def __init__(self, whereabouts: Whereabouts, lifetime: Time, capacity: int, check: Time) -> None:
        self._whereabouts = whereabouts
        self._lifetime = lifetime
        self._capacity = capacity
        self._check = check
        self._heard: dict[Node, _Neighbour] = {}
        self._asked: tuple[Time, Situation] | None = None

    def __len__(self) -> int:
        return len(self._heard)

    def hear(self, now: Time, node: Node, presence: Presence) -> bool:
        """Stores a neighbour's presence; returns whether it is time again to check where it has gone."""
        self._asked = None
        known = self._heard.get(node)
        if known is None:
            if len(self._heard) >= self._capacity:
                del self._heard[min(self._heard, key=lambda other: self._heard[other].last)]
            self._heard[node] = _Neighbour(now, presence)
            return True
        known.last = now
        known.presence = presence
        if now - known.watched < self._check:
            return False
        known.watched = now
        return True

    def expire(self, now: Time) -> None:
        """Forgets neighbours that were silent for too long."""
        for node in [node for node, known in self._heard.items() if known.last < now - self._lifetime]:
            del self._heard[node]

    def situation(self, now: Time) -> Situation:
        """This host and its neighbours, as of now."""
        if self._asked is None or self._asked[0] != now:
            around = _Neighbours(self._heard, now - self._lifetime)
            self._asked = now, Situation(self._whereabouts.view(now), around)
        return self._asked[1]

    def with_answers(self, now: Time, answers: dict[Node, HostView]) -> Situation:
        """The same after a query to hosts beyond one hop: neighbours count even if their answers were lost."""
        own, since = self.situation(now), now - self._lifetime
        hosts = {node: known.presence.host for node, known in self._heard.items() if known.last >= since}
        return Situation(own.host, own.neighbours, tuple((hosts | answers).values()))


class BeaconClock:
    """When to send a beacon: a pause after the host last sent anything with its position, each time another pause."""

    def __init__(self, pause: Callable[[], Time], geocast: Geocast, start: Time) -> None:
        self._pause = pause
        self._geocast = geocast
        self._spoken = start - 1
        """When it last sent its position."""
        self.due = start
        """When the next beacon is due."""

    def spoke(self, now: Time) -> None:
        if now > self._spoken:
            self._spoken, self.due = now, now + self._pause()

    def is_due(self, now: Time) -> bool:
        if self._geocast.spoken is not None:
            self.spoke(self._geocast.spoken)
        return self.due <= now
