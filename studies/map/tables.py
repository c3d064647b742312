"""The map as three small tables: who wins each cell, how each protocol stands there, and what each setting came to.

They are what the repository keeps of a map, and what its figures and its sentences (`words.py`) are made from.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from roamcast.errors import RoamcastError
from roamcast.statistics.intervals import interval
from studies.map.cells import Cell
from studies.map.dominance import front
from studies.map.winners import COST, DEADLINES, Standing, Verdict, judge

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
    """The tables, as text in fields."""

    cells: list[Row]
    """A row for each cell and deadline: the world, and who wins."""
    standings: list[Row]
    """A row for each cell, deadline and protocol: what it costs where it reaches the threshold."""
    settings: list[Row]
    """A row for each cell and setting: what was measured."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The labels of the axes: the columns before those of the world."""
        names = list(self.cells[0])
        return tuple(names[: names.index(WORLD[0])])


def atlas(cells: Sequence[Cell]) -> Atlas:
    found = Atlas([], [], [])
    for cell in cells:
        place = {label: f"{value:g}" for label, value in cell.axes.items()}
        world = {name: _number(float(np.mean(cell.world(name)))) for name in WORLD}
        for verdict in (judge(cell, deadline) for deadline in DEADLINES):
            found.cells.append(place | world | _verdict(verdict))
            found.standings.extend(place | _standing(verdict.deadline, one) for one in verdict.standings)
        found.settings.extend(place | row for row in _settings(cell))
    return found


def _standing(deadline: int, one: Standing) -> Row:
    return {
        "deadline": str(deadline),
        "protocol": one.protocol,
        "knob": _number(one.knob),
        "delivered": _number(one.delivery),
        "cost": _number(one.cost),
        "wins": _number(one.wins),
    }


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

_FILES: Final = ("cells", "standings", "settings")


def write(found: Atlas, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        (folder / f"{name}.csv").write_text(_as_csv(getattr(found, name)), encoding="utf-8")


def read(folder: Path) -> Atlas:
    try:
        texts = [(folder / f"{name}.csv").read_text(encoding="utf-8") for name in _FILES]
    except OSError as problem:
        raise RoamcastError(f"{folder}: holds no map: {problem}") from None
    return Atlas(*(list(csv.DictReader(io.StringIO(text))) for text in texts))


def _as_csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
