"""How much of what was wanted in a run arrived by each age, beside how much could have.

The definitions are those of `ages` (shares by age) and `limits` (what was possible).
"""

from typing import Final, NamedTuple

import numpy as np

from roamcast.analysis.ages import age_curve, density, peak_age
from roamcast.analysis.contacts import Contacts
from roamcast.analysis.kernels import Floats, Ints
from roamcast.analysis.limits import delays, limit_over
from roamcast.analysis.run import Run
from roamcast.units import SECOND

_STEPS: Final = (1, 2, 5)
_MOST_AGES: Final = 12


class Arrivals(NamedTuple):
    pairs: int
    """Expected pairs, without a publisher's own."""
    ages: Ints
    """s"""
    shares: dict[str, Floats]
    """For each age, NaN where no event could reach it before the end: the share of the pairs `delivered` by then; that
    `of_deliveries` within the longest age; the share of the pairs that any protocol could have delivered (`possible`);
    the same if only interested nodes carry (`possible_interested`)."""
    density: tuple[Floats, Floats]
    """The middles of spans of age, s, and the share of the deliveries in each, smoothed."""
    width: int
    """Of these spans, s."""
    peak: float | None
    """The middle of the span in which most arrive, s."""


def arrivals(
    run: Run,
    contacts: Contacts,
    ages: Ints | None = None,
    *,
    transfer: int = 0,
    hops: int = 1,
) -> Arrivals:
    """For the measured events; `ages` are in s and ascending. Without them, round ages up to half of the time that was
    measured. `transfer` (ns) and `hops` are those of the limit."""
    end = contacts.end
    if ages is None:
        ages = round_ages((end - run.start) // 2 // SECOND)
    limit = limit_over(contacts, run, transfer=transfer, hops=hops)
    delay = delays(run)
    delivered, possible, interested = (
        age_curve(limit.published, one, end, ages) for one in (delay, limit.possible, limit.interested)
    )
    longest = int(ages[-1])
    width = int(round_ages(longest)[0])
    shown = limit.published, delay, end, longest, width
    return Arrivals(
        len(limit.published),
        ages,
        {
            "delivered": delivered.of_pairs,
            "of_deliveries": delivered.of_deliveries,
            "possible": possible.of_pairs,
            "possible_interested": interested.of_pairs,
        },
        density(*shown),
        width,
        peak_age(*shown),
    )


def round_ages(longest: int) -> Ints:
    """One to twelve ages up to `longest` s, in equal steps of 1, 2 or 5 s times a power of ten."""
    seconds, power = max(1, longest), 1
    while True:
        for step in _STEPS:
            if seconds // (step * power) <= _MOST_AGES:
                return np.arange(1, max(1, seconds // (step * power)) + 1, dtype=np.int64) * step * power
        power *= 10
