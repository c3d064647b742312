"""The part of the page about one experiment: what was simulated, its figures, its numbers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.config.fields import leaves
from roamcast.report import svg, tables
from roamcast.report.answer import WrittenAnswer
from roamcast.report.causes import TITLE, Causes, drawing, legend_marks
from roamcast.report.chart import Chart, Curve
from roamcast.report.markup import Markup, join, tag
from roamcast.report.scale import is_even
from roamcast.report.source import SummaryRow
from roamcast.report.titles import first_upper
from roamcast.report.winners import Winners


@dataclass(frozen=True)
class DrawnExperiment:
    """An experiment with its figures."""

    experiment: ReportedExperiment
    figures: list[tuple[Chart, Markup | None]]
    """Each chart and its figure; a chart without curves has none."""
    causes: Markup | None
    rows: list[SummaryRow]
    files: dict[str, str]
    """Link text -> address relative to the page."""
    answer: WrittenAnswer | None
    winners: Winners | None
    sketch: Markup | None
    warnings: list[str]
    """What to know before believing its figures."""

    @property
    def title(self) -> str:
        return first_upper(self.experiment.title or self.experiment.name)

    @property
    def anchor(self) -> str:
        return anchor_of(self.experiment)


def anchor_of(experiment: ReportedExperiment) -> str:
    return f"experiment-{experiment.name.replace(' ', '-')}"


def section(drawn: DrawnExperiment) -> Markup:
    experiment = drawn.experiment
    swept = [f"{axis.label} ({len(axis.values)} values)" for axis in experiment.axes]
    count = len(experiment.seeds)
    about = f"Experiment {experiment.name}: {' × '.join(swept) or 'one point'}, {count} seed{'s' * (count != 1)}."
    drawable = [(chart, figure) for chart, figure in drawn.figures if chart.curves]
    main = [figure for chart, figure in drawable if not chart.plan.minor]
    main += [drawn.causes] if drawn.causes else []
    minor = [figure for chart, figure in drawable if chart.plan.minor]
    return tag(
        "section",
        tag("h2", drawn.title),
        tag("p", about, class_="muted"),
        *(tag("p", tag("strong", "Warning: "), text) for text in drawn.warnings),
        drawn.sketch,
        None if drawn.winners is None else tables.table(drawn.winners.head, drawn.winners.rows, drawn.winners.caption),
        tag("div", *main, class_="figures") if main else None,
        None if drawable else tables.experiment_table(experiment, drawn.rows),
        _missing([chart for chart, _ in drawn.figures if not chart.curves]),
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


def figure(chart: Chart, anchor: str, answer: str, files: dict[str, str], paired: Sequence[Curve], out: Path) -> Markup:
    """A chart, what it says in words, and links to the files that show the same. `paired` are the differences from the
    baseline; `out` is the campaign's folder, for commands about its runs."""
    views = svg.views(chart)
    beside = None
    if paired:
        first = paired[0].rows[0]
        caption = f"{chart.y_title}: {'ratio to' if first.ratio else 'difference from'} {first.baseline}, seed by seed"
        beside = tables.curves_table(chart.plan.x, chart.x_values, paired, chart.x_title, caption)
    return tag(
        "figure",
        tag("h3", chart.title),
        tag("p", answer, class_="answer") if answer else None,
        _switch([name for name, _ in views]),
        tag("p", first_upper(chart.y_title), class_="y-title"),
        *(tag("div", view, data_view=name, hidden=index > 0) for index, (name, view) in enumerate(views)),
        tag(
            "ul",
            *(_legend_entry(index, curve.name, svg.swatch_marks(curve)) for index, curve in enumerate(chart.curves)),
            class_="legend",
        ),
        tag("p", "A run of this point, to replay: ", tag("code", data_out=out), class_="again", hidden=True),
        tag("figcaption", tag("p", chart.plan.caption) if chart.plan.caption else None, *_notes(chart)),
        _folded("Numbers", join(tables.chart_table(chart), beside)),
        tag("p", *links(files), tag("span", f"figure id: {chart.plan.id}", class_="muted"), class_="files"),
        id=anchor,
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


def causes_figure(found: Causes, anchor: str, files: dict[str, str]) -> Markup:
    entries = [_legend_entry(index, name, legend_marks(index)) for index, name in enumerate(found.causes)]
    axis = next((bar.axis for bar in found.bars if bar.axis), None)
    beside = f"; beside the bars: {axis}" if axis else ""
    runs = "in one run of each variant and point" if found.seeds == 1 else f"means over {found.seeds} seeds"
    numbers = tables.share_table(
        (*found.causes, "missed"),
        [(bar.name, (*bar.shares, sum(bar.shares))) for bar in found.bars],
        "Shares of all pairs of an event and a subscriber.",
    )
    return tag(
        "figure",
        tag("h3", TITLE),
        tag("p", f"Pairs of an event and a subscriber that it did not reach, by cause (roamcast why), {runs}{beside}."),
        drawing(found),
        tag("ul", *entries, class_="legend"),
        _folded("Numbers", numbers),
        tag("p", *links(files), tag("span", "figure id: causes", class_="muted"), class_="files"),
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
