"""Content-based routing on any tree of brokers. This file does not keep the tree: it is told about each link.

Mottola, Cugola, Picco, "A Self-Repairing Tree Topology Enabling Content-Based Routing in Mobile Ad Hoc Networks":
section I (subscription forwarding, Figures 1 and 2), section V (deferred unsubscription, after Picco, Cugola, Murphy,
"Efficient content-based event dispatching in the presence of topological reconfigurations", ICDCS 2003), section VI
(plain multicast: `MessageForwarding`). The rules of `SubscriptionForwarding`:

1. **Advertising.** A node advertises to each neighbour what its own applications and all other neighbours want, except
   filters that another advertised one covers (`tables.py`). The changes of one call are sent as one list.
2. **Events** go to the neighbours that want them, except the one they came from. Each node passes an event on once.
3. **Lost links.** Filters received over a lost link are still advertised to the others for `defer` seconds, but no
   event is sent there. If the tree is repaired meanwhile, the same filters come from another side, and only the nodes
   on the path from the lost to the new link change their tables. (Until then each half believes that what the other
   half wanted is its own, and advertises it back over the new link: a subscriber may see its own filter as another's
   for `defer` seconds.) A neighbour that comes back advertises everything again.
4. **A link heals itself.** Each end numbers its messages, in a session that begins with everything when the link comes
   up on its side. A receiver that misses a number asks for everything. A node that begins a session has not heard the
   other's session; the other answers with its next number and no change, which shows whether it has by now. The same is
   sent every `resync` seconds, since a host may silently drop a message from a full queue. An end with nothing to
   advertise in its session sends nothing at all, unless it has missed what the other advertised before the link came
   up on this side: then it asks. If nobody subscribes, there are no messages.
5. **Two ends may disagree** for a while on whether the link is up. Changes from a node that is not a neighbour are
   ignored: rule 4 repeats them. Its events are passed on like others, since it relies on us, and the nodes behind us
   get them sooner; at worst an event comes again along the tree, and rule 2 stops it.
"""

import abc
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Final, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from roamcast.bounded import put
from roamcast.content.clauses import Effort
from roamcast.content.covering import shared, summarise
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.protocols.tree.forwarding_messages import MAX_NAMED, MAX_SESSION, Routed, Routes
from roamcast.protocols.tree.tables import Advertised, Interest, Interests, Origin, split
from roamcast.protocols.window import DuplicateWindow
from roamcast.units import SECOND, seconds

RETRY: Final = SECOND
"""Time before a message given up, or an unanswered request, is repeated: the tree may be about to drop the link."""

MAX_SUMMARY: Final = 1024
"""Most bytes of the filter that replaces everything a neighbour wants, if that is more than the table holds."""

SUMMARY_EFFORT: Final = 20_000
"""Effort of making it (`content.clauses.Effort`); only an attacker's filters need more."""

COVER_EFFORT: Final = 8_000
"""Effort of comparing filters in one call, to find out which cover which; only an attacker's need more."""

MAX_TOTAL: Final = 8192
"""Most constraints kept of all neighbours together: who brings more gets a summary."""

MAX_ADVERTISED: Final = 8_192
"""Most constraints kept of all neighbours, times links: one change may have to be considered for all of them."""

MAX_LOST: Final = 64
"""Most lost links whose routes are kept; the one lost first makes room."""


class Forwarding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of routing on a tree.

    `defer` should outlast a repair: some seconds with its retries, and a few milliseconds per hop to spread the
    changes. Its cost is the events sent towards a lost link in vain, so it should be short compared to the lifetime of
    a link: at the paper's 5 m/s and 150 m, about half a minute.
    """

    by: Annotated[
        Literal["subscriptions", "messages"],
        Meta(description="an event goes where it is wanted, or along the whole tree (plain multicast)"),
    ] = "subscriptions"
    defer: Annotated[
        float, Meta(ge=0, le=86400, description="how long the routes of a lost link are kept, s; 0: not at all")
    ] = 5.0
    resync: Annotated[
        float, Meta(ge=0.1, le=86400, description="between two checks that a neighbour has heard all it was told, s")
    ] = 10.0
    routes: Annotated[
        int, Meta(ge=256, description="most constraints kept of one neighbour; beyond, a summary stands for them")
    ] = 2048
    cast: Annotated[
        Literal["unicast", "broadcast"],
        Meta(description="an event goes to each neighbour by itself, or to all in one broadcast that names them"),
    ] = "unicast"
    cast_jitter: Annotated[
        float, Meta(ge=0, le=60, description="longest random wait before an event is passed on by broadcast, s")
    ] = 0.01
    window: Annotated[int, Meta(ge=1, description="how many events a node remembers having seen")] = 4096


class Routing(Protocol):
    """What a broker on a tree needs from a routing."""

    def link_up(self, now: Time, neighbour: Node) -> None:
        """A tree link is up; it may have been up already."""

    def link_down(self, now: Time, neighbour: Node) -> None:
        """A tree link is down; it may have been down already."""

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        """The application has subscribed; the local subscriptions include it already."""

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        """The application has unsubscribed; the local subscriptions no longer include it."""

    def publish(self, now: Time, publication: Publication) -> None: ...

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        """A message has arrived; messages that are not the routing's are ignored, also below."""

    def unreachable(self, now: Time, to: Node, message: Message) -> None: ...

    def timer(self, now: Time, key: Hashable) -> bool:
        """Returns whether the timer is the routing's."""

    def tables(self) -> dict[str, int]:
        """The number of entries of its tables, by name."""


def routing(node: Node, params: Forwarding, port: Port, rng: Random, local: LocalSubscriptions) -> Routing:
    """The routing that the parameters name."""
    kind = SubscriptionForwarding if params.by == "subscriptions" else MessageForwarding
    return kind(node, params, port, rng, local)


class _Forwarder(abc.ABC):
    """What both kinds of routing share: everything except where an event goes."""

    def __init__(self, node: Node, params: Forwarding, port: Port, rng: Random, local: LocalSubscriptions) -> None:
        self.node = node
        self.params = params
        self.port = port
        self.rng = rng
        self.local = local
        self._seen = DuplicateWindow(params.window)

    @abc.abstractmethod
    def _is_neighbour(self, node: Node) -> bool: ...

    @abc.abstractmethod
    def _onward(self, event: Event) -> Iterable[Node]:
        """The neighbours that an event shall go to."""

    @abc.abstractmethod
    def _has_neighbours(self, other_than: Node | None) -> bool:
        """Whether there is a link over which an event could go."""

    @abc.abstractmethod
    def tables(self) -> dict[str, int]: ...

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        self._seen.add(event.id)
        self.local.deliver(event, 0, "local")
        self._cast(event, 0, None, 0)

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not isinstance(message, Routed) or (message.to and self.node not in message.to):
            return
        if not self._is_neighbour(sender):
            self.port.note("stranger")
        event = message.event
        if not self._seen.add(event.id):
            self.port.note("duplicate")
            return
        hops = min(message.hops + 1, MAX_HOPS)
        self.local.deliver(event, hops, "routed")
        self._cast(event, hops, sender, self.params.cast_jitter)

    def _give_up(self, to: Node, message: Message) -> None:
        if isinstance(message, Routed):
            self.port.decide(message.event.id, "given up", to)

    def _cast(self, event: Event, hops: int, sender: Node | None, jitter: float) -> None:
        to = sorted(node for node in self._onward(event) if node != sender)
        if not to:
            self.port.decide(event.id, "not wanted" if self._has_neighbours(sender) else "no route")
        for node in to:
            self.port.decide(event.id, "forwarded", node)
        if self.params.cast == "unicast":
            message = Routed(event, hops)
            for node in to:
                self.port.unicast(node, message)
        elif to:
            # Otherwise nodes that heard it at the same time would pass it on at the same time, and collide unnoticed.
            delay = seconds(self.rng.random() * jitter) if jitter else 0
            for start in range(0, len(to), MAX_NAMED):
                self.port.broadcast(Routed(event, hops, tuple(to[start : start + MAX_NAMED])), delay)


class MessageForwarding(_Forwarder):
    """Plain multicast: an event goes along every link of the tree."""

    def __init__(self, node: Node, params: Forwarding, port: Port, rng: Random, local: LocalSubscriptions) -> None:
        super().__init__(node, params, port, rng, local)
        self._neighbours: dict[Node, None] = {}

    def _is_neighbour(self, node: Node) -> bool:
        return node in self._neighbours

    def _onward(self, event: Event) -> Iterable[Node]:
        return self._neighbours

    def _has_neighbours(self, other_than: Node | None) -> bool:
        return len(self._neighbours) > (other_than in self._neighbours)

    def tables(self) -> dict[str, int]:
        return {"seen": len(self._seen), "links": len(self._neighbours)}

    def link_up(self, now: Time, neighbour: Node) -> None:
        self._neighbours[neighbour] = None

    def link_down(self, now: Time, neighbour: Node) -> None:
        self._neighbours.pop(neighbour, None)

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        """Nobody else needs to know."""

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        """Nor this."""

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """Only counted: the tree is told too, and decides whether the link is lost."""
        self._give_up(to, message)

    def timer(self, now: Time, key: Hashable) -> bool:
        """None is ever set."""
        return False


class _Due(NamedTuple):
    """The key of a timer; `mark` is a session or the number of a loss, to recognise an outdated timer."""

    what: Literal["forget", "retry", "ask", "resync"]
    neighbour: Node
    mark: int


@dataclass(slots=True)
class _Link:
    """This end of a link that is up (rule 4)."""

    session: int
    advertised: Advertised = field(default_factory=Advertised)
    serial: int = 0
    """The number of the last message sent."""
    peer_session: int = 0
    """The session of the other end that this end follows; 0: none."""
    peer_serial: int = 0
    """The number of the last message received in it."""
    asking: bool = False
    """Whether the other end was asked for everything, and will be asked again if it does not answer."""
    retrying: bool = False
    """Whether a message was given up, so that everything will be advertised again."""
    quiet: bool = False
    """Whether nothing was sent since the last check."""


class SubscriptionForwarding(_Forwarder):
    """Content-based routing: an event goes along the links that lead to somebody who wants it."""

    def __init__(self, node: Node, params: Forwarding, port: Port, rng: Random, local: LocalSubscriptions) -> None:
        super().__init__(node, params, port, rng, local)
        self._links: dict[Node, _Link] = {}
        self._interests = Interests()
        self._deferred: dict[Node, int] = {}  # lost neighbours whose routes are kept, with the number of the loss
        self._losses = 0
        self._effort = Effort(COVER_EFFORT)  # what is left of it for comparing filters in this call
        self._missed: dict[Node, None] = {}  # nodes that advertised before the link came up here, oldest first
        self._note_local()

    def routes(self, neighbour: Node) -> list[Filter]:
        """What a neighbour wants, as far as known; for a lost one, what has not been forgotten yet."""
        return self._interests.wanted(neighbour)

    # --- Events -----------------------------------------------------------------------------------------------------

    def _is_neighbour(self, node: Node) -> bool:
        return node in self._links

    def _has_neighbours(self, other_than: Node | None) -> bool:
        return len(self._links) > (other_than in self._links)

    def tables(self) -> dict[str, int]:
        return {
            "seen": len(self._seen),
            "links": len(self._links),
            "interests": len(self._interests),
            "deferred": len(self._deferred),
            "missed": len(self._missed),
        }

    def _onward(self, event: Event) -> Iterable[Node]:
        wanting: dict[Node, None] = {}
        for interest in self._interests.match(event):
            wanting.update((origin, None) for origin in interest.origins if origin is not None)
        return [node for node in wanting if node in self._links]

    # --- Who wants what ---------------------------------------------------------------------------------------------

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        self._note_local()
        self._tell_changes()

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        self._note_local()
        self._tell_changes()

    def _note_local(self) -> None:
        """Compares all filters: several subscriptions may share one, and a replacement may add one and remove one."""
        wanted = dict.fromkeys(self.local.filters)
        self._want(wanted, None)
        self._unwant([filter for filter in self._interests.wanted(None) if filter not in wanted], None)

    def _want(self, filters: Iterable[Filter], origin: Origin) -> None:
        for filter in filters:
            interest = self._interests.add(filter, origin)
            if interest is None:
                continue
            for node, link in self._links.items():
                # It is new to a neighbour if only the neighbour itself wanted it before.
                if node != origin and len(interest.origins) - (node in interest.origins) == 1:
                    link.advertised.add(interest, self._effort)

    def _unwant(self, filters: Iterable[Filter], origin: Origin) -> None:
        for filter in filters:
            interest = self._interests.remove(filter, origin)
            if interest is None:
                continue
            for node, link in self._links.items():
                if node != origin and not interest.applies_to(node):
                    link.advertised.remove(interest, self._effort)

    def _forget_doubted(self, neighbour: Node) -> None:
        self._deferred.pop(neighbour, None)
        self._unwant(self._interests.doubted(neighbour), neighbour)

    def _bound(self, neighbour: Node, most: int) -> None:
        """Bounds what we store for one neighbour: at worst, too much is sent to it."""
        if self._interests.weight(neighbour) > most or self._interests.total > MAX_TOTAL:
            wanted = self._interests.wanted(neighbour)
            self._replace(neighbour, wanted, summarise(wanted, MAX_SUMMARY, SUMMARY_EFFORT))

    def _replace(self, neighbour: Node, wanted: Iterable[Filter], summary: Filter) -> None:
        self.port.note("summarised")
        self._want([summary], neighbour)
        self._unwant([filter for filter in wanted if filter != summary], neighbour)

    def _exceeds(self, links: int, added: int = 0) -> bool:
        """Whether there are too many filters, with so many more, to advertise them over so many links."""
        return (self._interests.total + added) * links > MAX_ADVERTISED

    # --- Links ------------------------------------------------------------------------------------------------------

    def link_up(self, now: Time, neighbour: Node) -> None:
        if neighbour in self._links:
            return
        if self._exceeds(links=len(self._links) + 1):
            heaviest = max(self._links, key=self._interests.weight)
            wanted = self._interests.wanted(heaviest)
            self._replace(heaviest, wanted, shared(wanted, MAX_SUMMARY))
        link = self._links[neighbour] = _Link(self.rng.randint(1, MAX_SESSION))
        for interest in self._interests:
            if interest.applies_to(neighbour):
                link.advertised.add(interest, self._effort)
        self._tell_changes()
        if neighbour in self._missed:
            del self._missed[neighbour]
            if not link.serial:
                self._ask(now, neighbour, link)
        self.port.set_timer(now + seconds(self.params.resync), _Due("resync", neighbour, link.session))

    def link_down(self, now: Time, neighbour: Node) -> None:
        if self._links.pop(neighbour, None) is None:
            return
        self._interests.doubt(neighbour)
        self._deferred.pop(neighbour, None)
        if self.params.defer == 0:
            self._forget_doubted(neighbour)
        elif self._interests.weight(neighbour):
            self._losses += 1
            self._deferred[neighbour] = self._losses
            self.port.set_timer(now + seconds(self.params.defer), _Due("forget", neighbour, self._losses))
            if len(self._deferred) > MAX_LOST:
                self._forget_doubted(next(iter(self._deferred)))
        self._tell_changes()

    def timer(self, now: Time, key: Hashable) -> bool:
        if not isinstance(key, _Due):
            return False
        self._due(now, key)
        return True

    def _due(self, now: Time, due: _Due) -> None:
        what, neighbour, mark = due
        if what == "forget":
            if self._deferred.get(neighbour) == mark:
                self._forget_doubted(neighbour)
                self._tell_changes()
            return
        link = self._links.get(neighbour)
        if link is None or link.session != mark:
            return
        if what == "retry":
            link.retrying = False
            self._tell_all(neighbour, link)
        elif what == "ask":
            link.asking = False
            if not link.peer_session:
                self._ask(now, neighbour, link)
        else:
            if link.quiet and link.serial:
                self._send(neighbour, link)
            link.quiet = True
            self.port.set_timer(now + seconds(self.params.resync), due)

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        self._give_up(to, message)
        link = self._links.get(to)
        if link and isinstance(message, Routes) and message.session == link.session and not link.retrying:
            link.retrying = True
            self.port.set_timer(now + RETRY, _Due("retry", to, link.session))

    # --- Advertising ------------------------------------------------------------------------------------------------

    def _tell_changes(self) -> None:
        """Sends what has changed: the last thing in every call that changes something."""
        self._effort = Effort(COVER_EFFORT)
        for neighbour, link in self._links.items():
            added, removed = link.advertised.take_changes()
            if not link.serial and added:
                self._tell_all(neighbour, link)  # a session begins with everything
            elif added or removed:
                self._send(neighbour, link, added, removed)

    def _tell_all(self, neighbour: Node, link: _Link) -> None:
        self._send(neighbour, link, link.advertised.take_all(), full=True)

    def _send(
        self,
        neighbour: Node,
        link: _Link,
        added: Sequence[Interest] = (),
        removed: Sequence[Interest] = (),
        *,
        full: bool = False,
        ask: bool = False,
    ) -> None:
        """Always unicast: it is for one neighbour, and its loss is reported. Without changes, sends one message."""
        link.quiet = False
        messages = split(added, removed)
        for number, (add, remove) in enumerate(messages, start=1):
            link.serial += 1
            first, last = number == 1, number == len(messages)
            message = Routes(
                link.session, link.serial, link.peer_session, full and first, not last, ask and first, add, remove
            )
            self.port.unicast(neighbour, message)

    def _ask(self, now: Time, neighbour: Node, link: _Link) -> None:
        link.asking = True
        self._send(neighbour, link, ask=True)
        self.port.set_timer(now + RETRY, _Due("ask", neighbour, link.session))

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if not isinstance(message, Routes):
            super().receive(now, sender, message)
            return
        link = self._links.get(sender)
        if link is None:
            self.port.note("stranger")
            put(self._missed, sender, None, MAX_LOST)
            return
        if link.peer_session == message.session and message.serial <= link.peer_serial:
            self.port.note("routes told again")
        elif message.full or (link.peer_session == message.session and message.serial == link.peer_serial + 1):
            link.peer_session, link.peer_serial = message.session, message.serial
            self._learn(sender, message)
        else:
            link.peer_session = 0
            if not link.asking:
                self._ask(now, sender, link)
        if message.ask:
            self._tell_all(sender, link)
        elif message.full and message.heard != link.session and link.serial:
            self._send(sender, link)

    def _learn(self, sender: Node, message: Routes) -> None:
        """Filters advertised again are no longer in doubt; those in doubt at the end of a full list are removed."""
        if message.full:
            self._interests.doubt(sender)
        added = message.added
        if len(added) > 1 and self._exceeds(len(self._links), len(added)):
            self.port.note("summarised")
            added = (shared(added, MAX_SUMMARY),)
        self._want(added, sender)
        self._unwant(message.removed, sender)
        if not message.more:
            self._forget_doubted(sender)
        # Old and new filters coexist until the list is complete.
        self._bound(sender, self.params.routes * (2 if message.more else 1))
        self._tell_changes()
