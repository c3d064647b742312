"""The broker: announce, ask, answer, carry.

Haillot, Guidec, "A Protocol for Content-Based Communication in Disconnected Mobile Ad Hoc Networks" (2008), section 2.
Every 15 s or so a node announces what it is interested in and which of its documents its neighbours may want. A node
that misses one of these documents requests it, back along the path of the announce. The document is then broadcast,
once for all requests. Every node that hears it and wants it keeps it, carries it along, and announces it wherever it
goes. Announces and documents travel up to `scope` hops, passed on by multipoint relays.

The parts, one file each: `interest` (what the node wants), `holdings` (what it has), `announcing`, `incoming` and
`outgoing` documents, `passing` them on, and `forwarding` (which nodes do). `docs/protocols/opportunistic.md` lists the
choices that the paper leaves open.
"""

from collections.abc import Hashable, Mapping
from random import Random
from typing import Final

from roamcast.content.event import EventId
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_PIECES, Bulk, Message
from roamcast.protocols.opportunistic.announcing import Announcing
from roamcast.protocols.opportunistic.cache import Cache, Held, Traits
from roamcast.protocols.opportunistic.catalog import Catalog
from roamcast.protocols.opportunistic.documents import Descriptor, Document
from roamcast.protocols.opportunistic.facts import CacheChanged, RelaysChosen
from roamcast.protocols.opportunistic.forwarding import Forwarding
from roamcast.protocols.opportunistic.holdings import EXPIRE, Holdings
from roamcast.protocols.opportunistic.incoming import Incoming
from roamcast.protocols.opportunistic.interest import Interest
from roamcast.protocols.opportunistic.messages import (
    MAX_CHUNKS,
    MILLISECOND,
    Announce,
    Chunk,
    Header,
    Piece,
    Request,
    clipped,
    joined,
    masks,
)
from roamcast.protocols.opportunistic.outgoing import Job, Outgoing
from roamcast.protocols.opportunistic.params import Opportunistic, for_node
from roamcast.protocols.opportunistic.passing import Gather, Passing
from roamcast.protocols.opportunistic.requests import Orders, Wishes
from roamcast.protocols.pieces import cut_of
from roamcast.protocols.source_route import back, onward
from roamcast.units import seconds

_ANNOUNCE: Final = "announce"
_PER_REQUEST: Final = 120
"""Most documents in one request: more would not fit into a frame."""


class OpportunisticBroker(Broker[Opportunistic]):
    def __init__(self, node: Node, params: Opportunistic, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self.block = params.piece
        self._interval = seconds(params.interval)
        self._longest = MAX_CHUNKS * MAX_PIECES * params.piece  # the longest document, in bytes
        lifetime = round(params.missed * self._interval * (1 + params.jitter))
        self._catalog = Catalog(params.catalog, lifetime, params.neighbours)
        self._offers_missing = params.catalog == "missing"
        self._forwarding = Forwarding(node, params, lifetime)
        cache = Cache(
            for_node(params.capacity, node, 0),
            for_node(params.octets, node, 0),
            for_node(params.policy, node, "oldest"),
            node=node,
            reserved=params.reserved,
        )
        self._holdings = Holdings(port, cache, self._catalog, remember=params.remember, window=params.window)
        self._interest = Interest(self.local, params.carried, params.profile)
        self._wishes = Wishes(seconds(params.patience) if params.asking == "one" else 0)
        self._orders = Orders()
        self._outgoing = Outgoing(
            port, params.pace, relays=self._forwarding.relays, order=self._next_order, lost=self._put_back
        )
        self._announcing = Announcing(
            node, params, port, rng, catalog=self._catalog, interest=self._interest, forwarding=self._forwarding
        )
        self._incoming = Incoming(
            params,
            port,
            self.local,
            interest=self._interest,
            holdings=self._holdings,
            wishes=self._wishes,
            passing=Passing(params, port, self._forwarding, self._outgoing),
        )

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self._holdings.restore(now, kept)
        self.port.set_timer(now + round(self.rng.random() * self._interval), _ANNOUNCE)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == _ANNOUNCE:
            self._announce(now)
        elif key == EXPIRE:
            self._holdings.timer(now)
        elif isinstance(key, Gather):
            self._incoming.timer(now, key)
        else:
            self._outgoing.timer(now, key)

    def _announce(self, now: Time) -> None:
        pause = 1 + self.params.jitter * (self.rng.random() - 0.5)
        self.port.set_timer(now + round(self._interval * pause), _ANNOUNCE)
        self._holdings.drop_expired(now)
        self._orders.announced()
        self._incoming.announced()
        self._announcing.announce(now)

    # --- Applications -----------------------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        event, life = publication.event, publication.lifetime
        self.local.deliver(event, 0, "local")
        if event.id in self._holdings.cache or life == 0:
            return
        document = Document(event)
        if document.length > self._longest:
            self.port.note("too long")
            return
        expires = None if life is None else now + life
        held = Held(document, now, now, now, self.local.matches(event), expires, 0)
        self._holdings.put(now, held, "published")

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._interests_changed(now)
        self._holdings.want_again()
        for held in list(self._holdings.cache):
            self.local.deliver_held(held.document.event, held.hops, "piece" if held.hops else "local")

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self._interests_changed(now)

    def holds(self, event_id: EventId) -> bool:
        return event_id in self._holdings.cache

    def _interests_changed(self, now: Time) -> None:
        self._holdings.drop_expired(now)
        self._interest.changed()
        self._holdings.interests_changed(self.local)

    # --- Receiving --------------------------------------------------------------------------------------------------

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if isinstance(message, Announce):
            self._hear_announce(now, sender, message)
        elif isinstance(message, Piece):
            header = message.header
            if not (header.valid and message.number < MAX_PIECES and header.sent >> message.number & 1):
                self.port.note("malformed")
            elif self._is_useful(sender, header):
                self._incoming.hear(now, header, 1 << header.first + message.number, None, message.octets)
        elif isinstance(message, Request):
            self._hear_request(now, message)

    def receive_bulk(self, now: Time, sender: Node, bulk: Bulk, received: int) -> None:
        if not isinstance(bulk, Chunk) or bulk.document is None:
            super().receive_bulk(now, sender, bulk, received)
        elif self._is_useful(sender, bulk.header):
            self._incoming.hear(now, bulk.header, bulk.pieces(received), bulk.document, b"")

    def _is_useful(self, sender: Node, header: Header) -> bool:
        """Whether to look at pieces of a broadcast; also notes that a source has the document."""
        if header.source == self.node:
            return False
        if header.source == sender and self._offers_missing:
            self._catalog.has(sender, (header.document,))
        return header.scope > 1 or not self._holdings.needs_not(header.document)

    # --- Asking -----------------------------------------------------------------------------------------------------

    def _hear_announce(self, now: Time, sender: Node, message: Announce) -> None:
        announcer = self._announcing.hear(sender, message)
        if announcer is None:
            return
        if message.profile is not None:
            self._catalog.hear(now, announcer, message.profile)
            if not message.path:
                self._forwarding.hear(now, sender, message)
        if message.catalog:
            if self._offers_missing:
                self._catalog.has(announcer, [descriptor.event.id for descriptor in message.catalog])
            self._look_through(now, sender, message)

    def _look_through(self, now: Time, sender: Node, message: Announce) -> None:
        """Requests at once what is wanted and missing here: "Receiving a neighbour's catalog" in the paper."""
        places = self._interest.missing(message, self._holdings)
        if not places:
            return
        asked: list[EventId] = []
        missing: dict[EventId, tuple[int, ...]] = {}
        for place in places:
            listed = message.catalog[place]
            id = listed.event.id
            age = clipped(message.ages[place]) if place < len(message.ages) else 0
            life = message.lives[place] if place < len(message.lives) else None
            if life == 0 or not self._asks_for(now, listed, now - age * MILLISECOND):
                continue
            asked.append(id)
            partial = self._incoming.partial(id)
            if partial is not None and partial.cut.size == self.params.piece and partial.have:
                missing[id] = masks(partial.missing)
        to, route = back(message.path, sender)
        for start in range(0, len(asked), _PER_REQUEST):
            some = tuple(asked[start : start + _PER_REQUEST])
            some_missing = {id: missing[id] for id in some if id in missing}
            self.port.unicast(to, Request(route, some, self.params.piece, some_missing))

    def _asks_for(self, now: Time, listed: Descriptor, published: Time) -> bool:
        """Whether to request a document that a neighbour offers now."""
        id = listed.event.id
        if id in self._holdings.cache or self._holdings.needs_not(id):
            self._holdings.settle(id)
            return False
        if listed.event.payload or listed.length > self._longest or not self._wishes.may_ask(now, id):
            return False
        wanted, _ = self._interest.judge(listed)
        if not self._holdings.cache.admits(listed.length, Traits(published, now, now, wanted)):
            return False
        self._wishes.ask(now, id)
        return True

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """Gives up a request that cannot go on: the next announce that arrives brings another path."""
        if isinstance(message, Request):
            self.port.note("request given up")
            for id in message.documents:
                self._wishes.forget(id)

    # --- Answering --------------------------------------------------------------------------------------------------

    def _hear_request(self, now: Time, message: Request) -> None:
        if message.route:
            step = onward(message.route, self.node)
            if step is None:
                self.port.note("malformed")
                return
            to, route = step
            self.port.unicast(to, Request(route, message.documents, message.size, message.missing))
            return
        self._holdings.drop_expired(now)
        for id in message.documents:
            held = self._holdings.cache.get(id)
            if held is None:
                self.port.note("not here")
                continue
            self._holdings.cache.requested(held, now)
            pieces = cut_of(held.document.length, self.params.piece).all
            if id in message.missing and message.size == self.params.piece:
                pieces &= joined(message.missing[id])
            self._orders.add(id, pieces)
        self._outgoing.pump(now)

    def _next_order(self, now: Time) -> Job | None:
        self._holdings.drop_expired(now)
        while (order := self._orders.take()) is not None:
            id, pieces = order
            held = self._holdings.cache.get(id)
            if held is None:
                continue
            life = None if held.expires is None else clipped((held.expires - now) // MILLISECOND)
            header = Header(
                source=self.node,
                serial=self._forwarding.next_serial(now),
                scope=self.params.scope,
                relays=(),
                document=id,
                length=held.document.length,
                size=self.params.piece,
                chunk=0,
                sent=0,
                age=clipped((now - held.published) // MILLISECOND),
                life=life,
                hops=held.hops,
            )
            self.port.decide(id, "forwarded")
            return Job(header, pieces, held.document, None, now)
        return None

    def left(self, now: Time, message: Message | Bulk) -> None:
        self._outgoing.left(now, message)

    def dropped(self, now: Time, message: Message | Bulk) -> None:
        self._outgoing.dropped(now, message)

    def _put_back(self, header: Header, pieces: int) -> None:
        self.port.decide(header.document, "given up")
        if header.source == self.node:
            self._orders.put_back(header.document, pieces)

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            "documents": len(self._holdings.cache),
            "document bytes": self._holdings.cache.octets,
            "partial documents": len(self._incoming),
            "neighbours": len(self._catalog),
            "profiles": self._catalog.profiles,
            "direct neighbours": len(self._forwarding),
            "remembered": self._holdings.remembered,
            "asked for": len(self._wishes),
            "to be sent": len(self._orders),
            "to be passed on": len(self._outgoing),
        }


ENTRY: Final = Entry(
    "opportunistic",
    "documents that their carriers offer to the nodes they meet (Haillot and Guidec 2008)",
    Opportunistic,
    OpportunisticBroker,
    (Announce, Request, Piece),
    facts=(CacheChanged, RelaysChosen),
    understands=frozenset({"lifetimes"}),
    on_devices={"reserved": 0.25},
)
