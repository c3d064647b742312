"""The cells of a map: what every protocol came to in the same worlds, seed by seed.

The rules this file owns:

* A cell is a point of an experiment. Its settings are the experiment's variants; those that differ only in a number,
  the *knob*, belong to one protocol: `gossip p=0.5` and `gossip p=0.7`. A mode makes another: `odmrp one-channel`.
* Only seeds that all settings have count, so that everything is compared seed by seed.
* A run that delivered nothing has an infinite cost. It is never left out.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roamcast.campaign.define.experiment import Variant
from roamcast.campaign.folder.layout import read_campaign
from roamcast.campaign.folder.results import measures_in, read_results
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


def setting_of(variant: Variant) -> Setting:
    changed = variant.set
    parameters = changed.get("protocol.parameters", {})
    numbers = {key: value for key, value in parameters.items() if _is_number(value)}
    words = [parameters["mode"]] if "mode" in parameters else []
    knob = next(iter(numbers.values())) if len(numbers) == 1 else None
    protocol = " ".join((changed.get("protocol.name", variant.name), *words))
    return Setting(variant.name, protocol, knob, isinstance(knob, float))


def _is_number(value: Any) -> bool:  # noqa: ANN401  # any value of JSON
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_cells(out: Path, experiment: str) -> list[Cell]:
    """The cells of an experiment of a measured campaign."""
    results = read_results(out)
    variants = read_campaign(out).experiment(experiment).variants
    mine = results.filter(pc.and_(pc.equal(results["experiment"], experiment), results["error"].is_null()))
    return cells([setting_of(variant) for variant in variants], mine)


def cells(settings: Sequence[Setting], results: pa.Table) -> list[Cell]:
    """From the results of an experiment's runs."""
    by_cell: dict[str, dict[str, dict[int, int]]] = {}
    places = (results[name].to_pylist() for name in ("axes", "variant", "seed"))
    for row, (axes, variant, seed) in enumerate(zip(*places, strict=True)):
        by_cell.setdefault(axes, {}).setdefault(variant, {})[seed] = row
    columns = {measure: _column(measure, results[measure]) for measure in measures_in(results)}
    found = []
    for axes, by_setting in by_cell.items():
        there = tuple(setting for setting in settings if setting.name in by_setting)
        seeds = sorted(set.intersection(*(set(by_setting[setting.name]) for setting in there)))
        rows = {setting.name: [by_setting[setting.name][seed] for seed in seeds] for setting in there}
        table = {name: {measure: column[at] for measure, column in columns.items()} for name, at in rows.items()}
        found.append(Cell(json.loads(axes), tuple(seeds), there, table))
    return found


def _column(measure: str, values: pa.ChunkedArray) -> Array:
    column: Array = values.fill_null(math.inf if measure in COSTS else math.nan).to_numpy()
    return column
