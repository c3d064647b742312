"""The outcome of every expected pair of an event and a subscription in one run: the basis of most measures.

The definitions are those of `summary`, which computes them independently:

* **Expected** are, for each event published at or after the warm-up, the subscriptions in force at its publication,
  both ends included, whose filters match it; the publisher's own too. A subscription is identified by node and id.
* **Delivered** is an expected pair that was delivered at least once; its delay and hops are those of the first
  delivery, with the fewest hops if several came at that instant.

`matching` says which filters match which events. Everything is done on arrays: a run may have millions of pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roamcast.errors import RoamcastError
from roamcast.facts.ages import age_curve, peak_age
from roamcast.facts.matching import CODED, Ints, filter_ids, matches
from roamcast.units import SECOND

AGES: Final = (1800, 3600, 5400, 7200)
"""Seconds within which satisfaction is measured."""
PERCENTILES: Final = (50, 95, 99)
READ: Final = {
    "subscribe": ("time", "node", "subscription", "active", "filter"),
    "filter_constraint": None,
    "publish": ("time", "event"),
    "event_attribute": None,
    "deliver": ("time", "node", "event", "subscription", "published", "hops", "via"),
}
"""The tables that pairs are computed from, with the columns needed; None: all."""
DICTIONARIES: Final = (*CODED, "via")
"""Columns to read as dictionary arrays."""

_LAST: Final = np.iinfo(np.int64).max


class Wanted:
    """Which events published from `start` (ns) on the subscribers of a run wanted."""

    def __init__(self, run: str, tables: Mapping[str, pa.Table], start: int) -> None:
        """`tables` are those of `READ`."""
        published = tables["publish"]
        times, events = _column(published, "time"), _column(published, "event")
        measured = times >= start
        self.events: Final = int(measured.sum())
        events, first = np.unique(events[measured], return_index=True)
        ids = filter_ids(tables["subscribe"])
        self.terms: Final = terms_of(run, tables["subscribe"], ids)
        self._events, self._times = events, times[measured][first]
        self._deliver = tables["deliver"]
        self._matches = matches(tables["filter_constraint"], tables["event_attribute"], set(ids.values()), events)

    def outcome(self, terms: "Terms | None" = None) -> "Outcome":
        """The outcome of the pairs, of all terms or of some."""
        ours = self.terms if terms is None else terms
        return follow(self._events, self._times, self._matches, ours, self._deliver)


# --- Subscriptions in force -----------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """Columns, with one row per time during which a node had a subscription, both ends included."""

    node: Ints
    subscription: Ints
    filter_id: Ints
    """The id of its filter in `matching`."""
    start: Ints
    end: Ints

    def throughout(self, start: int, end: int) -> "Terms":
        """The terms in force from `start` to `end`."""
        stable = (self.start <= start) & (self.end >= end)
        return Terms(*(column[stable] for column in self))


def terms_of(run: str, subscribe: pa.Table, filter_id: Mapping[str, int]) -> Terms:
    """A subscription made again under an id in use ends the former one."""
    terms: list[list[int]] = []
    current: dict[tuple[int, int], list[int]] = {}
    columns = ("time", "node", "subscription", "active", "filter")
    rows = zip(*(subscribe[name].to_pylist() for name in columns), strict=True)
    for time, node, subscription, active, text in sorted(rows, key=lambda row: row[0]):
        former = current.pop((node, subscription), None)
        if former is not None:
            former[-1] = time
        if active:
            if text not in filter_id:
                raise RoamcastError(
                    f"run {run}: the filter {text!r} of subscription {subscription} cannot be told from others: every "
                    "id it had was also used for another filter in that run, and `filter_constraint` has only ids"
                )
            current[node, subscription] = [node, subscription, filter_id[text], time, _LAST]
            terms.append(current[node, subscription])
    return Terms(*np.array(terms, np.int64).reshape(-1, 5).T)


# --- Pairs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Expected pairs, ordered by event, as columns."""

    event: Ints
    """A number from 0 for each event."""
    published: Ints
    delay: Ints
    """Delay of the first delivery, ns; below 0: none."""
    hops: Ints
    own: NDArray[np.bool_]
    """Whether the publisher itself is the subscriber. Satisfaction and ages exclude these pairs."""

    def figures(self, end: int) -> dict[str, Any]:
        """The columns of the table `pairs`, for a run that ends at `end`."""
        reached = self.delay >= 0
        wanted = np.bincount(self.event)
        shares = np.bincount(self.event[reached], minlength=len(wanted))[wanted > 0] / wanted[wanted > 0]
        delays = self.delay[reached]
        return {
            "expected": len(self.event),
            "delivered": len(delays),
            "delivery": _mean(shares),
            "delay_mean": _seconds(_mean(delays)),
            **{f"delay_p{percent}": _seconds(nearest_rank(delays, percent)) for percent in PERCENTILES},
            "hops_mean": _mean(self.hops[reached]),
            **self._ages(end),
        }

    def _ages(self, end: int) -> dict[str, Any]:
        """Shares delivered by age; a pair counts for an age that its event could reach before the end."""
        published, delay = self.published[~self.own], self.delay[~self.own]
        curve = age_curve(published, delay, end, np.array(AGES, np.int64))
        return {
            "satisfaction": [None if np.isnan(share) else float(share) for share in curve.of_pairs],
            "aged": [None if np.isnan(share) else float(share) for share in curve.of_deliveries],
            "age_peak": peak_age(published, delay, end, AGES[-1]),
        }


def follow(events: Ints, times: Ints, matches: Mapping[int, Ints], terms: Terms, deliver: pa.Table) -> Outcome:
    """The expected pairs of the events that match filters, and their first deliveries.

    `events` are ascending, `times` are their times of publication, and `matches` their indices by filter.
    """
    units, unit_of_term = _units(terms)
    pairs = [
        _in_force(places, times[places], terms, unit_of_term, which, len(units)) for which, places in matches.items()
    ]
    # Two terms of one subscription share an instant: a pair may come twice.
    expected = np.unique(np.concatenate(pairs)) if pairs else np.empty(0, np.int64)
    numbers = expected // max(1, len(units))
    delay, hops = _first_deliveries(expected, events, units, deliver)
    wanting = np.array([node for node, _ in units] or [0], np.int64)[expected % max(1, len(units))]
    own = events[numbers] >> 32 == wanting  # an event's id begins with its publisher
    return Outcome(numbers, times[numbers], delay, hops, own)


Units = list[tuple[int, int]]


def _units(terms: Terms) -> tuple[Units, Ints]:
    """The different pairs (node, subscription), in order, and the index of each term's pair."""
    both = list(zip(terms.node.tolist(), terms.subscription.tolist(), strict=True))
    units = sorted(set(both))
    number = {unit: place for place, unit in enumerate(units)}
    return units, np.array([number[unit] for unit in both], np.int64)


def _in_force(number: Ints, published: Ints, terms: Terms, unit: Ints, which: int, units: int) -> Ints:
    """The pairs of one filter, as event number * units + unit."""
    order = np.argsort(published, kind="stable")
    number, published = number[order], published[order]
    mine = np.flatnonzero(terms.filter_id == which)
    begin = np.searchsorted(published, terms.start[mine], "left")
    end = np.searchsorted(published, terms.end[mine], "right")
    slices = [number[b:e] * units + unit[term] for b, e, term in zip(begin, end, mine, strict=True)]
    return np.concatenate(slices) if slices else np.empty(0, np.int64)


def _first_deliveries(expected: Ints, events: Ints, units: Units, deliver: pa.Table) -> tuple[Ints, Ints]:
    """Delay and hops of each expected pair's first delivery; -1 where there was none."""
    delay, hops = np.full(len(expected), -1), np.full(len(expected), -1)
    if not len(expected) or not deliver.num_rows:
        return delay, hops
    number, known_event = _find(events, _column(deliver, "event"))
    unit, known_unit = _find_units(units, _column(deliver, "node"), _column(deliver, "subscription"))
    place, wanted = _find(expected, number * len(units) + unit)
    ours = np.flatnonzero(known_event & known_unit & wanted)
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


# --- Small things ---------------------------------------------------------------------------------------------------


def _column(table: pa.Table, name: str) -> Ints:
    values: Ints = table[name].to_numpy()
    return values


def nearest_rank(values: Ints, percent: int) -> int | None:
    """The least value that at least `percent` per cent do not exceed. The rank is computed in integers."""
    if not len(values):
        return None
    rank = -(-percent * len(values) // 100) - 1
    return int(np.partition(values, rank)[rank])


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / SECOND
