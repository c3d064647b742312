"""Counter-based broadcast: a node forwards an event after a random wait, unless it has heard enough copies by then.

After Ni, Tseng, Chen, Sheu, *The Broadcast Storm Problem in a Mobile Ad Hoc Network* (1999): each further copy that a
node hears makes it less likely that its own transmission reaches anybody new. The count starts at 1 with the first
copy; at `copies` the node stays silent. No beacons, no tables of neighbours: where it is sparse few copies are heard
and nearly all nodes forward, where it is dense only some do. The publisher always sends, at once.
"""

from random import Random
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from roamcast.bounded import put
from roamcast.content.event import EventId
from roamcast.protocols.api import Handle, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker
from roamcast.protocols.messages import Message
from roamcast.units import seconds


class Counter(Flooding, frozen=True, kw_only=True):
    """Parameters of counter: those of flooding, with a longer wait, and one more."""

    # Many times a frame's time on the air (1.6 ms for 256 bytes at 2 Mb/s), or nothing could be heard meanwhile.
    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing on, s")] = 0.1
    copies: Annotated[
        int, Meta(ge=2, description="a node that has heard this many copies, the first included, stays silent")
    ] = 3


class _Waiting(NamedTuple):
    """An event that is to be forwarded."""

    handle: Handle
    leaves: Time
    heard: int
    """Copies, the first included."""


class CounterBroker(FloodingBroker):
    params: Counter

    def __init__(self, node: Node, params: Counter, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._waiting: dict[EventId, _Waiting] = {}
        if type(self).receive is CounterBroker.receive:
            port.withhold(Data, "duplicate")

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not isinstance(message, Data):
            return
        if not self._seen.add(message.event.id):
            self.port.note("duplicate")
            self._count(now, message.event.id)
            return
        onward = message.onward()
        self.local.deliver(onward.event, onward.hops, "data")
        self.port.decide(onward.event.id, "forwarded")
        wait = seconds(self.rng.random() * self.params.jitter)
        handle = self.port.broadcast(onward, wait)
        put(self._waiting, onward.event.id, _Waiting(handle, now + wait, 1), self.params.window)

    def _count(self, now: Time, event_id: EventId) -> None:
        """Counts another copy; at the threshold this node's own is withdrawn, if it has not left."""
        waiting = self._waiting.pop(event_id, None)
        if waiting is None or waiting.leaves <= now:
            self.port.know(Data, event_id)
            return
        if waiting.heard + 1 < self.params.copies:
            self._waiting[event_id] = waiting._replace(heard=waiting.heard + 1)
            return
        self.port.decide(event_id, "suppressed")
        self.port.withdraw(waiting.handle)
        self.port.know(Data, event_id)

    def tables(self) -> dict[str, int]:
        return {**super().tables(), "waiting": len(self._waiting)}


ENTRY: Final = Entry(
    "counter",
    "every node passes an event on after a random wait, unless it has heard enough copies by then (Ni et al. 1999)",
    Counter,
    CounterBroker,
    (Data,),
    compared=({"copies": 2}, {"copies": 3}, {"copies": 4}),
)
