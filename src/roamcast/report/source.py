"""Reads and checks a campaign's folder: the only file of the report that knows the tables' columns.

Everything comes from small files that the earlier stages wrote (`campaign.json`, `manifest.parquet`, the measures,
`claims.json`), so that a report needs no Spark, and can be made again anywhere.
"""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from roamcast.analysis.measures.measure import Measure, Measures, read_about
from roamcast.campaign.define.described import Campaign, FigurePlan, ReportedExperiment
from roamcast.campaign.folder.layout import (
    MANIFEST_FILE,
    PAIRED_FILE,
    RUN_MEASURES_FILE,
    RUNS_FILE,
    SUMMARY_FILE,
    read_campaign,
    read_table,
)
from roamcast.campaign.folder.results import measures_in, read_results, values_of
from roamcast.config.errors import suggestion
from roamcast.errors import RoamcastError
from roamcast.papers.verdict import Verdict, read_claims
from roamcast.statistics.curves import VALUES, Curves
from roamcast.statistics.intervals import LEVEL

_UNDESCRIBED: Final = Measure(name="")

_RELATIVE: Final = "relative_"


@dataclass(frozen=True)
class SummaryRow:
    """One measure of one variant at one point, over seeds; with a baseline, the differences from it."""

    experiment: str
    variant: str
    axes: dict[str, Any]
    measure: str
    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    baseline: str | None = None
    percent: bool = False
    """Whether a difference is in per cent of the baseline."""
    ratio: bool = False
    """Whether it is not a difference but a ratio to the baseline."""
    level: float = LEVEL
    """That of the interval."""
    run: str = ""
    """The run whose value is closest to the mean."""
    about: Measure = _UNDESCRIBED
    """What is known about the measure."""

    @property
    def place(self) -> tuple[str, str, str, str]:
        return self.experiment, self.variant, json.dumps(self.axes), self.measure


@dataclass(frozen=True)
class Failure:
    """A run that raised."""

    run: str
    protocol: str
    error: str
    wanted: tuple[str, ...]
    """The experiment, variant, point and seed of the run, once per experiment that shares it."""


@dataclass(frozen=True)
class ReportData:
    """Everything that a report shows."""

    campaign: Campaign
    rows: list[SummaryRow]
    relative: list[SummaryRow]
    """Differences between variants, in per cent."""
    runs: int
    failures: list[Failure]
    claims: list[Verdict]
    measured: Measures
    curves: Curves
    """Every value of every seed."""
    out: Path = Path()
    """The campaign's folder."""

    def experiments(self, name: str | None) -> list[ReportedExperiment]:
        """The experiment of that name, or all; a `RoamcastError` lists those that there are."""
        known = {one.name: one for one in self.campaign.experiments}
        if name is not None and name not in known:
            raise RoamcastError(f"there is no experiment {name!r}; {suggestion(name, known)}")
        return [known[name]] if name is not None else list(known.values())

    def drawn(self, plan: FigurePlan) -> list[SummaryRow]:
        """The rows that a figure is made of, among others."""
        return self.rows if plan.against is None else self.relative


def is_number(value: Any) -> bool:  # noqa: ANN401  # any value of JSON
    return isinstance(value, int | float) and not isinstance(value, bool)


def key(value: Any) -> str:  # noqa: ANN401
    """A key for a value of an axis: lists have no hash, and 1 and 1.0 must be the same."""
    return json.dumps(float(value) if is_number(value) else value)


def read_report_data(out: Path) -> ReportData:
    """Everything in the folder; a `RoamcastError` names what is missing and how to get it."""
    campaign = read_campaign(out)
    summary = _table(out, SUMMARY_FILE, campaign)
    manifest = _table(out, MANIFEST_FILE, campaign, ["run", "status", "error", "protocol"])
    paired = _table(out, PAIRED_FILE, campaign) if (out / PAIRED_FILE).exists() else None
    measured = read_about(out)
    return ReportData(
        campaign=campaign,
        rows=_with_runs(out, [_clipped(row) for row in _rows(summary, measured)]),
        relative=[] if paired is None else _relative_rows(paired, measured),
        runs=manifest.num_rows,
        failures=_failures(manifest, _wanted(out, campaign)),
        claims=read_claims(out),
        measured=measured,
        curves=Curves(values_of(read_results(out)) if (out / RUN_MEASURES_FILE).exists() else VALUES.empty_table()),
        out=out,
    )


def _table(out: Path, name: str, campaign: Campaign, columns: list[str] | None = None) -> pa.Table:
    file = out / name
    if not file.exists():
        raise RoamcastError(f"{out}: has no measures yet ({name} is missing): finish it with `{campaign.command}`")
    return read_table(file, columns=columns)


def _clipped(row: SummaryRow) -> SummaryRow:
    """An interval ends where the measure does: a share of 0.98 ± 0.05 reaches up to 1."""
    low, high = (None if end is None else row.about.clipped(end) for end in (row.low, row.high))
    return replace(row, low=low, high=high)


def _rows(table: pa.Table, measured: Measures) -> list[SummaryRow]:
    names = [name for name in SummaryRow.__dataclass_fields__ if name in table.column_names]
    records = table.sort_by("point").select(names).to_pylist()
    return [
        SummaryRow(
            **{**_defined(record), "axes": json.loads(record["axes"] or "{}")}, about=measured[record["measure"]]
        )
        for record in records
    ]


def _with_runs(out: Path, rows: list[SummaryRow]) -> list[SummaryRow]:
    """The rows, each with the run that shows best what its mean is about."""
    if not (out / RUN_MEASURES_FILE).exists():
        return rows
    means = {row.place: row.mean for row in rows}
    closest: dict[tuple[str, str, str, str], tuple[float, str]] = {}
    results = read_results(out)
    places = [
        (row["experiment"], row["variant"], json.dumps(json.loads(row["axes"] or "{}")), row["run"])
        for row in results.select(["experiment", "variant", "axes", "run"]).to_pylist()
    ]
    for measure in measures_in(results):
        for (*place, run), value in zip(places, results[measure].to_pylist(), strict=True):
            mean = means.get(at := (*place, measure))
            if mean is not None and value is not None:
                closest[at] = min(closest.get(at, (math.inf, "")), (abs(value - mean), run))
    return [replace(row, run=closest.get(row.place, (0.0, ""))[1]) for row in rows]


def _relative_rows(table: pa.Table, measured: Measures) -> list[SummaryRow]:
    """Rows with the statistics in per cent; none if the campaign was measured by a version without them."""
    found = [name for name in table.column_names if name.startswith(_RELATIVE)]
    plain = table.drop_columns([name.removeprefix(_RELATIVE) for name in found])
    renamed = plain.rename_columns([name.removeprefix(_RELATIVE) for name in plain.column_names])
    return [replace(row, percent=True) for row in _rows(renamed, measured)] if found else []


def _defined(record: dict[str, Any]) -> dict[str, Any]:
    """The record with NaN as None: a measure from outside may give NaN where ours give null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }


def _wanted(out: Path, campaign: Campaign) -> dict[str, list[str]]:
    """For each run, as text, which experiments, variants, points and seeds need it."""
    wanted: dict[str, list[str]] = {}
    if (out / RUNS_FILE).exists():
        for row in _table(out, RUNS_FILE, campaign, ["run", "experiment", "variant", "axes", "seed"]).to_pylist():
            point = [f"{label} {value}" for label, value in json.loads(row["axes"] or "{}").items()]
            words = ", ".join([row["experiment"], row["variant"], *point, f"seed {row['seed']}"])
            wanted.setdefault(row["run"], []).append(words)
    return wanted


def _failures(manifest: pa.Table, wanted: dict[str, list[str]]) -> list[Failure]:
    failed = [row for row in manifest.to_pylist() if row["status"] != "ok"]
    return [
        Failure(row["run"], row["protocol"] or "", row["error"] or "", tuple(wanted.get(row["run"], ())))
        for row in failed
    ]
