"""Figures 3 and 5 of the paper on documents that people carry, as measures: one for each five minutes of age.

`by_age_30` is the share of pairs delivered by an age of 30 minutes: satisfaction with that lifetime, if caches are
unlimited. `arriving_32.5` is the share of the deliveries that fall into the five minutes around 32.5, smoothed as
`age_peak` is. Only that paper's experiment asks for them; `roamcast ages` draws the same for single runs.
"""

import math
from typing import Final

import numpy as np

from roamcast.analysis.ages import BIN, age_curve, density
from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.pairs import pairs
from roamcast.analysis.run import Run

_LONGEST: Final = 7200
_AGES: Final = np.arange(BIN, _LONGEST + 1, BIN, dtype=np.int64)
_MIDDLES: Final = _AGES - BIN / 2


@family(
    *(
        Measure(
            f"by_age_{age / 60:g}",
            "delivered by that age (share of pairs)",
            f"Share of the expected pairs delivered by an age of {age / 60:g} min",
            share=True,
            whole=True,
            good="high",
        )
        for age in _AGES.tolist()
    ),
    *(
        Measure(
            f"arriving_{middle / 60:g}",
            "arriving in five minutes (share of deliveries)",
            f"Share of the deliveries within two hours that are {middle / 60:g} min old, give or take 2.5, smoothed",
            share=True,
        )
        for middle in _MIDDLES.tolist()
    ),
)
def age_curves(run: Run) -> Values:
    found = pairs(run)
    remote = ~found.expected.own
    published, delay = found.expected.published[remote], found.delay[remote]
    by_age = age_curve(published, delay, run.end, _AGES).of_pairs
    _, arriving = density(published, delay, run.end, _LONGEST)
    return {
        **{
            f"by_age_{age / 60:g}": None if math.isnan(share) else float(share)
            for age, share in zip(_AGES.tolist(), by_age, strict=True)
        },
        **{
            f"arriving_{middle / 60:g}": float(share) if arriving.any() else None
            for middle, share in zip(_MIDDLES.tolist(), arriving, strict=True)
        },
    }
