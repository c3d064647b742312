"""Does one protocol do, wherever it is? The bar that a candidate must clear in every cell.

    python -m studies.map.bar OUT...                     every cell of these measured parts of the map, for `roam`
    python -m studies.map.bar out/map/core --candidate hint     for another protocol, or one of its settings

The rules this file owns. In each cell, against every setting of every *other* protocol, seed by seed:

* **R** is the cheapest setting whose mean delivery of what was possible within 10 s is at least 95 %. Between two
  values of a continuous knob (gossip's p) it is taken on the straight line, as `winners.py` does; so is each seed's
  logarithm of the cost. *Cost* is time on the air per delivery, compared by the geometric mean of ratios.
* **Met**: the candidate delivers at least min(R's delivery + 1 point, the best delivery − 2 points), at 1.1 times R's
  cost at most. In a cell without R it has the highest delivery, costs at most twice as much as flooding, and delivers
  at least 95 % of what was possible within 60 s. Else it is **missed**, and every part that misses is named.
* **Clearly beaten**: by the 95 % t-interval over seeds, it delivers more than 5 points less than some setting, or costs
  more than 1.5 times as much as a setting (R included) that delivers as much by its mean. There is no correction for
  the number of settings, so that a candidate is called beaten too often rather than too rarely.
* Seeds in which nothing was possible say nothing and are left out. Who delivers nothing in a seed where something was
  possible has an infinite cost: it cannot be R, and as a candidate it misses.
* Settings that were tuned (`map-tuned`) join those of the core's cell at the same place.
"""

import csv
import io
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np

from roamcast.campaign.folder.layout import read_campaign
from roamcast.errors import RoamcastError
from roamcast.statistics.bootstrap import Array
from roamcast.statistics.intervals import Estimate, interval
from studies.map.cells import Cell, Setting, read_cells
from studies.map.tuning import TUNED
from studies.map.winners import COST, THRESHOLD

DELIVERED: Final = "delivered_of_possible_10"
LATE: Final = "delivered_of_possible_60"
CORE: Final = "map-core"
FLOODING: Final = "flooding"
ABOVE_R, BELOW_BEST, AS_DEAR_AS_R = 0.01, 0.02, 1.1
AS_DEAR_AS_FLOODING: Final = 2.0
CLEARLY_BELOW, CLEARLY_DEARER = 0.05, 1.5


class Point(NamedTuple):
    """A setting as it was run, or between two of them: one value per seed."""

    name: str
    delivered: Array
    price: Array
    """Logarithms of the cost; infinite in a seed in which it delivered nothing."""

    @property
    def level(self) -> float:
        return float(self.delivered.mean())

    @property
    def cost(self) -> float:
        """The geometric mean."""
        return math.exp(float(self.price.mean()))


@dataclass(frozen=True)
class Mark:
    """How a setting of the candidate does in a cell."""

    experiment: str
    cell: Cell
    mine: Point
    late: float
    """Mean delivery of what was possible within 60 s."""
    seeds: int
    best: Point
    """The other setting that delivers most."""
    reference: Point | None
    """R."""
    ratio: float
    """Its cost in multiples of R's, or of flooding's where there is no R."""
    misses: tuple[str, ...]
    beaten: tuple[str, ...]

    @property
    def met(self) -> bool:
        return not self.misses


def judged(experiment: str, cells: Iterable[Cell], candidate: str) -> Iterator[Mark]:
    """One mark for each cell and setting of the candidate."""
    for cell in cells:
        for setting in cell.settings:
            if _is_of(setting, candidate):
                yield mark(experiment, cell, setting)


def _is_of(setting: Setting, candidate: str) -> bool:
    """Whether a name means a setting: its own, that of its protocol, or that of a protocol with modes."""
    return candidate in (setting.name, setting.protocol, setting.protocol.partition(" ")[0])


def mark(experiment: str, cell: Cell, candidate: Setting) -> Mark:
    mine = _point(cell, candidate)
    others = [one for one in cell.settings if one.protocol.partition(" ")[0] != candidate.protocol.partition(" ")[0]]
    rivals = [_point(cell, one) for one in others]
    if not rivals or not len(mine.delivered):
        raise RoamcastError(f"{experiment}, {cell}: nothing to compare {candidate.name} with")
    best = max(rivals, key=lambda one: one.level)
    reference = _reference(cell, others)
    late = float(np.nanmean(cell.column(candidate, LATE)))
    against = reference or next((one for one in rivals if one.name == FLOODING), None)
    ratio = math.nan if against is None else _ratio(mine, against).mean
    misses = tuple(_misses_reference(mine, reference, best, ratio) if reference else _misses(mine, best, ratio, late))
    between = [reference] if reference and all(one.name != reference.name for one in rivals) else []
    beaten = tuple(_beaten(mine, [*rivals, *between]))
    return Mark(experiment, cell, mine, late, len(mine.delivered), best, reference, ratio, misses, beaten)


def _point(cell: Cell, setting: Setting) -> Point:
    said = np.isfinite(cell.column(setting, DELIVERED))
    with np.errstate(divide="ignore"):
        price = np.log(cell.column(setting, COST)[said])
    return Point(setting.name, cell.column(setting, DELIVERED)[said], price)


# --- The reference ----------------------------------------------------------------------------------------------------


def _reference(cell: Cell, settings: Sequence[Setting]) -> Point | None:
    """The cheapest that reaches the threshold, if any does."""
    by_protocol: dict[str, list[Setting]] = {}
    for setting in settings:
        by_protocol.setdefault(setting.protocol, []).append(setting)
    reached: list[Point] = []
    for some in by_protocol.values():
        ordered = sorted(some, key=lambda one: one.knob or 0.0)
        points = [one for one in (_point(cell, setting) for setting in ordered) if np.isfinite(one.price).all()]
        reached += [one for one in points if one.level >= THRESHOLD]
        if all(one.continuous for one in some) and len(points) == len(some):
            reached += _crossings(ordered, points)
    return min(reached, key=lambda one: float(one.price.mean()), default=None)


def _crossings(settings: Sequence[Setting], points: Sequence[Point]) -> Iterator[Point]:
    """Where the mean delivery is the threshold, between two settings next to each other."""
    for (one, other), (low, high) in zip(itertools.pairwise(settings), itertools.pairwise(points), strict=True):
        if (low.level >= THRESHOLD) == (high.level >= THRESHOLD):
            continue
        part = (THRESHOLD - low.level) / (high.level - low.level)
        knob = (one.knob or 0.0) + part * ((other.knob or 0.0) - (one.knob or 0.0))
        yield Point(
            f"{one.protocol} at {knob:.2f}",
            low.delivered + part * (high.delivered - low.delivered),
            low.price + part * (high.price - low.price),
        )


# --- Verdicts ---------------------------------------------------------------------------------------------------------


def _ratio(one: Point, other: Point) -> Estimate:
    """How many times as much the one costs: the geometric mean over seeds, with its 95 % interval."""
    if not np.isfinite(one.price).all():
        return Estimate(math.inf, math.nan, math.nan)
    if not np.isfinite(other.price).all():
        return Estimate(0.0, 0.0, math.nan)
    return Estimate(*(math.exp(min(end, 700.0)) for end in interval((one.price - other.price).tolist())))


def _misses_reference(mine: Point, reference: Point, best: Point, ratio: float) -> Iterator[str]:
    needed = min(reference.level + ABOVE_R, best.level - BELOW_BEST)
    if mine.level < needed:
        yield f"delivers {mine.level:.3f}, needs {needed:.3f}"
    if not ratio <= AS_DEAR_AS_R:
        yield f"costs {ratio:.2f} times R, at most {AS_DEAR_AS_R}"


def _misses(mine: Point, best: Point, ratio: float, late: float) -> Iterator[str]:
    if mine.level < best.level:
        yield f"delivers {mine.level:.3f}, {best.name} {best.level:.3f}"
    if not ratio <= AS_DEAR_AS_FLOODING:
        yield f"costs {ratio:.2f} times flooding, at most {AS_DEAR_AS_FLOODING:g}"
    if not late >= THRESHOLD:
        yield f"delivers {late:.3f} within 60 s, needs {THRESHOLD}"


def _beaten(mine: Point, rivals: Sequence[Point]) -> Iterator[str]:
    for rival in rivals:
        less = interval((rival.delivered - mine.delivered).tolist())
        if less.low > CLEARLY_BELOW:
            yield f"{rival.name} delivers {less.mean:.3f} more [{less.low:.3f}, {less.high:.3f}]"
        times = _ratio(mine, rival)
        if rival.level >= mine.level and (times.low > CLEARLY_DEARER or math.isinf(times.mean)):
            yield f"{rival.name} costs 1/{times.mean:.2f} [1/{times.high:.2f}, 1/{times.low:.2f}] and delivers as much"


# --- Reading ----------------------------------------------------------------------------------------------------------


def read(outs: Sequence[Path]) -> dict[str, list[Cell]]:
    """The cells of every experiment of some measured campaigns; those that were tuned join the core's."""
    found: dict[str, list[Cell]] = {}
    for out in outs:
        for one in read_campaign(out).experiments:
            found[one.name] = read_cells(out, one.name)
    if CORE in found and TUNED in found:
        also = {str(cell): cell for cell in found.pop(TUNED)}
        found[CORE] = [joined(cell, also[str(cell)]) if str(cell) in also else cell for cell in found[CORE]]
    return found


def joined(one: Cell, other: Cell) -> Cell:
    """A cell with the settings of both, on the seeds that both have."""
    seeds = tuple(seed for seed in one.seeds if seed in other.seeds)
    values = {}
    for cell in (other, one):
        rows = [cell.seeds.index(seed) for seed in seeds]
        for name, columns in cell.values.items():
            values[name] = {measure: column[rows] for measure, column in columns.items()}
    settings = (*one.settings, *(setting for setting in other.settings if setting.name not in one.values))
    return Cell(one.axes, seeds, settings, values)


# --- Telling ----------------------------------------------------------------------------------------------------------


def rows(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    return [
        {
            "experiment": one.experiment,
            "cell": str(one.cell),
            "setting": one.mine.name,
            "seeds": one.seeds,
            "reference": one.reference.name if one.reference else None,
            "reference_delivered": _rounded(one.reference.level) if one.reference else None,
            "reference_cost": _rounded(one.reference.cost) if one.reference else None,
            "best": one.best.name,
            "best_delivered": _rounded(one.best.level),
            "delivered": _rounded(one.mine.level),
            "delivered_60": _rounded(one.late),
            "cost": _rounded(one.mine.cost),
            "ratio": _rounded(one.ratio),
            "verdict": "met" if one.met else "missed",
            "misses": "; ".join(one.misses),
            "clearly_beaten": "; ".join(one.beaten),
        }
        for one in marks
    ]


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def as_csv(table: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def lines(table: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A Markdown table for each setting and experiment, and how often the bar was met."""
    for setting, experiment in dict.fromkeys((row["setting"], row["experiment"]) for row in table):
        mine = [row for row in table if (row["setting"], row["experiment"]) == (setting, experiment)]
        met = sum(row["verdict"] == "met" for row in mine)
        beaten = sum(bool(row["clearly_beaten"]) for row in mine)
        yield f"### {setting} in {experiment}: met in {met} of {len(mine)} cells, clearly beaten in {beaten}"
        yield ""
        yield "| cell | R | R delivers | R costs | best | delivers | in 60 s | costs | ratio | verdict |"
        yield "|" + "---|" * 10
        for row in mine:
            yield "| " + " | ".join(_fields(row)) + " |"
        yield ""


def _fields(row: dict[str, Any]) -> Iterator[str]:
    yield row["cell"]
    yield row["reference"] or "none"
    yield from (_text(row[name]) for name in ("reference_delivered", "reference_cost"))
    yield f"{row['best']} {_text(row['best_delivered'])}"
    yield from (_text(row[name]) for name in ("delivered", "delivered_60", "cost", "ratio"))
    beaten = f"; **clearly beaten**: {row['clearly_beaten']}" if row["clearly_beaten"] else ""
    yield ("met" if row["verdict"] == "met" else f"missed: {row['misses']}") + beaten


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


@click.command("bar")
@click.argument("outs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="OUT...")
@click.option("--candidate", default="roam", show_default=True, help="A protocol, or one of its settings.")
@click.option("--csv", "table_file", type=click.Path(path_type=Path), help="Write the table to this file too.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def bar(outs: tuple[Path, ...], candidate: str, table_file: Path | None, *, as_json: bool) -> None:
    """Print where a protocol clears the bar, where it misses and by what, and where it is clearly beaten.

    OUT are folders of measured parts of the map, such as out/map/core.
    """
    try:
        found = read(outs)
        table = rows(one for name, cells in found.items() for one in judged(name, cells, candidate))
    except RoamcastError as problem:
        raise click.ClickException(str(problem)) from None
    if not table:
        there = {setting.protocol for cells in found.values() for cell in cells for setting in cell.settings}
        raise click.ClickException(f"no run of {candidate!r} there; there are {', '.join(sorted(there))}")
    if table_file:
        table_file.write_text(as_csv(table), encoding="utf-8")
    click.echo(json.dumps(table, indent=2) if as_json else "\n".join(lines(table)))


if __name__ == "__main__":
    bar(prog_name="python -m studies.map.bar")
