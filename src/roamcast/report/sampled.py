"""Causes of misses from a sample: of each variant and point one run, simulated again with all that `why` wants.

The rule this file owns: the run is the one whose first measure is closest to the mean, and it counts only if its facts
are those of the campaign.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from roamcast.analysis.measures.causes import causes
from roamcast.campaign.folder.recorded import differing, open_run, run_in
from roamcast.errors import RoamcastError
from roamcast.facts.sinks import ParquetSink
from roamcast.report.source import ReportData, SummaryRow
from roamcast.sim.run import run


def with_causes(results: ReportData, progress: Callable[[str], None] = lambda _: None) -> ReportData:
    """The results with shares of causes."""
    typical: dict[tuple[str, str, str], SummaryRow] = {}
    for row in results.rows:
        if row.run and row.mean is not None:
            typical.setdefault((row.experiment, row.variant, str(row.axes)), row)
    found = []
    for number, row in enumerate(typical.values(), 1):
        progress(f"recording {number} of {len(typical)}: {row.variant}, {row.axes}, run {row.run}")
        found += list(_causes(results, row))
    return replace(results, rows=[*results.rows, *found])


def _causes(results: ReportData, row: SummaryRow) -> Iterator[SummaryRow]:
    original = open_run(results.out / row.run)
    record = msgspec.structs.replace(original.scenario.record, frames=True, movement=True, decisions=True)
    scenario = msgspec.structs.replace(original.scenario, record=record)
    with tempfile.TemporaryDirectory() as place:
        with contextlib.closing(ParquetSink(Path(place))) as sink:
            run(scenario, sink, folder=original.folder or Path())
        again = run_in(Path(place), scenario)
        if differing(original, again):
            raise RoamcastError(
                f"{results.out}: run {row.run} gives other facts now: roamcast or a library has changed since; run the "
                "campaign's command again"
            )
        values = causes(again.run)
    for name, value in values.items():
        about = results.measured[name]
        yield replace(row, measure=name, n=1, mean=value, sd=None, low=None, high=None, about=about)
