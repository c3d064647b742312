"""Which reading of a paper is chosen: pure functions of how its main points come out under each.

The rules this file owns (docs/papers.md has the whole procedure):

* Readings are ranked by how many main points their *means* meet: verdicts on few seeds would rank by power. Of equals,
  the one with the smaller sum of standardised misses comes first; of equals again, the one tried first, which has fewer
  settings.
* A miss is how far the mean is beyond its condition. It is divided by the root mean square of all misses of the same
  point, over all readings tried, so that every point weighs alike, whatever its unit. A point that was not measured
  counts as its greatest miss, and as 1 if there is none.
* A setting *mattered* if it meets a point that the ledger's reading does not, or if the sum of its misses is smaller by
  a tenth of a point.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

WORTH: Final = 0.1
MOST: Final = 4
"""The settings that are combined with each other."""

T = TypeVar("T")


class MainPoint(NamedTuple):
    """How a claim's main point comes out under a reading."""

    met: bool
    miss: float | None
    """How far the mean is beyond the condition, 0 if it is not; None: not measured."""
    measured: str = ""
    """What was measured where the mean is farthest beyond the condition, or nearest to it."""


Tried = Mapping[str, Mapping[str, MainPoint]]
"""By reading, in the order of trying, and by claim."""


class Score(NamedTuple):
    """The greater, the better."""

    met: int
    misses: float
    """The sum of standardised misses, below 0."""


def standardised(tried: Tried) -> dict[str, dict[str, float]]:
    """The misses by reading and claim, each in units of what is usual for the claim."""
    claims = dict.fromkeys(claim for points in tried.values() for claim in points)
    shown: dict[str, dict[str, float]] = {name: {} for name in tried}
    for claim in claims:
        misses = {name: points[claim].miss for name, points in tried.items()}
        known = [miss for miss in misses.values() if miss is not None]
        usual = math.sqrt(math.fsum(miss**2 for miss in known) / len(known)) if known else 0.0
        in_units = {name: miss / usual if usual else 0.0 for name, miss in misses.items() if miss is not None}
        worst = max(in_units.values(), default=0.0) or 1.0
        for name in tried:
            shown[name][claim] = in_units.get(name, worst)
    return shown


def scores(tried: Tried, without: str | None = None) -> dict[str, Score]:
    """The score of each reading, `without` one claim."""
    misses = standardised(tried)
    return {
        name: Score(
            sum(point.met for claim, point in points.items() if claim != without),
            -math.fsum(miss for claim, miss in misses[name].items() if claim != without),
        )
        for name, points in tried.items()
    }


def ranked(tried: Tried, without: str | None = None) -> list[str]:
    """The readings, the best first."""
    found = scores(tried, without)
    return sorted(found, key=lambda name: (-found[name].met, -round(found[name].misses, 9)))


class LeftOut(NamedTuple):
    """The reading that is best without a claim, and whether it meets that claim's main point."""

    reading: str
    met: bool


def left_out(tried: Tried) -> dict[str, LeftOut]:
    """By claim: chosen without it, then judged by it."""
    claims = dict.fromkeys(claim for points in tried.values() for claim in points)
    best = {claim: ranked(tried, without=claim)[0] for claim in claims}
    return {claim: LeftOut(best[claim], tried[best[claim]][claim].met) for claim in claims}


def mattered(tried: Tried, base: str, settings: Sequence[T], name: Callable[[T], str]) -> list[T]:
    """The settings that mattered by themselves, the best first, and no more than are combined."""
    found = scores(tried)

    def matters(setting: T) -> bool:
        points = tried[name(setting)]
        gained = any(points[claim].met and not tried[base][claim].met for claim in points)
        return gained or found[name(setting)].misses - found[base].misses >= WORTH

    order = {reading: place for place, reading in enumerate(ranked(tried))}
    return sorted(filter(matters, settings), key=lambda setting: order[name(setting)])[:MOST]


def different(values: Mapping[str, T]) -> dict[str, str]:
    """Each reading, and the first with the same numbers: those are one."""
    first: list[tuple[T, str]] = []
    found = {}
    for name, numbers in values.items():
        same = next((other for seen, other in first if seen == numbers), None)
        if same is None:
            first.append((numbers, name))
        found[name] = same or name
    return found


def distribution(tried: Tried) -> dict[int, int]:
    """How many readings meet how many main points."""
    met = [score.met for score in scores(tried).values()]
    return {count: met.count(count) for count in sorted(set(met))}
