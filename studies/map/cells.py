"""The cells of a map: what every protocol came to in the same worlds, seed by seed.

The rules this file owns:

* A cell is a point of an experiment. Its settings are the experiment's variants; those that differ only in a number,
  the *knob*, belong to one protocol: `gossip p=0.5` and `gossip p=0.7`. A mode makes another: `odmrp one-channel`.
* Only seeds that all settings have count, so that everything is compared seed by seed.
* A run that delivered nothing has an infinite cost. It is never left out.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from roamcast.campaign.folder.layout import CAMPAIGN_FILE, RUNS_FILE
from roamcast.errors import RoamcastError
from roamcast.statistics.bootstrap import Array

COSTS: Final = frozenset({"overhead", "bits_per_delivery", "airtime_per_delivery"})


@dataclass(frozen=True)
class Setting:
    """A protocol as it was run."""

    name: str
    protocol: str
    knob: float | None = None
    """The number by which it differs from the protocol's other settings."""
    continuous: bool = False
    """Whether the knob may be anything between two of its values."""


@dataclass(frozen=True)
class Cell:
    """One point of the map."""

    axes: dict[str, Any]
    seeds: tuple[int, ...]
    settings: tuple[Setting, ...]
    values: Mapping[str, Mapping[str, Array]]
    """By the name of a setting and a measure: one value a seed."""

    def column(self, setting: Setting, measure: str) -> Array:
        return self.values[setting.name][measure]

    def world(self, measure: str) -> Array:
        """Of a measure that is the same for all, since it is one of the world."""
        return self.values[self.settings[0].name][measure]

    def protocols(self) -> dict[str, list[Setting]]:
        """The settings of each protocol, by knob."""
        found: dict[str, list[Setting]] = {}
        for setting in self.settings:
            found.setdefault(setting.protocol, []).append(setting)
        return {name: sorted(some, key=lambda one: one.knob or 0.0) for name, some in found.items()}

    def __str__(self) -> str:
        return named(self.axes)


def named(axes: Mapping[str, Any]) -> str:
    """The name of the cell at a point."""
    return ", ".join(f"{label} {value:g}" for label, value in axes.items())


def setting_of(variant: Mapping[str, Any]) -> Setting:
    """From a variant, as `campaign.json` has it."""
    changed = variant["set"]
    parameters = changed.get("protocol.parameters", {})
    numbers = {key: value for key, value in parameters.items() if _is_number(value)}
    words = [parameters["mode"]] if "mode" in parameters else []
    knob = next(iter(numbers.values())) if len(numbers) == 1 else None
    protocol = " ".join((changed.get("protocol.name", variant["name"]), *words))
    return Setting(variant["name"], protocol, knob, isinstance(knob, float))


def _is_number(value: Any) -> bool:  # noqa: ANN401  # any value of JSON
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_cells(out: Path, experiment: str) -> list[Cell]:
    """The cells of an experiment of a measured campaign."""
    try:
        about = json.loads((out / CAMPAIGN_FILE).read_bytes())
        runs = pq.read_table(out / RUNS_FILE, partitioning=None).to_pylist()
        measured = pq.read_table(out / "measures" / "run.parquet", partitioning=None).to_pylist()
    except OSError as problem:
        raise RoamcastError(f"{out}: is not a measured campaign: {problem}") from None
    variants = next(one["variants"] for one in about["experiments"] if one["name"] == experiment)
    values: dict[str, dict[str, float | None]] = {}
    for row in measured:
        values.setdefault(row["run"], {})[row["measure"]] = row["value"]
    mine = [row for row in runs if row["experiment"] == experiment and row["run"] in values]
    return cells([setting_of(variant) for variant in variants], mine, values)


def cells(
    settings: Sequence[Setting], runs: Iterable[Mapping[str, Any]], values: Mapping[str, Mapping[str, float | None]]
) -> list[Cell]:
    """From rows of `runs.parquet`, and the values of each run by measure."""
    by_cell: dict[str, dict[str, dict[int, str]]] = {}
    for row in runs:
        by_cell.setdefault(row["axes"], {}).setdefault(row["variant"], {})[row["seed"]] = row["run"]
    found = []
    for axes, by_setting in by_cell.items():
        there = tuple(setting for setting in settings if setting.name in by_setting)
        seeds = sorted(set.intersection(*(set(by_setting[setting.name]) for setting in there)))
        measures = values[by_setting[there[0].name][seeds[0]]] if seeds else {}
        table = {
            setting.name: {
                measure: np.array([_value(measure, values[by_setting[setting.name][seed]][measure]) for seed in seeds])
                for measure in measures
            }
            for setting in there
        }
        found.append(Cell(json.loads(axes), tuple(seeds), there, table))
    return found


def _value(measure: str, value: float | None) -> float:
    if value is None:
        return math.inf if measure in COSTS else math.nan
    return value
