"""The broker: announce, ask, answer, carry.

Haillot, Guidec, "A Protocol for Content-Based Communication in Disconnected Mobile Ad Hoc Networks" (2008), section 2.
A node announces, every 15 s or so, what it is interested in and which of its documents its neighbours may want. Whoever
misses one of these asks for it, along the way that the announce came. The document is then broadcast, once for all who
asked, and whoever hears it and wants it keeps it: from then on it carries it, and announces it where it goes. Announces
and documents travel up to `scope` hops, passed on by multipoint relays.

A relay passes on the pieces of a document that it has, from this broadcast or from before, as soon as it has all that
are being sent, or when nothing more has come for `gather`. `docs/protocols/opportunistic.md` has the choices that the
paper leaves open.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

import msgspec

from roamcast.bounded import put
from roamcast.content.covering import summarise
from roamcast.content.event import EventId
from roamcast.content.filter import NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_HOPS, MAX_PIECES, Bulk, Message
from roamcast.protocols.opportunistic import storage
from roamcast.protocols.opportunistic.cache import Cache, Held, Traits
from roamcast.protocols.opportunistic.catalog import Catalog, parts
from roamcast.protocols.opportunistic.documents import Descriptor, Document, assembled, described
from roamcast.protocols.opportunistic.facts import CacheChanged, Change, RelaysChosen
from roamcast.protocols.opportunistic.messages import (
    MAX_CHUNKS,
    MAX_LISTED,
    MAX_SCOPE,
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
from roamcast.protocols.opportunistic.requests import Orders, Wishes
from roamcast.protocols.pieces import Cut, Partial, Partials
from roamcast.protocols.relays import Claim, Neighbourhood
from roamcast.protocols.source_route import back, extended, onward, origin, plausible
from roamcast.units import seconds

_ANNOUNCE: Final = "announce"
_EXPIRE: Final = "expire"
_LATEST: Final = 2048
"""Broadcasts of others that a node knows again."""
_PER_REQUEST: Final = 120
"""Documents in one request: more do not fit into a frame."""
_FEW: Final = 4
"""Subscriptions up to which asking each is faster than the index."""
_ROOM_FOR_HEADER: Final = 64
"""Bytes of an announce without its lists."""

Key = tuple[EventId, Node, int]
"""Of a partial document. With whole documents only, that of one broadcast; else only the document counts."""


class _Gather(NamedTuple):
    """The key of a timer: nothing more may come of a broadcast."""

    broadcast: tuple[Node, int, int]


@dataclass(slots=True, eq=False)
class _Passing:
    """A broadcast of pieces that this node passes on."""

    header: Header
    latest: Time
    """When a piece of it was last heard."""
    done: bool = False
    waiting: bool = False


class OpportunisticBroker(Broker[Opportunistic]):
    def __init__(self, node: Node, params: Opportunistic, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._interval = seconds(params.interval)
        self._gather = seconds(params.gather)
        self._carried = params.carried
        self._longest = MAX_CHUNKS * MAX_PIECES * params.piece  # of a document, bytes
        self._decides_later = params.relaying == "relays" and params.decide == "any"
        self._uses_relays = params.relaying == "relays" and params.scope > 1
        lifetime = round(params.missed * self._interval * (1 + params.jitter))
        self._neighbourhood = Neighbourhood(node, lifetime, params.neighbours)
        self._catalog = Catalog(params.catalog, lifetime, params.neighbours)
        self._cache = Cache(
            for_node(params.capacity, node, 0),
            for_node(params.octets, node, 0),
            for_node(params.policy, node, "oldest"),
        )
        self._had: dict[EventId, bool] = {}  # what was once here, and whether it was wanted here: `remember`
        self._settled: dict[EventId, None] = {}  # what need not be asked for, so that a look at a catalog is short
        self._judged: dict[EventId, bool] = {}  # what is to be kept, and whether an application wants it
        self._interests: dict[bytes, tuple[bool, bool]] = {}  # in documents by their content
        self._wishes = Wishes(seconds(params.patience) if params.asking == "one" else 0)
        self._orders = Orders()
        self._partials: Partials[Key, Document] = Partials(params.partials, params.partial_octets)
        self._outgoing = Outgoing(port, params.pace, relays=self._relays, order=self._next_order, lost=self._put_back)
        self._announces: dict[tuple[Node, int, int], bool] = {}  # heard, and whether passed on
        self._passing: dict[tuple[Node, int, int], _Passing | None] = {}  # None: this node does not pass it on
        self._profile: Filter | None = None  # made anew when subscriptions change
        self._filters: list[Filter] = []  # what applications want
        self._recorded_relays: tuple[Node, ...] = ()
        self._serial = 0
        self._expiry: Time | None = None  # for when a timer is set

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        for held in storage.restored(kept):
            if held.expires is not None and held.expires <= now:
                storage.forget(self.port, held)
            elif held.document.id not in self._cache:
                self._put(now, held, "kept")
        self.port.set_timer(now + round(self.rng.random() * self._interval), _ANNOUNCE)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == _ANNOUNCE:
            self._announce(now)
        elif key == _EXPIRE:
            self._expiry = None
            self._drop_expired(now)
        elif isinstance(key, _Gather):
            self._gathered(now, key)
        else:
            self._outgoing.timer(now, key)

    # --- Applications -----------------------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        event, life = publication.event, publication.lifetime
        self.local.deliver(event, 0, "local")
        if event.id in self._cache or life == 0:
            return
        document = Document(event)
        if not self._sendable(document.length):
            self.port.note("too long")
            return
        expires = None if life is None else now + life
        self._put(now, Held(document, now, now, now, self.local.matches(event), expires, 0), "published")

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._interests_changed(now)
        # What was only carried for others may be wanted now, and can be fetched again.
        self._had = {id: wanted for id, wanted in self._had.items() if wanted}
        for held in list(self._cache):
            self.local.deliver_held(held.document.event, held.hops, "piece" if held.hops else "local")

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self._interests_changed(now)

    def _interests_changed(self, now: Time) -> None:
        self._drop_expired(now)
        self._profile = None
        self._filters = self.local.filters
        self._settled.clear()
        self._judged.clear()
        self._interests.clear()
        for held in self._cache:
            self._cache.set_wanted(held, self.local.matches(held.document.event))

    def _interest(self, listed: Descriptor) -> tuple[bool, bool]:
        """Whether an application wants a document; and whether the node keeps it, for one or for others."""
        known = self._interests.get(listed.content)
        if known is None:
            event = listed.event
            if len(self._filters) > _FEW:
                wanted = self.local.matches(event)
            else:
                wanted = any(own.matches(event) for own in self._filters)
            known = wanted, wanted or self._carried.matches(event)
            put(self._interests, listed.content, known, _LATEST)
        return known

    # --- Announcing -------------------------------------------------------------------------------------------------

    def _announce(self, now: Time) -> None:
        params = self.params
        pause = 1 + params.jitter * (self.rng.random() - 0.5)
        self.port.set_timer(now + round(self._interval * pause), _ANNOUNCE)
        self._drop_expired(now)
        self._catalog.expire(now)
        self._orders.announced()
        claim = Claim((), ())
        if self._uses_relays:
            self._neighbourhood.expire(now)
            claim = self._neighbourhood.claim
        if self._profile is None:
            filters = [*self.local.filters, self._carried]
            self._profile = summarise(filters, params.profile) if filters != [NOTHING] else NOTHING
        serial, relays = self._next_serial(now), self._relays(params.scope)
        if relays != self._recorded_relays:
            self._recorded_relays = relays
            self.port.record(RelaysChosen(relays))
        offered = self._catalog.fitted(params.listed)
        for part, some in enumerate(self._cut(offered, claim, relays)):
            catalog = tuple([held.document.descriptor for held in some])
            ages = tuple([(now - held.published) // MILLISECOND for held in some])
            lives: tuple[int | None, ...] = ()
            if self._cache.next_expiry is not None:
                lives = tuple([None if held.expires is None else _span(held.expires - now) for held in some])
            profile, (confirmed, heard) = (None, ((), ())) if part else (self._profile, claim)
            self.port.broadcast(
                Announce(serial, part, params.scope, (), relays, profile, confirmed, heard, catalog, ages, lives)
            )

    def _cut(self, offered: list[Held], claim: Claim, relays: tuple[Node, ...]) -> list[list[Held]]:
        """A catalog in parts that fit into a frame each."""
        if not self.params.cut:
            return [offered[:MAX_LISTED]]
        room = self.params.piece - _ROOM_FOR_HEADER - 5 * len(relays)
        names = 5 * (len(claim.confirmed) + len(claim.heard))
        return parts(offered, room - names - len(msgspec.msgpack.encode(self._profile)), room)

    def _relays(self, scope: int) -> tuple[Node, ...]:
        """Who is to pass on a broadcast that may go so many hops."""
        return self._neighbourhood.relays if self._uses_relays and scope > 1 else ()

    def _next_serial(self, now: Time) -> int:
        """Greater than all before, those of former lives included."""
        self._serial = max(self._serial + 1, now // MILLISECOND)
        return self._serial

    # --- Receiving --------------------------------------------------------------------------------------------------

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if isinstance(message, Announce):
            self._hear_announce(now, sender, message)
        elif isinstance(message, Piece):
            header = message.header
            if header.valid and message.number < MAX_PIECES and header.sent >> message.number & 1:
                self._hear_pieces(now, sender, header, 1 << header.first + message.number, None, message.octets)
            else:
                self.port.note("malformed")
        elif isinstance(message, Request):
            self._hear_request(now, message)

    def receive_bulk(self, now: Time, sender: Node, bulk: Bulk, received: int) -> None:
        if isinstance(bulk, Chunk) and bulk.document is not None:
            self._hear_pieces(now, sender, bulk.header, bulk.pieces(received), bulk.document, b"")
        else:
            super().receive_bulk(now, sender, bulk, received)

    # --- Announces of others ----------------------------------------------------------------------------------------

    def _hear_announce(self, now: Time, sender: Node, message: Announce) -> None:
        path, announcer = message.path, sender
        if path or message.scope > 1:
            announcer = origin(path, sender)
            passed_on = self._announces.get((announcer, message.serial, message.part))
            if passed_on or (passed_on is False and not self._decides_later):
                return
            if self.node in path or not plausible(path) or not self._hear_copy(sender, announcer, message):
                return
        profile = message.profile
        if profile is not None:
            self._catalog.hear(now, announcer, profile)
            if self._uses_relays and not path:
                self._neighbourhood.hear(now, sender, Claim(message.confirmed, message.heard))
        if message.catalog:
            if self.params.catalog == "missing":
                self._catalog.has(announcer, [descriptor.event.id for descriptor in message.catalog])
            self._look_through(now, sender, message)

    def _hear_copy(self, sender: Node, announcer: Node, message: Announce) -> bool:
        """Passes an announce on, if that is up to this node; whether it is heard for the first time."""
        key = announcer, message.serial, message.part
        passed_on = self._announces.get(key)
        chosen = message.scope > 1 and not passed_on and self._chosen(message.relays, passed_on is None)
        path = extended(message.path, sender) if chosen else None
        if path is not None:
            scope = min(message.scope, MAX_SCOPE) - 1
            copy = Announce(
                message.serial,
                message.part,
                scope,
                path,
                self._relays(scope),
                message.profile,
                (),
                (),
                message.catalog,
                message.ages,
                message.lives,
            )
            self.port.broadcast(copy, seconds(self.rng.random() * self.params.spread))
        if passed_on is None or path is not None:
            put(self._announces, key, path is not None, _LATEST)
        return passed_on is None

    def _chosen(self, relays: tuple[Node, ...], first: bool) -> bool:
        """Whether this node passes a broadcast on, of which it has the first copy or another."""
        if self.params.relaying == "flooding":
            return first
        return self.node in relays and (first or self.params.decide == "any")

    def _look_through(self, now: Time, sender: Node, message: Announce) -> None:
        """Asks for what is wanted and missing here, at once: "Receiving a neighbour's catalog"."""
        catalog, unsettled = message.catalog, message.ids.difference(self._settled)
        if not unsettled:
            return
        asked: list[EventId] = []
        missing: dict[EventId, tuple[int, ...]] = {}
        for place, listed in enumerate(catalog):
            id = listed.event.id
            if id not in unsettled:
                continue
            age = clipped(message.ages[place]) if place < len(message.ages) else 0
            life = message.lives[place] if place < len(message.lives) else None
            if life == 0 or not self._asks_for(now, listed, now - age * MILLISECOND):
                continue
            asked.append(id)
            partial = self._partials.get(self._key(id))
            if partial is not None and partial.cut.size == self.params.piece and partial.have:
                missing[id] = masks(partial.missing)
        to, route = back(message.path, sender)
        for start in range(0, len(asked), _PER_REQUEST):
            some = tuple(asked[start : start + _PER_REQUEST])
            some_missing = {id: missing[id] for id in some if id in missing}
            self.port.unicast(to, Request(route, some, self.params.piece, some_missing))

    def _asks_for(self, now: Time, listed: Descriptor, published: Time) -> bool:
        """Whether a document that a neighbour offers is to be asked for now."""
        id = listed.event.id
        wanted = self._judged.get(id)
        if wanted is None:
            wanted, kept = self._interest(listed)
            if not kept or id in self._cache or id in self._had:
                put(self._settled, id, None, self.params.window)
                return False
            put(self._judged, id, wanted, _LATEST)
        elif id in self._cache or id in self._had:
            return False
        if listed.event.payload or not self._sendable(listed.length) or not self._wishes.may_ask(now, id):
            return False
        if not self._cache.admits(listed.length, Traits(published, now, now, wanted)):
            return False
        self._wishes.ask(now, id)
        return True

    # --- Requests ---------------------------------------------------------------------------------------------------

    def _hear_request(self, now: Time, message: Request) -> None:
        if message.route:
            step = onward(message.route, self.node)
            if step is None:
                self.port.note("malformed")
                return
            to, route = step
            self.port.unicast(to, Request(route, message.documents, message.size, message.missing))
            return
        self._drop_expired(now)
        for id in message.documents:
            held = self._cache.get(id)
            if held is None:
                self.port.note("not here")
                continue
            self._cache.requested(held, now)
            pieces = Cut(held.document.length, self.params.piece).all
            if id in message.missing and message.size == self.params.piece:
                pieces &= joined(message.missing[id])
            self._orders.add(id, pieces)
        self._outgoing.pump(now)

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        """A request stops where it cannot go on: the next announce that is heard finds another way."""
        if isinstance(message, Request):
            self.port.note("request given up")
            for id in message.documents:
                self._wishes.forget(id)

    def _next_order(self, now: Time) -> Job | None:
        self._drop_expired(now)
        while (order := self._orders.take()) is not None:
            id, pieces = order
            held = self._cache.get(id)
            if held is None:
                continue
            life = None if held.expires is None else _span(held.expires - now)
            header = Header(
                source=self.node,
                serial=self._next_serial(now),
                scope=self.params.scope,
                relays=(),
                document=id,
                length=held.document.length,
                size=self.params.piece,
                chunk=0,
                sent=0,
                age=_span(now - held.published),
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

    def _put_back(self, header: Header) -> None:
        self.port.decide(header.document, "given up")
        if header.source == self.node:
            self._orders.put_back(header.document, header.sent << header.first)

    # --- Documents --------------------------------------------------------------------------------------------------

    def _key(self, id: EventId, header: Header | None = None) -> Key:
        return (id, header.source, header.serial) if self.params.whole and header is not None else (id, 0, 0)

    def _hear_pieces(
        self, now: Time, sender: Node, header: Header, pieces: int, document: Document | None, octets: bytes
    ) -> None:
        """Pieces of a document have come: as bytes, or as parts of a document that is at hand."""
        if header.source == self.node:
            return
        id = header.document
        if header.source == sender:
            self._catalog.has(sender, (id,))
        passing = self._hear_broadcast(now, header) if header.scope > 1 else None
        held = self._cache.get(id)
        if held is not None:
            if passing is not None:
                self._pass_on(now, passing, held.document, None)
            return
        settled = id in self._settled or id in self._had
        if settled and passing is None:
            return
        key = self._key(id, header)
        if document is not None:
            partial = self._partials.add_shared(key, header.cut, pieces, document)
        else:
            partial = self._partials.add(key, header.cut, pieces.bit_length() - 1, octets)
        if partial is None:
            self.port.note("malformed")
            return
        if passing is not None:
            self._gather_more(now, passing, partial)
        if settled:
            if passing is None or passing.done:
                self._partials.pop(key)
        elif partial.complete:
            self._partials.pop(key)
            self._complete(now, id, header, partial)
        elif not self._may_be_wanted(id, partial) and (passing is None or passing.done):
            self._partials.pop(key)

    def _may_be_wanted(self, id: EventId, partial: Partial[Document]) -> bool:
        """Whether a document of which some pieces are here is wanted, or it cannot be told yet."""
        if id in self._judged:
            return True
        if partial.whole is None:
            listed = described(id, partial.prefix(), partial.cut.length)
        else:
            head = partial.whole.head_pieces(partial.cut)
            listed = partial.whole.descriptor if partial.have & head == head else None
        if listed is None:
            return True
        wanted, kept = self._interest(listed)
        if kept:
            put(self._judged, id, wanted, _LATEST)
        else:
            put(self._settled, id, None, self.params.window)
        return kept

    def _complete(self, now: Time, id: EventId, header: Header, partial: Partial[Document]) -> None:
        """All of a document is here: whoever wants it keeps it, asked for or not."""
        document = assembled(id, partial)
        if document is None:
            self.port.note("malformed")
            return
        wanted, kept = self._interest(document.descriptor)
        self._wishes.forget(id)
        if not kept:
            put(self._settled, id, None, self.params.window)
            return
        if header.life == 0:
            self.port.decide(id, "expired")
            return
        hops = min(header.hops + 1, MAX_HOPS)
        self.local.deliver_held(document.event, hops, "piece")
        expires = None if header.life is None else now + clipped(header.life) * MILLISECOND
        published = now - clipped(header.age) * MILLISECOND
        self._put(now, Held(document, published, now, now, wanted, expires, hops), "received")

    def _sendable(self, length: int) -> bool:
        return length <= self._longest

    # --- Passing documents on ---------------------------------------------------------------------------------------

    def _hear_broadcast(self, now: Time, header: Header) -> _Passing | None:
        """What this node does for a broadcast of pieces, if it passes it on and has not yet done so."""
        key = _broadcast(header, self.params.whole)
        passing = self._passing.get(key)
        if passing is None:
            if self._chosen(header.relays, key not in self._passing):
                passing = _Passing(header, now)
            elif key in self._passing:
                return None
            put(self._passing, key, passing, _LATEST)
        return None if passing is None or passing.done else passing

    def _needed(self, header: Header) -> int:
        """The pieces that are passed on if all goes well."""
        return header.cut.all if self.params.whole else header.sent << header.first

    def _gather_more(self, now: Time, passing: _Passing, partial: Partial[Document]) -> None:
        passing.latest = now
        needed = self._needed(passing.header)
        if partial.have & needed == needed:
            self._pass_on(now, passing, partial.whole, partial)
        elif not passing.waiting:
            passing.waiting = True
            self.port.set_timer(now + self._gather, _Gather(_broadcast(passing.header, self.params.whole)))

    def _gathered(self, now: Time, key: _Gather) -> None:
        """Nothing more may come of a broadcast that this node passes on."""
        passing = self._passing.get(key.broadcast)
        if passing is None or passing.done:
            return
        if now - passing.latest < self._gather:
            self.port.set_timer(passing.latest + self._gather, key)
            return
        id = passing.header.document
        partial_key = self._key(id, passing.header)
        held, partial = self._cache.get(id), self._partials.get(partial_key)
        if held is not None:
            self._pass_on(now, passing, held.document, None)
        elif partial is not None and not self.params.whole:
            self._pass_on(now, passing, partial.whole, partial)
            if id in self._settled or id in self._had:
                self._partials.pop(partial_key)
        else:
            passing.done = True
            self._partials.pop(partial_key)
            self.port.decide(id, "given up")

    def _pass_on(
        self, now: Time, passing: _Passing, document: Document | None, partial: Partial[Document] | None
    ) -> None:
        """Passes on what is here of what was sent."""
        passing.done = True
        header = passing.header
        pieces = self._needed(header) & (header.cut.all if partial is None else partial.have)
        octets = None if partial is None else partial.octets
        if not pieces or (partial is None and document is not None and document.length != header.length):
            return
        scope = min(header.scope, MAX_SCOPE) - 1
        passed = msgspec.structs.replace(header, scope=scope, hops=min(header.hops + 1, MAX_HOPS))
        if self._outgoing.pass_on(now, Job(passed, pieces, document, octets, now)):
            self.port.decide(header.document, "forwarded")
        else:
            self.port.note("too busy to pass on")

    # --- The cache --------------------------------------------------------------------------------------------------

    def _put(self, now: Time, held: Held, change: Change) -> None:
        """Takes a document into the cache, if it has or gets room."""
        id, documents, octets = held.document.id, len(self._cache), self._cache.octets
        dropped = self._cache.put(held)
        if self.params.remember:
            put(self._had, id, held.wanted, self.params.window)
        put(self._settled, id, None, self.params.window)
        if dropped is None:
            self.port.decide(id, "cache full")
            if not self.params.remember:
                self._settled.pop(id, None)
            if change == "kept":
                storage.forget(self.port, held)
            return
        for victim in dropped:
            documents, octets = documents - 1, octets - victim.octets
            self._gone(victim, "full", documents, octets)
        self._catalog.enter(held)
        if change != "kept":
            storage.keep(self.port, held)
        self.port.record(CacheChanged(id, True, change, len(self._cache), self._cache.octets))
        expiry = self._cache.next_expiry
        if expiry is not None and (self._expiry is None or expiry < self._expiry):
            self._expiry = expiry
            self.port.set_timer(expiry, _EXPIRE)

    def _gone(self, held: Held, change: Change, documents: int, octets: int) -> None:
        id = held.document.id
        self._catalog.leave(id)
        storage.forget(self.port, held)
        if not self.params.remember:
            self._settled.pop(id, None)
        self.port.decide(id, "expired" if change == "expired" else "cache full")
        self.port.record(CacheChanged(id, False, change, documents, octets))

    def _drop_expired(self, now: Time) -> None:
        expiry = self._cache.next_expiry
        if expiry is None or expiry > now:
            return
        gone = self._cache.expired(now)
        documents, octets = len(self._cache) + len(gone), self._cache.octets + sum(held.octets for held in gone)
        for held in gone:
            documents, octets = documents - 1, octets - held.octets
            self._gone(held, "expired", documents, octets)
        expiry = self._cache.next_expiry
        if expiry is not None and self._expiry is None:
            self._expiry = expiry
            self.port.set_timer(expiry, _EXPIRE)

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            "documents": len(self._cache),
            "document bytes": self._cache.octets,
            "partial documents": len(self._partials),
            "neighbours": len(self._catalog),
            "profiles": self._catalog.profiles,
            "direct neighbours": len(self._neighbourhood),
            "remembered": len(self._had),
            "asked for": len(self._wishes),
            "to be sent": len(self._orders),
            "to be passed on": len(self._outgoing),
        }


def _span(time: Time) -> int:
    """A duration as messages have it."""
    return clipped(time // MILLISECOND)


def _broadcast(header: Header, whole: bool) -> tuple[Node, int, int]:
    """What a broadcast of pieces is known by: one bulk, or the whole document."""
    return header.source, header.serial, 0 if whole else header.chunk


ENTRY: Final = Entry(
    "opportunistic",
    "documents that their carriers offer to whom they meet (Haillot and Guidec 2008)",
    Opportunistic,
    OpportunisticBroker,
    (Announce, Request, Piece),
    facts=(CacheChanged, RelaysChosen),
    understands=frozenset({"lifetimes"}),
)
