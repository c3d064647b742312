"""The part of the page about one experiment: what was simulated, its figures, its numbers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.config.fields import leaves
from roamcast.report import svg, tables
from roamcast.report.answer import Answer
from roamcast.report.causes import TITLE, Causes, drawing, legend_marks
from roamcast.report.chart import Chart, Curve
from roamcast.report.markup import Markup, join, tag
from roamcast.report.scale import is_even
from roamcast.report.source import SummaryRow
from roamcast.report.titles import first_upper
from roamcast.report.winners import Winners


@dataclass(frozen=True)
class DrawnFigure:
    """A chart, what it says in words, and the files beside the page that show the same."""

    chart: Chart
    anchor: str
    answer: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """Link text -> address relative to the page."""
    paired: tuple[Curve, ...] = ()
    """The differences from the baseline."""
    out: str = ""
    """The campaign's folder, for commands about its runs."""


@dataclass(frozen=True)
class DrawnCauses:
    """The figure of causes, and its files."""

    causes: Causes
    files: dict[str, str]


@dataclass(frozen=True)
class DrawnExperiment:
    """An experiment with its figures."""

    experiment: ReportedExperiment
    figures: list[DrawnFigure]
    rows: list[SummaryRow]
    files: dict[str, str]
    answer: Answer | None = None
    winners: Winners | None = None
    causes: DrawnCauses | None = None
    sketch: Markup | None = None
    warnings: list[str] = field(default_factory=list)
    """What to know before believing its figures."""

    @property
    def title(self) -> str:
        return first_upper(self.experiment.title or self.experiment.name)

    @property
    def anchor(self) -> str:
        return f"experiment-{self.experiment.name.replace(' ', '-')}"


def section(drawn: DrawnExperiment) -> Markup:
    experiment = drawn.experiment
    swept = [f"{axis.label} ({len(axis.values)} values)" for axis in experiment.axes]
    count = len(experiment.seeds)
    about = f"Experiment {experiment.name}: {' × '.join(swept) or 'one point'}, {count} seed{'s' * (count != 1)}."
    drawable = [one for one in drawn.figures if one.chart.curves]
    main = [_figure(one) for one in drawable if not one.chart.plan.minor]
    main += [_causes_figure(drawn.causes, f"{drawn.anchor}-causes")] if drawn.causes else []
    minor = [_figure(one) for one in drawable if one.chart.plan.minor]
    return tag(
        "section",
        tag("h2", drawn.title),
        tag("p", about, class_="muted"),
        *(tag("p", tag("strong", "Warning: "), text) for text in drawn.warnings),
        drawn.sketch,
        None if drawn.winners is None else tables.table(drawn.winners.head, drawn.winners.rows, drawn.winners.caption),
        tag("div", *main, class_="figures") if main else None,
        None if drawable else tables.experiment_table(experiment, drawn.rows),
        _missing([one.chart for one in drawn.figures if not one.chart.curves]),
        _folded(f"{len(minor)} more measures", tag("div", *minor, class_="figures")) if minor else None,
        tag("p", *links(drawn.files), class_="files"),
        _scenario(experiment),
        id=drawn.anchor,
    )


def links(files: dict[str, str]) -> Iterator[Markup]:
    for name, place in files.items():
        yield tag("a", name, href=place)


def _missing(charts: list[Chart]) -> Markup | None:
    """Figures without values, in one sentence."""
    if not charts:
        return None
    names = ", ".join(f"{chart.plan.id} ({chart.plan.y} over {chart.plan.x})" for chart in charts)
    return tag("p", f"Not drawn, because no run was measured for them: {names}.", class_="muted")


def _folded(title: str, content: object) -> Markup:
    return tag("details", tag("summary", title), content)


# --- A figure -------------------------------------------------------------------------------------------------------


def _figure(drawn: DrawnFigure) -> Markup:
    chart = drawn.chart
    views = svg.views(chart)
    paired = None
    if drawn.paired:
        first = drawn.paired[0].rows[0]
        caption = f"{chart.y_title}: {'ratio to' if first.ratio else 'difference from'} {first.baseline}, seed by seed"
        paired = tables.curves_table(chart.plan.x, chart.x_values, drawn.paired, chart.x_title, caption)
    return tag(
        "figure",
        tag("h3", chart.title),
        tag("p", drawn.answer, class_="answer") if drawn.answer else None,
        _switch([name for name, _ in views]),
        tag("p", first_upper(chart.y_title), class_="y-title"),
        *(tag("div", view, data_view=name, hidden=index > 0) for index, (name, view) in enumerate(views)),
        tag(
            "ul",
            *(_legend_entry(index, curve.name, svg.swatch_marks(curve)) for index, curve in enumerate(chart.curves)),
            class_="legend",
        ),
        tag("p", "A run of this point, to replay: ", tag("code", data_out=drawn.out), class_="again", hidden=True),
        tag("figcaption", tag("p", chart.plan.caption) if chart.plan.caption else None, *_notes(chart)),
        _folded("Numbers", join(tables.chart_table(chart), paired)),
        tag("p", *links(drawn.files), tag("span", f"figure id: {chart.plan.id}", class_="muted"), class_="files"),
        id=drawn.anchor,
    )


def _switch(names: list[str]) -> Markup | None:
    """The switch that selects which y axis is shown."""
    if len(names) < 2:
        return None
    buttons = [tag("button", name, aria_pressed=str(name == names[0]).lower(), data_shows=name) for name in names]
    return tag("div", *buttons, class_="switch screen", role="group", aria_label="Scale of the y axis")


def _notes(chart: Chart) -> Iterator[Markup]:
    if chart.plan.log and not chart.logarithmic:
        yield tag("p", "Drawn without the logarithmic scale: a value on the axis has no logarithm.", class_="muted")
    if is_even(chart, svg.RIGHT - svg.LEFT):
        yield tag("p", f"The values of {chart.plan.x} are placed evenly: by size they would overlap.", class_="muted")


def _legend_entry(index: int, name: str, marks: Markup) -> Markup:
    swatch = tag("svg", marks, viewBox="0 -6 28 12", aria_hidden="true")
    return tag("li", tag("button", swatch, tag("span", name), aria_pressed="true", data_toggles=index))


def _causes_figure(drawn: DrawnCauses, anchor: str) -> Markup:
    found = drawn.causes
    entries = [_legend_entry(index, name, legend_marks(index)) for index, name in enumerate(found.causes)]
    axis = next((bar.axis for bar in found.bars if bar.axis), None)
    beside = f"; beside the bars: {axis}" if axis else ""
    numbers = tables.share_table(
        (*found.causes, "missed"),
        [(bar.name, (*bar.shares, sum(bar.shares))) for bar in found.bars],
        "Shares of all pairs of an event and a subscriber.",
    )
    return tag(
        "figure",
        tag("h3", TITLE),
        tag("p", f"Pairs of an event and a subscriber that it did not reach, by cause (roamcast why){beside}."),
        drawing(found),
        tag("ul", *entries, class_="legend"),
        _folded("Numbers", numbers),
        tag("p", *links(drawn.files), tag("span", "figure id: causes", class_="muted"), class_="files"),
        id=anchor,
    )


# --- The scenario ---------------------------------------------------------------------------------------------------


def _scenario(experiment: ReportedExperiment) -> Markup:
    """The fields that all runs share, and what each variant and axis sets."""
    axes = {
        axis.field or axis.label: ", ".join(json.dumps(value, ensure_ascii=False) for value in axis.values)
        for axis in experiment.axes
    }
    parts = [("", scenario_text(experiment.scenario))]
    parts += [(f"# variant: {variant.name}", scenario_text(variant.set)) for variant in experiment.variants]
    parts += [("# swept", "\n".join(f"{field} = {values}" for field, values in axes.items()))]
    text = "\n\n".join("\n".join(filter(None, part)) for part in parts if part[1])
    return _folded("The scenario, field by field", tag("pre", tag("code", text), tabindex=0))


def scenario_text(scenario: dict[str, Any]) -> str:
    """One line per field, as in TOML and `--set`; leaves out fields without a value."""
    fields = [(name, value) for name, value in leaves(scenario) if name and value is not None and value != {}]
    return "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields)
