"""Tables for papers: a row for each point and variant, a column for each measure, as LaTeX, Markdown or CSV.

The rule this file owns: bold is the leader of a point, who is surely better than each of the others (`compare.py`), and
a star marks those that are not separated from the best mean. Numbers are a mean ± half of its own 95 % interval, to the
second digit of that half.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.config.errors import suggestion
from roamcast.errors import RoamcastError
from roamcast.report.chart import variants_of
from roamcast.report.compare import MeasureComparison
from roamcast.report.numbers import ABSENT, value_text
from roamcast.report.plans import asked, compared, swept_axes
from roamcast.report.source import ReportData, SummaryRow, key
from roamcast.report.tables import as_csv
from roamcast.report.tex import tex_text
from roamcast.report.titles import first_upper

BEST: Final = "best"
NOT_SEPARATED: Final = "not separated"
_NOTE: Final = "Means ± 95 % intervals over {seeds} seeds. Bold: the best, 95 % sure; *: not separated from the best."


class Cell(NamedTuple):
    row: SummaryRow | None
    standing: str = ""
    """`best`, `not separated`, or nothing."""

    def texts(self) -> tuple[str, str]:
        """The mean and half of the interval, with a plain minus."""
        row = self.row
        if row is None or row.mean is None:
            return "", ""
        if row.low is None or row.high is None:
            return f"{row.mean:.4g}", ""
        half = max(row.mean - row.low, row.high - row.mean)
        if half < 1e-12:
            return f"{row.mean:.4g}", "0"
        decimals = max(0, 1 - math.floor(math.log10(half)))
        return f"{row.mean:.{decimals}f}", f"{half:.{decimals}f}"


class PaperRow(NamedTuple):
    place: tuple[str, ...]
    variant: str
    cells: tuple[Cell, ...]


def paper_table(results: ReportData, kind: str, measures: Sequence[str] = (), experiment: str | None = None) -> str:
    """The table of an experiment; without measures, those of its answer."""
    found = results.experiments(experiment)
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise RoamcastError(f"the campaign has {len(found)} experiments; name one with --experiment: {names}")
    one = found[0]
    rows = [row for row in results.rows if row.experiment == one.name]
    known = list(dict.fromkeys(row.measure for row in rows if row.mean is not None))
    for name in measures:
        if name not in known:
            raise RoamcastError(f"there are no values of {name!r}; {suggestion(name, known)}")
    wanted = list(measures) or [goal.about.name for goal in asked(one, results).goals]
    comparisons = [compared(one, name, results) for name in wanted]
    axes = [axis.label for axis in swept_axes(one, rows)]
    lines = list(_lines(one, rows, axes, wanted, comparisons))
    titles = [results.measured[name].title for name in wanted]
    if kind == "csv":
        return _csv(axes, wanted, lines)
    note = _NOTE.format(seeds=max((row.n for row in rows), default=0))
    head = [first_upper(name) for name in (*axes, "variant", *titles)]
    return _latex(head, len(axes) + 1, lines, note) if kind == "latex" else _markdown(head, lines, note)


def _lines(
    experiment: ReportedExperiment,
    rows: Sequence[SummaryRow],
    axes: Sequence[str],
    measures: Sequence[str],
    found: Sequence[MeasureComparison],
) -> Iterator[PaperRow]:
    """Point by point, so that those to be compared are below each other; a fixed variant, which has no point, last."""
    by_cell = {(key([row.axes.get(axis) for axis in axes]), row.variant, row.measure): row for row in rows}
    places = {key(place := [row.axes.get(axis) for axis in axes]): place for row in rows}
    variants = variants_of(experiment, rows)
    for at in sorted(places, key=lambda at: all(value is None for value in places[at]) and bool(axes)):
        for variant in variants:
            cells = [by_cell.get((at, variant, measure)) for measure in measures]
            if any(cell is not None for cell in cells):
                texts = tuple(ABSENT if value is None else value_text(value) for value in places[at])
                standings = [_standing(one, tuple(places[at]), variant) for one in found]
                yield PaperRow(texts, variant, tuple(map(Cell, cells, standings)))


def _standing(found: MeasureComparison, place: tuple[object, ...], variant: str) -> str:
    standing = found.at(place)
    if standing is None or variant not in standing.candidates:
        return ""
    return BEST if standing.leader == variant else NOT_SEPARATED


# --- Formats --------------------------------------------------------------------------------------------------------


def _csv(axes: Sequence[str], measures: Sequence[str], lines: Sequence[PaperRow]) -> str:
    rows = []
    for line in lines:
        for measure, (row, standing) in zip(measures, line.cells, strict=True):
            values = (row.n, row.mean, row.low, row.high) if row is not None else (0, None, None, None)
            rows.append([*line.place, line.variant, measure, *values, standing])
    return as_csv([*axes, "variant", "measure", "n", "mean", "low", "high", "standing"], rows)


def _markdown(head: Sequence[str], lines: Sequence[PaperRow], note: str) -> str:
    def shown(cell: Cell) -> str:
        mean, half = cell.texts()
        text = (f"{mean} ± {half}" if half else mean).replace("-", "−")
        return {BEST: f"**{text}**", NOT_SEPARATED: f"{text}\\*"}.get(cell.standing, text) if mean else ABSENT

    body = [[*line.place, line.variant, *map(shown, line.cells)] for line in lines]
    rule = ["---"] * len(head)
    rows = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (head, rule, *body)]
    starred = note.replace("*", r"\*")
    return "".join(f"| {row} |\n" for row in rows) + f"\n{starred}\n"


def _latex_head(head: Sequence[str]) -> Iterator[str]:
    """Names, and units on a line of their own: a column should be as wide as its numbers."""
    names = [tex_text(one.partition(" (")[0]) for one in head]
    units = [tex_text("".join(one.partition(" (")[1:]).strip()) for one in head]
    yield from (" & ".join(line) + r" \\" for line in (names, units) if any(line))


def _latex(head: Sequence[str], names: int, lines: Sequence[PaperRow], note: str) -> str:
    def shown(cell: Cell) -> str:
        mean, half = cell.texts()
        text = f"\\num{{{mean} +- {half}}}" if half else f"\\num{{{mean}}}"
        return (
            {BEST: f"\\textbf{{{text}}}", NOT_SEPARATED: f"{text}\\rlap{{*}}"}.get(cell.standing, text)
            if mean
            else "--"
        )

    body = []
    for number, line in enumerate(lines):
        new = number > 0 and line.place != lines[number - 1].place
        first = number == 0 or new
        places = [tex_text(text) if first else "" for text in line.place]
        body.append(
            ("\\addlinespace\n" if new else "") + " & ".join([*places, tex_text(line.variant), *map(shown, line.cells)])
        )
    columns = "l" * names + "r" * (len(head) - names)
    return "\n".join(
        [
            "% \\usepackage{booktabs,siunitx}",
            "% \\sisetup{separate-uncertainty=true, reset-text-series=false, text-series-to-math=true}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            *_latex_head(head),
            "\\midrule",
            *(f"{row} \\\\" for row in body),
            "\\bottomrule",
            f"\\multicolumn{{{len(head)}}}{{l}}{{\\footnotesize {tex_text(note)}}}",
            "\\end{tabular}",
            "",
        ]
    )
