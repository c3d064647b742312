"""The soft state of a node: what it has heard, until it is too long ago. Every table is bounded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.facts import Fact
from roamcast.protocols.odmrp.extension import GroupOffer
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
    told: dict[Node, bytes] | None = None
    """The members that this node's Join Tables have named along this route; None: it has sent none."""

    def add(self, node: Node) -> None:
        if node not in self.upstream and len(self.upstream) < MAX_UPSTREAM:
            self.upstream.append(node)
            self.told = None

    def news(self, members: dict[Node, bytes]) -> dict[Node, bytes] | None:
        """What has not been told along this route; None if a Join Table would say nothing new."""
        if self.told is None:
            return members
        return {node: wanted for node, wanted in members.items() if self.told.get(node) != wanted} or None

    def tell(self, members: dict[Node, bytes]) -> None:
        self.told = self.told or {}
        for node, wanted in members.items():
            put(self.told, node, wanted, MAX_MEMBERS)


class RoutesBack:
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


class GroupMembers:
    """The members of groups, as learned from Join Tables: at a source all of them, at a forwarder those downstream.

    By group and node: when it was last heard of, and its attachment. Of more than `MAX_MEMBERS`, those heard of longest
    ago are merged, since what is dropped would count as wanted by nobody. There is a merged entry for each period of
    `lifetime`, with a name below 0, so that it expires although others are merged later. Different attachments take at
    most `MAX_WISHES` bytes together; the group heard of longest ago makes room.
    """

    def __init__(self, lifetime: Time, capacity: int, merge: Callable[[Sequence[bytes]], bytes]) -> None:
        self._lifetime = lifetime
        self._capacity = capacity
        self._merge = merge
        self._groups: dict[int, dict[Node, tuple[Time, bytes]]] = {}
        self._wishes: dict[bytes, int] = {}  # how many members have attached each
        self._octets = 0

    def hear(self, now: Time, group: int, node: Node, wanted: bytes) -> None:
        members = self._groups.pop(group, {})
        self._groups[group] = members
        self._set(members, node, now, wanted)
        if len(members) > MAX_MEMBERS and sum(name >= 0 for name in members) > MAX_MEMBERS:
            self._make_room(now, members)
        while len(self._groups) > self._capacity or (self._octets > MAX_WISHES and len(self._groups) > 1):
            for _, wish in self._groups.pop(next(iter(self._groups))).values():
                self._discount(wish)

    def _make_room(self, now: Time, members: dict[Node, tuple[Time, bytes]]) -> None:
        for name in [name for name, (heard, _) in members.items() if name < 0 and now - heard > self._lifetime]:
            self._discount(members.pop(name)[1])
        oldest = next(name for name in members if name >= 0)
        heard, wanted = members.pop(oldest)
        if now - heard <= self._lifetime:
            period = -1 - heard // self._lifetime
            latest, merged = members.get(period, (heard, wanted))
            self._set(members, period, max(heard, latest), self._merge((merged, wanted)))
        self._discount(wanted)

    def _set(self, members: dict[Node, tuple[Time, bytes]], name: int, heard: Time, wanted: bytes) -> None:
        self._count(wanted)
        former = members.pop(name, None)
        members[name] = heard, wanted
        if former is not None:
            self._discount(former[1])

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
class HeldEvent:
    """An event that waits for a route."""

    event: Event
    offer: GroupOffer
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
    held: dict[int, HeldEvent] = field(default_factory=dict)


@dataclass
class PendingTable:
    """A Join Table that is about to be sent: its sources, and the members collected for it."""

    sources: dict[Node, bool] = field(default_factory=dict)
    """Whether a Join Table named this node on the way there; otherwise it answers for itself alone."""
    members: dict[Node, bytes] = field(default_factory=dict)
