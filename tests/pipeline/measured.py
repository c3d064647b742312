"""Runs and campaigns for tests: facts in memory as measures see them, or written where the pipeline looks for them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from facts.rows import KNOWN, complete
from roamcast.analysis import run as analysis
from roamcast.campaign.folder.layout import digest_of, facts_name
from roamcast.campaign.folder.schemas import MANIFEST_ARROW, RUNS_ARROW, with_run
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
    """A campaign folder as `simulate` leaves it."""
    for run in runs:
        for table, facts in run.facts.items():
            if facts.num_rows:
                path = out / "facts" / table / f"{run.name}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                named = pa.array([run.name] * facts.num_rows, pa.string())
                pq.write_table(facts.add_column(0, "run", named).cast(with_run(KNOWN[table])), path)
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([_planned(run) for run in runs], RUNS_ARROW), out / "runs.parquet")
    manifest = {run.name: _done(run, out) for run in runs}
    ordered = [manifest[name] for name in sorted(manifest)]
    pq.write_table(pa.Table.from_pylist(ordered, MANIFEST_ARROW), out / "manifest.parquet")
    return out


def _planned(run: Run) -> dict[str, Any]:
    axes = f'{{"credits": {run.point}}}'
    place = {"experiment": run.experiment, "variant": run.variant, "point": run.point, "axes": axes, "seed": run.seed}
    return {"run": run.name, **place, "scenario": run.complete_scenario, "folder": ".", "estimate": 1.0}


def _done(run: Run, out: Path) -> dict[str, Any]:
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
        "digest": digest_of(
            {table: facts_name(table, run.name) for table, _ in rows}, lambda name: (out / name).open("rb")
        ),
    }
