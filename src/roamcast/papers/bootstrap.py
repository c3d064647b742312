"""Means of seeds drawn again: for numbers that are chosen on the data by which they are judged.

The rules this file owns:

* A draw gives every seed a weight, the same for all curves and all points (paired), and everything is computed again
  with these weights, choices included. So an interval of draws contains the uncertainty of the choice.
* The weights are those of Student's t: the draws of a plain mean spread exactly as its t-interval says. Counts of a
  resample, as the usual bootstrap has them, spread too little for few seeds: with five the 95 % interval of a mean
  covers it 84 % of the time (`bench/judge.py`).
* No chance: the weights depend on the number of seeds only and come from `random.Random` with a fixed seed, so the same
  values give the same verdict everywhere, whatever the version of numpy.
"""

import functools
import math
import random
from typing import Final

import numpy as np
import numpy.typing as npt

DRAWS: Final = 20_000
"""The least p-value is one in so many: enough for a hundred points under Holm's correction."""

Array = npt.NDArray[np.float64]


@functools.cache
def weights(seeds: int, draws: int = DRAWS) -> Array:
    """One draw a row, one seed (two or more) a column; every row adds up to 1.

    With z normal, less its mean, and c² chi-square of n − 1 degrees, Σ z (x − mean) has the deviation √(n − 1) s, where
    s is that of the values x; so Σ z (x − mean) / (c √n) is t · s / √n, the distribution behind the t-interval.
    """
    rng = random.Random(f"roamcast: weights of {seeds} seeds")
    freedom = seeds - 1
    rows = []
    for _ in range(draws):
        normal = [rng.gauss(0, 1) for _ in range(seeds)]
        scale = math.sqrt(seeds * sum(rng.gauss(0, 1) ** 2 for _ in range(freedom)))
        centre = sum(normal) / seeds
        rows.append([(one - centre) / scale for one in normal])
    found = np.array(rows) + 1 / seeds
    found.flags.writeable = False
    return found


def plain(seeds: int) -> Array:
    """The one draw in which all seeds count the same."""
    return np.full((1, seeds), 1 / seeds)


def crossing(weights: Array, levels: Array, values: Array, target: Array) -> Array:
    """The values where the mean level first comes up to the target's mean: one draw a row, one seed a column.

    `levels` and `values` have one seed a row, one point of a curve a column, and `target` one value a seed. Between two
    points each seed's value is that on the straight line. NaN in a draw that never comes up to the target.
    """
    drawn = np.einsum("ds,sp->dp", weights, levels)  # not BLAS, which starts threads for this and sums in any order
    wanted = np.einsum("ds,s->d", weights, target)
    reached = drawn >= wanted[:, np.newaxis]
    first = reached.argmax(axis=1)
    before = np.maximum(first - 1, 0)
    rows = np.arange(len(weights))
    low, high = drawn[rows, before], drawn[rows, first]
    between = (first > 0) & reached.any(axis=1)
    share = np.where(between, (wanted - low) / np.where(between, high - low, 1.0), 1.0)[:, np.newaxis]
    found: Array = (1 - share) * values.T[before] + share * values.T[first]
    found[~reached.any(axis=1)] = np.nan
    return found
