"""Supposed causes of what surprises on the map, each taken away by itself: what every change did, seed by seed.

The rules this file owns:

* A protocol's settings are compared with the first of them, in the same cell and on the same seeds: the mean difference
  of the experiment's first measure, with its 95 % t-interval.
* A change *did* something if that interval does not contain 0. There is no correction for the number of changes: each
  was supposed before it was run, and all are shown.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from roamcast.statistics.bootstrap import Array
from roamcast.statistics.intervals import interval
from studies.map.cells import Cell

Row = dict[str, str]
FILE: Final = "causes.csv"
_DIFFERENCE: Final = "difference"
_ENDS: Final = ("", "_low", "_high")


def rows(cells: Sequence[Cell], measures: Sequence[str]) -> list[Row]:
    """One for each cell and setting."""
    found = []
    for cell in cells:
        place = {label: f"{value:g}" for label, value in cell.axes.items()}
        for settings in cell.protocols().values():
            first = next(one for one in cell.settings if one.protocol == settings[0].protocol)
            for setting in (one for one in cell.settings if one in settings):
                row = place | {"setting": setting.name, "seeds": str(len(cell.seeds))}
                for measure in measures:
                    row |= _estimate(measure, cell.column(setting, measure))
                change = cell.column(setting, measures[0]) - cell.column(first, measures[0])
                none = dict.fromkeys((f"{_DIFFERENCE}{end}" for end in _ENDS), "")
                found.append(row | (none if setting is first else _estimate(_DIFFERENCE, change)))
    return found


def _estimate(name: str, values: Array) -> Row:
    ends = interval(values.tolist()) if np.isfinite(values).all() else (math.inf,) * 3
    return {f"{name}{end}": f"{value:.3g}" for end, value in zip(_ENDS, ends, strict=True)}


def lines(table: Sequence[Row]) -> Iterator[str]:
    """The table in Markdown: means with their intervals; the difference is bold where it is one."""
    names = list(table[0])
    axes, columns = names[: names.index("setting")], names[names.index("seeds") + 1 :: len(_ENDS)]
    heads = [*(name for name in columns if name != _DIFFERENCE), f"{columns[0]}: difference"]
    yield f"Mean and 95 % interval of {table[0]['seeds']} seeds; differences by seed."
    yield ""
    yield "| " + " | ".join((*axes, "setting", *heads)) + " |"
    yield "|" + "---|" * (len(axes) + 1 + len(columns))
    for row in table:
        shown = [_shown(row, name) for name in columns]
        yield "| " + " | ".join((*(row[axis] for axis in axes), f"`{row['setting']}`", *shown)) + " |"


def _shown(row: Row, name: str) -> str:
    mean, low, high = (row[f"{name}{end}"] for end in _ENDS)
    if not mean:
        return ""
    text = f"{mean} [{low}, {high}]"
    sure = name == _DIFFERENCE and (float(low) > 0 or float(high) < 0)
    return f"**{text}**" if sure else text


# --- Files ----------------------------------------------------------------------------------------------------------


def write(table: Sequence[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    (folder / FILE).write_text(text.getvalue(), encoding="utf-8")


def read(folder: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO((folder / FILE).read_text(encoding="utf-8"))))
