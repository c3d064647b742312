"""One self-contained HTML page for a campaign, with its figures and numbers as files beside it.

`OUT/report` is made whole and then takes the place of an earlier one: a report never mixes two campaigns.
"""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from roamcast.errors import RoamcastError
from roamcast.files import swap_in
from roamcast.report import tables
from roamcast.report.chart import Chart, make_chart
from roamcast.report.chromium import render
from roamcast.report.page import DrawnExperiment, DrawnFigure, page
from roamcast.report.source import Experiment, FigurePlan, Results, read_results
from roamcast.report.svg import standalone

__all__ = ["draw", "write_report"]


def draw(out: Path, figure: str) -> str:
    """One figure of a campaign, by its id, as SVG: for a notebook or a paper."""
    results = read_results(out)
    plans = [(experiment, plan) for experiment in results.campaign.experiments for plan in experiment.figures]
    for experiment, plan in plans:
        if plan.id == figure:
            drawing, _, _ = standalone(make_chart(experiment, plan, results.drawn(plan), results.measured))
            return drawing
    raise RoamcastError(f"{out}: has no figure {figure!r}; there are {', '.join(plan.id for _, plan in plans)}")


def write_report(out: Path) -> Path:
    """Writes `OUT/report` from what the campaign left in `out`; gives the page's path."""
    results = read_results(out)
    target = out / "report"
    if target.exists() and not target.is_dir():
        raise RoamcastError(f"{target}: is a file, not a folder for a report: move it away")
    partial = out / f".report.{os.getpid()}.partial"
    try:
        _Writer(results, partial).write()
        swap_in(partial, target)
    except OSError as problem:
        raise RoamcastError(f"{target}: cannot be written: {problem.strerror or problem}") from problem
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target / "index.html"


@dataclass
class _Writer:
    """The files of one report; names are kept apart even where the ids they come from are not."""

    results: Results
    folder: Path
    drawings: dict[Path, tuple[Path, int, int]] = field(default_factory=dict)
    """PNG to make -> the SVG it is made from, its width and height."""
    names: set[str] = field(default_factory=set)

    def write(self) -> None:
        for name in ("figures", "data"):
            (self.folder / name).mkdir(parents=True)
        experiments = [self._experiment(experiment) for experiment in self.results.campaign.experiments]
        claims = self.results.claims
        claims_file = self._data("claims", tables.claims_csv(claims)) if claims else None
        no_png = render(self.drawings) if self.drawings else None
        if no_png:
            _without_png(experiments, self.drawings)
        text = page(self.results, experiments, claims_file, no_png)
        (self.folder / "index.html").write_text(text, encoding="utf-8")

    def _experiment(self, experiment: Experiment) -> DrawnExperiment:
        rows, paired = (
            [row for row in of if row.experiment == experiment.name and experiment.wants(row.measure)]
            for of in (self.results.rows, self.results.paired)
        )
        files = {"All measures as CSV": self._data(experiment.name, tables.rows_csv(experiment, rows))}
        if paired:
            text = tables.rows_csv(experiment, paired)
            files["Paired differences as CSV"] = self._data(f"{experiment.name}-paired", text)
        figures = [self._figure(experiment, plan) for plan in experiment.figures]
        return DrawnExperiment(experiment, figures, rows, files)

    def _figure(self, experiment: Experiment, plan: FigurePlan) -> DrawnFigure:
        chart = make_chart(experiment, plan, self.results.drawn(plan), self.results.measured)
        wanted = (experiment.name, plan.y, plan.against or experiment.baseline)
        paired = [row for row in self.results.paired if (row.experiment, row.measure, row.baseline) == wanted]
        name = f"{experiment.name}-{plan.id}"
        files = {}
        if chart.curves:
            rows = [row for curve in chart.curves for row in curve.rows]
            files = {"CSV": self._data(name, tables.rows_csv(experiment, rows)), **self._drawing(name, chart)}
        return DrawnFigure(chart, files, paired)

    def _drawing(self, name: str, chart: Chart) -> dict[str, str]:
        drawing, width, height = standalone(chart)
        svg = self.folder / "figures" / f"{self._free(name)}.svg"
        svg.write_text(drawing, encoding="utf-8")
        png = svg.with_suffix(".png")
        self.drawings[png] = (svg, width, height)
        return {kind.suffix[1:].upper(): f"figures/{kind.name}" for kind in (svg, png)}

    def _data(self, name: str, text: str) -> str:
        file = self.folder / "data" / f"{self._free(name, 'data')}.csv"
        file.write_text(text, encoding="utf-8")
        return f"data/{file.name}"

    def _free(self, name: str, kind: str = "figures") -> str:
        """A name for a file: ids may hold any character, and two ids may come down to the same."""
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "figure"
        candidate, serial = plain, 1
        while f"{kind}/{candidate}" in self.names:
            serial += 1
            candidate = f"{plain}-{serial}"
        self.names.add(f"{kind}/{candidate}")
        return candidate


def _without_png(experiments: list[DrawnExperiment], drawings: dict[Path, tuple[Path, int, int]]) -> None:
    """No links to pictures that are not there, and no pictures that no link leads to."""
    for figure in (figure for drawn in experiments for figure in drawn.figures):
        figure.files.pop("PNG", None)
    for png in drawings:
        png.unlink(missing_ok=True)
