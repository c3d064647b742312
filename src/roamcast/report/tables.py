"""The numbers behind the figures: as tables in the page, and as CSV with every digit."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.papers.verdict import Verdict
from roamcast.report.chart import Chart, Curve, variants_of
from roamcast.report.markup import Markup, join, tag
from roamcast.report.numbers import ABSENT, estimate_parts, value_text
from roamcast.report.source import SummaryRow, key
from roamcast.report.titles import first_upper

_STATISTICS: Final = ("n", "mean", "sd", "low", "high")
_COLUMNS: Final = 6
"""Most columns side by side; more go into a second table below, so that none is wider than the page."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str) -> Markup:
    """A table of texts; on a phone a row becomes a block, with the heads as labels."""
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag(
            "tbody",
            *(
                tag("tr", *(tag("td", value, data_label=name) for name, value in zip(head, row, strict=True)))
                for row in rows
            ),
        ),
        class_="texts",
    )


# --- Variants by values ---------------------------------------------------------------------------------------------


NumberRow = tuple[str, Sequence[SummaryRow | None], bool]
"""A name, its values, and whether it is a level line, which has one value for all columns."""
TextRow = tuple[str, Sequence[Iterable[object]], bool]
"""The same with the contents of the cells."""


def chart_table(chart: Chart) -> Markup:
    """One line per curve, one column per value of x."""
    return curves_table(chart.plan.x, chart.x_values, chart.curves, chart.x_title, chart.y_title)


def curves_table(x: str, values: Sequence[Any], curves: Sequence[Curve], x_title: str, caption: str) -> Markup:
    lines = []
    for curve in curves:
        by_place = {key(row.axes.get(x)): row for row in curve.rows}
        cells = curve.rows if curve.level else tuple(by_place.get(key(value)) for value in values)
        lines.append((curve.name, cells, curve.level))
    return number_table([value_text(value) for value in values] or ["value"], lines, f"{caption}, by {x_title}")


def experiment_table(experiment: ReportedExperiment, rows: Sequence[SummaryRow]) -> Markup:
    """For an experiment without axes: one line per measure, one column per variant."""
    variants = variants_of(experiment, rows)
    by_measure: dict[str, dict[str, SummaryRow]] = {}
    for row in rows:
        if row.mean is not None:
            by_measure.setdefault(row.about.title, {})[row.variant] = row
    shown = [name for name in variants if any(name in cells for cells in by_measure.values())]
    lines = [(first_upper(title), list(map(cells.get, shown)), False) for title, cells in by_measure.items()]
    return number_table(shown, lines, experiment.title or experiment.name)


def number_table(columns: Sequence[str], lines: Sequence[NumberRow], caption: str) -> Markup:
    """A table of means, with their intervals below them."""
    rows = [row for _, cells, _ in lines for row in cells if row is not None]
    seeds = max((row.n for row in rows), default=0)
    together = "that hold together " if any(row.baseline for row in rows) else ""
    about = f"{first_upper(caption)}: means and 95 % intervals {together}over {seeds} seed{'s' * (seeds != 1)}."
    return _blocks(
        columns, about, [(name, [_shown(row, seeds) for row in cells], level) for name, cells, level in lines]
    )


def share_table(columns: Sequence[str], lines: Sequence[tuple[str, Sequence[float]]], caption: str) -> Markup:
    """A table of shares, to three decimals."""
    return _blocks(columns, caption, [(name, [[f"{share:.3f}"] for share in shares], False) for name, shares in lines])


def _blocks(columns: Sequence[str], caption: str, lines: Sequence[TextRow]) -> Markup:
    """Splits a table so that no more columns are side by side than fit; the rest follows below."""
    blocks = []
    for start in range(0, len(columns), _COLUMNS):
        head = columns[start : start + _COLUMNS]
        every = head[0] if len(columns) == 1 else "every value"
        body = []
        for name, cells, level in lines:
            if level:
                tds = [tag("td", *cells[0], colspan=len(head), class_="level", data_label=every)]
            else:
                here = zip(head, cells[start : start + _COLUMNS], strict=True)
                tds = [tag("td", *content, data_label=label) for label, content in here]
            body.append(tag("tr", tag("th", name, scope="row"), *tds))
        blocks.append(
            tag(
                "table",
                tag("caption", caption) if start == 0 else None,
                tag("thead", tag("tr", tag("td"), *(tag("th", name, scope="col") for name in head))),
                tag("tbody", *body),
                class_="numbers",
            )
        )
    return join(*blocks)


def _shown(row: SummaryRow | None, seeds: int) -> list[object]:
    """The mean; below it the interval, and the number of seeds if it differs from `seeds`."""
    if row is None or row.mean is None:
        return [ABSENT]
    mean, beside = estimate_parts(row.mean, row.low, row.high)
    return [mean, *(tag("small", f" {text}") for text in (beside, f"n = {row.n}" if row.n != seeds else "") if text)]


# --- CSV ------------------------------------------------------------------------------------------------------------


def rows_csv(experiment: ReportedExperiment, rows: Iterable[SummaryRow]) -> str:
    """One line per row, one column per axis; empty where there is no value."""
    labels = [axis.label for axis in experiment.axes]
    rows = list(rows)
    baseline, compared = (("baseline",), ("level", "compared")) if any(row.baseline for row in rows) else ((), ())
    compared = compared if not any(row.percent for row in rows) else ()
    head = ("experiment", "variant", *baseline, *labels, "measure", *_STATISTICS, *compared)
    return as_csv(
        head,
        (
            (
                row.experiment,
                row.variant,
                *(row.baseline for _ in baseline),
                *(_plain(row.axes.get(label)) for label in labels),
                f"{row.measure} (%)" if row.percent else row.measure,
                *(getattr(row, name) for name in _STATISTICS),
                *((row.level, "ratio" if row.ratio else "difference") if compared else ()),
            )
            for row in rows
        ),
    )


def claims_csv(claims: Iterable[Verdict]) -> str:
    names = (
        *("id", "paper", "figure", "text", "verdict", "held", "of", "main"),
        *("measured", "reading", "explanation", "tested"),
    )
    return as_csv(names, ([claim[name] for name in names] for claim in map(msgspec.to_builtins, claims)))


def _plain(value: Any) -> object:  # noqa: ANN401  # any value of JSON
    return value_text(value) if isinstance(value, list | bool) else value


def as_csv(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(lines)
    return text.getvalue()
