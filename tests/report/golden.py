"""Ten campaigns of differing shapes, by hand: from the answer of each, winner, place, size and certainty can be named.

A value is a mean and, added to it in turn, a few fixed deviations: the same for all variants (`COMMON`, as of seeds
with easier and harder networks) and the variant's own (`OWN`), without which no difference would have a spread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from roamcast.analysis.measures.measure import Measure
from roamcast.report.answer import ComparedGoals
from roamcast.report.compare import Question
from roamcast.statistics.curves import VALUES, Curves

DELIVERY = Measure(name="delivery", title="delivery (share of subscribers)", share=True, good="high")
OVERHEAD = Measure(name="overhead", title="overhead (packets per delivery)", good="low")
DELAY = Measure(name="delay_p95", title="delay, 95th percentile (s)", unit="s", good="low")
MEASURES = {one.name: one for one in (DELIVERY, OVERHEAD, DELAY)}

COMMON = (0.02, -0.01, 0.03, -0.04, 0.0, 0.01, -0.02, 0.01)
OWN = (1.0, -1.0, 0.5, -0.5, 0.25, -0.75, 0.75, -0.25)

Means = Mapping[tuple[str, Any], float | None]
"""By variant and point; None: its runs failed."""


@dataclass(frozen=True)
class Case:
    means: Mapping[str, Means]
    """By measure."""
    axes: tuple[str, ...] = ("range",)
    seeds: int = 8
    noise: float = 0.02
    """How much the variants' own deviations count, relative to the mean."""
    baseline: str | None = None
    alike: Sequence[str] = field(default_factory=tuple)
    """Variants with the same values in every seed as the first."""

    def rows(self) -> list[dict[str, Any]]:
        found = []
        for measure, means in self.means.items():
            variants = list(dict.fromkeys(name for name, _ in means))
            places = list(dict.fromkeys(place for _, place in means))
            for (variant, place), mean in means.items():
                number = 0 if variant in self.alike else variants.index(variant)
                for seed in range(self.seeds):
                    if mean is None:
                        break
                    own = self.noise * OWN[(seed * (number + 1) + number) % len(OWN)]
                    value = mean * (1 + COMMON[seed] / 4 + own)
                    if measure == "delivery":
                        value = min(value, 1.0)
                    values = place if isinstance(place, tuple) else (place,) * len(self.axes)
                    found.append(
                        {
                            "experiment": "e",
                            "variant": variant,
                            "point": places.index(place),
                            "axes": _json(self.axes, values),
                            "seed": seed + 1,
                            "measure": measure,
                            "value": value,
                        }
                    )
        return found

    def curves(self) -> Curves:
        return Curves(pa.Table.from_pylist(self.rows(), VALUES))

    def asked(self) -> ComparedGoals:
        variants = tuple(dict.fromkeys(name for means in self.means.values() for name, _ in means))
        cost = "overhead" in self.means and "delivery" in self.means
        goals = tuple(
            Question("e", MEASURES[name], variants, self.axes, 2 if cost and name != "delay_p95" else 1)
            for name in self.means
        )
        command = "roamcast campaign my.toml --out out/my --seeds 8"
        return ComparedGoals(goals, 1 if cost else None, self.baseline, command)


def _json(axes: Sequence[str], values: Sequence[Any]) -> str:
    return "{" + ", ".join(f'"{axis}": {value}' for axis, value in zip(axes, values, strict=True)) + "}"


def along(name: str, places: Sequence[Any], *means: float | None) -> dict[tuple[str, Any], float | None]:
    return {(name, place): mean for place, mean in zip(places, means, strict=True)}


RANGES = (80, 150, 200, 250)
GRID = tuple((rate, speed) for rate in (1, 4) for speed in (1, 5, 10))

CASES = {
    "one-axis": Case(
        {"delivery": {**along("gossip", RANGES, 0.3, 0.5, 0.7, 0.8), **along("hint", RANGES, 0.4, 0.62, 0.8, 0.95)}}
    ),
    "no-axis": Case({"delivery": {("gossip", 0): 0.5, ("hint", 0): 0.62, ("maodv", 0): 0.3}}, axes=()),
    "two-axes": Case(
        {
            "delivery": {
                **along("hint", GRID, 0.9, 0.85, 0.8, 0.88, 0.8, 0.6),
                **along("maodv", GRID, 0.8, 0.7, 0.5, 0.7, 0.5, 0.4),
                **along("flooding", GRID, 0.85, 0.8, 0.7, 0.75, 0.7, 0.8),
            }
        },
        axes=("rate", "speed"),
    ),
    "tie": Case(
        {"delivery": {**along("hint", RANGES, 0.4, 0.6, 0.8, 0.9), **along("roam", RANGES, 0.4, 0.6, 0.8, 0.9)}},
        alike=("roam",),
    ),
    "crossing": Case(
        {
            "delivery": {
                **along("flooding", RANGES, 0.6, 0.7, 0.75, 0.78),
                **along("hint", RANGES, 0.4, 0.6, 0.85, 0.95),
            },
            "delay_p95": {**along("flooding", RANGES, 0.02, 0.02, 0.03, 0.05), **along("hint", RANGES, 9, 6, 4, 2)},
        }
    ),
    "one-seed": Case(
        {"delivery": {**along("gossip", RANGES, 0.3, 0.5, 0.7, 0.8), **along("hint", RANGES, 0.4, 0.62, 0.8, 0.95)}},
        seeds=1,
    ),
    "failing": Case(
        {
            "delivery": {
                **along("hint", RANGES, 0.4, 0.62, 0.8, 0.95),
                **along("gossip", RANGES, 0.3, 0.5, 0.7, 0.8),
                **along("mine", RANGES, None, None, None, None),
            },
            "overhead": {**along("hint", RANGES, 3, 3, 3, 3), **along("gossip", RANGES, 9, 8, 7, 7)},
        },
        baseline="gossip",
    ),
    "trade-off": Case(
        {
            "delivery": {
                **along("flooding", RANGES, 0.5, 0.8, 0.96, 0.98),
                **along("hint", RANGES, 0.3, 0.6, 0.955, 0.978),
                **along("maodv", RANGES, 0.4, 0.5, 0.6, 0.6),
            },
            "overhead": {
                **along("flooding", RANGES, 20, 21, 22, 22),
                **along("hint", RANGES, 5, 4, 3.6, 3.6),
                **along("maodv", RANGES, 9, 9, 9, 9),
            },
        },
        noise=0.004,
        baseline="flooding",
    ),
    "undecided": Case(
        {"delivery": {("gossip", 0): 0.70, ("hint", 0): 0.71}, "overhead": {("gossip", 0): 5.0, ("hint", 0): 4.9}},
        axes=(),
        noise=0.09,
    ),
    "lab": Case(
        {
            "delivery": {("simulated", 0): 0.912, ("lab", 0): 0.908},
            "delay_p95": {("simulated", 0): 0.11, ("lab", 0): 0.14},
        },
        axes=(),
        seeds=5,
    ),
}
"""The last is of real nodes in a lab beside their simulated twins, which is a campaign with two variants."""
