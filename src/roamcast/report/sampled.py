"""Causes of misses from a sample: of each variant and point one run, simulated again with all that `why` wants.

The rule this file owns: all variants have the same seed, the experiment's first, so that they missed in the same
network; and a run counts only if its facts are those of the campaign.
"""

import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from roamcast.analysis.measures.causes import causes
from roamcast.analysis.measures.measure import Values
from roamcast.campaign.folder.layout import RUNS_FILE
from roamcast.campaign.folder.recorded import differing, open_run, run_in
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import ParquetSink
from roamcast.report.source import ReportData, SummaryRow
from roamcast.sim.run import run


def with_causes(results: ReportData, progress: Callable[[str], None] = lambda _: None) -> ReportData:
    """The results with shares of causes."""
    first = {one.name: one.seeds[0] for one in results.campaign.experiments}
    planned = pq.read_table(results.out / RUNS_FILE, partitioning=None).to_pylist()
    failed = {failure.run for failure in results.failures}
    runs = [row for row in planned if row["seed"] == first.get(row["experiment"]) and row["run"] not in failed]
    found = []
    for number, row in enumerate(runs, 1):
        progress(f"recording {number} of {len(runs)}: {row['variant']}, {row['axes']}, run {row['run']}")
        for name, value in _causes(results.out / row["run"]).items():
            axes, about = json.loads(row["axes"] or "{}"), results.measured[name]
            place = row["experiment"], row["variant"], axes
            found.append(SummaryRow(*place, name, 1, value, None, None, None, run=row["run"], about=about))
    return replace(results, rows=[*results.rows, *found])


def _causes(place: Path) -> Values:
    original = open_run(place)
    record = msgspec.structs.replace(original.scenario.record, frames=True, movement=True, decisions=True)
    scenario = msgspec.structs.replace(original.scenario, record=record)
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.closing(ParquetSink(Path(folder))) as sink:
            run(scenario, sink, folder=original.folder or Path())
        again = run_in(Path(folder), scenario)
        if differing(original, again):
            raise RoamcastError(
                f"{place}: gives other facts now: roamcast or a library has changed: repeat the campaign's command"
            )
        return causes(again.run)
