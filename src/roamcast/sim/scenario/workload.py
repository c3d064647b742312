"""The workload: which nodes subscribe to what, and which publish what and when.

It depends only on the scenario and the seed, never on the protocol, so that every protocol in a comparison gets the
same. Each publisher, and each subscriber that changes its subscription, draws from its own random stream; one common
stream draws the nodes and the first subscriptions. Lifetimes and contexts have streams of their own.
"""

import functools
import heapq
import itertools
from collections.abc import Iterator
from random import Random
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.content.context.expression import Context
from roamcast.content.document import Carry
from roamcast.content.event import Event, Scalar, event_id
from roamcast.content.filter import Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import ContentError
from roamcast.sim.mobility import Area
from roamcast.sim.scenario.contexts import GroupContexts, Placed, PositionOf
from roamcast.sim.scenario.documents import events_of
from roamcast.sim.scenario.draw import Drawn, choices, draw, interval_problems, values_of
from roamcast.sim.scenario.some_nodes import unknown_nodes
from roamcast.units import SECOND, seconds


class _WorkloadTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _NodeGroup(_WorkloadTable, frozen=True, kw_only=True):
    """Nodes that do the same: a number of them, drawn from the seed, or those named."""

    count: Annotated[int | None, Meta(description="how many nodes, drawn from the seed")] = None
    nodes: Annotated[tuple[int, ...] | None, Meta(description="which nodes, instead of a count")] = None
    start: Annotated[float, Meta(ge=0, description="from when, s")] = 0.0
    stop: Annotated[float | None, Meta(description="until when, s; none: to the end")] = None

    lifetime: float | tuple[float, ...] | None = None

    @property
    def lifetimes(self) -> tuple[float, ...]:
        return choices(self.lifetime)

    @property
    def members(self) -> int:
        return len(self.nodes) if self.nodes is not None else self.count or 0

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        if (self.count is None) == (self.nodes is None):
            yield "count", "give either count or nodes"
        elif self.count is not None and self.count < 1:
            yield "count", f"{self.count}: at least one node"
        for problem in unknown_nodes(self.nodes or (), nodes):
            yield "nodes", problem
        if self.stop is not None and self.stop <= self.start:
            yield "stop", f"{self.stop:g} s is not after the start at {self.start:g} s"
        for lifetime in self.lifetimes:
            if not lifetime >= 0:
                yield "lifetime", f"{lifetime:g} s: 0 or more"
        if self.lifetime == ():
            yield "lifetime", "an empty list: at least one to draw from"

    @property
    def contexts(self) -> GroupContexts:
        raise NotImplementedError


class SubscriberGroup(_NodeGroup, frozen=True, kw_only=True):
    """Nodes with a subscription each."""

    filter: Annotated[
        str | tuple[str, ...], Meta(description="what they want, as text; of several, each node draws one")
    ] = "true"
    xpath: Annotated[
        str | tuple[str, ...] | None, Meta(description="the same in XPath, instead of a filter; none: as `filter` says")
    ] = None
    every: Annotated[
        float | None,
        Meta(
            description="time between two subscriptions of a node, s, the first at a random point within it; "
            "each ends with its lifetime, and none is ended before; none: one from the start"
        ),
    ] = None
    change: Annotated[
        float | None,
        Meta(
            description="time between two changes of a node's subscription, s, the first at a random point within it: "
            "the old one ends, and one of the other filters is drawn; none: it stays"
        ),
    ] = None

    lifetime: Annotated[
        float | tuple[float, ...] | None,
        Meta(
            description="s after which a subscription ends by itself, 0: at once; of several, each draws one; none: it "
            "lasts until it is ended"
        ),
    ] = None
    interest: Annotated[
        str | Placed | None,
        Meta(description="the context of interest, as text, or a rectangle that is placed; none: everywhere"),
    ] = None
    publication_domain: Annotated[
        str | tuple[str, ...] | None,
        Meta(description="a context that publishers must be in; of several, each subscription draws one; none: any"),
    ] = None
    domain_share: Annotated[
        float,
        Meta(ge=0, le=1, description="share of the subscriptions that have a publication domain, if one is given"),
    ] = 1.0

    @property
    def contexts(self) -> GroupContexts:
        return GroupContexts("interest", self.interest, "publication_domain", self.publication_domain)

    @property
    def texts(self) -> tuple[str, ...]:
        """The filters that each node draws from, as they are written."""
        return choices(self.filter if self.xpath is None else self.xpath)

    @property
    def wanted(self) -> list[Filter]:
        return [parse_filter(text) if self.xpath is None else filter_from_xpath(text) for text in self.texts]

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        yield from super().problems(nodes)
        field = "filter" if self.xpath is None else "xpath"
        different: set[Filter] = set()
        try:
            different = set(self.wanted)
        except ContentError as problem:
            yield field, str(problem)
        else:
            if not different:
                yield field, "an empty list: at least one filter to draw from"
        if self.xpath is not None and self.filter != "true":
            yield "xpath", "cannot be combined with a filter: give either"
        yield from interval_problems("change", self.change, "changes")
        if self.change is not None and self.every is not None:
            yield "change", "cannot be combined with every: such subscriptions end with their lifetimes"
        elif self.change is not None and len(different) == 1:
            yield "change", f"every {self.change:g} s, but there is no other filter to change to"
        yield from interval_problems("every", self.every, "subscriptions")
        if self.every is not None and self.lifetime is None:
            yield "every", "needs a lifetime: subscriptions that never end would pile up"


class PublisherGroup(_NodeGroup, frozen=True, kw_only=True):
    """Nodes that publish events."""

    rate: Annotated[float, Meta(ge=1e-6, le=1e6, description="events per second and node")]
    timing: Annotated[
        Literal["periodic", "uniform", "poisson"],
        Meta(
            description="periodic: evenly spaced, from a random point of the first interval; uniform: at a random "
            "point of each interval; poisson: at random"
        ),
    ] = "periodic"
    type: Annotated[str, Meta(description="the events' type")] = "event"
    attributes: Annotated[
        dict[str, Drawn],
        Meta(description="a value; a list to draw from; or {low, high} to draw between"),
    ] = {}
    contents: Annotated[
        tuple[dict[str, Scalar], ...],
        Meta(description="further attributes: those of the first event, of the second, and so on, and again"),
    ] = ()
    documents: Annotated[
        tuple[str, ...],
        Meta(
            description="XML documents, or their files: of the first event, of the second, and so on, and again; "
            "type and attributes come from them"
        ),
    ] = ()
    schema: Annotated[
        str | None, Meta(description="the XML schema of the documents, a file or the schema; none: types by their form")
    ] = None
    carry: Annotated[
        Carry,
        Meta(
            description="whether an event carries its document, plain or compressed; then it is as large as that, and "
            "`size` is ignored"
        ),
    ] = "plain"
    size: Annotated[
        int,
        Meta(
            ge=1, le=1 << 20, description="size of an encoded event, bytes; a payload fills up what its content leaves"
        ),
    ] = 256

    lifetime: Annotated[
        float | tuple[float, ...] | None,
        Meta(
            description="s after which an event is no longer delivered, 0: instantaneous; of several, each draws one; "
            "none: as long as nodes carry it, which with context is 0"
        ),
    ] = None
    relevance: Annotated[
        str | Placed | None,
        Meta(description="the context of relevance, as text, or a rectangle that is placed; none: everywhere"),
    ] = None
    subscription_domain: Annotated[
        str | tuple[str, ...] | None,
        Meta(description="a context that subscribers must be in; of several, each event draws one; none: any"),
    ] = None

    @property
    def contexts(self) -> GroupContexts:
        return GroupContexts("relevance", self.relevance, "subscription_domain", self.subscription_domain)

    def event(self, rng: Random, id: int) -> Event:
        """One event with drawn content, padded to its size, or the event of a document."""
        serial = (id & 0xFFFFFFFF) - 1
        if self.documents:
            events = events_of(self.documents, self.schema, self.carry)
            event = msgspec.structs.replace(events[serial % len(events)], id=id)
            return self._padded(event) if self.carry == "none" else event
        content = {name: draw(drawn, rng) for name, drawn in self.attributes.items()}
        if self.contents:
            content |= self.contents[serial % len(self.contents)]
        return self._padded(Event.of(self.type, content, id=id))

    def _padded(self, bare: Event) -> Event:
        # A payload of n bytes takes n bytes and a header of 2 (like an empty payload), 3 or 5 bytes. Where the header
        # grows, two or three sizes are impossible; the event is then that much smaller.
        room = self.size - bare.size
        room -= 0 if room < 256 else 1 if room < 65537 else 3
        return msgspec.structs.replace(bare, body=_zeros(max(0, room)))

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        yield from super().problems(nodes)
        if self.documents:
            yield from self._document_problems()
            return
        if self.schema is not None:
            yield "schema", "needs documents"
        largest: dict[str, Scalar] = {}
        for name, drawn in self.attributes.items():
            try:
                largest[name] = max(values_of(drawn), key=lambda choice: Event.of("", {name: choice}).size)
            except ValueError as problem:  # a ContentError is one too
                yield f"attributes.{name}", str(problem)
                return
        try:
            contents = [largest | content for content in self.contents or ({},)]
            content = max(Event.of(self.type, content, id=event_id(nodes, 2**31)).size for content in contents)
        except ContentError as problem:
            yield "type", str(problem)
        else:
            if content > self.size:
                yield "size", f"{self.size} bytes: an event's content alone takes up to {content}"

    def _document_problems(self) -> Iterator[tuple[str, str]]:
        for field in ("attributes", "contents"):
            if getattr(self, field):
                yield field, "cannot be combined with documents, which supply all attributes"
        try:
            events_of(self.documents, self.schema, self.carry)
        except ContentError as problem:
            yield "documents", str(problem)


@functools.lru_cache(maxsize=16)
def _zeros(length: int) -> bytes:
    """The payload shared by all events of one size: in a run with long events it would be most of the memory."""
    return bytes(length)


class Workload(_WorkloadTable, frozen=True, kw_only=True):
    """Who subscribes and who publishes."""

    subscribers: Annotated[tuple[SubscriberGroup, ...], Meta(description="groups of subscribing nodes")] = ()
    publishers: Annotated[tuple[PublisherGroup, ...], Meta(description="groups of publishing nodes")] = ()
    disjoint: Annotated[bool, Meta(description="whether nodes drawn to publish must not subscribe")] = True
    signed: Annotated[
        bool,
        Meta(description="whether events carry a signature, as on devices: its bytes are counted, nothing is checked"),
    ] = False

    @property
    def placed(self) -> bool:
        """Whether a region is placed around a node, so that the node's position must be known."""
        places = [group.contexts.place for group in (*self.subscribers, *self.publishers)]
        return any(isinstance(place, Placed) and place.around == "node" for place in places)

    def problems(
        self, nodes: int, duration: float, area: Area | None = None, cooldown: float = 0.0
    ) -> Iterator[tuple[str, str]]:
        sides: tuple[tuple[str, tuple[SubscriberGroup, ...] | tuple[PublisherGroup, ...], str, float], ...] = (
            ("subscribers", self.subscribers, "end", duration),
            ("publishers", self.publishers, "cooldown" if cooldown else "end", duration - cooldown),
        )
        for field, groups, what, end in sides:
            for number, group in enumerate(groups):
                for name, rule in (*group.problems(nodes), *group.contexts.problems(area)):
                    yield f"{field}[{number}].{name}", rule
                if group.start >= end:
                    yield f"{field}[{number}].start", f"{group.start:g} s is not before the {what} at {end:g} s"
            named = [node for group in groups for node in group.nodes or ()]
            for node in sorted({node for node in named if named.count(node) > 1}):
                yield field, f"node {node} is named more than once"
        wanted = {
            "subscribers": sum(group.members for group in self.subscribers),
            "publishers": sum(group.members for group in self.publishers),
        }
        for field, count in wanted.items():
            if count > nodes:
                yield field, f"{count} of them, but there are only {nodes} nodes"
        both = sum(wanted.values())
        if self.disjoint and max(wanted.values()) <= nodes < both:
            yield (
                "publishers",
                f"{both} publishers and subscribers, but only {nodes} nodes; disjoint = false lets a node be both",
            )


class Act(NamedTuple):
    """Something an application does. For a subscription that ends, `what` is its id."""

    time: int
    node: int
    what: Subscription | Publication | int


def acts(
    workload: Workload,
    nodes: int,
    seed: int,
    end: int,
    area: Area | None = None,
    here: PositionOf | None = None,
    *,
    stop: int | None = None,
) -> Iterator[Act]:
    """Everything the applications do before `end`, in order of time, made lazily; nothing is published from `stop` on.

    `area` and `here` are needed to place regions.
    """
    stop = end if stop is None else stop
    making = _Contexts(seed, area, here)
    rng = Random(f"{seed}/workload")
    named = {node for group in workload.publishers for node in group.nodes or ()}
    subscribing = _draw_nodes([*workload.subscribers], nodes, rng, named if workload.disjoint else set())
    taken = {node for group in subscribing for node in group} if workload.disjoint else set()
    publishing = _draw_nodes([*workload.publishers], nodes, rng, taken)
    streams: list[Iterator[Act]] = [_subscribing(workload.subscribers, subscribing, rng, seed, end, making)]
    for group, members in zip(workload.publishers, publishing, strict=True):
        streams.extend(_publishing(group, node, seed, stop, making) for node in members)
    return heapq.merge(*streams, key=lambda act: (act.time, act.node))


def _draw_nodes(
    groups: list[SubscriberGroup | PublisherGroup], nodes: int, rng: Random, taken: set[int]
) -> list[list[int]]:
    """The members of each group: the named ones, or nodes that are in no group yet."""
    named = {node for group in groups for node in group.nodes or ()}
    pool = [node for node in range(nodes) if node not in named and node not in taken]
    rng.shuffle(pool)
    members = []
    for group in groups:
        if group.nodes is not None:
            members.append(list(group.nodes))
        else:
            members.append(sorted(pool[: group.members]))
            del pool[: group.members]
    return members


class _Contexts(NamedTuple):
    """Draws lifetimes and places."""

    seed: int
    area: Area | None
    here: PositionOf | None

    def stream(self, side: str, node: int) -> Random:
        return Random(f"{self.seed}/context/{side}/{node}")

    def draw(self, group: _NodeGroup, node: int, time: int, rng: Random) -> tuple[int | None, Context | None]:
        lifetime = seconds(rng.choice(group.lifetimes)) if group.lifetimes else None
        return lifetime, group.contexts.draw_place(node, time, rng, self.area, self.here)


def _subscribing(
    groups: tuple[SubscriberGroup, ...], members: list[list[int]], rng: Random, seed: int, end: int, making: _Contexts
) -> Iterator[Act]:
    acts = []
    subscription = 0
    for group, nodes in zip(groups, members, strict=True):
        filters = group.wanted
        stop = end if group.stop is None else min(end, round(group.stop * SECOND))
        for node in nodes:
            terms = list(_terms(group, node, filters, rng.choice(filters), seed, stop))
            ends = [*(time for time, _ in terms[1:]), stop][: len(terms)]
            own = making.stream("subscriber", node)
            for (time, wanted), until in zip(terms, ends, strict=True):
                subscription += 1
                lifetime, interest = making.draw(group, node, time, own)
                domain = group.contexts.draw_domain(own) if own.random() < group.domain_share else None
                acts.append(Act(time, node, Subscription(subscription, wanted, lifetime, interest, domain)))
                if until < end and group.every is None:
                    acts.append(Act(until, node, subscription))
    # The sort is stable: at one instant an old subscription ends before a new one begins.
    return iter(sorted(acts, key=lambda act: (act.time, act.node)))


def _terms(
    group: SubscriberGroup, node: int, filters: list[Filter], wanted: Filter, seed: int, stop: int
) -> Iterator[tuple[int, Filter]]:
    """The periods of a node's subscriptions, each until the next begins."""
    if group.every is None:
        yield round(group.start * SECOND), wanted
    interval = group.change or group.every
    if interval is None:
        return
    rng = Random(f"{seed}/subscriber/{node}")
    interval *= SECOND
    time = group.start * SECOND + interval * rng.random()
    while round(time) < stop:
        wanted = rng.choice([other for other in filters if other != wanted or group.every is not None])
        yield round(time), wanted
        time += interval


def _publishing(group: PublisherGroup, node: int, seed: int, end: int, making: _Contexts) -> Iterator[Act]:
    rng = Random(f"{seed}/publisher/{node}")
    end = end if group.stop is None else min(end, round(group.stop * SECOND))
    own = making.stream("publisher", node)
    for number, time in enumerate(_times(group, rng), 1):
        if time >= end:
            return
        lifetime, relevance = making.draw(group, node, round(time), own)
        domain = group.contexts.draw_domain(own)
        event = group.event(rng, event_id(node, number))
        yield Act(round(time), node, Publication(event, lifetime, relevance, domain))


def _times(group: PublisherGroup, rng: Random) -> Iterator[float]:
    """The times at which a node publishes, ns."""
    interval, start = SECOND / group.rate, group.start * SECOND
    if group.timing == "uniform":
        for number in itertools.count():
            yield start + interval * (number + rng.random())
    time = start + interval * (rng.random() if group.timing == "periodic" else rng.expovariate(1))
    while True:
        yield time
        time += interval * (1 if group.timing == "periodic" else rng.expovariate(1))
