"""The summary of a run: delivery, cost and delay, from its facts alone.

The definitions this file owns:

* **Measured** is every event published at or after the warm-up, with what is delivered of it until the end of the run;
  and everything sent in the seconds that begin after the warm-up and before the cooldown. Of the cooldown, in which
  nothing is published, messages that carry events (role `data`) count too: they belong to measured events. Control and
  beacons do not, though some of them bring about late deliveries.
* **Expected** are, for each measured event, the subscriptions in force at its publication whose filters match it. Both
  ends count: a subscription made, or ended, at that very instant is in force. The publisher's own subscriptions are
  expected like any other, and local deliveries count, with a delay and hops of 0.
* **Delivered** is an expected pair (event, subscription) that was delivered at least once; its delay and hops are those
  of the first delivery. Deliveries of unexpected pairs are counted separately, and so are repeated deliveries.
* **Delivery** is the share of an event's expected pairs that were delivered; the mean is over the measured events with
  at least one expected pair.
* **Cost** is everything the whole network sent per delivered pair, except background traffic, which only loads the
  network. The cost of *carriers* counts only the kinds of messages in which some event of the run was delivered
  (`via`): no beacons, no other control.
* **Percentiles** are exact, by the nearest rank: the least delay that at least that share of the pairs do not exceed.

What is undefined, such as a mean of nothing, is None.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from roamcast.analysis.summary import RunSummary, SentTotals
from roamcast.content.filter import Filter
from roamcast.content.index import FilterIndex
from roamcast.content.text import parse_filter
from roamcast.facts.rows import read_events, read_rows
from roamcast.facts.schema import BACKGROUND_ROLE, DATA_ROLE, LOSSES, TABLES
from roamcast.units import SECOND

READ: Final = ("subscribe", "publish", "event_attribute", "deliver", "series", "note")
"""The tables that a summary needs; one that is missing has no rows."""


class Pair(NamedTuple):
    """An event and a subscription that wants it. A subscription is identified by its node and id."""

    event: int
    node: int
    subscription: int


def summarise(
    facts: Mapping[str, pa.Table], warmup: float, *, duration: float | None = None, cooldown: float = 0.0
) -> RunSummary:
    """The summary of a run; times are in s. Without a duration, `airtime_share` is None, and there is no cooldown."""
    start = round(warmup * SECOND)
    span = warmup, math.inf if duration is None else duration - cooldown
    expected = expected_pairs(facts, start)
    first, unexpected, repeated = _deliveries(facts, start, expected)
    delays = sorted(delay for delay, _ in first.values())
    sent = _sent(facts, span)
    losses, receptions = _received(facts, span)
    costs = [kind for kind in sent if not kind.background]
    packets, bits = sum(kind.packets for kind in costs), sum(kind.bits for kind in costs)
    carriers = [kind for kind in sent if kind.carrier]
    wanted = Counter(pair.event for pair in expected)
    reached = Counter(pair.event for pair in first)
    pairs = len(first)
    return RunSummary(
        events=sum(time >= start for time in _columns(facts, "publish", "time")[0]),
        events_wanted=len(wanted),
        pairs_expected=len(expected),
        pairs_delivered=pairs,
        delivery=_mean([reached[event] / count for event, count in wanted.items()]),
        deliveries_unexpected=unexpected,
        deliveries_repeated=repeated,
        delay_mean=_ratio(_mean(delays), SECOND),
        delay_p50=_ratio(_percentile(delays, 50), SECOND),
        delay_p95=_ratio(_percentile(delays, 95), SECOND),
        delay_p99=_ratio(_percentile(delays, 99), SECOND),
        hops_mean=_mean([hops for _, hops in first.values()]),
        packets=packets,
        bits=bits,
        packets_per_pair=_ratio(packets, pairs),
        bits_per_pair=_ratio(bits, pairs),
        carrier_packets_per_pair=_ratio(sum(kind.packets for kind in carriers), pairs),
        carrier_bits_per_pair=_ratio(sum(kind.bits for kind in carriers), pairs),
        airtime_share=_airtime_share(facts, span),
        receptions=receptions,
        losses=losses,
        notes=_notes(facts),
        sent=sent,
    )


# --- Ground truth ---------------------------------------------------------------------------------------------------


def expected_pairs(facts: Mapping[str, pa.Table], start: int) -> set[Pair]:
    """The expected pairs of the events published at or after `start` (ns), by a sweep over time with an index of the
    filters in force.

    At the same instant, ends of subscriptions come last.
    """
    subscribing, publishing, ending = range(3)
    acts: list[tuple[int, int, int]] = []
    terms = terms_of(facts)
    for number, term in enumerate(terms):
        acts.append((term.start, subscribing, number))
        if term.end is not None:
            acts.append((term.end, ending, number))
    times, ids = _columns(facts, "publish", "time", "event")
    acts += [(time, publishing, event) for time, event in zip(times, ids, strict=True) if time >= start]
    events = read_events(facts, {act[2] for act in acts if act[1] == publishing})

    in_force: FilterIndex[int] = FilterIndex()
    expected: set[Pair] = set()
    for _, what, which in sorted(acts):
        if what == subscribing:
            in_force.add(which, terms[which].filter)
        elif what == ending:
            in_force.remove(which)
        else:
            matching = in_force.match(events[which])
            expected.update(Pair(which, terms[number].node, terms[number].subscription) for number in matching)
    return expected


@dataclass
class Term:
    """The time for which a node had a subscription."""

    node: int
    subscription: int
    filter: Filter
    start: int
    end: int | None = None


def terms_of(facts: Mapping[str, pa.Table]) -> list[Term]:
    """The terms, by start. A subscription made again under an id in use ends the former one."""
    terms: list[Term] = []
    current: dict[tuple[int, int], Term] = {}
    parsed: dict[str, Filter] = {}
    rows = read_rows(facts, "subscribe", "time", "node", "subscription", "active", "filter")
    for time, node, subscription, active, text in sorted(rows, key=lambda row: row[0]):
        former = current.pop((node, subscription), None)
        if former is not None:
            former.end = time
        if active:
            if text not in parsed:
                parsed[text] = parse_filter(text)
            current[node, subscription] = Term(node, subscription, parsed[text], time)
            terms.append(current[node, subscription])
    return terms


# --- What was delivered, sent and lost ------------------------------------------------------------------------------


def _deliveries(
    facts: Mapping[str, pa.Table], start: int, expected: set[Pair]
) -> tuple[dict[Pair, tuple[int, int]], int, int]:
    """Delay in ns and hops of each expected pair's first delivery; how many were unexpected, and how many repeated."""
    columns = _columns(facts, "deliver", "time", "published", "event", "node", "subscription", "hops")
    first: dict[Pair, tuple[int, int]] = {}
    others: set[Pair] = set()
    repeated = 0
    for time, published, event, node, subscription, hops in sorted(zip(*columns, strict=True)):
        pair = Pair(event, node, subscription)
        if published < start:
            continue
        if pair in first or pair in others:
            repeated += 1
        elif pair in expected:
            first[pair] = time - published, hops
        else:
            others.add(pair)
    return first, len(others), repeated


Span = tuple[float, float]
"""The measured time, s: from the end of the warm-up to the start of the cooldown."""


def _sent(facts: Mapping[str, pa.Table], span: Span) -> tuple[SentTotals, ...]:
    carriers = set(_columns(facts, "deliver", "via")[0])
    totals: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for kind, role, *counted in _measured(facts, span, "kind", "role", "packets", "bits", "airtime"):
        totals[kind, role] = [total + more for total, more in zip(totals[kind, role], counted, strict=True)]
    return tuple(
        SentTotals(kind, packets, bits, airtime / SECOND, role == BACKGROUND_ROLE, kind in carriers)
        for (kind, role), (packets, bits, airtime) in sorted(totals.items())
    )


def _received(facts: Mapping[str, pa.Table], span: Span) -> tuple[dict[str, int], int]:
    """Losses by reason, and receptions."""
    totals = [0] * (len(LOSSES) + 1)
    for counted in _measured(facts, span, *LOSSES, "receptions"):
        totals = [total + more for total, more in zip(totals, counted, strict=True)]
    return dict(zip(LOSSES, totals[:-1], strict=True)), totals[-1]


def _measured(facts: Mapping[str, pa.Table], span: Span, *columns: str) -> Iterator[tuple[Any, ...]]:
    """These columns of the series, in the seconds that begin in the measured time, and for events also after it."""
    start, stop = span
    for second, role, *row in read_rows(facts, "series", "second", "role", *columns):
        if second >= start and (second < stop or role == DATA_ROLE):
            yield tuple(row)


def _airtime_share(facts: Mapping[str, pa.Table], span: Span) -> float | None:
    """Of the measured time alone."""
    start, stop = span
    if stop == math.inf:
        return None
    airtime = sum(spent for second, spent in read_rows(facts, "series", "second", "airtime") if start <= second < stop)
    return _ratio(airtime / SECOND, max(0.0, stop - math.ceil(start)))


def _notes(facts: Mapping[str, pa.Table]) -> dict[str, int]:
    noted: Counter[str] = Counter()
    for fact, count in read_rows(facts, "note", "fact", "count"):
        noted[fact] += count
    return dict(sorted(noted.items()))


# --- Small things ---------------------------------------------------------------------------------------------------


def _columns(facts: Mapping[str, pa.Table], table: str, *names: str) -> list[list[Any]]:
    rows = facts.get(table, TABLES[table].empty_table())
    return [rows.column(name).to_pylist() for name in names]


def _ratio(part: float | None, whole: float) -> float | None:
    return part / whole if part is not None and whole else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _percentile(ordered: Sequence[int], percent: int) -> int | None:
    """By the nearest rank, computed in integers: 0.95 * 20 is not 19 in doubles."""
    return ordered[-(-percent * len(ordered) // 100) - 1] if ordered else None
