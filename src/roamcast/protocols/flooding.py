"""Flooding: who hears an event for the first time passes it on. The smallest broker; read it first."""

from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.content.subscription import Publication
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.messages import Data, Message
from roamcast.protocols.window import DuplicateWindow
from roamcast.units import seconds


class Flooding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of flooding."""

    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing on, s")] = 0.01
    window: Annotated[int, Meta(ge=1, description="how many events a node remembers having seen")] = 4096


class FloodingBroker(Broker[Flooding]):
    def __init__(self, node: Node, params: Flooding, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._seen = DuplicateWindow(self.params.window)

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        self._seen.add(event.id)
        self.local.deliver(event, 0, "local")
        self.port.broadcast(Data(event, 0))

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not isinstance(message, Data):
            return
        if not self._seen.add(message.event.id):
            self.port.note("duplicate")
            return
        onward = message.onward()
        self.local.deliver(onward.event, onward.hops, "data")
        self.port.broadcast(onward, seconds(self.rng.random() * self.params.jitter))
