"""Numbers at the place where a curve reaches a value: the place is bootstrapped with everything else.

The rule this file owns: a place that is defined by the value reached there is uncertain too. In every draw of the
seeds' weights (`bootstrap.py`) the place comes from that draw's means, and the number is taken there.
"""

from collections.abc import Sequence

import numpy as np

from roamcast.papers.claims import Check
from roamcast.papers.terms import Crossing
from roamcast.statistics.bootstrap import Array, crossing, equal_weights, weights
from roamcast.statistics.curves import CurvePoint, Missing
from roamcast.statistics.evidence import BootstrapDraws, Evidence, Sample


def reached(
    check: Check, left: CurvePoint | Crossing, right: CurvePoint | Crossing | None, floor: float | None
) -> Evidence:
    """The left side, or its difference from the right; with a floor, relative to the right, if that is not below it."""
    sides = [left] if right is None else [left, right]
    seeds = common([point for side in sides for point in _involved(side)])
    if not seeds:
        raise Missing("no seed has a value at every point")

    def compute(drawn: Array) -> Array:
        ours, *theirs = (_at_place(side, seeds, drawn) for side in sides)
        if theirs:
            base = theirs[0]
            ours = ours - base
            if floor is not None:
                ours = ours / np.where((base != 0) & (base >= floor), base, np.nan)
        total: Array = (drawn * ours).sum(axis=1)
        return total

    mean = float(compute(equal_weights(len(seeds)))[0])
    if np.isnan(mean):
        raise Missing(_never(check))
    if len(seeds) < 2:
        return Sample([mean], check.exact)
    return BootstrapDraws(mean, compute(weights(len(seeds))), check.exact)


def _never(check: Check) -> str:
    term = check.of if check.of.reaching else check.than
    assert term is not None
    assert term.reaching is not None
    of = "" if term.reaching.value is None else f" of {term.reaching.value:g}"
    return f"{term.variant} in {term.experiment} never comes up to a {term.reaching.measure}{of}"


def _at_place(side: CurvePoint | Crossing, seeds: Sequence[int], drawn: Array) -> Array:
    """The values by draw and by seed."""
    if isinstance(side, CurvePoint):
        return _column(side, seeds)[np.newaxis, :]
    target = side.target
    wanted = _column(target, seeds) if isinstance(target, CurvePoint) else np.full(len(seeds), target)
    levels = np.column_stack([_column(point, seeds) for point in side.levels])
    return crossing(drawn, levels, np.column_stack([_column(point, seeds) for point in side.values]), wanted)


def reaches(side: Crossing) -> bool:
    """Whether the mean curve reaches the target."""
    seeds = common(_involved(side))
    return bool(seeds) and not np.isnan(_at_place(side, seeds, equal_weights(len(seeds)))).any()


def _involved(side: CurvePoint | Crossing) -> list[CurvePoint]:
    if isinstance(side, CurvePoint):
        return [side]
    return [*side.values, *side.levels, *([side.target] if isinstance(side.target, CurvePoint) else [])]


def common(points: Sequence[CurvePoint]) -> list[int]:
    """The seeds that all points have."""
    return sorted(set.intersection(*(set(point.values) for point in points)))


def _column(point: CurvePoint, seeds: Sequence[int]) -> Array:
    return np.array([point.values[seed] for seed in seeds])


def typical(side: CurvePoint | Crossing) -> float:
    """The mean, at the place found from the means."""
    if isinstance(side, CurvePoint):
        return side.mean
    seeds = common(_involved(side))
    return float(_at_place(side, seeds, equal_weights(len(seeds))).mean())
