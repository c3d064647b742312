"""How much of what was wanted arrived in time, where time is minutes or hours, and how old it was.

The definitions are those of `roamcast.analysis.ages`: a publisher's own interest does not count, and documents that are
too young at the end of a run to have reached an age do not count for that age: else the end of the run would count as
loss.
"""

import math
from typing import Final

import numpy as np

from roamcast.analysis.ages import age_curve, peak_age
from roamcast.analysis.measures.measure import Measure, Values, family, good_share
from roamcast.analysis.pairs import pairs
from roamcast.analysis.run import Run

AGES: Final = (1800, 3600, 5400, 7200)
"""Seconds within which satisfaction is measured."""


@family(
    *(
        good_share(
            f"satisfaction_{age}",
            f"satisfaction within {age // 60} min (share of pairs)",
            f"Share of the expected pairs delivered within {age // 60} min",
        )
        for age in AGES
    ),
    *(
        Measure(
            f"aged_{age}",
            f"deliveries by {age // 60} min (share)",
            f"Of the deliveries within {AGES[-1] // 60} min, the share of those within {age // 60} min",
            share=True,
            whole=True,
        )
        for age in AGES[:-1]
    ),
    Measure(
        "age_peak",
        "age at which most arrive (s)",
        "Middle of the five minutes of age in which most deliveries fall, smoothed over three such spans",
        unit="s",
    ),
)
def ages(run: Run) -> Values:
    found = pairs(run)
    remote = ~found.expected.own
    published, delay = found.expected.published[remote], found.delay[remote]
    curve = age_curve(published, delay, run.end, np.array(AGES, np.int64))
    values = {f"satisfaction_{age}": float(share) for age, share in zip(AGES, curve.of_pairs, strict=True)}
    values |= {f"aged_{age}": float(share) for age, share in zip(AGES[:-1], curve.of_deliveries[:-1], strict=True)}
    return {
        **{name: None if math.isnan(value) else value for name, value in values.items()},
        "age_peak": peak_age(published, delay, run.end, AGES[-1]),
    }
