"""The facts of a campaign as Spark sees them."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.measured import Run, S, tables, write_campaign, write_tables
from roamcast.errors import RoamcastError
from roamcast.pipeline.facts import CampaignFacts
from roamcast.storage import Store


def facts_in(spark: SparkSession, out: Path) -> CampaignFacts:
    return CampaignFacts(spark, out, Store.at(out))


def test_runs_of_a_pack_that_the_manifest_does_not_list_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """By a join: ten thousand names of runs in a plan would take Spark longer than the facts."""
    some = [Run(f"run-{number}", tables(publish=[(S, 0, number, "t", 50)])) for number in range(4)]
    write_campaign(tmp_path, some)
    whole = facts_in(spark, tmp_path).table("publish")
    assert "LeftSemi" not in plan_of(whole)
    assert {row.run for row in whole.collect()} == {"run-0", "run-1", "run-2", "run-3"}

    write_tables(tmp_path, [some[0], some[1], some[3]])
    three = facts_in(spark, tmp_path).table("publish")
    assert "LeftSemi" in plan_of(three)
    assert not any(f"run-{number}" in plan_of(three) for number in range(4))
    assert {row.run for row in three.collect()} == {"run-0", "run-1", "run-3"}


def plan_of(frame: DataFrame) -> str:
    text: str = frame._jdf.queryExecution().toString()
    return text


def test_a_table_that_no_run_has_is_empty_or_unknown(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [Run("one", tables(note=[(0, "duplicate", 2)])), Run("two", {}, seed=2)])
    facts = facts_in(spark, tmp_path)
    assert facts.table("publish").columns[:2] == ["run", "time"]
    assert facts.table("publish").count() == 0
    assert [tuple(row) for row in facts.table("note").collect()] == [("one", 0, "duplicate", 2)]
    with pytest.raises(RoamcastError, match="there is no table 'tree': no run has recorded such facts"):
        facts.table("tree")


def test_what_several_measures_need_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [Run("one", {}), Run("two", {}, seed=2), Run("three", {}, seed=3, status="failed")])
    facts, made = facts_in(spark, tmp_path), []

    def names(given: CampaignFacts) -> DataFrame:
        made.append(given)
        return given.runs.select("run")

    assert [sorted(row.run for row in facts.once(names).collect()) for _ in range(2)] == [["one", "two"]] * 2
    assert made == [facts]
