"""Measuring a campaign: CPU seconds, the JVM's and its workers' included, for each million deliveries.

The facts are made up: 200 runs in which 100 nodes have 20 different filters, 15 subscriptions want an event on average,
nine pairs in ten are delivered and one delivery in twenty is repeated. `python -m bench.measures 50` takes 50 million
deliveries instead of 5. `python -m bench measures --duckdb` measures a few things of 0.2, 1 and 5 million in DuckDB
too, checks that both say the same, and prints the ratios. Starting Spark, and the first campaign that a fresh JVM
measures, are counted apart.

`python -m bench.measures --campaign OUT` measures a real campaign, a copy of OUT, from a fresh process each: an empty
session, one that also counts to one, the measures that its experiments ask for, and all.
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import duckdb_measures
from bench.cpu import cpu_seconds
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.campaign.folder.layout import done_file, read_campaign, read_commit
from roamcast.campaign.folder.packs import in_packs, pack, read_packs, write_index
from roamcast.campaign.folder.run_file import RunFile
from roamcast.campaign.folder.schemas import MANIFEST_ARROW, RUNS_ARROW
from roamcast.content.event import TYPE, event_id
from roamcast.content.filter import Filter
from roamcast.content.rows import filter_rows
from roamcast.facts.schema import COUNTERS, TABLES
from roamcast.pipeline.measure import measure
from roamcast.pipeline.session import session
from roamcast.sim.scenario.scenario import check
from roamcast.units import SECOND

RUNS: Final = 200
SEEDS: Final = 10
NODES: Final = 100
DURATION: Final = 1000
WARMUP: Final = 60
SCENARIO: Final = {
    "nodes": NODES,
    "duration": DURATION,
    "warmup": WARMUP,
    "area": {"width": 1000, "height": 1000},
    "protocol": {"name": "flooding"},
}
CATEGORIES: Final = 4
BOUNDS: Final = (10, 20, 30, 40, 50)
"""Prices are below 50, so a filter on one category and a bound matches 0.15 of the events on average."""
WANTED: Final = 0.15 * NODES
DELIVERED: Final = 0.9
REPEATED: Final = 0.05

Facts = dict[str, dict[str, Any]]


def run(millions: float = 5) -> None:
    print(f"measures: {millions:g} million deliveries in {RUNS} runs")
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as folder:
        out = Path(folder)
        deliveries = write_campaign(out, millions)
        with session(heavy=True) as spark:
            spark.range(1).count()
            begin, before = time.perf_counter(), cpu_seconds()
            measure(spark, out)
            wall, cpu = time.perf_counter() - begin, cpu_seconds() - before
    print(f"  {deliveries:,} deliveries: {cpu:.1f} CPU s, {wall:.1f} s on {os.cpu_count()} cores")
    print(f"  {cpu / deliveries * 1e6:.2f} CPU s for each million deliveries")


def run_duckdb(*millions: float) -> None:
    """The same measures of the same facts, in Spark and in DuckDB."""
    print(f"measures: {', '.join(duckdb_measures.MEASURES)} in Spark and in DuckDB, {RUNS} runs")
    before = cpu_seconds()
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as folder, session(heavy=True) as spark:
        spark.range(1).count()
        started = cpu_seconds() - before
        write_campaign(Path(folder) / "first", 0.01)
        before = cpu_seconds()
        measure(spark, Path(folder) / "first", duckdb_measures.MEASURES)
        print(f"  once in a session: {started:.1f} CPU s to start Spark, {cpu_seconds() - before:.1f} to warm it")
        for size in millions or (0.2, 1.0, 5.0):
            _compare(spark, Path(folder) / f"{size:g}", size)


def _compare(spark: SparkSession, out: Path, millions: float) -> None:
    deliveries = write_campaign(out, millions)
    before = cpu_seconds()
    measure(spark, out, duckdb_measures.MEASURES)
    ours, before = cpu_seconds() - before, cpu_seconds()
    theirs = duckdb_measures.measure(out, WARMUP * SECOND, os.cpu_count() or 1)
    duckdb = cpu_seconds() - before
    check_same(out, theirs)
    print(f"  {deliveries:,} deliveries: Spark {ours:.1f} CPU s, DuckDB {duckdb:.1f}: {ours / duckdb:.1f} times")


def check_same(out: Path, theirs: dict[str, dict[str, float]]) -> None:
    """Two programs that share nothing but the facts must agree."""
    for row in pq.read_table(out / "measures" / "run.parquet", partitioning=None).to_pylist():
        expected = theirs[row["run"]][row["measure"]]
        if not math.isclose(row["value"], expected, rel_tol=1e-9):
            raise SystemExit(f"{row['run']}: {row['measure']} is {row['value']} in Spark and {expected} in DuckDB")


def run_real(out: Path) -> None:
    """What measuring a campaign costs, beyond a session that does nothing."""
    print(f"measures: {read_commit(out)[1].num_rows} runs of {out}, each from a fresh process")
    empty = 0.0
    for what in ("empty session", "one query", "its own measures", "all measures"):
        before = cpu_seconds()
        subprocess.run([sys.executable, "-m", "bench.measures", "--once", str(out), what], check=True)
        spent = cpu_seconds() - before
        empty = empty or spent
        print(f"  {what}: {spent:.1f} CPU s, {spent - empty:.1f} beyond an empty session")


def run_once(out: Path, what: str) -> None:
    own = {name for one in read_campaign(out).experiments for name in one.measures or CATALOGUE}
    with session() as spark, tempfile.TemporaryDirectory(prefix="roamcast-bench-") as folder:
        if what == "one query":
            spark.range(1).count()
        elif what != "empty session":
            copy = shutil.copytree(out, Path(folder) / "copy", ignore=shutil.ignore_patterns("measures", "report"))
            measure(spark, copy, sorted(own) if what == "its own measures" else None)


# --- Facts ----------------------------------------------------------------------------------------------------------


def write_campaign(out: Path, millions: float) -> int:
    """Writes a campaign's folder; returns how many deliveries it has."""
    events = round(millions * 1e6 / RUNS / (WANTED * DELIVERED * (1 + REPEATED)))
    planned, manifest, sizes = [], [], {}
    deliveries = 0
    (out / "done").mkdir(parents=True)
    for number in range(RUNS):
        name = f"{number:016x}"
        facts = make_facts(np.random.default_rng(number), events)
        rows, digest = write_run(done_file(out, name), name, facts)
        sizes[name] = done_file(out, name).stat().st_size
        deliveries += rows["deliver"]
        variant, seed = divmod(number, SEEDS)
        place = {"experiment": "bench", "variant": f"v{variant}", "point": 0, "axes": "{}", "seed": seed}
        scenario = msgspec.json.encode(check({**SCENARIO, "seed": number}, "bench", Path())).decode()
        planned.append({"run": name, **place, "scenario": scenario, "folder": ".", "estimate": 1.0})
        described = {"simulated": float(DURATION), "warmup": float(WARMUP), "nodes": NODES, "protocol": "none"}
        described |= {"digest": digest, "rows": list(rows.items())}
        manifest.append({"run": name, "status": "ok", "error": None, **described})
    for some in in_packs(sizes):
        pack(out, some, out / f"attempt-{some[0]}")
    write_index(out, read_packs(out).values())
    pq.write_table(pa.Table.from_pylist(planned, RUNS_ARROW), out / "runs.parquet")
    pq.write_table(pa.Table.from_pylist(manifest, MANIFEST_ARROW), out / "manifest.parquet")
    return deliveries


def write_run(path: Path, run: str, facts: Facts) -> tuple[dict[str, int], str]:
    """Writes a run's file, as a task does; returns its number of rows by table, and its digest."""
    file = RunFile(path)
    for table, columns in facts.items():
        rows = max(len(column) for column in columns.values() if column is not None)
        arrays = [
            pa.nulls(rows, field.type) if columns.get(field.name) is None else pa.array(columns[field.name], field.type)
            for field in TABLES[table]
        ]
        file(table, pa.RecordBatch.from_arrays(arrays, schema=TABLES[table]))
    file.finish({"row": {"run": run, "status": "ok", "rows": file.rows, "digest": file.digest}})
    return file.rows, file.digest


def make_facts(rng: np.random.Generator, events: int) -> Facts:
    published = np.sort(rng.integers(0, (DURATION - 1) * SECOND, events))
    ids = np.array([event_id(serial % NODES, serial // NODES + 1) for serial in range(events)])
    category, price = rng.integers(0, CATEGORIES, events), rng.integers(0, 50, events)
    wanted_category, bound = rng.integers(0, CATEGORIES, NODES), rng.choice(BOUNDS, NODES)
    matching = (category[:, None] == wanted_category) & (price[:, None] < bound)
    return {
        **subscriptions(wanted_category, bound),
        "publish": {
            "time": published,
            "node": np.arange(events) % NODES,
            "event": ids,
            "type": ["offer"] * events,
            "size": np.full(events, 256),
            "lifetime": None,
        },
        "event_attribute": content(ids, category, price),
        "deliver": deliveries(rng, published, ids, matching),
        "series": traffic(rng),
        "note": {"node": np.arange(NODES), "fact": ["duplicate"] * NODES, "count": rng.integers(0, 1000, NODES)},
    }


def subscriptions(category: np.ndarray[Any, Any], bound: np.ndarray[Any, Any]) -> Facts:
    filters = [
        Filter.where("category", "=", f"c{which}") & Filter.where("price", "<", int(limit))
        for which, limit in zip(category, bound, strict=True)
    ]
    rows = [row for number, filter in enumerate(filters) for row in filter_rows(number, filter)]
    return {
        "subscribe": {
            "time": np.zeros(NODES, np.int64),
            "node": np.arange(NODES),
            "subscription": np.arange(NODES),
            "active": [True] * NODES,
            "filter": [str(filter) for filter in filters],
            "lifetime": None,
        },
        "filter_constraint": {name: [getattr(row, name) for row in rows] for name in TABLES["filter_constraint"].names},
    }


def content(ids: np.ndarray[Any, Any], category: np.ndarray[Any, Any], price: np.ndarray[Any, Any]) -> dict[str, Any]:
    events = len(ids)
    none = [None] * events
    return {
        "event": np.tile(ids, 3),
        "attribute": [TYPE] * events + ["category"] * events + ["price"] * events,
        "kind": ["str"] * (2 * events) + ["int"] * events,
        "integer": none + none + price.tolist(),
        "real": None,
        "text": ["offer"] * events + [f"c{which}" for which in category] + none,
        "flag": None,
    }


def deliveries(
    rng: np.random.Generator,
    published: np.ndarray[Any, Any],
    ids: np.ndarray[Any, Any],
    matching: np.ndarray[Any, Any],
) -> dict[str, Any]:
    event, node = np.nonzero(matching & (rng.random(matching.shape) < DELIVERED))
    again = rng.random(len(event)) < REPEATED
    event, node = np.concatenate([event, event[again]]), np.concatenate([node, node[again]])
    time = published[event] + rng.integers(1, SECOND, len(event))
    order = np.argsort(time)
    return {
        "time": time[order],
        "node": node[order],
        "event": ids[event][order],
        "subscription": node[order],
        "published": published[event][order],
        "hops": rng.integers(1, 8, len(event)),
        "via": ["data"] * len(event),
    }


def traffic(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "second": np.repeat(np.arange(DURATION), 2),
        "kind": ["data", "beacon"] * DURATION,
        "role": ["data", "beacon"] * DURATION,
        **{column: rng.integers(0, 100, 2 * DURATION) for column in COUNTERS},
    }


if __name__ == "__main__":
    if "--campaign" in sys.argv:
        run_real(Path(sys.argv[-1]))
        sys.exit()
    if "--once" in sys.argv:
        run_once(Path(sys.argv[-2]), sys.argv[-1])
        sys.exit()
    sizes = [float(word) for word in sys.argv[1:] if word != "--duckdb"]
    if "--duckdb" in sys.argv:
        run_duckdb(*sizes)
    else:
        run(*sizes[:1])
