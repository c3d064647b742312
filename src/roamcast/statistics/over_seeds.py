"""Over seeds: mean, standard deviation and 95 % t-interval, and paired differences, of many measures at once.

The rules this file owns:

* The seeds are the sample. The standard deviation divides by n − 1, the interval is mean ± t · sd / √n with the 97.5 %
  quantile of Student's t for n − 1 degrees of freedom; both are undefined for fewer than two values.
* Differences are taken seed by seed: variants of a point see the same movement, subscriptions and publications.
* Relative differences are 100 · (variant − baseline) / baseline, taken seed by seed too. A seed whose baseline is 0, or
  below the measure's floor, has none: a share of next to nothing says nothing.
* Sums go through the seeds in their order, so that equal values give equal bytes, however they are divided into tasks.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from roamcast.statistics.intervals import LEVEL, large_t_quantile, t_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

PLAN_COLUMNS: Final = ["run", "experiment", "variant", "point", "axes", "seed"]
"""Those of a plan that count here."""
INTERVAL: Final = pa.schema([("n", pa.int32()), *((name, pa.float64()) for name in ("mean", "sd", "low", "high"))])
"""Over the seeds that have a value: how many, and the 95 % t-interval, null for fewer than two."""
DESCRIBED: Final = pa.schema(
    [
        ("experiment", pa.string()),
        ("point", pa.int32()),
        ("axes", pa.string()),
        ("variant", pa.string()),
        ("baseline", pa.string()),
        ("measure", pa.string()),
        *INTERVAL,
        *((f"relative_{name}", INTERVAL.field(name).type) for name in INTERVAL.names),
    ]
)
"""A variant at a point; with a baseline, its differences from it, and the same in per cent."""
_EXACT: Final = 501
"""Up to this many seeds, quantiles are exact: computing ten thousand of them takes minutes."""


def described(plan: pa.Table, measured: pa.Table, floors: Mapping[str, float]) -> Iterator[pa.Table]:
    """Tables of DESCRIBED: every planned variant and point, and every two variants that share a seed at a point.

    `plan` has the columns PLAN_COLUMNS; `measured` has run, measure and value, all values of some measures, and perhaps
    rows without a run, which only name a measure; `floors` are by measure.
    """
    runs = plan["run"].unique()
    grid = Grid(measured, runs)
    least = np.array([floors.get(name, -np.inf) for name in grid.measures.to_pylist()])
    for experiment in plan["experiment"].unique():
        yield from _Sweep(plan.filter(pc.field("experiment") == experiment), runs, grid).described(least)


class Grid:
    """Values by run and measure."""

    def __init__(self, measured: pa.Table, runs: pa.Array) -> None:
        self.measures = measured["measure"].unique().sort()
        measured = measured.filter(measured["run"].is_valid())
        self._runs = runs
        at = self.index(measured["run"]), _index(measured["measure"], self.measures)
        shape = len(runs), len(self.measures)
        self.values, self.known = np.zeros(shape), np.zeros(shape, bool)
        self.values[at], self.known[at] = measured["value"].fill_null(0.0), measured["value"].is_valid()

    def index(self, runs: pa.ChunkedArray) -> Ints:
        """Where these runs are."""
        return _index(runs, self._runs)

    def column(self, measure: str, at: Ints) -> pa.Array:
        """The values of a measure in the runs at these places."""
        where = pc.index(self.measures, measure).as_py()
        if where < 0:
            return pa.nulls(len(at), pa.float64())
        return pa.array(self.values[at, where], mask=~self.known[at, where])


class _Sweep:
    """One experiment: its values by seed, point, variant and measure."""

    def __init__(self, plan: pa.Table, runs: pa.Array, grid: Grid) -> None:
        self._experiment, self._measures = plan["experiment"][0], grid.measures
        self._points, first, point = np.unique(plan["point"], return_index=True, return_inverse=True)
        self._axes = plan["axes"].take(first)
        self._variants = plan["variant"].unique()
        seeds, seed = np.unique(plan["seed"], return_inverse=True)
        places, run = (seed, point, _index(plan["variant"], self._variants)), _index(plan["run"], runs)
        shape = len(seeds), len(self._points), len(self._variants)
        self.values: Floats = np.zeros((*shape, len(grid.measures)))
        self.known: Bools = np.zeros(self.values.shape, bool)
        self.planned: Bools = np.zeros(shape, bool)
        self.values[places], self.known[places], self.planned[places] = grid.values[run], grid.known[run], True

    def described(self, least: Floats) -> Iterator[pa.Table]:
        values, known, planned = self.values, self.known, self.planned
        yield self._table(_any(planned), None, _describe(values, known), None)
        for which in range(len(self._variants)) if len(self._variants) > 1 else ():
            both, shared = known & known[:, :, [which]], planned & planned[:, :, [which]]
            shared[:, :, which] = False
            base = values[:, :, [which]]
            change, meaningful = values - base, both & (base != 0) & ~(base < least)
            relative = 100 * change / np.where(base == 0, 1.0, base)
            yield self._table(
                _any(shared), self._variants[which], _describe(change, both), _describe(relative, meaningful)
            )

    def _table(
        self, there: Bools, baseline: pa.Scalar | None, plain: "_Described", relative: "_Described | None"
    ) -> pa.Table:
        """The rows of these points and variants."""
        point, variant = (np.repeat(at, len(self._measures)) for at in np.nonzero(there))
        count = len(point)
        columns = [
            pa.repeat(self._experiment, count),
            pa.array(self._points[point], pa.int32()),
            self._axes.take(point),
            self._variants.take(variant),
            pa.nulls(count, pa.string()) if baseline is None else pa.repeat(baseline, count),
            self._measures.take(np.tile(np.arange(len(self._measures)), int(there.sum()))),
            *plain.columns(there),
            *([pa.nulls(count, field.type) for field in INTERVAL] if relative is None else relative.columns(there)),
        ]
        return pa.table(columns, schema=DESCRIBED)


class _Described(NamedTuple):
    """By point, variant and measure."""

    n: Ints
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats

    def columns(self, there: Bools) -> list[pa.Array]:
        n = self.n[there].ravel()
        undefined = {"n": None, "mean": n < 1, "sd": n < 2, "low": n < 2, "high": n < 2}
        return [
            pa.array(getattr(self, field.name)[there].ravel(), field.type, mask=undefined[field.name])
            for field in INTERVAL
        ]


def _describe(values: Floats, known: Bools) -> _Described:
    """Over the first dimension, the seeds; `sum` adds them in their order."""
    n = known.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sum(np.where(known, values, 0.0)) / n
        sd = np.sqrt(sum(np.where(known, (values - mean) ** 2, 0.0)) / (n - 1))
        margin = _quantiles(n) * sd / np.sqrt(n)
    return _Described(n, mean, sd, mean - margin, mean + margin)


def _quantiles(n: Ints) -> Floats:
    quantiles = np.full(n.shape, np.nan)
    for count in np.unique(n[n >= 2]).tolist():
        quantile = t_quantile if count <= _EXACT else large_t_quantile
        quantiles[n == count] = quantile(LEVEL, count - 1)
    return quantiles


def pooled(plan: pa.Table, measured: pa.Table, name: str, part: str, whole: str) -> pa.Table:
    """The measure `name` of each run (run, measure, value): its part in the ratio of two sums, those of the measures
    `part` and `whole` over all runs that are the same but for their seed: those of equal `same` in the plan."""
    runs = (
        plan.filter(pc.is_in(plan["run"], measured["run"])).group_by("run").aggregate([("same", "min")]).sort_by("run")
    )
    grid = Grid(measured, runs["run"].combine_chunks())
    groups, group = np.unique(runs["same_min"], return_inverse=True)
    values, sums, counts = [], [], []
    for column in _index(pa.array([part, whole]), grid.measures):
        known = grid.known[:, column]
        values.append(np.where(known, grid.values[:, column], np.nan))
        # In the order of the runs, whatever the order of the rows.
        sums.append(np.bincount(group[known], grid.values[known, column], len(groups)))
        counts.append(np.bincount(group[known], minlength=len(groups)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, usual = sums[0] / sums[1], sums[1] / counts[1]
        found = ratio[group] + (values[0] - ratio[group] * values[1]) / usual[group]
    return pa.table(
        {"run": runs["run"], "measure": pa.repeat(name, len(found)), "value": pa.array(found, mask=np.isnan(found))}
    )


def _any(of_seeds: Bools) -> Bools:
    """Where at least one seed has it."""
    found: Bools = np.logical_or.reduce(of_seeds)
    return found


def _index(values: Any, among: pa.Array) -> Ints:  # noqa: ANN401  # an array, in chunks or not
    index: Ints = pc.index_in(values, value_set=among).to_numpy(zero_copy_only=False)
    return index
