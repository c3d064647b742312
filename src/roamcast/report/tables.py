"""The numbers behind the figures: as tables in the page, and as CSV with every digit."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

from roamcast.report.chart import Chart
from roamcast.report.markup import Markup, tag
from roamcast.report.numbers import ABSENT, number, value_text
from roamcast.report.source import Claim, Experiment, Row

_STATISTICS: Final = ("n", "mean", "sd", "low", "high")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numeric: int, caption: str | None = None) -> Markup:
    """A table that scrolls inside its own box; the last `numeric` columns are numbers."""
    first = len(head) - numeric

    def cells(kind: str, values: Sequence[object]) -> list[Markup]:
        return [tag(kind, value, class_="number" if at >= first else None) for at, value in enumerate(values)]

    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption) if caption else None,
            tag("thead", tag("tr", *cells("th", head))),
            tag("tbody", *(tag("tr", *cells("td", row)) for row in rows)),
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption or "table",
    )


def chart_table(chart: Chart) -> Markup:
    head = ("curve", chart.x_title, "mean", "95 % interval", "standard deviation", "seeds")
    body = [
        (curve.name, "every" if curve.level else value_text(chart.x_of(row)), *_shown(row))
        for curve in chart.curves
        for row in curve.rows
    ]
    return table(head, body, numeric=5, caption=chart.y_title)


def paired_table(rows: Sequence[Row]) -> Markup:
    """Differences from the baseline; all rows have the same one and the same measure."""
    head = ("variant", "at", "mean difference", "95 % interval", "standard deviation", "seeds")
    body = [(row.variant, _point(row), *_shown(row)) for row in rows]
    caption = f"{rows[0].about.title}: difference from {rows[0].baseline}, seed by seed"
    return table(head, body, numeric=4, caption=caption)


def experiment_table(experiment: Experiment, rows: Sequence[Row]) -> Markup:
    head = ("measure", "variant", "at", "mean", "95 % interval", "standard deviation", "seeds")
    body = [(row.about.title, row.variant, _point(row), *_shown(row)) for row in rows]
    return table(head, body, numeric=4, caption=experiment.title or experiment.name)


def _point(row: Row) -> str:
    return ", ".join(f"{label} {value_text(value)}" for label, value in row.axes.items()) or "every point"


def _shown(row: Row) -> tuple[str, str, str, str]:
    interval = ABSENT if row.low is None else f"{number(row.low)} to {number(row.high)}"
    return number(row.mean), interval, number(row.sd), str(row.n)


# --- CSV ------------------------------------------------------------------------------------------------------------


def rows_csv(experiment: Experiment, rows: Iterable[Row]) -> str:
    """One line a row, one column an axis; empty where there is no value."""
    labels = [axis.label for axis in experiment.axes]
    rows = list(rows)
    baseline = ("baseline",) if any(row.baseline for row in rows) else ()
    head = ("experiment", "variant", *baseline, *labels, "measure", *_STATISTICS)
    return _csv(
        head,
        (
            (
                row.experiment,
                row.variant,
                *(row.baseline for _ in baseline),
                *(_plain(row.axes.get(label)) for label in labels),
                f"{row.measure} (%)" if row.percent else row.measure,
                *(getattr(row, name) for name in _STATISTICS),
            )
            for row in rows
        ),
    )


def claims_csv(claims: Iterable[Claim]) -> str:
    names = (
        *("id", "paper", "figure", "text", "verdict", "held", "of", "main"),
        *("measured", "reading", "explanation", "tested"),
    )
    return _csv(names, ([getattr(claim, name) for name in names] for claim in claims))


def _plain(value: Any) -> object:  # noqa: ANN401  # any value of JSON
    return value_text(value) if isinstance(value, list | bool) else value


def _csv(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(lines)
    return text.getvalue()
