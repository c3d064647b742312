"""Ground truth with contexts: which pairs of an event and a subscription an ideal system would have matched.

The ideal system of Frey and Roman (2007, section 4.2) matches "instantaneously ... based on information about the
entire system configuration". A pair is *ideal* if there is an instant within both lifetimes at which all five
conditions of `content/subscription.py` hold, with some host in both contexts. It ignores grace periods and radio.

How instants are found, from facts alone (legs, attributes, subscriptions and publications):

* Truth changes only at *critical* times: the ends of legs and lifetimes, changes of attributes, crossings of the
  borders of regions, and crossings of bounds on `x` and `y`. Those are exact. It is evaluated at each critical time and
  half-way between two of them, so only a touch of a border that rounding loses is missed.
* Relations to other hosts are not solved exactly: they are sampled, every `STEP`. Neighbours are the hosts within the
  radio range.
* An event without a lifetime is instantaneous; a subscription without one lasts until it is unsubscribed.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roamcast.analysis.terms import terms_of
from roamcast.content.context.evaluate import holds
from roamcast.content.context.expression import Aggregate, Context, HostComparison, Within, nodes
from roamcast.content.context.host import HostView, Situation
from roamcast.content.context.rules import region_of
from roamcast.content.context.text import parse_context
from roamcast.content.event import Scalar
from roamcast.content.filter import Filter, kind_of
from roamcast.content.geometry import Point
from roamcast.content.region import Rectangle, Region
from roamcast.content.text import parse_filter
from roamcast.facts.rows import VALUE_COLUMNS, read_events, read_rows
from roamcast.units import SECOND

STEP: Final = SECOND // 10
"""Time between two samples of a relation to other hosts, ns."""
READ: Final = ("subscribe", "publish", "event_attribute", "attribute", "leg", "deliver")
"""The tables that this looks at."""

_AXES: Final = {"x": 0, "y": 1}


class ContextPair(NamedTuple):
    event: int
    node: int
    """The subscriber."""
    subscription: int


class ContextCounts(NamedTuple):
    """Counts of one run, over the events published at or after the warm-up."""

    ideal: int
    delivered: int
    """How many of the ideal pairs were delivered."""
    beyond: int
    """Delivered pairs that are not ideal: the protocol decided on outdated information."""

    @property
    def delivery(self) -> float | None:
        """The share of the ideal pairs that was delivered; None if there are none."""
        return self.delivered / self.ideal if self.ideal else None


# --- Publications and subscriptions -----------------------------------------------------------------------------------


class _ContextPublication(NamedTuple):
    event: int
    node: int
    start: int
    end: int
    relevance: Context | None
    domain: Context | None


class _ContextSubscription(NamedTuple):
    node: int
    subscription: int
    start: int
    end: int
    filter: Filter
    interest: Context | None
    domain: Context | None


_filter: Final = lru_cache(maxsize=10_000)(parse_filter)
"""Many events and subscriptions have the same text: it is parsed once."""


@lru_cache(maxsize=10_000)
def _context(text: str | None) -> Context | None:
    return None if text is None else parse_context(text)


def _published(facts: Mapping[str, pa.Table], start: int, end: int) -> list[_ContextPublication]:
    columns = ("time", "node", "event", "lifetime", "relevance", "subscription_domain")
    return [
        _ContextPublication(event, node, time, min(time + (life or 0), end), _context(relevance), _context(domain))
        for time, node, event, life, relevance, domain in read_rows(facts, "publish", *columns)
        if time >= start
    ]


def _subscribed(facts: Mapping[str, pa.Table], end: int) -> list[_ContextSubscription]:
    return [
        _ContextSubscription(
            term.node,
            term.subscription,
            term.start,
            min(term.end, end, end if term.lifetime is None else term.start + term.lifetime),
            _filter(term.filter),
            _context(term.interest),
            _context(term.publication_domain),
        )
        for term in terms_of(facts["subscribe"])
    ]


# --- The configuration ------------------------------------------------------------------------------------------------


class Configuration:
    """Every host's position and attributes at any time (section 2.1)."""

    def __init__(self, facts: Mapping[str, pa.Table], reach: float) -> None:
        self._reach = reach
        self._legs: dict[int, list[tuple[int, int, Point, Point]]] = defaultdict(list)
        for node, start, end, x0, y0, x1, y1 in read_rows(facts, "leg", "node", "start", "end", "x0", "y0", "x1", "y1"):
            self._legs[node].append((start, end, (x0, y0), (x1, y1)))
        for legs in self._legs.values():
            legs.sort(key=lambda leg: leg[0])
        self._starts = {node: [leg[0] for leg in legs] for node, legs in self._legs.items()}
        self._changes: dict[int, list[tuple[int, dict[str, Scalar]]]] = defaultdict(list)
        columns = ("time", "node", "attribute", "kind", *VALUE_COLUMNS.values())
        for time, node, name, kind, *values in sorted(read_rows(facts, "attribute", *columns), key=lambda row: row[0]):
            changes = self._changes[node]
            known = changes[-1][1] if changes else {}
            value = values[list(VALUE_COLUMNS).index(kind)]
            if changes and changes[-1][0] == time:
                known[name] = value
            else:
                changes.append((time, {**known, name: value}))
        flat = [(node, *leg) for node, legs in self._legs.items() for leg in legs]
        self._node = np.array([leg[0] for leg in flat], np.int64)
        self._span = np.array([leg[1:3] for leg in flat], np.int64).reshape(-1, 2)
        places = np.array([[*leg[3], *leg[4]] for leg in flat], float).reshape(-1, 4)
        self._low = np.minimum(places[:, :2], places[:, 2:])
        self._high = np.maximum(places[:, :2], places[:, 2:])

    @property
    def hosts(self) -> list[int]:
        return sorted(self._legs)

    def legs(self, node: int, start: float, end: float) -> Iterator[tuple[int, int, Point, Point]]:
        """The legs that overlap a window."""
        legs = self._legs.get(node, [])
        first = max(0, bisect_right(self._starts.get(node, []), start) - 1)
        for leg in legs[first:]:
            if leg[0] > end:
                return
            yield leg

    def near(self, box: Rectangle, start: int, end: int) -> list[int]:
        """Hosts that may enter a box during a window; misses none."""
        # Boxes are rounded outwards, legs are not: a metre is far more than rounding.
        met = (self._span[:, 0] <= end) & (self._span[:, 1] >= start)
        met &= (self._low[:, 0] <= box.x1 + 1) & (self._high[:, 0] >= box.x0 - 1)
        met &= (self._low[:, 1] <= box.y1 + 1) & (self._high[:, 1] >= box.y0 - 1)
        return [int(node) for node in np.unique(self._node[met])]

    def view(self, node: int, time: float) -> HostView:
        attributes = self._known(node, time)
        leg = next(self.legs(node, time, time), None)
        if leg is None:
            return HostView(None, None, attributes)
        start, end, origin, goal = leg
        span = max(end - start, 1)
        part = (time - start) / span
        here = origin[0] + part * (goal[0] - origin[0]), origin[1] + part * (goal[1] - origin[1])
        velocity = (goal[0] - origin[0]) * SECOND / span, (goal[1] - origin[1]) * SECOND / span
        return HostView(here, velocity, attributes)

    def _known(self, node: int, time: float) -> dict[str, Scalar]:
        changes = self._changes.get(node, [])
        place = bisect_right(changes, time, key=lambda change: change[0])
        return changes[place - 1][1] if place else {}

    def changed(self, node: int, start: float, end: float) -> Iterator[int]:
        """When a host's attributes changed in a window."""
        return (time for time, _ in self._changes.get(node, []) if start <= time <= end)

    def situation(self, node: int, time: float, relational: bool) -> Situation:
        """A host at an instant; with its neighbours only if `relational`."""
        own = self.view(node, time)
        if not relational:
            return Situation(own, (), ())
        others = [self.view(other, time) for other in self.hosts if other != node]
        within = [other for other in others if (apart := own.distance(other)) is not None and apart <= self._reach]
        return Situation(own, within, others)


# --- Critical times ---------------------------------------------------------------------------------------------------


class _Property:
    """A context for one host, and the times at which its truth may change."""

    def __init__(self, context: Context | None, node: int, configuration: Configuration) -> None:
        self._context = context
        self._node = node
        self._configuration = configuration
        self._relational = context is not None and bool(context.aggregates)

    def holds(self, time: float) -> bool:
        if self._context is None:
            return True
        return holds(self._context, self._configuration.situation(self._node, time, self._relational))

    def critical(self, start: int, end: int) -> Iterator[float]:
        if self._context is None:
            return
        yield from self._configuration.changed(self._node, start, end)
        if self._relational:
            yield from range(start, end, STEP)
        parts = [node for node in nodes(self._context.expression) if not isinstance(node, Aggregate)]
        regions = [part.region for part in parts if isinstance(part, Within)]
        bounds = [
            (_AXES[part.left], float(part.right))
            for part in parts
            if isinstance(part, HostComparison)
            and isinstance(part.left, str)
            and part.left in _AXES
            and isinstance(part.right, int | float)
            and kind_of(part.right) is not kind_of(True)
        ]
        for leg in self._configuration.legs(self._node, start, end):
            yield from (time for time in _crossings(leg, regions, bounds) if start <= time <= end)


def _crossings(
    leg: tuple[int, int, Point, Point], regions: Sequence[Region], bounds: Sequence[tuple[int, float]]
) -> Iterator[float]:
    """When a host on a leg enters or leaves regions, or crosses bounds on its coordinates; and the leg's ends."""
    start, end, origin, goal = leg
    yield from (start, end)
    span = end - start
    for region in regions:
        for begin, finish in region.inside_during(origin, goal):
            yield from (start + begin * span, start + finish * span)
    for axis, bound in bounds:
        moved = goal[axis] - origin[axis]
        if moved and math.isfinite(bound):
            part = (bound - origin[axis]) / moved
            if 0 <= part <= 1:
                yield start + part * span


def _instants(start: int, end: int, critical: Iterable[float]) -> Iterator[float]:
    """The critical times of a window, and the midpoints between them."""
    times = sorted({float(start), float(end), *(time for time in critical if start <= time <= end)})
    for number, time in enumerate(times):
        if number:
            yield (times[number - 1] + time) / 2
        yield time


# --- Pairs ------------------------------------------------------------------------------------------------------------


def ideal(facts: Mapping[str, pa.Table], *, reach: float, end: int, start: int = 0) -> dict[ContextPair, float]:
    """The ideal pairs, each with an instant (ns) at which all five conditions hold.

    `reach` is the radio range, m; `start` and `end` limit the measured time, ns.
    """
    published, subscribed = _published(facts, start, end), _subscribed(facts, end)
    events = read_events(facts, (one.event for one in published))
    configuration = Configuration(facts, reach)
    found: dict[ContextPair, float] = {}
    for number, other in zip(*_candidates(published, subscribed), strict=True):
        event, subscription = published[number], subscribed[other]
        if not subscription.filter.matches(events[event.event]):
            continue
        instant = _instant(event, subscription, configuration)
        if instant is not None:
            found[ContextPair(event.event, subscription.node, subscription.subscription)] = instant
    return found


def _candidates(
    published: list[_ContextPublication], subscribed: list[_ContextSubscription]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs whose lifetimes and regions overlap, and some whose regions only nearly overlap."""
    spans = [
        np.array([(one.start, one.end) for one in side], np.int64).reshape(-1, 2) for side in (published, subscribed)
    ]
    boxes = [
        np.array([_box(one.relevance) for one in published]).reshape(-1, 4),
        np.array([_box(one.interest) for one in subscribed]).reshape(-1, 4),
    ]
    (event, other), (relevant, wanted) = spans, boxes
    together = (event[:, None, 0] <= other[None, :, 1]) & (other[None, :, 0] <= event[:, None, 1])
    for axis in (0, 1):
        together &= relevant[:, None, axis] <= wanted[None, :, axis + 2] + 1
        together &= wanted[None, :, axis] <= relevant[:, None, axis + 2] + 1
    rows, columns = np.nonzero(together)
    return rows.astype(np.int64), columns.astype(np.int64)


def _box(context: Context | None) -> tuple[float, float, float, float]:
    region = None if context is None else region_of(context)
    if region is None:
        return -math.inf, -math.inf, math.inf, math.inf
    box = region.box
    return box.x0, box.y0, box.x1, box.y1


def _instant(
    event: _ContextPublication, subscription: _ContextSubscription, configuration: Configuration
) -> float | None:
    start, end = max(event.start, subscription.start), min(event.end, subscription.end)
    domains = (
        _Property(subscription.domain, event.node, configuration),
        _Property(event.domain, subscription.node, configuration),
    )
    changes = [time for domain in domains for time in domain.critical(start, end)]
    for host in _overlapping(event, subscription, configuration, start, end):
        places = (
            _Property(event.relevance, host, configuration),
            _Property(subscription.interest, host, configuration),
        )
        critical = [*changes, *(time for place in places for time in place.critical(start, end))]
        for time in _instants(start, end, critical):
            if all(one.holds(time) for one in (*places, *domains)):
                return time
    return None


def _overlapping(
    event: _ContextPublication, subscription: _ContextSubscription, configuration: Configuration, start: int, end: int
) -> list[int]:
    """Hosts that may be in both contexts during the window."""
    if event.relevance is None and subscription.interest is None:
        return [subscription.node]  # any host will do
    low, high = _box(event.relevance), _box(subscription.interest)
    x0, y0, x1, y1 = max(low[0], high[0]), max(low[1], high[1]), min(low[2], high[2]), min(low[3], high[3])
    if math.isinf(x0):
        return configuration.hosts
    return configuration.near(Rectangle(x0 - 1, y0 - 1, max(x1, x0) + 1, max(y1, y0) + 1), start, end)


def has_contexts(facts: Mapping[str, pa.Table]) -> bool:
    """Whether any publication or subscription of a run has a context of relevance or interest."""
    asked = (("publish", "relevance"), ("subscribe", "interest"))
    return any(table in facts and facts[table][name].null_count < len(facts[table]) for table, name in asked)


def count_delivered(facts: Mapping[str, pa.Table], *, reach: float, end: int, start: int = 0) -> ContextCounts:
    """How many ideal pairs there are, and how many of them were delivered."""
    wanted = ideal(facts, reach=reach, end=end, start=start)
    measured = {event for time, event in read_rows(facts, "publish", "time", "event") if time >= start}
    delivered = {
        ContextPair(event, node, subscription)
        for event, node, subscription in read_rows(facts, "deliver", "event", "node", "subscription")
        if event in measured
    }
    got = len(delivered & wanted.keys())
    return ContextCounts(len(wanted), got, len(delivered) - got)
