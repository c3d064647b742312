"""The outcome of every expected pair of an event and a subscription in one run: the basis of most measures.

The definitions this file owns:

* **Expected** are, for each event published at or after the warm-up, the subscriptions in force at its publication
  whose filters match it. Both ends count: a subscription made, or ended, at that very instant is in force. The
  publisher's own subscriptions are expected like any other.
* **Delivered** is an expected pair that was delivered at least once; its delay and hops are those of the first
  delivery, with the fewest hops if several came at that instant.

`matching` says which filters match which events. Everything is done on arrays: a run may have millions of pairs.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roamcast.analysis.matching import Ints, matches
from roamcast.analysis.run import Run, once, once_per_world
from roamcast.analysis.terms import SubscriptionTerm, terms_of

Units = list[tuple[int, int]]
"""Different pairs (node, subscription), in order."""


class Expected(NamedTuple):
    """Expected pairs as columns, ordered by event, node and subscription."""

    events: Ints
    """The ids of all measured events, ascending."""
    units: Units
    event: Ints
    """An index into `events`."""
    unit: Ints
    """An index into `units`."""
    published: Ints
    publisher: Ints
    node: Ints

    @property
    def own(self) -> NDArray[np.bool_]:
        """Whether the publisher itself is the subscriber: such a pair needs no network."""
        own: NDArray[np.bool_] = self.publisher == self.node
        return own


class Pairs(NamedTuple):
    """Expected pairs and what became of them."""

    expected: Expected
    delay: Ints
    """Delay of the first delivery, ns; below 0: none."""
    hops: Ints

    @property
    def reached(self) -> NDArray[np.bool_]:
        return self.delay >= 0


@once_per_world("subscribe", "publish", "event_attribute")
def expected(run: Run) -> Expected:
    """The expected pairs of a run."""
    return _expected(run, terms_of(run.table("subscribe")))


@once_per_world("subscribe", "publish", "event_attribute")
def expected_throughout(run: Run) -> Expected:
    """Those of the subscriptions that are in force from the warm-up to the end."""
    terms = [term for term in terms_of(run.table("subscribe")) if term.start <= run.start and term.end >= run.end]
    return _expected(run, terms)


@once
def pairs(run: Run) -> Pairs:
    """The expected pairs of a run, and what became of them."""
    return outcome(run, expected(run))


def outcome(run: Run, wanted: Expected) -> Pairs:
    columns = ("time", "node", "event", "subscription", "published", "hops")
    return Pairs(wanted, *_first_deliveries(wanted, run.table("deliver", *columns)))


def _expected(run: Run, terms: Sequence[SubscriptionTerm]) -> Expected:
    time, event, publisher = (run.column("publish", name) for name in ("time", "event", "node"))
    measured = np.flatnonzero(time >= run.start)
    events, first = np.unique(event[measured], return_index=True)
    times, publishers = time[measured][first], publisher[measured][first]
    filters = sorted({term.filter for term in terms})
    matching = dict(zip(filters, matches(filters, run.table("event_attribute"), events), strict=True))
    units = sorted({(term.node, term.subscription) for term in terms})
    number = {unit: place for place, unit in enumerate(units)}
    by_filter: dict[str, list[SubscriptionTerm]] = {text: [] for text in filters}
    for term in terms:
        by_filter[term.filter].append(term)
    found = [_in_force(matching[text], times, some, number) for text, some in by_filter.items()]
    # Two terms of one subscription share an instant: a pair may come twice.
    codes = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
    which, unit = codes // max(1, len(units)), codes % max(1, len(units))
    nodes = np.array([node for node, _ in units] or [0], np.int64)
    return Expected(events, units, which, unit, times[which], publishers[which], nodes[unit])


def _in_force(event: Ints, times: Ints, terms: Sequence[SubscriptionTerm], number: dict[tuple[int, int], int]) -> Ints:
    """The pairs of one filter, as event * units + unit; `event` are the indices of the events that match it."""
    event = event[np.argsort(times[event], kind="stable")]
    published = times[event]
    begin = np.searchsorted(published, [term.start for term in terms], "left")
    end = np.searchsorted(published, [term.end for term in terms], "right")
    units = [number[term.node, term.subscription] for term in terms]
    return np.concatenate([event[b:e] * len(number) + unit for b, e, unit in zip(begin, end, units, strict=True)])


def _first_deliveries(wanted: Expected, deliver: pa.Table) -> tuple[Ints, Ints]:
    """Delay and hops of each expected pair's first delivery; -1 where there was none."""
    units, codes = wanted.units, wanted.event * max(1, len(wanted.units)) + wanted.unit
    delay, hops = np.full(len(codes), -1), np.full(len(codes), -1)
    if not len(codes) or not deliver.num_rows:
        return delay, hops
    number, known_event = _find(wanted.events, _column(deliver, "event"))
    unit, known_unit = _find_units(units, _column(deliver, "node"), _column(deliver, "subscription"))
    place, expected = _find(codes, number * len(units) + unit)
    ours = np.flatnonzero(known_event & known_unit & expected)
    time, way = _column(deliver, "time"), _column(deliver, "hops")
    # Written from last to first, so that the first delivery of each pair remains.
    backwards = ours[np.lexsort((way[ours], time[ours]))][::-1]
    delay[place[backwards]] = (time - _column(deliver, "published"))[backwards]
    hops[place[backwards]] = way[backwards]
    return delay, hops


def _find_units(units: Units, node: Ints, subscription: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The index of each (node, subscription), and whether it has one."""
    of_units = np.array(units, np.int64)
    nodes, subscriptions = np.unique(of_units[:, 0]), np.unique(of_units[:, 1])

    def code(node: Ints, subscription: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        row, known_row = _find(nodes, node)
        column, known_column = _find(subscriptions, subscription)
        return row * len(subscriptions) + column, known_row & known_column

    codes, _ = code(of_units[:, 0], of_units[:, 1])
    theirs, known = code(node, subscription)
    place, same = _find(codes, theirs)
    return place, known & same


def _find(ordered: Ints, values: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The index of each value in `ordered`, and whether it is there; the index of a missing one is arbitrary."""
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return place, ordered[place] == values


def _column(table: pa.Table, name: str) -> Ints:
    values: Ints = table[name].to_numpy()
    return values


def nearest_rank(values: NDArray[Any], percent: int) -> int | None:
    """The least value that at least `percent` per cent do not exceed. The rank is computed in integers."""
    if not len(values):
        return None
    rank = -(-percent * len(values) // 100) - 1
    return int(np.partition(values, rank)[rank])
