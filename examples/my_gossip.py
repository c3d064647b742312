"""A gossip of my own: for the first few hops everyone passes an event on, farther out only some do."""

from random import Random
from typing import Annotated

from msgspec import Meta

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Parameters, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data
from roamcast.protocols.messages import Message
from roamcast.protocols.testing import Mesh
from roamcast.protocols.window import DuplicateWindow
from roamcast.units import SECOND, seconds


class MyGossip(Parameters, frozen=True, kw_only=True):
    """Parameters of my gossip."""

    sure: Annotated[int, Meta(ge=0, description="hops within which everyone passes an event on")] = 2
    p: Annotated[float, Meta(gt=0, le=1, description="probability of passing it on farther out")] = 0.5
    jitter: Annotated[float, Meta(ge=0, le=60, description="longest random wait before passing on, s")] = 0.01


class MyGossipBroker(Broker[MyGossip]):
    def __init__(self, node: Node, params: MyGossip, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._seen = DuplicateWindow(4096)

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        self._seen.add(event.id)
        self.local.deliver(event, 0, "local")
        self.port.broadcast(Data(event, 0))

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not isinstance(message, Data) or not self._seen.add(message.event.id):
            return
        onward = message.onward()
        self.local.deliver(onward.event, onward.hops, "data")
        if onward.hops <= self.params.sure or self.rng.random() < self.params.p:
            self.port.broadcast(onward, seconds(self.rng.random() * self.params.jitter))


ENTRY = Entry("my-gossip", "sure for some hops, then with probability p", MyGossip, MyGossipBroker, (Data,))


def test_everyone_passes_on_within_the_sure_hops() -> None:
    line = Mesh(ENTRY, range(5), [(0, 1), (1, 2), (2, 3), (3, 4)], {"sure": 2, "p": 1e-9})
    for node in range(5):
        line[node].subscribe(0, Subscription(1, EVERYTHING))
    line[0].publish(0, Publication(Event("alarm", id=7)))
    line.run(until=SECOND)
    assert [[delivery.hops for delivery in port.delivered] for port in line.ports.values()] == [[0], [1], [2], [3], []]


if __name__ == "__main__":
    test_everyone_passes_on_within_the_sure_hops()
    print("nodes 1 and 2 passed the event on for sure, and node 3 lost the toss")
