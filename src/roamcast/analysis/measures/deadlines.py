"""What arrived by a deadline, what could have, and the delay with the deadline in place of never.

The definitions this file owns, all over the expected pairs without a publisher's own interest, and only of events that
are old enough at the end of the run to have reached the deadline:

* **satisfaction**: the share delivered within the deadline;
* **possible**: the share that any protocol could have delivered by then (`roamcast.analysis.possible`);
* **delivered of possible**: the share of the possible pairs that was delivered;
* **restricted delay**: the mean delay, where a pair that came later or never counts with the deadline. The mean delay
  of delivered pairs is not a fair comparison: a protocol that gives up early on the difficult pairs looks fast.

`DEADLINES` are in the catalogue; `within` makes the measures of any other.
"""

from typing import Final

import numpy as np

from roamcast.analysis.limits import delays, limit
from roamcast.analysis.measures.measure import Family, Measure, Values, good_share
from roamcast.analysis.run import Run, mean
from roamcast.units import SECOND

DEADLINES: Final = (1, 10, 60, 600)
"""Seconds: a warning, a message, a report, a newspaper."""


def within(*deadlines: float) -> Family:
    """The measures for these deadlines (s), four per deadline."""

    def values(run: Run) -> Values:
        return by_deadline(run, deadlines)

    return Family(tuple(one for deadline in deadlines for one in _measures(deadline)), values)


def by_deadline(run: Run, deadlines: tuple[float, ...]) -> Values:
    found = limit(run) if run.has("publish", "subscribe") else None
    if found is None:
        return {}
    delay = delays(run)
    values: dict[str, float | None] = {}
    for deadline in deadlines:
        at_most = round(deadline * SECOND)
        counted = found.published <= run.end - at_most
        in_time, could = delay[counted] <= at_most, found.possible[counted] <= at_most
        values |= {
            f"satisfaction_{deadline:g}": mean(in_time),
            f"possible_{deadline:g}": mean(could),
            f"delivered_of_possible_{deadline:g}": mean(in_time[could]),
            f"delay_restricted_{deadline:g}": mean(np.minimum(delay[counted], at_most) / SECOND),
        }
    return values


def _measures(deadline: float) -> tuple[Measure, ...]:
    seconds = f"{deadline:g} s"
    return (
        good_share(
            f"satisfaction_{deadline:g}",
            f"satisfaction within {seconds} (share of pairs)",
            f"Share of the expected pairs delivered within {seconds}",
        ),
        good_share(
            f"possible_{deadline:g}",
            f"possible within {seconds} (share of pairs)",
            f"Share of the pairs that any protocol could have delivered within {seconds}",
        ),
        good_share(
            f"delivered_of_possible_{deadline:g}",
            f"delivery within {seconds} (share of what was possible)",
            f"Of the pairs that could have been delivered within {seconds}, the share that was",
        ),
        Measure(
            f"delay_restricted_{deadline:g}",
            f"mean delay, at most {seconds} (s)",
            f"Mean delay of the pairs, {seconds} for what came later or never",
            unit="s",
            good="low",
        ),
    )


deadlines: Final = within(*DEADLINES)
