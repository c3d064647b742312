"""Runs and campaigns for tests: facts in memory as measures see them, or written where the pipeline looks for them."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from facts.rows import KNOWN, complete
from roamcast.analysis import run as analysis
from roamcast.campaign.folder.layout import done_file
from roamcast.campaign.folder.packs import pack, read_packs, write_index
from roamcast.campaign.folder.run_file import RunFile
from roamcast.campaign.folder.schemas import MANIFEST_ARROW, RUNS_ARROW
from roamcast.facts.recorder import Recorder
from roamcast.facts.sinks import MemorySink
from roamcast.sim.scenario.scenario import Scenario

S = 1_000_000_000
MS = 1_000_000


@dataclass(frozen=True)
class Run:
    """One run with its facts, and its place in an experiment."""

    name: str
    facts: Mapping[str, pa.Table]
    simulated: float = 10.0
    warmup: float = 0.0
    nodes: int = 3
    scenario: str = "{}"
    """What the other fields do not say, JSON."""
    variant: str = "flooding"
    point: int = 0
    seed: int = 1
    experiment: str = "e"
    status: str = "ok"
    protocol: str = "flooding"

    @property
    def complete_scenario(self) -> str:
        """As a campaign's table of runs has it, JSON."""
        known = {"nodes": self.nodes, "duration": self.simulated, "warmup": self.warmup, "seed": self.seed}
        return json.dumps({**known, "protocol": {"name": self.protocol}, **json.loads(self.scenario)})

    def in_memory(self, worlds: analysis.Worlds | None = None, *, coded: bool = False) -> analysis.Run:
        """As measures see it; `coded`: with dictionaries where a campaign's files are read so."""

        def read(table: str, columns: Sequence[str] | None, dictionaries: Sequence[str]) -> pa.Table:
            rows = self.facts[table] if columns is None else self.facts[table].select(list(columns))
            for place, name in enumerate(rows.column_names):
                if coded and name in dictionaries:
                    rows = rows.set_column(place, name, rows[name].dictionary_encode())
            return rows

        scenario = msgspec.json.decode(self.complete_scenario, type=Scenario)
        having = [table for table, rows in self.facts.items() if rows.num_rows]
        return analysis.Run(self.name, scenario, having, read, worlds)


def tables(**rows: Sequence[tuple[Any, ...]]) -> dict[str, pa.Table]:
    """Facts from rows in the order of their columns."""
    sink = MemorySink()
    recorder = Recorder(sink, KNOWN)
    for table, of_table in rows.items():
        for row in of_table:
            recorder.add(table, *complete(table, row))
    recorder.close()
    return {name: KNOWN[name].empty_table() for name in rows} | sink.tables()


def write_campaign(out: Path, runs: Sequence[Run]) -> Path:
    """A campaign folder as `simulate` leaves it, all runs in one pack."""
    for folder in ("done", "facts"):
        shutil.rmtree(out / folder, ignore_errors=True)
        (out / folder).mkdir(parents=True)
    ok = {run.name: run for run in runs if run.status == "ok"}
    for run in ok.values():
        file = RunFile(done_file(out, run.name))
        for table, facts in run.facts.items():
            for batch in facts.cast(KNOWN[table]).to_batches():
                if batch.num_rows:
                    file(table, batch)
        file.finish({"row": {"run": run.name, "status": "ok", "rows": file.rows, "digest": file.digest}})
    pack(out, sorted(ok), out / "attempt")
    (out / "attempt").rmdir()
    write_index(out, read_packs(out).values())
    write_tables(out, runs)
    return out


def write_tables(out: Path, runs: Sequence[Run]) -> None:
    """What is planned, and what was done; the folder may have other runs too."""
    pq.write_table(pa.Table.from_pylist([_planned(run) for run in runs], RUNS_ARROW), out / "runs.parquet")
    manifest = {run.name: _done(run) for run in runs}
    ordered = [manifest[name] for name in sorted(manifest)]
    pq.write_table(pa.Table.from_pylist(ordered, MANIFEST_ARROW), out / "manifest.parquet")


def _planned(run: Run) -> dict[str, Any]:
    axes = f'{{"credits": {run.point}}}'
    place = {"experiment": run.experiment, "variant": run.variant, "point": run.point, "axes": axes, "seed": run.seed}
    return {"run": run.name, **place, "scenario": run.complete_scenario, "folder": ".", "estimate": 1.0}


def _done(run: Run) -> dict[str, Any]:
    rows = [(table, facts.num_rows) for table, facts in run.facts.items() if facts.num_rows]
    return {
        "run": run.name,
        "status": run.status,
        "error": None if run.status == "ok" else "it raised",
        "simulated": run.simulated,
        "warmup": run.warmup,
        "nodes": run.nodes,
        "protocol": run.protocol,
        "rows": rows,
        "digest": "",
    }
