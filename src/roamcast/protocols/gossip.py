"""Gossip: who hears an event for the first time passes it on with probability p. The baseline of the hint-based paper.

It is flooding with a toss: with p = 1 the two are the same protocol. The publisher always sends.
"""

from random import Random
from typing import Annotated, Final

from msgspec import Meta

from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker
from roamcast.protocols.messages import Message


class Gossip(Flooding, frozen=True, kw_only=True):
    """Parameters of gossip: those of flooding, and one."""

    p: Annotated[float, Meta(gt=0, le=1, description="probability that a first hearing is passed on")] = 0.5


class GossipBroker(FloodingBroker):
    params: Gossip

    def __init__(self, node: Node, params: Gossip, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        if type(self).receive is GossipBroker.receive:
            port.withhold(Data, "duplicate", once=True)

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if isinstance(message, Data) and message.event.id not in self._seen and self.rng.random() >= self.params.p:
            self._seen.add(message.event.id)
            self.local.deliver(message.event, message.onward().hops, "data")
            self.port.decide(message.event.id, "not chosen")
        else:
            super().receive(now, sender, message)


ENTRY: Final = Entry(
    "gossip",
    "every node that hears an event for the first time passes it on with probability p",
    Gossip,
    GossipBroker,
    (Data,),
    compared=({"p": 0.5}, {"p": 0.7}, {"p": 0.9}),
)
