"""A campaign's folder as tables, in Arrow and in Spark."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import roamcast
from pipeline.measured import MS, Run, S, tables, write_campaign
from pipeline.tiny import planned
from roamcast.campaign.schemas import RUN_MEASURES_ARROW
from roamcast.campaign.verify import verify
from roamcast.errors import RoamcastError
from roamcast.pipeline.measures import measure
from roamcast.pipeline.simulate import look
from roamcast.pipeline.tables import load


@pytest.fixture
def out(tmp_path: Path) -> Path:
    first = tables(deliver=[(S, 0, 1, 0, 0, 1, "data"), (2 * S, 1, 1, 1, MS, 2, "data")])
    second = tables(deliver=[(S, 0, 1, 0, 0, 3, "data")])
    runs = [
        Run("r1", first, variant="flooding", point=0, seed=1),
        Run("r2", second, variant="gossip", point=5, seed=1),
        Run("r3", {}, variant="gossip", point=5, seed=2, status="failed"),
    ]
    write_campaign(tmp_path, runs)
    (tmp_path / "measures").mkdir()
    measured = [("r1", "delivery", 0.5), ("r2", "delivery", 0.75)]
    rows = [dict(zip(RUN_MEASURES_ARROW.names, row, strict=True)) for row in measured]
    pq.write_table(pa.Table.from_pylist(rows, RUN_MEASURES_ARROW), tmp_path / "measures" / "run.parquet")
    return tmp_path


def test_results_have_axes_and_measures_as_columns(out: Path) -> None:
    found = load(out).results.select(["variant", "seed", "credits", "delivery"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("flooding", 1, 0.0, 0.5),
        ("gossip", 1, 5.0, 0.75),
        ("gossip", 2, 5.0, None),
    ]
    assert type(roamcast.load(out)).__name__ == "Results"


def test_facts_have_the_columns_of_their_runs(out: Path) -> None:
    found = load(out).facts("deliver").sort_by([("run", "ascending"), ("time", "ascending")]).to_pylist()
    assert [(row["run"], row["variant"], row["credits"], row["hops"]) for row in found] == [
        ("r1", "flooding", 0, 1),
        ("r1", "flooding", 0, 2),
        ("r2", "gossip", 5, 3),
    ]
    with pytest.raises(RoamcastError, match="no run has facts named 'delivered'; there are deliver"):
        load(out).facts("delivered")
    with pytest.raises(RoamcastError, match="that needs Spark"):
        load(out).sql("select 1")


def test_questions_in_sql(out: Path, spark: SparkSession) -> None:
    campaign = load(out, spark)
    means = campaign.sql("select variant, avg(delivery) from results group by all order by all").collect()
    assert [tuple(row) for row in means] == [("flooding", 0.5), ("gossip", 0.75)]
    hops = campaign.sql("select variant, credits, sum(hops) from deliver group by all order by all").collect()
    assert [tuple(row) for row in hops] == [("flooding", 0.0, 3), ("gossip", 5.0, 3)]
    with pytest.raises(RoamcastError, match="there are the views runs, results, deliver"):
        campaign.sql("select nothing from nowhere")


def test_facts_of_another_version_are_refused_by_every_reader(spark: SparkSession, out: Path, tmp_path: Path) -> None:
    (out / "campaign.json").write_text(json.dumps({"version": 1, "experiments": []}))
    readers: list[Callable[[], object]] = [
        lambda: load(out),
        lambda: measure(spark, out, ["delivery"]),
        lambda: verify(out),
        lambda: look(planned(tmp_path), out),
    ]
    for reader in readers:
        with pytest.raises(
            RoamcastError, match="holds facts of version 1, and this roamcast reads and writes version 2"
        ):
            reader()
