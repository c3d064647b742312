"""Tables on a terminal that never cut a value: if the screen is too narrow they have fewer columns, and say which are
missing."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.cli.screen import plain_console, table
from roamcast.report.answer import WrittenAnswer
from roamcast.report.chart import variants_of
from roamcast.report.numbers import ABSENT, plus_minus, value_text
from roamcast.report.plans import asked, drawn_measures
from roamcast.report.source import ReportData, SummaryRow
from roamcast.report.winners import winners

_NAMED: Final = 8
"""How many of the missing columns are named."""
_MOST: Final = 12
"""The most columns of measures, however wide the screen is: nobody reads more."""

Body = Sequence[Sequence[str]]


def print_table(console: Console, title: str, head: Sequence[str], rows: Body, keys: int, where: str) -> None:
    """The first `keys` columns are always shown; `where` says where to find the missing ones."""
    count = min(len(head), keys + _MOST)
    endless = Console(width=10_000)  # a console measures no table as wider than itself

    def cut(count: int) -> Table:
        return table(head[:count], [row[:count] for row in rows], head[1:], title=title)

    while count > keys + 1 and endless.measure(cut(count)).maximum > console.width:
        count -= 1
    console.print(cut(count))
    if left := head[count:]:
        names = ", ".join(left[:_NAMED]) + (f" and {len(left) - _NAMED} more" if len(left) > _NAMED else "")
        console.print(f"Not shown, as the screen is too narrow: {names}; {where}.", soft_wrap=True)


def show_measures(results: ReportData, report: Path) -> None:
    """A table for each experiment: its points in the order of its variants, its measures as columns."""
    console = plain_console()
    for experiment in results.campaign.experiments:
        mine = [row for row in results.rows if row.experiment == experiment.name]
        labels = [axis.label for axis in experiment.axes]
        requested = [*(experiment.measures or [plan.y for plan in experiment.figures])]
        measures = list(dict.fromkeys([*requested, *drawn_measures(experiment, mine, results.measured)]))
        measures = [name for name in measures if any(row.measure == name and row.mean is not None for row in mine)]
        head = ["variant", *labels, *measures]
        rows = [_cells(point, labels, measures) for point in _points(experiment, mine)]
        print_table(console, experiment.title or experiment.name, head, rows, 1 + len(labels), f"all are in {report}")


def _points(experiment: ReportedExperiment, rows: Sequence[SummaryRow]) -> list[list[SummaryRow]]:
    """The rows of each variant at each point."""
    points: dict[tuple[str, str], list[SummaryRow]] = {}
    for row in rows:
        points.setdefault((row.variant, str(row.axes)), []).append(row)
    order = {name: index for index, name in enumerate(variants_of(experiment, list(rows)))}
    return sorted(points.values(), key=lambda point: order[point[0].variant])


def _cells(point: Sequence[SummaryRow], labels: Sequence[str], measures: Sequence[str]) -> list[str]:
    axes, by_measure = point[0].axes, {row.measure: row for row in point}
    places = (value_text(axes[label]) if label in axes else ABSENT for label in labels)
    found = (by_measure.get(name) for name in measures)
    return [
        point[0].variant,
        *places,
        *(ABSENT if row is None else plus_minus(row.mean, row.low, row.high) for row in found),
    ]


def show_winners(results: ReportData) -> None:
    """Who wins where, for each experiment."""
    for experiment in results.campaign.experiments:
        found = winners(asked(experiment, results), results.curves)
        if found is not None:
            plain_console().print(table(found.head, found.rows, (), title=found.caption))


def answer_lines(answers: Sequence[WrittenAnswer], width: int, most: int = 4) -> list[str]:
    """The campaign's answers in words, wrapped, only the first if there are many. The sentence of an answer is below
    its lines: on a terminal the end is what one sees."""
    lines = []
    if len(answers) > most:
        more = len(answers) - most
        lines.append(f"({more} more answer{'s are' if more > 1 else ' is'} in the report)")
    for one in reversed(answers[:most]):
        for text in one.lines:
            words, colon, command = text.partition(": roamcast ")
            lines += _wrapped(f"- {words}{':' * bool(colon)}", width, "  ")
            lines += [f"    roamcast {command}"] if colon else []  # on one line, so that it can be copied
        lines += _wrapped(one.sentence, width, "")
    return lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, max(40, min(width, 100)), break_long_words=False, subsequent_indent=indent)
