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
"""The number of a node, 0 to 2^31 - 1. It comes from the host and is true; node numbers inside messages are claims."""
Time = int
"""Nanoseconds since the world began."""
Handle = int
Work = Literal["convert", "match", "compare"]
"""A broker's computations that may take measurable time: converting an event to its digest, matching an event with the
subscriptions of its node, or comparing a digest with a summary."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every protocol's parameters. Each field has a default."""

    delivered: Annotated[
        int,
        Meta(
            ge=1,
            description="how many events a node remembers having delivered, beyond those it holds, across restarts too",
        ),
    ] = 1024

    @property
    def overhears(self) -> bool:
        """Whether brokers with these parameters call `Port.overheard`: otherwise a world need not keep track of it."""
        return False


P = TypeVar("P", bound=Parameters)


class Port(Protocol):
    """What a broker can do to the world."""

    def broadcast(self, message: Message, delay: Time = 0) -> Handle:
        """Sends to all nodes in range, after `delay`."""

    def unicast(self, to: Node, message: Message, delay: Time = 0) -> Handle:
        """Sends to one neighbour, with acknowledgement. If the message is given up, `unreachable` is called.

        An acknowledgement can get lost too: a message reported as unreachable may have arrived.
        """

    def broadcast_bulk(self, bulk: Bulk) -> None:
        """Sends the pieces of a bulk to all nodes in range, one after another. `left` or `dropped` follows."""

    def withdraw(self, handle: Handle) -> None:
        """Cancels a message whose delay has not elapsed yet. Later, or with a stale handle, it does nothing."""

    def set_timer(self, at: Time, key: Hashable) -> None:
        """Schedules a call of `timer(at, key)`. A time that has passed means as soon as possible."""

    def deliver(self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str) -> None:
        """Hands an event to the application: to these of its subscriptions, after so many hops, in such a message."""

    def note(self, what: str) -> None:
        """Counts something that the facts would not show otherwise, such as "duplicate"."""

    def record(self, fact: Fact) -> None:
        """Records a fact of a class that the protocol's entry lists."""

    def decide(self, event: EventId, decision: Decided, to: Node | None = None) -> None:
        """Records what the broker decided about an event, if the run records decisions. Costs nothing otherwise."""

    def spend(self, work: Work) -> None:
        """Declares a computation. A simulation may charge time for it; on a device it takes the time it takes."""

    def keep(self, key: str, value: bytes) -> None:
        """Stores what must survive a crash; `start` gets it back."""

    def forget(self, key: str) -> None:
        """Removes what `keep` stored; a missing key is fine."""

    def here(self, now: Time) -> tuple[float, float] | None:
        """The node's position, in metres; None if unknown, as with links without positions."""

    def attributes(self, now: Time) -> Mapping[str, Scalar]:
        """The node's attributes, such as its battery's charge; empty if there are none."""

    def authentic(self, event: Event) -> bool:
        """Whether an event that the broker has put together, such as from pieces, is its author's, with its payload or
        with the root that stands for it. Events that come whole in messages have been checked by the host."""

    def withhold(self, kind: type[Message], note: str | None = None, once: bool = False) -> None:
        """Allows the host to withhold broadcasts of this kind about subjects that the broker knows, and to count each
        as `note` itself.

        What a broadcast is about, `Message.subject` says; what the broker knows, `know`. With `once` it also knows the
        subject of each such broadcast that it has received. Called when the broker is made and knows nothing. A host
        may ignore it, as devices do: with what could have been withheld, the broker itself does no more than count it.
        """

    def know(self, kind: type[Message], subject: Hashable, known: bool = True) -> None:
        """Tells what the broker knows, or has forgotten, of a kind of which messages may be withheld."""

    def overheard(self, neighbour: Node) -> Time | None:
        """When a frame that is not the protocol's, such as a scenario's background traffic, last came from a node.

        None: never, or the host does not track it, as on devices.
        """


class Broker(abc.ABC, Generic[P]):
    """The base of every broker: the subscriptions of its own node, and what the host may call.

    A protocol overrides `receive` and `publish`, and whatever else it needs.
    """

    linger: Time = 0
    """How long after the end of its lifetime a subscription still gets events that matched in time. The host removes it
    after that."""
    block: int = 0
    """A protocol that sends payloads in pieces: bytes of a piece. Its events are signed so that pieces can be checked
    (`content/signed.py`); 0: payloads stay whole."""

    def __init__(self, node: Node, params: P, port: Port, rng: random.Random) -> None:
        self.node = node
        self.params = params
        self.port = port
        self.rng = rng
        self.local = LocalSubscriptions(port, params.delivered, self.holds)

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        """The node starts, or restarts with what it had kept. Called once, before everything else."""
        self.local.restore(kept)

    @abc.abstractmethod
    def publish(self, now: Time, publication: Publication) -> None:
        """The application of this node publishes."""

    @abc.abstractmethod
    def receive(self, now: Time, sender: Node, message: Message) -> None:
        """A message has arrived from a neighbour."""

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        """The application subscribes; a subscription with the same id is replaced."""
        self.local.add(subscription)

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        """The application unsubscribes; an unknown id is ignored."""
        self.local.remove(subscription_id)

    def holds(self, event_id: EventId) -> bool:
        """Whether the broker has the event and could deliver it again by itself, such as to a later subscription.

        What it holds is not forgotten as delivered. A broker that stores events overrides this.
        """
        return False

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
        """A timer has expired."""

    def tables(self) -> dict[str, int]:
        """The number of entries of its tables, by name: `roamcast status` shows them, and they must be bounded."""
        return {"subscriptions": len(self.local), "delivered": self.local.remembered}
