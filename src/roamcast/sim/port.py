"""A node's port in the simulated world: see `protocols.api.Port`."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Final, get_args

from roamcast.content.event import Event, EventId, Scalar
from roamcast.protocols.api import Work
from roamcast.protocols.facts import Decided, Decision, Fact
from roamcast.protocols.messages import Bulk, Message
from roamcast.sim.core.interface import EVERYONE

if TYPE_CHECKING:  # the world makes its ports
    from roamcast.sim.world import World

DECISIONS: Final = get_args(Decided)


class SimulatedPort:
    """Passes every call on to the world."""

    __slots__ = ("_node", "_world", "kept", "notes")

    def __init__(self, world: "World", node: int) -> None:
        self._world = world
        self._node = node
        self.kept: dict[str, bytes] = {}
        self.notes: dict[str, int] = {}

    def broadcast(self, message: Message, delay: int = 0) -> int:
        return self._world.send(self._node, EVERYONE, message, delay)

    def unicast(self, to: int, message: Message, delay: int = 0) -> int:
        return self._world.send(self._node, to, message, delay)

    def broadcast_bulk(self, bulk: Bulk) -> None:
        self._world.send_bulk(self._node, bulk)

    def withdraw(self, handle: int) -> None:
        self._world.withdraw(handle)

    def set_timer(self, at: int, key: Hashable) -> None:
        self._world.set_timer(self._node, at, key)

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        self._world.deliver(self._node, event, subscriptions, hops, via)

    def note(self, what: str, count: int = 1) -> None:
        self.notes[what] = self.notes.get(what, 0) + count

    def record(self, fact: Fact) -> None:
        self._world.record(self._node, fact)

    def decide(self, event: EventId, decision: Decided, to: int | None = None) -> None:
        pass

    def spend(self, work: Work) -> None:
        pass

    def keep(self, key: str, value: bytes) -> None:
        self.kept[key] = value

    def forget(self, key: str) -> None:
        self.kept.pop(key, None)

    def here(self, now: int) -> tuple[float, float] | None:
        return self._world.here(self._node, now)

    def attributes(self, now: int) -> Mapping[str, Scalar]:
        return self._world.attributes(self._node)

    def authentic(self, event: Event) -> bool:
        return True  # simulated nodes are honest

    def withhold(self, kind: type[Message], note: str | None = None, once: bool = False) -> None:
        self._world.withhold(kind, note, once)

    def know(self, kind: type[Message], subject: Hashable, known: bool = True) -> None:
        self._world.know(self._node, kind, subject, known)

    def overheard(self, neighbour: int) -> int | None:
        return self._world.overheard(self._node, neighbour)


class DecidingPort(SimulatedPort):
    """A port that records decisions."""

    __slots__ = ()

    def decide(self, event: EventId, decision: Decided, to: int | None = None) -> None:
        if decision not in DECISIONS:
            raise ValueError(f"decision {decision!r}: expected one of {', '.join(DECISIONS)}")
        self._world.record(self._node, Decision(event, decision, to))
