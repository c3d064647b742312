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
    """One value for each age; NaN where no event could reach the age before the end."""

    pairs: int
    """Expected pairs, without a publisher's own."""
    ages: Ints
    """s"""
    delivered: Floats
    """The share of the pairs delivered by that age."""
    of_deliveries: Floats
    """The share of the deliveries within the longest age."""
    possible: Floats
    """The share of the pairs that any protocol could have delivered by that age."""
    interested: Floats
    """The same if only interested nodes carry."""
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
        delivered.of_pairs,
        delivered.of_deliveries,
        possible.of_pairs,
        interested.of_pairs,
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
