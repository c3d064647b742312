"""Flooding: who hears an event for the first time passes it on. The smallest broker; read it first."""

from random import Random
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from roamcast.content.event import Event, EventId
from roamcast.content.subscription import Publication
from roamcast.protocols.api import Broker, Node, Parameters, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_HOPS, Message, Role
from roamcast.protocols.window import DuplicateWindow
from roamcast.units import seconds


class Data(Message, frozen=True, tag="data"):
    """An event on its way: all that flooding and gossip need."""

    role: ClassVar[Role] = "data"

    event: Event
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """How many times it was transmitted before, 0 from its publisher."""

    @property
    def event_id(self) -> EventId:
        return self.event.id

    def onward(self) -> "Data":
        """The message as whoever hears it passes it on."""
        return Data(self.event, min(self.hops + 1, MAX_HOPS))


class Flooding(Parameters, frozen=True, kw_only=True):
    """Parameters of flooding."""

    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing on, s")] = 0.01
    window: Annotated[int, Meta(ge=1, description="how many events a node remembers having seen")] = 4096


class FloodingBroker(Broker[Flooding]):
    def __init__(self, node: Node, params: Flooding, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._seen = DuplicateWindow(params.window, lambda event_id: port.know(Data, event_id, False))
        if type(self).receive is FloodingBroker.receive:  # what another makes of copies, only it knows
            port.withhold(Data, "duplicate", once=True)

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        self._seen.add(event.id)
        self.local.deliver(event, 0, "local")
        self.port.decide(event.id, "forwarded")
        self.port.broadcast(Data(event, 0))

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not isinstance(message, Data):
            return
        if not self._seen.add(message.event.id):
            self.port.note("duplicate")
            return
        onward = message.onward()
        self.local.deliver(onward.event, onward.hops, "data")
        self.port.decide(onward.event.id, "forwarded")
        self.port.broadcast(onward, seconds(self.rng.random() * self.params.jitter))

    def tables(self) -> dict[str, int]:
        return {**super().tables(), "seen": len(self._seen)}


ENTRY: Final = Entry(
    "flooding", "every node that hears an event for the first time passes it on", Flooding, FloodingBroker, (Data,)
)
