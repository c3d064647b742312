"""Measured values as curves: for each experiment, variant and measure, points with a value per seed.

The rule this file owns: nothing is averaged before it is compared. A point has its values by seed; means and intervals
are computed at the end.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

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
class CurvePoint:
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

    def minus(self, other: "CurvePoint") -> BySeed:
        """The difference, for the seeds that both have."""
        return {seed: value - other.values[seed] for seed, value in self.values.items() if seed in other.values}

    def relative_to(self, other: "CurvePoint", floor: float = -math.inf) -> BySeed:
        """The difference relative to the other, for seeds where that is neither 0 nor below the floor."""
        bases = {seed: base for seed, base in other.values.items() if base and base >= floor}
        return {seed: part / bases[seed] for seed, part in self.minus(other).items() if seed in bases}


class Curves:
    """All curves of a table of VALUES."""

    def __init__(self, values: pa.Table) -> None:
        raw: dict[tuple[str, str, str], dict[int, tuple[str, dict[int, float]]]] = defaultdict(dict)
        for row in values.select(VALUES.names).to_pylist():
            if row["value"] is not None:
                curve = raw[row["experiment"], row["variant"], row["measure"]]
                curve.setdefault(row["point"], (row["axes"], {}))[1][row["seed"]] = row["value"]
        self.curves = {key: _points(curve) for key, curve in raw.items()}

    def along(self, experiment: str, variant: str, measure: str) -> list[CurvePoint]:
        """Every point of a curve that has a value, in order."""
        return self.curves.get((experiment, variant, measure), [])


def _points(curve: Mapping[int, tuple[str, dict[int, float]]]) -> list[CurvePoint]:
    """The points in order; the name of a place has only the axes on which points differ."""
    axes = {number: json.loads(text) for number, (text, _) in sorted(curve.items())}
    widest = max(len(values) for values in axes.values())
    for width in range(widest + 1):
        places = {number: place_name(dict(list(values.items())[:width])) for number, values in axes.items()}
        if width and len(set(places.values())) == len(axes):
            break
    return [CurvePoint(number, values, curve[number][1], places[number]) for number, values in axes.items()]


def place_name(axes: Mapping[str, Any]) -> str:
    return ", ".join(f"{label} = {value}" for label, value in axes.items())
