"""The contract between a broker and the world that hosts it, simulated or real.

A *broker* is the part of a protocol that runs on one node. It is a plain object: the host calls it when something
happens, and it answers by calling its *port*. The laws:

1. **A port call never re-enters the broker.** It only queues; whatever follows comes later, as a call of its own.
2. **Time and chance are arguments.** `now` is an int of nanoseconds that never goes back; `rng` is the broker's own.
   A broker reads no clock and draws from nothing else, so the same calls always give the same answers.
3. **A sent message is never changed.** Messages are frozen; in the simulator sender and receivers share the object.
4. **A timer cannot be taken back.** A broker ignores a key that means nothing to it any more.
5. **Order never comes from a set**, or from anything else that differs between two runs of one program.
6. **Bytes from others prove nothing.** A message has the right types, and that is all: any number may be any number,
   and `receive` must not raise whatever it gets. Tables that others can fill are bounded.
7. **A bulk is its pieces.** A host may call `receive` for each piece that arrived, in order, or `receive_bulk` once for
   all of them; both mean the same.
"""

import abc
import random
from collections.abc import Hashable, Mapping
from typing import Annotated, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from roamcast.content.event import Event, EventId, Scalar
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.facts import Decided, Fact
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.messages import Bulk, Message

Node = int
"""The number of a node, 0 to 2^31 - 1: the host's word, unlike numbers of nodes inside a message."""
Time = int
"""Nanoseconds since the world began."""
Handle = int
Work = Literal["convert", "match", "compare"]
"""What a broker computes that may be worth timing: it converts an event to its digest, matches an event with the
subscriptions of its node, or compares a digest with a summary."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every protocol's parameters. Each field has a default."""

    delivered: Annotated[
        int, Meta(ge=1, description="how many events a node remembers having delivered, across restarts too")
    ] = 1024

    @property
    def overhears(self) -> bool:
        """Whether brokers with these parameters ask `Port.overheard`: a world keeps no account of it otherwise."""
        return False


P = TypeVar("P", bound=Parameters)


class Port(Protocol):
    """What a broker can do to the world."""

    def broadcast(self, message: Message, delay: Time = 0) -> Handle:
        """Sends to whoever is in range, after `delay`."""

    def unicast(self, to: Node, message: Message, delay: Time = 0) -> Handle:
        """Sends to one neighbour, with acknowledgement. If it is given up, `unreachable` is called.

        An acknowledgement can get lost too: what was reported unreachable may have arrived.
        """

    def broadcast_bulk(self, bulk: Bulk) -> None:
        """Sends the pieces of a bulk to whoever is in range, one after another. `left` or `dropped` follows."""

    def withdraw(self, handle: Handle) -> None:
        """Takes back a message whose delay has not yet elapsed. Later, or with a stale handle, it does nothing."""

    def set_timer(self, at: Time, key: Hashable) -> None:
        """Has `timer(at, key)` called. A time that has passed means as soon as possible."""

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        """Hands an event to the application: to which of its subscriptions, after how many hops, in what message."""

    def note(self, what: str) -> None:
        """Counts something that happened and would not show otherwise, such as "duplicate"."""

    def record(self, fact: Fact) -> None:
        """Writes down a fact of a class that the protocol's entry lists."""

    def decide(self, event: EventId, decision: Decided, to: Node | None = None) -> None:
        """Writes down, if that is asked for, what the broker decided about an event. Free of charge where it is not."""

    def spend(self, work: Work) -> None:
        """Says that the broker computes this now. In a simulation it may take time; on a device it takes its own."""

    def keep(self, key: str, value: bytes) -> None:
        """Stores what must survive a crash; `start` gets it back."""

    def forget(self, key: str) -> None:
        """Removes what `keep` stored; a key that is not there is fine."""

    def here(self, now: Time) -> tuple[float, float] | None:
        """Where the node is, in metres; None where nobody knows, as on links without positions."""

    def attributes(self, now: Time) -> Mapping[str, Scalar]:
        """What the node knows of itself, such as its battery's charge; empty where nobody says."""

    def first_copies(self, kind: type[Message], window: int, note: str) -> None:
        """Allows the host to keep further copies of an event from the broker, and to count them as `note` itself.

        For a broker that does nothing else with a broadcast of this kind when it has published the event of it or
        received it before, and that remembers its `window` latest events. Called when the broker is made. A host may
        ignore it, as devices do: the broker counts for itself what it gets.
        """

    def overheard(self, neighbour: Node) -> Time | None:
        """When a frame that is not the protocol's, such as a scenario's background traffic, last came from a node.

        None: never, or nobody listens for it, as on devices.
        """


class Broker(abc.ABC, Generic[P]):
    """The base of every broker: the subscriptions of its own node, and what the host may call.

    A protocol overrides `receive` and `publish`, and of the rest what it needs.
    """

    linger: Time = 0
    """How long after the end of its lifetime a subscription still gets what matched in time. Its world ends it then."""

    def __init__(self, node: Node, params: P, port: Port, rng: random.Random) -> None:
        self.node = node
        self.params = params
        self.port = port
        self.rng = rng
        self.local = LocalSubscriptions(port, params.delivered)

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        """The node begins, or begins again with what it had kept. Called once, before everything else."""
        self.local.restore(kept)

    @abc.abstractmethod
    def publish(self, now: Time, publication: Publication) -> None:
        """The application of this node publishes."""

    @abc.abstractmethod
    def receive(self, now: Time, sender: Node, message: Message) -> None:
        """A message has arrived from a neighbour."""

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        """The application subscribes; an id that is in use is replaced."""
        self.local.add(subscription)

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        """The application no longer wants a subscription; an unknown id is ignored."""
        self.local.remove(subscription_id)

    def receive_bulk(self, now: Time, sender: Node, bulk: Bulk, received: int) -> None:
        """Some pieces of a bulk have arrived: bit n of `received` stands for piece n."""
        for number in range(len(bulk)):
            if received >> number & 1:
                self.receive(now, sender, bulk[number])

    def left(self, now: Time, message: Message | Bulk) -> None:
        """The last frame of a bulk, or of a broadcast message that is `tracked`, has been sent."""

    def dropped(self, now: Time, message: Message | Bulk) -> None:
        """A bulk, or a broadcast message that is `tracked`, found the queue full: none of it was sent."""

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """A unicast message was given up."""

    def timer(self, now: Time, key: Hashable) -> None:
        """A timer that was set has come."""

    def tables(self) -> dict[str, int]:
        """How full its tables are, by name: what `roamcast status` shows, and what must not grow without bound."""
        return {"subscriptions": len(self.local)}
