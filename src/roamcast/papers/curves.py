"""Measured values as curves, for `judge.py`: for each experiment, variant and measure, points with a value per seed.

The rule this file owns: nothing is averaged before it is compared. A term gives values by seed; means and intervals are
computed at the end. If a choice depends on the values, such as the best point or the place where a curve reaches a
value, all candidates are given.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.errors import RoamcastError
from roamcast.papers.claims import Term

VALUES: Final = pa.schema(
    [
        ("experiment", pa.string()),
        ("variant", pa.string()),
        ("point", pa.int32()),
        ("axes", pa.string()),
        ("seed", pa.int64()),
        ("measure", pa.string()),
        ("value", pa.float64()),
    ]
)
"""One value per row; `axes` is a JSON object, label -> value."""

BySeed = Mapping[int, float]


class Missing(Exception):
    """Something that a check needs was not measured; the text says what."""


@dataclass(frozen=True)
class Point:
    """A place on a curve, with a value by seed."""

    number: int
    axes: Mapping[str, Any]
    values: BySeed
    place: str = ""
    """Its name for people."""

    @property
    def position(self) -> float:
        """Its value on the first axis."""
        value = next(iter(self.axes.values()), None)
        if not isinstance(value, int | float):
            raise Missing(f"{value!r} has no place on a numeric axis")
        return value

    @property
    def mean(self) -> float:
        if not self.values:
            raise Missing("no seed has a value")
        return math.fsum(self.values.values()) / len(self.values)

    def minus(self, other: "Point") -> BySeed:
        """The difference, for the seeds that both have."""
        return {seed: value - other.values[seed] for seed, value in self.values.items() if seed in other.values}

    def relative_to(self, other: "Point", floor: float = -math.inf) -> BySeed:
        """The difference relative to the other, for seeds where that is neither 0 nor below the floor."""
        bases = {seed: base for seed, base in other.values.items() if base and base >= floor}
        return {seed: part / bases[seed] for seed, part in self.minus(other).items() if seed in bases}


@dataclass(frozen=True)
class Crossing:
    """The place on a curve where another measure first reaches a value."""

    values: list[Point]
    """The curve."""
    levels: list[Point]
    """The other measure at the same points."""
    target: float | Point
    """The value, or the point that has it: the same measure of the term on the left of a comparison."""
    place: str


class Curves:
    """All curves of a table of VALUES."""

    def __init__(self, values: pa.Table) -> None:
        raw: dict[tuple[str, str, str], dict[int, tuple[str, dict[int, float]]]] = defaultdict(dict)
        for row in values.select(VALUES.names).to_pylist():
            if row["value"] is not None:
                curve = raw[row["experiment"], row["variant"], row["measure"]]
                curve.setdefault(row["point"], (row["axes"], {}))[1][row["seed"]] = row["value"]
        self._curves = {key: _points(curve) for key, curve in raw.items()}

    def along(self, experiment: str, variant: str, measure: str) -> list[Point]:
        """Every point of a curve that has a value, in order."""
        return self._curves.get((experiment, variant, measure), [])

    def points(self, term: Term) -> list[Point]:
        """The points that a term refers to, in the order of the axis; for the best, all candidates."""
        points = self._curve(term, term.measure)
        match term.at:
            case None | "best":
                return points
            case "first":
                return points[:1]
            case "last":
                return points[-1:]
            case axes:
                chosen = [point for point in points if axes.items() <= point.axes.items()]
                if not chosen:
                    raise Missing(f"{term.variant} in {term.experiment} has no point {_place(axes)}")
                return chosen

    def beside(self, term: Term, point: Point, measure: str) -> Point:
        """Another measure at a point of a term's curve."""
        for other in self._curve(term, measure):
            if other.number == point.number:
                return other
        raise Missing(f"{measure} of {term.variant} in {term.experiment} was not measured at {point.place}")

    def opposite(self, of: Term, left: Point, than: Term) -> Point | Crossing | None:
        """What a point of `of` is compared with; None if there is nothing."""
        if than.reaching is not None:
            if than.reaching.value is not None:
                return self.crossing(than)
            level = self.beside(of, left, than.reaching.measure)
            return self.crossing(than, level, left.place)
        points = self.points(than)
        level_line = not points[0].axes
        if level_line or than.at is not None:
            return points[0]
        return next((point for point in points if point.axes == left.axes), None)

    def crossing(self, term: Term, level: Point | None = None, place: str = "") -> Crossing:
        """The place of a term that is defined by what it reaches: a value, or the level of another curve."""
        reaching = term.reaching
        assert reaching is not None
        values = self._curve(term, term.measure)
        levels = [self.beside(term, point, reaching.measure) for point in values]
        if level is not None:
            return Crossing(values, levels, level, place)
        assert reaching.value is not None
        return Crossing(values, levels, reaching.value, f"where {reaching.measure} = {reaching.value:.3g}")

    def _curve(self, term: Term, measure: str) -> list[Point]:
        points = self._curves.get((term.experiment, term.variant, measure))
        if points is None:
            raise Missing(f"{measure} of {term.variant} in {term.experiment} was not measured")
        return points


def _points(curve: Mapping[int, tuple[str, dict[int, float]]]) -> list[Point]:
    """The points in order; the name of a place has only the axes on which points differ."""
    axes = {number: json.loads(text) for number, (text, _) in sorted(curve.items())}
    widest = max(len(values) for values in axes.values())
    for width in range(widest + 1):
        places = {number: _place(dict(list(values.items())[:width])) for number, values in axes.items()}
        if width and len(set(places.values())) == len(axes):
            break
    return [Point(number, values, curve[number][1], places[number]) for number, values in axes.items()]


def _place(axes: Mapping[str, Any]) -> str:
    return ", ".join(f"{label} = {value}" for label, value in axes.items())


def read_values(out: Path) -> pa.Table:
    """The VALUES of a campaign's folder that has been measured."""
    try:
        runs = pq.read_table(out / "runs.parquet", columns=["run", *VALUES.names[:5]])
        measures = pq.read_table(out / "measures" / "run.parquet")
    except OSError as problem:
        raise RoamcastError(f"{out}: has no measures to judge by: {problem}") from None
    joined = runs.join(measures.filter(pc.is_valid(measures["value"])), "run", join_type="inner")
    return joined.select(VALUES.names).cast(VALUES)
