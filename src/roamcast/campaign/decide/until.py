"""Adds seeds only where they are needed: a goal for a measure, and how many seeds each point gets next.

The rules this file owns:

* A goal `MEASURE within WIDTH` is reached at a point if, for every variant, half of the interval's width is at most
  WIDTH, or WIDTH per cent of the mean (`within 5%`).
* A goal `A differs from B in MEASURE` is reached if the interval of their difference, or ratio, excludes none. Its
  level has the report's correction for all variants and points, so that the report decides what was decided here.
* Seeds come in looks: `FIRST`, then half as many again each time, up to the most. A point that has reached its goal
  gets no more. All variants of a point have the same seeds, or they could not be compared seed by seed.
* Each look has its own level (`sequential.Looks`), so that all looks together are wrong in 5 % at most: the interval
  that ends the waiting is wider than a plain one of as many seeds.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from roamcast.analysis.measures.measure import Measures
from roamcast.config.errors import suggestion
from roamcast.errors import ConfigError
from roamcast.statistics.contrast import Contrast, level_of
from roamcast.statistics.intervals import interval
from roamcast.statistics.sequential import LEAST, POWER, Looks

FIRST: Final = 5
GROWTH: Final = 1.5
LAST_LOOK: Final = 1 - GROWTH**-POWER
"""The part of the risk that is left for the last look, if all looks were needed."""
_GOALS: Final = 2
"""The measures that share the risk in a report: the first goal and the cost."""
_DIFFERS: Final = re.compile(r"\s*(.+?)\s+differs\s+from\s+(.+?)\s+in\s+(\w+)\s*")
_GOAL: Final = re.compile(r"\s*(\w+)\s+within\s+(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(%?)\s*")

PointKey = tuple[str, str]
"""An experiment, and the JSON of a point's axes."""


class ResultsSoFar(NamedTuple):
    """What there is when it is decided who gets more seeds."""

    results: pa.Table
    """Of the seeds so far (`folder.results`)."""
    about: Measures
    seeds: Mapping[PointKey, int]
    before: Mapping[PointKey, int]
    """How many seeds the points had at the previous look."""
    most: int

    def undecided(self) -> Iterator[tuple[PointKey, float]]:
        """The points that have got seeds since the previous look, and the level of this look at each."""
        looks = Looks(self.most)
        for place, seeds in self.seeds.items():
            if seeds > (before := self.before.get(place, 0)):
                yield place, looks.level_at(seeds, before)

    def values(self, measure: str) -> dict[PointKey, dict[str, dict[int, float]]]:
        """The values of a measure by point, variant and seed, over the seeds that have one."""
        found: dict[PointKey, dict[str, dict[int, float]]] = {}
        for row in self.results.select(["experiment", "axes", "variant", "seed", measure]).to_pylist():
            known = found.setdefault((row["experiment"], row["axes"]), {}).setdefault(row["variant"], {})
            if row[measure] is not None:
                known[row["seed"]] = row[measure]
        return found


class Stopping(Protocol):
    """Decides which points need more seeds."""

    def check(self, measures: Collection[str], variants: Collection[str]) -> None:
        """Refuses a campaign without the measures and variants that the decision needs."""

    def waiting(self, so_far: ResultsSoFar) -> list[PointKey]:
        """The points that need more seeds than they have."""


@dataclass(frozen=True)
class Precision:
    """A measure, and how precisely it should be known."""

    measure: str
    within: float
    relative: bool = False

    def check(self, measures: Collection[str], variants: Collection[str]) -> None:
        _check_measure(self.measure, measures)

    def waiting(self, so_far: ResultsSoFar) -> list[PointKey]:
        values = so_far.values(self.measure)
        return [
            place
            for place, level in so_far.undecided()
            if not all(self.reached(list(known.values()), level) for known in values.get(place, {}).values())
        ]

    def reached(self, values: list[float], level: float) -> bool:
        if len(values) < LEAST:
            return False
        found = interval(values, level)
        return found.half <= (self.within * abs(found.mean) if self.relative else self.within)


@dataclass(frozen=True)
class Differs:
    """Two variants that should be told apart in a measure."""

    one: str
    other: str
    measure: str

    def check(self, measures: Collection[str], variants: Collection[str]) -> None:
        _check_measure(self.measure, measures)
        for name in (self.one, self.other):
            if name not in variants:
                raise ConfigError(f"until {name} differs: no such variant; {suggestion(name, list(variants))}")

    def waiting(self, so_far: ResultsSoFar) -> list[PointKey]:
        values = so_far.values(self.measure)
        variants = {name for known in values.values() for name in known}
        comparisons = _GOALS * (len(variants) - 1) * len(values)
        found = []
        for place, level in so_far.undecided():
            one, other = (values.get(place, {}).get(name, {}) for name in (self.one, self.other))
            pairs = [(one[seed], other[seed]) for seed in sorted(one) if seed in other]
            contrast = Contrast.of(pairs, so_far.about[self.measure])
            # A fixed variant, which has one point, differs at that point or nowhere.
            if pairs and (contrast is None or not contrast.order(level_of(comparisons, level))):
                found.append(place)
        return found


def parse_goal(text: str) -> Precision | Differs:
    differs = _DIFFERS.fullmatch(text)
    if differs is not None:
        return Differs(*differs.groups())
    found = _GOAL.fullmatch(text)
    if found is None or float(found[2]) <= 0:
        raise ConfigError(
            f"{text!r}: expected 'MEASURE within WIDTH', such as 'delivery within 0.02' or '… within 5%', or "
            "'VARIANT differs from VARIANT in MEASURE'"
        )
    relative = bool(found[3])
    return Precision(found[1], float(found[2]) / (100 if relative else 1), relative)


def _check_measure(name: str, measures: Collection[str]) -> None:
    if name not in measures:
        raise ConfigError(f"until {name}: the campaign does not measure it; it measures {', '.join(measures)}")


def first_look(most: int) -> int:
    return min(most, max(FIRST, LEAST))


def next_look(seeds: int, most: int) -> int:
    return min(most, math.ceil(seeds * GROWTH))
