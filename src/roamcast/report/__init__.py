"""One self-contained HTML page for a campaign, with its figures and numbers as files beside it.

`OUT/report` is made completely, and then replaces an earlier one: a report never mixes two campaigns.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.errors import RoamcastError
from roamcast.files import new_folder
from roamcast.report import tables
from roamcast.report.answer import WrittenAnswer, answer, lead
from roamcast.report.causes import Causes, causes_of
from roamcast.report.chart import Chart, all_charts, curves_of, x_values
from roamcast.report.compare import contrast_rows
from roamcast.report.ending import cut_short
from roamcast.report.find import find_figure
from roamcast.report.markup import Markup
from roamcast.report.page import page
from roamcast.report.plans import asked, compared
from roamcast.report.section import DrawnExperiment, anchor_of, causes_figure, figure
from roamcast.report.sketch import sketch_of
from roamcast.report.source import ReportData, read_report_data
from roamcast.report.winners import winners
from roamcast.storage import Store

__all__ = ["answers", "answers_of", "draw", "write_report"]


def answers(out: Path) -> list[WrittenAnswer]:
    """A campaign's results in words: the answer of each experiment."""
    return answers_of(read_report_data(out))


def answers_of(results: ReportData) -> list[WrittenAnswer]:
    found = (answer(asked(experiment, results), results.curves) for experiment in results.campaign.experiments)
    return [one for one in found if one is not None]


def draw(out: Path, name: str) -> str:
    """One figure of a campaign as SVG, for a notebook: by its id, the measure that it shows, or `causes`."""
    from roamcast.report.paper import render  # importing matplotlib takes a second, and not every command draws

    return render(find_figure(read_report_data(out), name), "svg").decode()


def write_report(out: Path, store: Store | None = None, results: ReportData | None = None) -> Path:
    """Writes `OUT/report` from the campaign in `out`; returns the page's path. `store` has the facts, if they are not
    in the folder; `results` may have more than the folder, as causes from a sample."""
    results = results or read_report_data(out)
    target = out / "report"
    if target.exists() and not target.is_dir():
        raise RoamcastError(f"{target}: is a file, not a folder for a report: move it away")
    with new_folder(target) as folder:
        _Writer(out, results, folder, store).write()
    return target / "index.html"


@dataclass
class _Writer:
    """Writes the files of one report. Their names are distinct, even if the ids that they come from are not."""

    out: Path
    results: ReportData
    folder: Path
    store: Store | None
    names: set[str] = field(default_factory=set)

    def write(self) -> None:
        for name in ("figures", "data"):
            (self.folder / name).mkdir(parents=True)
        experiments = [self._experiment(experiment, charts) for experiment, charts in all_charts(self.results)]
        claims = self.results.claims
        claims_file = self._data("claims", tables.claims_csv(claims)) if claims else None
        text = page(self.results, experiments, claims_file)
        (self.folder / "index.html").write_text(text, encoding="utf-8")

    def _experiment(self, experiment: ReportedExperiment, charts: list[Chart]) -> DrawnExperiment:
        rows = [row for row in self.results.rows if row.experiment == experiment.name and experiment.wants(row.measure)]
        measures = dict.fromkeys(row.measure for row in rows)
        paired = [row for name in measures for row in contrast_rows(compared(experiment, name, self.results))]
        files = {"All measures as CSV": self._data(experiment.name, tables.rows_csv(experiment, rows))}
        if paired:
            text = tables.rows_csv(experiment, paired)
            files["Comparisons as CSV"] = self._data(f"{experiment.name}-paired", text)
        goals = asked(experiment, self.results)
        return DrawnExperiment(
            experiment,
            [(chart, self._figure(experiment, chart) if chart.curves else None) for chart in charts],
            self._causes(experiment),
            rows,
            files,
            answer(goals, self.results.curves),
            winners(goals, self.results.curves),
            sketch_of(self.out, experiment, self.store),
            cut_short(self.out, experiment, self.results.rows),
        )

    def _causes(self, experiment: ReportedExperiment) -> Markup | None:
        found = causes_of(experiment, self.results.rows)
        if found is None:
            return None
        files = self._drawn(f"{experiment.name}-causes", found)
        return causes_figure(found, f"{anchor_of(experiment)}-causes", files)

    def _figure(self, experiment: ReportedExperiment, chart: Chart) -> Markup:
        plan, name = chart.plan, f"{experiment.name}-{chart.plan.id}"
        found = compared(experiment, plan.y, self.results)
        baseline = plan.against or experiment.baseline
        paired = [row for row in contrast_rows(found) if row.baseline == baseline]
        files = {}
        if not plan.minor:
            files = {"CSV": self._data(name, tables.rows_csv(experiment, chart.rows)), **self._drawn(name, chart)}
        return figure(
            chart,
            f"figure-{self._free(name, 'anchors')}",
            lead(found) if found.standings and found.seeds > 1 else "",
            files,
            list(curves_of(experiment, plan.x, x_values(experiment, plan.x, paired), paired)),
            self.out,
        )

    def _drawn(self, name: str, drawn: Chart | Causes) -> dict[str, str]:
        from roamcast.report.paper import render

        free = self._free(name)
        for kind in ("svg", "png"):
            (self.folder / "figures" / f"{free}.{kind}").write_bytes(render(drawn, kind))
        return {kind.upper(): f"figures/{free}.{kind}" for kind in ("svg", "png")}

    def _data(self, name: str, text: str) -> str:
        file = self.folder / "data" / f"{self._free(name, 'data')}.csv"
        file.write_text(text, encoding="utf-8")
        return f"data/{file.name}"

    def _free(self, name: str, kind: str = "figures") -> str:
        """An unused name for a file: ids may have any characters, and two ids may lead to the same name."""
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "figure"
        candidate, serial = plain, 1
        while f"{kind}/{candidate}" in self.names:
            serial += 1
            candidate = f"{plain}-{serial}"
        self.names.add(f"{kind}/{candidate}")
        return candidate
