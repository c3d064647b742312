"""Warnings about runs that leave their last events too little time to arrive (`sim/scenario/ending.py`)."""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq

from roamcast.analysis.measures.measure import counts_to_the_end
from roamcast.campaign.define.described import ReportedExperiment
from roamcast.campaign.folder.layout import RUNS_FILE
from roamcast.report.numbers import value_text
from roamcast.report.source import SummaryRow
from roamcast.sim.scenario.ending import hurried, warning, warning_before
from roamcast.sim.scenario.scenario import Scenario

DELAY: Final = "delay_p95"


def cut_short(out: Path, experiment: ReportedExperiment, rows: Iterable[SummaryRow]) -> list[str]:
    """A sentence for each variant that needs one, about the point at which it is worst: by the delays measured, or, if
    they were not, by what is known of its protocol. None if its measures have deadlines."""
    if not counts_to_the_end(experiment.measures):
        return []
    delays = {row.place: row.mean for row in rows}
    worst: dict[str, tuple[float, str]] = {}
    for (variant, axes), scenario in _scenarios(out, experiment.name).items():
        delay = delays.get((experiment.name, variant, json.dumps(json.loads(axes)), DELAY))
        text = warning_before(scenario) if delay is None else warning(scenario, delay)
        share = hurried(scenario, delay)
        if text and (variant not in worst or share > worst[variant][0]):
            point = [f"{label} {value_text(value)}" for label, value in json.loads(axes).items()]
            worst[variant] = share, f"{', '.join([variant, *point])}: {text}."
    return [text for _, text in worst.values()]


def _scenarios(out: Path, experiment: str) -> dict[tuple[str, str], Scenario]:
    """By variant and axes: the scenario with one of the seeds."""
    file = out / RUNS_FILE
    columns = ["experiment", "variant", "axes", "scenario"]
    if not file.is_file() or not set(columns) <= set(pq.read_schema(file).names):
        return {}
    found: dict[tuple[str, str], str] = {}
    for row in pq.read_table(file, columns=columns, partitioning=None).to_pylist():
        if row["experiment"] == experiment:
            found.setdefault((row["variant"], row["axes"] or "{}"), row["scenario"])
    scenarios = {}
    for place, text in found.items():
        with contextlib.suppress(msgspec.ValidationError):  # a folder of an earlier version is shown without warnings
            scenarios[place] = msgspec.json.decode(text, type=Scenario)
    return scenarios
