"""The broker: who sends an event, and when.

The rules this file owns; `docs/protocols/roam.md` explains them and shows what each is worth.

* **Forwarding.** An event travels by broadcast, with claims: how near somebody who sent it is to each subscriber that
  wants it. A node that hears it and is nearer to some of them than claimed, by half a hop, sends it too: the more of
  them, the sooner. Copies that it hears meanwhile bring more claims, and if none is left to improve on, it is silent.
* **Repair and carrying.** Hellos of subscribers, and of nodes in sparse regions, tell what was received. A node that
  carries an event which a neighbour lacks sends it if the neighbour wants it; or if the region is sparse, links change
  and somebody is known to want it, since either may meet a subscriber next. A copy heard meanwhile cancels that. A node
  that was handed an event hands it on at once to neighbours that lack it.
* **Hellos** are sent as often as the life of links and the number of neighbours ask for; they ride on data where they
  can. A node in a sparse region answers a new neighbour with a hello.
* **Counting.** Where more than 40 subscribers are known to want an event, or nobody on the way has heard of any, a node
  forwards it unless it hears three copies, as in `counter`. Where six or fewer want it, links are short and neighbours
  few, it forwards it unless it hears four.
"""

from collections.abc import Hashable, Mapping
from operator import itemgetter
from random import Random
from typing import Final

from msgspec import Raw

from roamcast.content.covering import summarise
from roamcast.content.event import EventId
from roamcast.content.filter import NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.protocols.roam.links import FEW, Link, Links
from roamcast.protocols.roam.messages import (
    MAX_LISTED,
    MAX_SPAN,
    MILLISECOND,
    Data,
    Hello,
    Name,
    key_of,
    names,
    pack,
    pack_claims,
)
from roamcast.protocols.roam.params import Roam
from roamcast.protocols.roam.store import Held, Store, lacks
from roamcast.protocols.roam.ways import NOBODY, RARE, SHORT, Ways, filter_key
from roamcast.units import SECOND, seconds

WAIT: Final = SECOND // 5
"""The wait before forwarding for one subscriber; for n of them, a part of n."""
SPREAD: Final = 3 * SECOND // 100
"""The longest random part of a wait."""
HURRY: Final = SECOND // 5
"""The longest wait before a hello that cannot wait for its turn, and the shortest time between two such."""
ANSWER: Final = SECOND // 10
"""The longest wait before an event is sent to a neighbour that lacks it."""
MANY: Final = 40
"""Subscribers: an event that more want goes to everybody, and listing them would only make it longer."""
COPIES: Final = 3
"""Heard copies, the first included, at which a node stays silent then."""
MOST_COPIES: Final = 4
"""Heard copies at which a node stays silent in any case: it cannot be the only way to anybody."""
DENSE: Final = 10
"""Neighbours, with which one copy less is enough."""
AMPLE: Final = 9
"""Neighbours around here, with which there are paths enough even to few subscribers."""
SETTLED: Final = WAIT + SPREAD
"""A younger event may still be on its way: only those who want it get it."""
REPAIRS: Final = 32
"""Most events sent in answer to one hello."""
_FAREWELLS: Final = 3
"""Hellos in which a node without subscriptions says so, after it had some."""
_HELLO: Final = "hello"


class RoamBroker(Broker[Roam]):
    def __init__(self, node: Node, params: Roam, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._key = key_of(node)
        self._links = Links(params.neighbours)
        self._ways = Ways(self._key, params.table)
        self._store = Store(port, params.capacity, params.window)
        self._wants = False
        self._summary: Filter | None = NOTHING  # of what is wanted here; None after subscriptions changed
        self._wanted = NOBODY  # its key
        self._farewells = 0
        self._interval = self._links.interval(0, False, False)
        self._due = 0  # when the next hello is sent
        self._told = 0  # when the last hello was sent

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        self._store.restore(now, kept)
        self._ways.age(now, self._links.life, self._links.density >= AMPLE)
        self._told = now
        self._set_hello(now + round(self.rng.random() * self._interval))

    def holds(self, event_id: EventId) -> bool:
        return self._store.get(event_id) is not None

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._interests_changed(now)
        for held in self._store:
            if held.expires > now:
                self.local.deliver_held(held.event, held.hops, "held")

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self._interests_changed(now)

    def _interests_changed(self, now: Time) -> None:
        wants = bool(self.local.filters)
        if self._wants and not wants:
            self._farewells = _FAREWELLS
        self._wants, self._summary = wants, None
        self._hurry(now)

    def timer(self, now: Time, key: Hashable) -> None:
        if key == _HELLO:
            if now >= self._due:
                self.port.broadcast(self._hello(now))
        elif isinstance(key, tuple) and len(key) == 2 and key[0] == "send":
            held = self._store.get(key[1])
            if held is not None and held.due is not None:
                self._when_due(now, held)

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        data = hello = None
        if isinstance(message, Data):
            data, hello = message, message.hello
        elif isinstance(message, Hello):
            hello = message
        else:
            return
        link = self._links.hear(now, sender)
        if link is None:
            link = self._links.add(now, sender)
            if self._links.sparse():
                self._hurry(now)
        self._ways.meet(now, link.key)
        if data is not None:
            self._hear_data(now, data)
        if hello is not None:
            self._hear_hello(now, link, hello)

    # --- Hellos -----------------------------------------------------------------------------------------------------

    def _set_hello(self, at: Time) -> None:
        self._due = at
        self.port.set_timer(at, _HELLO)

    def _hurry(self, now: Time) -> None:
        """Something has changed: the next hello comes soon."""
        soon = now + round(self.rng.random() * HURRY)
        if soon < self._due and now - self._told > HURRY:
            self._set_hello(soon)

    def _hello(self, now: Time) -> Hello:
        """A hello to be sent now; the next is scheduled."""
        self._links.update(now)
        self._store.expire(now)
        self._ways.age(now, self._links.life, self._links.density >= AMPLE)
        if self._summary is None:  # made late: many subscriptions may change between two hellos
            wanted = self.local.filters
            self._summary = summarise(wanted, self.params.summary) if wanted else NOTHING
            self._wanted = filter_key(self._summary)
        subscriber = self._wanted != NOBODY or self._farewells > 0
        self._interval = min(self._links.interval(now, subscriber, len(self._store) > 0), 2 * self._interval)
        self._told = now
        self._set_hello(now + round(self._interval * (0.9 + 0.2 * self.rng.random())))
        ways = self._ways.listed(now)
        filters, unknown = self._ways.answers(), self._ways.unknown()
        if subscriber:
            self._farewells = max(0, self._farewells - 1)
            ways[self._wanted] = pack([(self._key, 0)]) + ways.get(self._wanted, b"")
            filters[self._wanted] = self._summary
        tells = subscriber or self._links.sparse()
        received = self._store.summary() if tells else None
        return Hello(round(self._links.density), self._interval // MILLISECOND, ways, filters, unknown, received)

    def _hear_hello(self, now: Time, link: Link, hello: Hello) -> None:
        link.interval, link.density, link.digest = hello.span, hello.density, hello.digest
        ways = self._ways
        if hello.filters:
            ways.learn_filters(hello.filters)
        if hello.unknown:
            ways.ask(hello.unknown)
        for filter, distances in hello.distances:
            ways.learn(now, distances, filter)
        if hello.digest is not None:
            missing = self._store.missing(hello.digest)
            if missing:
                self._repair(now, link, missing)

    def _repair(self, now: Time, link: Link, missing: list[Held]) -> None:
        """Schedules those of the events that a neighbour lacks which it should have."""
        few = self._links.sparse(link.density) and self._links.moving(now)
        count = 0
        for held in missing:
            if held.due is not None or held.expires <= now:
                continue
            settled = now - held.arrived >= SETTLED
            if self._ways.wants(link.key, held.event) or (few and settled and self._worth_carrying(held)):
                held.repair = True
                self._set_due(held, now + round(self.rng.random() * ANSWER))
                count += 1
                if count == REPAIRS:
                    return

    def _worth_carrying(self, held: Held) -> bool:
        """Whether somebody is known to want an event. A node that knows of no subscriber at all cannot tell."""
        return self._ignorant or bool(self._ways.wanting(held.event)) or self.local.matches(held.event)

    # --- Events -----------------------------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        life = seconds(self.params.life) if publication.lifetime is None else publication.lifetime
        self.local.deliver(event, 0, "local")
        held = Held(event, 0, now + life, now)
        self._hold(held)
        self.port.decide(event.id, "forwarded")
        self._send(now, held)

    def _hold(self, held: Held, encoded: Raw | None = None) -> None:
        evicted = self._store.put(held, encoded)
        if evicted is not None:
            self.port.decide(evicted, "cache full")

    def _hear_data(self, now: Time, message: Data) -> None:
        event = message.event
        held = self._store.get(event.id)
        if held is not None:
            self.port.note("duplicate")
            held.hear(now, message.nearest)
            held.copies += 1
            if held.due is not None:
                self._reconsider(held, message)
        elif self._store.received(event.id) or not message.life:
            self.port.note("duplicate")
        else:
            expires = now + min(message.life, MAX_SPAN) * MILLISECOND
            held = Held(event, min(message.hops + 1, MAX_HOPS), expires, now, round(self.rng.random() * SPREAD))
            held.hear(now, message.nearest)
            self.local.deliver(event, held.hops, "roam")
            self._hold(held, message.kept)
            self._consider(now, held, message)

    def _consider(self, now: Time, held: Held, message: Data) -> None:
        """Decides whether to forward a new event, and when."""
        links, wanting = self._links, self._ways.wanting(held.event)
        held.listing = len(wanting) <= MANY and bool(message.claims or not self._ignorant)
        hasty = len(wanting) <= RARE and links.life < SHORT and links.density < DENSE
        held.counting = hasty or not held.listing
        held.enough = MOST_COPIES - (links.degree >= DENSE) if held.listing else COPIES
        if not held.counting:
            held.gains = self._ways.gains(now, held.event, wanting, message.nearest)
        if held.counting or held.gains:
            self.port.decide(held.event.id, "forwarded")
            self._set_due(held, held.arrived + self._wait(held))
        else:
            self.port.decide(held.event.id, "no route")
            if message.late and self._links.sparse() and self._links.moving(now):
                self._pass_on(now, held)

    def _pass_on(self, now: Time, held: Held) -> None:
        """An event that was handed over goes on at once if a neighbour lacks it too."""
        sparse, id = self._links.sparse, held.event.id
        if any(sparse(link.density) and link.digest is not None and lacks(link.digest, id) for link in self._links):
            held.repair = True
            self._set_due(held, now + round(self.rng.random() * ANSWER))

    def _wait(self, held: Held) -> Time:
        if held.counting:
            return 3 * held.jitter
        return WAIT * min(self._links.degree, FEW) // FEW // len(held.gains) + held.jitter

    @property
    def _ignorant(self) -> bool:
        """Whether this node knows of no subscriber, itself included."""
        return not self._ways and self._wanted == NOBODY

    def _reconsider(self, held: Held, message: Data) -> None:
        """Somebody has sent an event that is to be sent here."""
        claims = message.nearest
        for key in [key for key, limit in held.gains.items() if claims.get(key, limit) < limit]:
            del held.gains[key]
        enough = held.copies >= held.enough or not (held.counting or held.gains)
        if not (held.repair or enough):
            held.due = held.arrived + self._wait(held)
        else:
            held.due, held.repair = None, False
            self.port.decide(held.event.id, "suppressed")

    def _set_due(self, held: Held, at: Time) -> None:
        held.due = at
        self.port.set_timer(at, ("send", held.event.id))

    def _when_due(self, now: Time, held: Held) -> None:
        assert held.due is not None
        if held.due > now:
            self.port.set_timer(held.due, ("send", held.event.id))
        elif held.expires <= now:
            held.due = None
            self.port.decide(held.event.id, "expired")
        else:
            self._send(now, held)

    def _send(self, now: Time, held: Held) -> None:
        late, held.due, held.repair = held.repair, None, False
        if late:
            self.port.note("repair")
        claims: dict[Name, float] = {}
        if held.listing:
            claims = self._ways.outdated(now - held.heard, held.claims)
            claims |= self._ways.nearer(now, held.event, claims)
            if self.local.matches(held.event):
                claims[names(held.event.id)[self._key]] = 0.0
            if len(claims) > MAX_LISTED:
                claims = dict(sorted(claims.items(), key=itemgetter(1))[:MAX_LISTED])
        held.hear(now, claims)
        hello = self._hello(now) if self._due - now < self._interval // 2 else None
        life = max(1, (held.expires - now) // MILLISECOND)
        self.port.broadcast(Data(held.event, held.hops, life, late, pack_claims(claims), hello))

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
    "towards subscribers with few transmissions; carried and handed over where there is no path",
    Roam,
    RoamBroker,
    (Hello, Data),
    understands=frozenset({"lifetimes"}),
)
