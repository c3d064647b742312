"""The map as two small tables: what was found in each cell, and what each setting came to there.

They are what the repository keeps of a map, and what its figures and its sentences (`words.py`) are made from.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from roamcast.campaign.statistics import interval
from roamcast.papers.atlas.cells import Cell
from roamcast.papers.atlas.dominance import front
from roamcast.papers.atlas.winners import COST, DEADLINES, Verdict, judge

WORLD: Final = (
    *("degree_mean", "path_hops", "pairs_connected", "partitions_mean", "link_changes"),
    *("possible_at_once", "possible_1", "possible_10", "possible_60"),
)
"""Measures of the world, one value for all protocols."""
MEASURED: Final = (
    *(f"delivered_of_possible_{deadline}" for deadline in DEADLINES),
    *(f"delay_restricted_{deadline}" for deadline in DEADLINES),
    *("delivery", "overhead", "bits_per_delivery", COST, "airtime_jain", "airtime_most"),
)
Row = dict[str, str]
AND: Final = "; "
"""Between names in one field."""


@dataclass(frozen=True)
class Atlas:
    """Both tables, as text in fields."""

    axes: tuple[str, ...]
    cells: list[Row]
    """A row for each cell and deadline."""
    settings: list[Row]
    """A row for each cell and setting."""


def atlas(cells: Sequence[Cell]) -> Atlas:
    axes = tuple(cells[0].axes) if cells else ()
    rows: list[Row] = []
    settings: list[Row] = []
    for cell in cells:
        place = {label: f"{value:g}" for label, value in cell.axes.items()}
        world = {name: _number(float(np.mean(cell.world(name)))) for name in WORLD}
        rows += [place | world | _verdict(judge(cell, deadline)) for deadline in DEADLINES]
        settings += [place | row for row in _settings(cell)]
    return Atlas(axes, rows, settings)


def _verdict(verdict: Verdict) -> Row:
    winner, margin, following = verdict.winner, verdict.margin, verdict.next
    best = verdict.standings[0]
    return {
        "seeds": str(len(verdict.cell.seeds)),
        "deadline": str(verdict.deadline),
        "winner": winner.protocol if winner else "",
        "knob": _number(winner.knob) if winner and winner.knob is not None else "",
        "delivered": _number(best.delivery),
        "cost": _number(winner.cost) if winner else "",
        "wins": _number(winner.wins) if winner else "",
        "not_separated": AND.join(verdict.rivals),
        "closest": "" if winner else best.protocol,
        "next": following.protocol if following else "",
        "next_knob": _number(following.knob) if following and following.knob is not None else "",
        "margin": _number(margin.mean) if margin else "",
        "margin_low": _number(margin.low) if margin else "",
        "margin_high": _number(margin.high) if margin else "",
        "reach": AND.join(one.protocol for one in verdict.standings if math.isfinite(one.cost)),
    }


def _settings(cell: Cell) -> Iterable[Row]:
    found = front(cell)
    for setting in cell.settings:
        row = {
            "setting": setting.name,
            "protocol": setting.protocol,
            "knob": "" if setting.knob is None else f"{setting.knob:g}",
            "pareto": "yes" if setting.name in found.pareto else "",
            "surely_dominated_by": found.dominated.get(setting.name, ""),
        }
        for measure in MEASURED:
            values = cell.column(setting, measure)
            if np.isfinite(values).all() and len(values):
                mean, low, high = interval(values.tolist())
            else:
                mean = low = high = math.inf
            row |= {measure: _number(mean), f"{measure}_low": _number(low), f"{measure}_high": _number(high)}
        yield row


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.4g}"


# --- Files ----------------------------------------------------------------------------------------------------------


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_csv(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def axes_of(cells: Sequence[Row]) -> tuple[str, ...]:
    """The labels of the axes: the columns before those of the world."""
    names = list(cells[0])
    return tuple(names[: names.index(WORLD[0])])
