"""The soft state of a node: what it has heard, until it is too long ago. Every table is bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.facts import Fact
from roamcast.protocols.odmrp.extension import Offer
from roamcast.protocols.odmrp.messages import MAX_MEMBERS

MAX_UPSTREAM: Final = 8
MAX_WISHES: Final = 16 * 2**20
"""Bytes."""


class MeshChanged(Fact, frozen=True):
    """A node became a forwarder of a group, or ceased to be one."""

    table: ClassVar[str] = "mesh"

    group: int
    forwards: bool
    cause: int
    """The refresh whose Join Table set the flag; 0: the flag expired, or made room for another."""


@dataclass
class Route:
    """The route back to a source of a group, from its latest Join Request."""

    sequence: int
    hops: int
    """Hops of the first copy."""
    upstream: list[Node]
    about: bytes
    heard: Time

    def add(self, node: Node) -> None:
        if node not in self.upstream and len(self.upstream) < MAX_UPSTREAM:
            self.upstream.append(node)


class Routes:
    """Routes by source and group."""

    def __init__(self, lifetime: Time, capacity: int) -> None:
        self._lifetime = lifetime
        self._capacity = capacity
        self._routes: dict[tuple[Node, int], Route] = {}

    def set(self, source: Node, group: int, route: Route) -> None:
        put(self._routes, (source, group), route, self._capacity)

    def get(self, now: Time, source: Node, group: int) -> Route | None:
        route = self._routes.get((source, group))
        return route if route is not None and now - route.heard <= self._lifetime else None

    def live(self, now: Time) -> Iterator[tuple[Node, int, Route]]:
        """Longest ago first."""
        for (source, group), route in self._routes.items():
            if now - route.heard <= self._lifetime:
                yield source, group, route

    def __len__(self) -> int:
        return len(self._routes)


@dataclass
class _Flag:
    expires: Time
    checked: Time
    """When its timer expires."""


class Flags:
    """The groups that a node forwards for."""

    def __init__(self, port: Port, lifetime: Time, capacity: int) -> None:
        self._port = port
        self._lifetime = lifetime
        self._capacity = capacity
        self._flags: dict[int, _Flag] = {}

    def set(self, now: Time, group: int, cause: int) -> None:
        flag = self._flags.get(group)
        if flag is not None and now <= flag.expires:
            flag.expires = now + self._lifetime
            return
        oldest = put(self._flags, group, _Flag(now + self._lifetime, now + self._lifetime + 1), self._capacity)
        if oldest is not None:
            self._port.record(MeshChanged(oldest, False, 0))
        self._port.record(MeshChanged(group, True, cause))
        self._port.set_timer(now + self._lifetime + 1, ("flag", group))

    def keep(self, now: Time, group: int) -> None:
        """Refreshes a flag if it is set."""
        flag = self._flags.get(group)
        if flag is not None and now <= flag.expires:
            flag.expires = now + self._lifetime

    def check(self, now: Time, group: int) -> None:
        """The timer of a flag: clears it if nothing has refreshed it."""
        flag = self._flags.get(group)
        if flag is None or now < flag.checked:  # the timer of a flag that made room meanwhile
            return
        if now > flag.expires:
            del self._flags[group]
            self._port.record(MeshChanged(group, False, 0))
        else:
            flag.checked = flag.expires + 1
            self._port.set_timer(flag.checked, ("flag", group))

    def is_set(self, now: Time, group: int) -> bool:
        flag = self._flags.get(group)
        return flag is not None and now <= flag.expires

    def __len__(self) -> int:
        return len(self._flags)


class Members:
    """The members of groups, as learned from Join Tables: at a source all of them, at a forwarder those downstream.

    By group and node: when it was last heard of, and its attachment. Different attachments take at most `MAX_WISHES`
    bytes together; the group heard of longest ago makes room.
    """

    def __init__(self, lifetime: Time, capacity: int) -> None:
        self._lifetime = lifetime
        self._capacity = capacity
        self._groups: dict[int, dict[Node, tuple[Time, bytes]]] = {}
        self._wishes: dict[bytes, int] = {}  # how many members have attached each
        self._octets = 0

    def hear(self, now: Time, group: int, node: Node, wanted: bytes) -> None:
        members = self._groups.pop(group, {})
        self._groups[group] = members
        self._count(wanted)
        former = members.pop(node, None)
        members[node] = now, wanted
        if former is not None:
            self._discount(former[1])
        if len(members) > MAX_MEMBERS:
            self._discount(members.pop(next(iter(members)))[1])
        while len(self._groups) > self._capacity or (self._octets > MAX_WISHES and len(self._groups) > 1):
            for _, wish in self._groups.pop(next(iter(self._groups))).values():
                self._discount(wish)

    def _count(self, wish: bytes) -> None:
        if wish not in self._wishes:
            self._wishes[wish] = 0
            self._octets += len(wish)
        self._wishes[wish] += 1

    def _discount(self, wish: bytes) -> None:
        self._wishes[wish] -= 1
        if not self._wishes[wish]:
            del self._wishes[wish]
            self._octets -= len(wish)

    def of(self, now: Time, group: int) -> list[bytes]:
        """The attachments of a group's members, one each."""
        return self.since(now - self._lifetime, group)

    def since(self, time: Time, group: int) -> list[bytes]:
        """The same for members heard of at that time or later."""
        members = self._groups.get(group)
        return [] if members is None else [wanted for heard, wanted in members.values() if heard >= time]

    def __len__(self) -> int:
        return len(self._groups)


@dataclass
class Held:
    """An event that waits for a route."""

    event: Event
    offer: Offer
    until: Time


@dataclass
class Sending:
    """A group that this node is a source of."""

    started: Time
    """Its first Join Request."""
    latest: Time
    """Its latest Join Request."""
    due: Time
    """The time from which the next event is sent in a new Join Request."""
    held: dict[int, Held] = field(default_factory=dict)


@dataclass
class Pending:
    """A Join Table that is about to be sent: its sources, and the members collected for it."""

    sources: dict[Node, None] = field(default_factory=dict)
    members: dict[Node, bytes] = field(default_factory=dict)
