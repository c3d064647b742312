"""The broker."""

import math
from collections.abc import Container, Hashable, Mapping
from random import Random
from typing import Final

from roamcast.content.covering import summarise
from roamcast.content.event import EventId
from roamcast.content.filter import NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.protocols.roam.links import Links
from roamcast.protocols.roam.messages import MAX_LISTED, MAX_SPAN, Claim, Data, Hello, key_of, packed
from roamcast.protocols.roam.params import Roam
from roamcast.protocols.roam.store import Held, Store
from roamcast.protocols.roam.ways import NOBODY, Ways, filter_key
from roamcast.units import SECOND, seconds

_HELLO: Final = "hello"
_MILLISECOND: Final = SECOND // 1000
_FAREWELLS: Final = 3


class RoamBroker(Broker[Roam]):
    def __init__(self, node: Node, params: Roam, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._key = key_of(node)
        self._links = Links(params.neighbours, params.prior, params.patience)
        self._ways = Ways(params.table)
        self._store = Store(port, params.capacity, params.window)
        self._filter: Filter = NOTHING
        self._wants = NOBODY
        self._farewells = 0
        self._interval = seconds(params.share * math.sqrt(params.prior))
        self._due = 0  # of the next hello
        self._last = 0

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self._store.restore(now, kept)
        self._schedule_hello(now + round(self.rng.random() * self._interval))

    def holds(self, event_id: EventId) -> bool:
        return self._store.get(event_id) is not None

    # --- Hellos -----------------------------------------------------------------------------------------------------

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._interests_changed(now)
        for held in list(self._store):
            if held.expires > now:
                self.local.deliver_held(held.event, held.hops, "held")

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self._interests_changed(now)

    def _interests_changed(self, now: Time) -> None:
        filters = self.local.filters
        if not filters and self._wants != NOBODY:
            self._farewells = _FAREWELLS
        self._filter = summarise(filters, self.params.summary) if filters else NOTHING
        self._wants = filter_key(self._filter)
        self._hurry(now)

    def _hurry(self, now: Time) -> None:
        """Sends the next hello soon, because something has changed."""
        soon = now + round(self.rng.random() * 0.2 * SECOND)
        if soon < self._due and now - self._last > SECOND // 2:
            self._schedule_hello(soon)

    def _schedule_hello(self, at: Time) -> None:
        self._due = at
        self.port.set_timer(at, _HELLO)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == _HELLO:
            if now >= self._due:
                self.port.broadcast(self._hello(now))
        elif isinstance(key, tuple) and len(key) == 2 and key[0] == "send":
            held = self._store.get(key[1])
            if held is not None and held.due is not None:
                self._send_if_due(now, held)

    def _hello(self, now: Time, without: Container[int] = ()) -> Hello:
        """Makes a hello, and schedules the next."""
        p = self.params
        self._links.update(now)
        self._store.expire(now)
        self._ways.growth = max(p.ageing / self._links.life, 1 / 120) / SECOND
        self._ways.expire(now)
        crowd = max(1.0, self._links.degree / p.dense)
        subscriber = self._wants != NOBODY or self._farewells > 0
        wish = p.share * math.sqrt(self._links.life) * crowd ** (p.power if subscriber else p.relay_power)
        wish = min(max(wish, p.least), p.most, 2 * self._interval / SECOND)
        self._interval = seconds(wish)
        self._last = now
        self._schedule_hello(now + round(self._interval * (0.9 + 0.2 * self.rng.random())))
        ways = self._ways.listed(now, without)
        filters = self._ways.some_filters(ways, 4)
        if subscriber:
            self._farewells = max(0, self._farewells - 1)
            ways[self._wants] = packed([Claim(self._key, 0, True)]) + ways.get(self._wants, b"")[: 3 * MAX_LISTED - 3]
            filters[self._wants] = self._filter
        tells = subscriber or self._links.degree < p.digest
        return Hello(
            round(self._links.degree),
            self._interval // _MILLISECOND,
            ways,
            filters,
            self._store.summary() if tells else None,
        )

    def _hear_hello(self, now: Time, sender: Node, hello: Hello) -> None:
        self._ways.learn_filters(hello.filters)
        wants = NOBODY
        for filter, claims in hello.distances:
            for key, distance, _ in claims:
                if key != self._key:
                    self._ways.learn(now, key, distance + 1, filter)
                if not distance:
                    wants = filter
        if hello.received is not None:
            self._repair(now, sender, hello, wants)

    # --- Repair -----------------------------------------------------------------------------------------------------

    def _repair(self, now: Time, sender: Node, hello: Hello, wants: int) -> None:
        p = self.params
        key = key_of(sender)
        both_sparse = p.carry and self._links.degree < p.sparse and hello.degree < p.sparse
        theirs = {k: d for _, claims in hello.distances for k, d, _ in claims} if p.leads else {}
        count = 0
        for held in self._store:
            if held.expires <= now or held.due is not None or not hello.lacks(held.event.id):
                continue
            if not both_sparse:
                wanting = self._ways.wanting(held.event)
                if not (wants != NOBODY and key in wanting) and not any(
                    theirs.get(k, 99) + 0.5 <= held.claims.get(k, 99) for k in wanting
                ):
                    continue
            held.repair = True
            self._schedule(held, now + round(self.rng.random() * 0.1 * SECOND))
            count += 1
            if count >= p.repairs:
                break

    # --- Events -----------------------------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        life = publication.lifetime if publication.lifetime is not None else seconds(self.params.life)
        self.local.deliver(event, 0, "local")
        held = Held(event, 0, now + life, now)
        self._store.remember(event.id, held.expires)
        self._store.put(held)
        self._send(now, held)

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if isinstance(message, Hello):
            self._heard(now, sender, message)
            self._hear_hello(now, sender, message)
        elif isinstance(message, Data):
            self._heard(now, sender, message.hello)
            self._hear_data(now, message)
            if message.hello is not None:
                self._hear_hello(now, sender, message.hello)

    def _heard(self, now: Time, sender: Node, hello: Hello | None) -> None:
        interval = None if hello is None else min(hello.interval, 86_400_000) * _MILLISECOND
        self._ways.renew(now, key_of(sender), 1)
        if self._links.hear(now, sender, interval) and self.params.trigger and self._links.degree < self.params.sparse:
            self._links.degree += 1
            self._hurry(now)

    def _hear_data(self, now: Time, message: Data) -> None:
        event = message.event
        for key, distance, own in message.claimed:
            if own:
                self._ways.renew(now, key, distance + 1)
        held = self._store.get(event.id)
        if held is not None:
            self.port.note("duplicate")
            held.copies += 1
            held.merge(message.claimed)
            if held.due is not None:
                self._reconsider(now, held)
        elif self._store.received(event.id) or not message.life:
            self.port.note("duplicate")
        else:
            expires = now + min(message.life, MAX_SPAN) * _MILLISECOND
            held = Held(event, min(message.hops + 1, MAX_HOPS), expires, now, copies=1)
            held.merge(message.claimed)
            self._store.remember(event.id, expires)
            self.local.deliver(event, held.hops, "roam")
            self._store.put(held)
            held.jitter = round(self.rng.random() * self.params.spread * SECOND)
            self._consider(now, held)

    def _gain(self, now: Time, held: Held) -> int:
        """The number of subscribers that this node is nearer to than all who have sent the event."""
        ways, claims, least = self._ways, held.claims, self.params.gain
        return sum(
            [
                1
                for key in ways.wanting(held.event)
                if ways.distance(now, key) + least <= claims.get(key, 99)
            ]
        )

    def _consider(self, now: Time, held: Held) -> None:
        gain = self._gain(now, held)
        if gain:
            self.port.decide(held.event.id, "forwarded")
            self._schedule(held, held.heard + round(self.params.wait / gain * SECOND) + held.jitter)
        elif self._links.degree < self.params.sparse and held.copies < self.params.blind:
            self.port.decide(held.event.id, "forwarded")
            self._schedule(held, held.heard + round(self.params.wait * SECOND) + held.jitter)
        else:
            self.port.decide(held.event.id, "no route")

    def _reconsider(self, now: Time, held: Held) -> None:
        if held.repair:
            held.due, held.repair = None, False
            return
        gain = self._gain(now, held)
        if gain:
            held.due = held.heard + round(self.params.wait / gain * SECOND) + held.jitter
        elif held.copies >= self.params.blind or self._links.degree >= self.params.sparse:
            held.due = None
            self.port.decide(held.event.id, "suppressed")

    def _schedule(self, held: Held, at: Time) -> None:
        held.due = at
        self.port.set_timer(at, ("send", held.event.id))

    def _send_if_due(self, now: Time, held: Held) -> None:
        assert held.due is not None
        if held.due > now:
            self.port.set_timer(held.due, ("send", held.event.id))
        elif held.expires <= now:
            held.due = None
        else:
            self._send(now, held)

    def _send(self, now: Time, held: Held) -> None:
        if held.repair:
            self.port.note("repair")
        held.due, held.repair = None, False
        listed: dict[int, Claim] = {}
        if self.local.matches(held.event):
            listed[self._key] = Claim(self._key, 0.0, True)
        for key in self._ways.wanting(held.event):
            distance = self._ways.distance(now, key)
            if distance <= held.claims.get(key, 99):
                listed[key] = Claim(key, distance, True)
        for key, distance in held.claims.items():
            if key not in listed:
                listed[key] = Claim(key, distance, False)
        chosen = list(listed.values())[:MAX_LISTED]
        held.merge(chosen)
        entries = packed(chosen)
        life = max(1, (held.expires - now) // _MILLISECOND)
        hello = None
        if self._due - now < self._interval * self.params.attach:
            hello = self._hello(now, {claim.key for claim in chosen if claim.own})
        self.port.broadcast(Data(held.event, held.hops, life, entries, hello))

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            "neighbours": len(self._links),
            "distances": len(self._ways),
            "carried": len(self._store),
            "received": self._store.remembered,
        }


ENTRY: Final = Entry(
    "roam",
    "few transmissions towards subscribers, carried and handed over where there is no path",
    Roam,
    RoamBroker,
    (Hello, Data),
    understands=frozenset({"lifetimes"}),
)
