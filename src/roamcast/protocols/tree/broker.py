"""Brokers on a tree: combines a tree and a routing, which do not know each other."""

from collections.abc import Hashable, Mapping
from random import Random
from typing import Final

from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.coman import ComanRules
from roamcast.protocols.tree.facts import TreeChanged
from roamcast.protocols.tree.forwarding import routing
from roamcast.protocols.tree.forwarding_messages import Routed, Routes
from roamcast.protocols.tree.maodv import MaodvRules
from roamcast.protocols.tree.messages import Ack, ChkUp, Grph, Hello, Mact, Rrep, Rreq
from roamcast.protocols.tree.parameters import Coman, Maodv
from roamcast.protocols.tree.rules import Rules
from roamcast.protocols.tree.tree import Tree


class TreeBroker(Broker[Maodv]):
    """A broker on a tree; its parameters decide which rules the tree follows."""

    def __init__(self, node: Node, params: Maodv, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self.routing = routing(node, params.routing, port, rng, self.local)
        self.tree = Tree(node, params, port, rng, self.routing, self._rules)
        self._published = False

    def _rules(self, tree: Tree) -> Rules:
        return ComanRules(tree, self.params) if isinstance(self.params, Coman) else MaodvRules(tree, self.params)

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self.tree.start(now, kept, member=self.params.members == "all")

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self.tree.join(now)
        self.routing.subscribe(now, subscription)

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self.routing.unsubscribe(now, subscription_id)
        if self.params.members == "clients" and not len(self.local) and not self._published:
            self.tree.leave(now)

    def publish(self, now: Time, publication: Publication) -> None:
        """A publisher joins the tree and stays, or its events could not get onto it."""
        self._published = True
        self.tree.join(now)
        self.routing.publish(now, publication)

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not self.tree.receive(now, sender, message):
            self.routing.receive(now, sender, message)

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        self.routing.unreachable(now, to, message)
        self.tree.unreachable(now, to, message)

    def timer(self, now: Time, key: Hashable) -> None:
        if not self.routing.timer(now, key):
            self.tree.timer(now, key)

    def tables(self) -> dict[str, int]:
        return {**super().tables(), **self.routing.tables(), **self.tree.tables()}


_OF_A_TREE: Final = (Hello, Rreq, Rrep, Mact, Grph)

MAODV: Final = Entry(
    "maodv",
    "along a tree that repairs itself as MAODV's does (Royer, Perkins 1999)",
    Maodv,
    TreeBroker,
    (*_OF_A_TREE, Routes, Routed),
    (TreeChanged,),
)
COMAN: Final = Entry(
    "coman",
    "along a tree whose repairs change few routes (Mottola, Cugola, Picco 2008)",
    Coman,
    TreeBroker,
    (*_OF_A_TREE, ChkUp, Ack, Routes, Routed),
    (TreeChanged,),
)
