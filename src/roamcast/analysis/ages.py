"""How old documents are when they arrive: shares by age, and the age at which most arrive.

A pair is a document and a subscription that wants it on a node other than the publisher's; its age at delivery is the
time from publication to the first delivery. The rules this file owns:

* **The end of a run is not a loss.** A pair counts for an age only if its document could reach that age before the end.
* Normalised by pairs, it is the share of all pairs that count: satisfaction. Normalised by deliveries, it is the share
  of those delivered within the longest age, of documents that could reach that age, so that the ages are comparable.
* The density counts deliveries in bins of equal width, smoothed by a mean over three bins as in the paper's figures;
  its peak is the middle of the highest bin, the first of equals.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roamcast.units import SECOND

Ints = NDArray[np.int64]
BIN: Final = 300
"""Seconds, as in the paper on documents that people carry."""


class AgeCurve(NamedTuple):
    """One value for each age."""

    ages: Ints
    """s"""
    of_pairs: NDArray[np.float64]
    """The share delivered by that age; NaN where no pair counts."""
    of_deliveries: NDArray[np.float64]


def age_curve(published: Ints, delay: Ints, end: int, ages: Ints) -> AgeCurve:
    """Shares of pairs delivered by age. `ages` are in s, ascending; `delay` is in ns, and below 0 or very large if a
    pair was not delivered."""
    reached = delay >= 0
    of_pairs, of_deliveries = np.full(len(ages), np.nan), np.full(len(ages), np.nan)
    longest = int(ages[-1]) * SECOND
    arrived = delay[reached & (delay <= longest) & (published <= end - longest)]
    for place, age in enumerate(ages.tolist()):
        counted = published <= end - age * SECOND
        if counted.any():
            of_pairs[place] = float((reached & (delay <= age * SECOND))[counted].mean())
        if len(arrived):
            of_deliveries[place] = float((arrived <= age * SECOND).mean())
    return AgeCurve(ages, of_pairs, of_deliveries)


def density(
    published: Ints, delay: Ints, end: int, longest: int, width: int = BIN
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The middles of the bins of `width` s up to `longest` s, and the share of the deliveries in each, smoothed."""
    edges = np.arange(0, longest + width, width, dtype=np.int64)
    counted = (delay >= 0) & (delay <= longest * SECOND) & (published <= end - longest * SECOND)
    found, _ = np.histogram(delay[counted] / SECOND, edges)
    total = found.sum()
    shares = found / total if total else np.zeros(len(found))
    # The first and the last mean have only two bins.
    smoothed = np.convolve(shares, np.ones(3), "same") / np.convolve(np.ones(len(shares)), np.ones(3), "same")
    return (edges[:-1] + width / 2).astype(np.float64), smoothed


def peak_age(published: Ints, delay: Ints, end: int, longest: int, width: int = BIN) -> float | None:
    """The age at which most documents arrive, s; None if none arrives."""
    middles, shares = density(published, delay, end, longest, width)
    return float(middles[int(shares.argmax())]) if shares.any() else None
