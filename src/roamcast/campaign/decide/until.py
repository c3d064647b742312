"""Adds seeds only where they are needed: a goal for a measure, and how many seeds each point gets next.

The rules this file owns:

* A goal is `MEASURE within WIDTH`: at every point, for every variant, half of the interval's width is at most WIDTH, or
  WIDTH per cent of the mean (`within 5%`).
* Seeds come in looks: `FIRST`, then half as many again each time, up to the most. A point that has reached its goal
  gets no more. All variants of a point have the same seeds, or they could not be compared seed by seed.
* Each look has its own level (`sequential.Looks`), so that all looks together are wrong in 5 % at most: the interval
  that ends the waiting is wider than a plain one of as many seeds.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from roamcast.analysis.measures.measure import Measures
from roamcast.errors import ConfigError
from roamcast.statistics.intervals import interval
from roamcast.statistics.sequential import LEAST, Looks

FIRST: Final = 5
GROWTH: Final = 1.5
_GOAL: Final = re.compile(r"\s*(\w+)\s+within\s+(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(%?)\s*")

PointKey = tuple[str, str]
"""An experiment, and the JSON of a point's axes."""


class Look(NamedTuple):
    """What there is when it is decided who gets more seeds."""

    results: pa.Table
    """Of the seeds so far (`folder.results`)."""
    about: Measures
    seeds: Mapping[PointKey, int]
    before: Mapping[PointKey, int]
    """How many seeds the points had at the previous look."""
    most: int


class Stopping(Protocol):
    """Decides which points need more seeds."""

    def check(self, measures: Collection[str]) -> None:
        """Refuses a campaign without the measures that the decision needs."""

    def waiting(self, look: Look) -> list[PointKey]:
        """The points that need more seeds than they have."""


@dataclass(frozen=True)
class Precision:
    """A measure, and how precisely it should be known."""

    measure: str
    within: float
    relative: bool = False

    def check(self, measures: Collection[str]) -> None:
        if self.measure not in measures:
            known = ", ".join(measures)
            raise ConfigError(f"until {self.measure}: the campaign does not measure it; it measures {known}")

    def waiting(self, look: Look) -> list[PointKey]:
        looks = Looks(look.most)
        found = []
        for place, variants in _values(look.results, self.measure).items():
            seeds, before = look.seeds[place], look.before.get(place, 0)
            if before >= seeds:  # decided at an earlier look
                continue
            level = looks.level_at(seeds, before)
            if not all(len(known) >= LEAST and self.reached(known, level) for known in variants.values()):
                found.append(place)
        return found

    def reached(self, values: list[float], level: float) -> bool:
        found = interval(values, level)
        return found.half <= (self.within * abs(found.mean) if self.relative else self.within)


def parse_goal(text: str) -> Precision:
    found = _GOAL.fullmatch(text)
    if found is None or float(found[2]) <= 0:
        raise ConfigError(f"{text!r}: expected a measure and a width, such as 'delivery within 0.02' or '… within 5%'")
    relative = bool(found[3])
    return Precision(found[1], float(found[2]) / (100 if relative else 1), relative)


def first_look(most: int) -> int:
    return min(most, max(FIRST, LEAST))


def next_look(seeds: int, most: int) -> int:
    return min(most, math.ceil(seeds * GROWTH))


def _values(results: pa.Table, measure: str) -> dict[PointKey, dict[str, list[float]]]:
    """The values of a measure by point and variant, over the seeds that have one."""
    found: dict[PointKey, dict[str, list[float]]] = {}
    for row in results.select(["experiment", "axes", "variant", measure]).to_pylist():
        known = found.setdefault((row["experiment"], row["axes"]), {}).setdefault(row["variant"], [])
        known += [] if row[measure] is None else [row[measure]]
    return found
