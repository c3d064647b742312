"""A campaign's folder as tables, in Arrow and in Spark."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import roamcast
from pipeline.measured import MS, Run, S, tables, write_campaign
from pipeline.tiny import planned
from roamcast.campaign.folder.schemas import RUN_MEASURES_ARROW
from roamcast.campaign.folder.survey import look
from roamcast.campaign.folder.verify import verify
from roamcast.errors import RoamcastError
from roamcast.pipeline.measure import measure
from roamcast.pipeline.simulate import simulate
from roamcast.pipeline.tables import load
from roamcast.protocols.catalogue import CATALOGUE


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
    means = campaign.sql("select variant, avg(delivery) from results group by all order by all;").collect()
    assert [tuple(row) for row in means] == [("flooding", 0.5), ("gossip", 0.75)]
    hops = campaign.sql("select variant, credits, sum(hops) from deliver group by all order by all").collect()
    assert [tuple(row) for row in hops] == [("flooding", 0.0, 3), ("gossip", 5.0, 3)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select nothing from nowhere", r"The table or view `nowhere` cannot be found.* \(line 1, position 20\)"),
        ("select *\nform results", r"Syntax error at or near 'results': extra input 'results'. \(line 2, position 5\)"),
        ("select 1 / 0 from runs", r"Division by zero.* \(line 1, position 8\)"),  # it shows when the rows are computed
    ],
)
def test_a_wrong_query_is_told_in_the_words_of_spark(query: str, said: str, out: Path, spark: SparkSession) -> None:
    campaign = load(out, spark)
    shown = rf"^\[\w+\] {said}\nthere are the views runs, results, deliver$"
    with pytest.raises(RoamcastError, match=shown), campaign.explained():
        campaign.sql(query).collect()


def test_a_query_needs_only_the_tables_that_it_names(out: Path, spark: SparkSession) -> None:
    (out / "measures" / "run.parquet").unlink()
    shutil.rmtree(out / "facts" / "deliver")
    assert load(out, spark).sql("select count(*) from runs").collect() == [(3,)]
    with pytest.raises(RoamcastError, match="has no measures yet"):
        load(out, spark).sql("select count(*) from results")


def test_a_session_keeps_its_own_views(out: Path, spark: SparkSession) -> None:
    spark.range(7).createOrReplaceTempView("runs")
    try:
        assert load(out, spark).sql("with mine as (select * from runs) select count(*) from mine").collect() == [(3,)]
        assert spark.table("runs").count() == 7
    finally:
        spark.catalog.dropTempView("runs")


HEARD = """
from typing import ClassVar
from roamcast.protocols.entry import Entry
from roamcast.protocols.facts import Fact
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker

class Heard(Fact, frozen=True):
    table: ClassVar[str] = "heard"
    senders: tuple[int, ...]

class Broker(FloodingBroker):
    def receive(self, now, sender, message):
        self.port.record(Heard((sender, sender + 1)))
        super().receive(now, sender, message)

ENTRY = Entry("heard", "flooding that writes down whom it hears", Flooding, Broker, (Data,), facts=(Heard,))
"""


def test_every_table_of_every_protocol_is_read_in_every_way(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "heard.py").write_text(HEARD)
    changes: dict[str, dict[str, Any]] = {name: {} for name in (*CATALOGUE, "heard.py:ENTRY")}
    changes["flooding"] = {"record.frames": True, "record.decisions": True}
    changes["opportunistic"] = {"protocol.parameters.interval": 1}
    variants = [{"name": name, "set": {"protocol.name": name, **own}} for name, own in changes.items()]
    axes = [{"field": "radio.range", "label": "Node", "values": [150]}]  # to Spark, the name of a column
    out = tmp_path / "out"
    simulate(spark, planned(tmp_path, seeds=1, variants=variants, axes=axes), out)
    campaign = load(out, spark)
    assert {"tree", "relays", "mesh", "cache", "heard", "decision", "reception", "leg"} <= set(campaign.tables)
    for name in campaign.tables:
        written = pq.read_table(out / "facts" / name, partitioning=None)
        read = campaign.facts(name)
        assert read.select(written.column_names).equals(written)
        assert set(read["Node_run" if "node" in written.column_names else "Node"].to_pylist()) == {150}
        answer = campaign.sql(f"select * from {name}").toArrow()  # a view of `campaign.frame(name)`
        assert answer.column_names == read.column_names
        assert sorted(map(repr, answer.to_pylist())) == sorted(map(repr, read.to_pylist()))


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
