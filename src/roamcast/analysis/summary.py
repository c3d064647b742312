"""The summary of one run: what `roamcast run` and `roamcast lab` print, by the same functions as the measures.

The definitions beside those of the measures:

* Deliveries of pairs that nobody expected are counted separately, and so are repeated deliveries.
* The cost of *carriers* counts only the kinds of messages in which some event of the run was delivered (`via`): no
  beacons, no other control.
* Notes have no time: they are those of the whole run, with warm-up and cooldown.
"""

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from roamcast.analysis.measures.cost import carriers
from roamcast.analysis.measures.delivery import delivery
from roamcast.analysis.measures.traffic import total, totals
from roamcast.analysis.pairs import pairs
from roamcast.analysis.run import Run, ratio
from roamcast.facts.rows import rows_of
from roamcast.facts.schema import BACKGROUND_ROLE, LOSSES
from roamcast.units import SECOND


@dataclass(frozen=True)
class SentTotals:
    """Totals sent of one kind of message in the measured time."""

    kind: str
    packets: int
    bits: int
    airtime: float
    """Seconds."""
    background: bool
    """Whether it only loads the network, and is not part of the protocol's cost."""
    carrier: bool
    """Whether some event was delivered in such a message."""


@dataclass(frozen=True)
class RunSummary:
    """What is undefined, such as a mean of nothing, is None. Times are in seconds."""

    events: int
    events_wanted: int
    pairs_expected: int
    pairs_delivered: int
    delivery: float | None
    deliveries_unexpected: int
    deliveries_repeated: int
    delay_mean: float | None
    delay_p50: float | None
    delay_p95: float | None
    delay_p99: float | None
    hops_mean: float | None
    packets: int
    bits: int
    packets_per_pair: float | None
    bits_per_pair: float | None
    carrier_packets_per_pair: float | None
    carrier_bits_per_pair: float | None
    airtime_share: float | None
    """Total airtime of all nodes divided by the measured time; above 1 if distant nodes send at the same time."""
    receptions: int
    losses: dict[str, int]
    """By reason."""
    notes: dict[str, int]
    """What brokers noted, such as duplicates."""
    sent: tuple[SentTotals, ...]
    """By kind, in the order of their names."""

    def __str__(self) -> str:
        """The figures that say most, one per line."""
        shown = {
            "delivery": self.delivery,
            "pairs delivered": f"{self.pairs_delivered} of {self.pairs_expected}",
            "packets per pair": self.packets_per_pair,
            "delay, mean (s)": self.delay_mean,
            "delay, 95 % (s)": self.delay_p95,
            "hops, mean": self.hops_mean,
        }
        return "\n".join(
            f"{name:<18}{'–' if value is None else value if isinstance(value, str) else format(value, '.4g')}"
            for name, value in shown.items()
        )

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def summarise(run: Run) -> RunSummary:
    """The summary of a run."""
    found, values, rows, sent = pairs(run), delivery(run), totals(run), _sent(run)
    costs, carried = ([one for one in sent if not one.background], [one for one in sent if one.carrier])
    packets, bits = sum(one.packets for one in costs), sum(one.bits for one in costs)
    delivered = int(found.reached.sum())
    deliveries, different = _deliveries(run)
    whole = max(0.0, run.stop / SECOND - math.ceil(run.start / SECOND))
    return RunSummary(
        events=int(values["events"] or 0),
        events_wanted=len(np.unique(found.expected.event)),
        pairs_expected=len(found.delay),
        pairs_delivered=delivered,
        deliveries_unexpected=different - delivered,
        deliveries_repeated=deliveries - different,
        **{
            name: values[name]
            for name in ("delivery", "delay_mean", "delay_p50", "delay_p95", "delay_p99", "hops_mean")
        },
        packets=packets,
        bits=bits,
        packets_per_pair=ratio(packets, delivered),
        bits_per_pair=ratio(bits, delivered),
        carrier_packets_per_pair=ratio(sum(one.packets for one in carried), delivered),
        carrier_bits_per_pair=ratio(sum(one.bits for one in carried), delivered),
        airtime_share=ratio(_airtime(run), whole),
        receptions=total(rows, "receptions"),
        losses={loss: total(rows, loss) for loss in LOSSES},
        notes=_notes(run),
        sent=sent,
    )


def _sent(run: Run) -> tuple[SentTotals, ...]:
    carrying = set(carriers(run).to_pylist())
    rows = totals(run).select(["kind", "role", "packets", "bits", "airtime"]).sort_by([("kind", "ascending")])
    return tuple(
        SentTotals(
            row["kind"],
            row["packets"],
            row["bits"],
            row["airtime"] / SECOND,
            row["role"] == BACKGROUND_ROLE,
            row["kind"] in carrying,
        )
        for row in rows.to_pylist()
    )


def _airtime(run: Run) -> float:
    """Seconds on the air in the measured time alone."""
    second, airtime = run.column("series", "second") * SECOND, run.column("series", "airtime")
    return float(airtime[(second >= run.start) & (second < run.stop)].sum()) / SECOND


def _deliveries(run: Run) -> tuple[int, int]:
    """How many deliveries of measured events there were, and of how many different pairs."""
    rows = run.table("deliver", "event", "node", "subscription", "published")
    measured = np.flatnonzero(rows["published"].to_numpy() >= run.start)
    named = np.stack([rows[name].to_numpy()[measured] for name in ("event", "node", "subscription")], axis=1)
    return len(named), len(np.unique(named, axis=0))


def _notes(run: Run) -> dict[str, int]:
    noted: Counter[str] = Counter()
    for fact, count in rows_of(run.table("note"), "fact", "count"):
        noted[fact] += count
    return dict(sorted(noted.items()))
