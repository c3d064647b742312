"""The facts of a campaign as Spark sees them."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.measured import Run, S, tables, write_campaign
from roamcast.errors import RoamcastError
from roamcast.pipeline import facts as facts_module
from roamcast.pipeline.facts import Facts


def test_many_files_are_read_as_a_folder_and_runs_are_joined(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand names of files or runs in a plan would take Spark longer than the facts."""
    monkeypatch.setattr(facts_module, "_NAMED", 2)
    some = [Run(f"run-{number}", tables(publish=[(S, 0, number, "t", 50)])) for number in range(4)]
    write_campaign(tmp_path, some)
    whole = Facts(spark, tmp_path).table("publish")
    assert "InMemoryFileIndex(1 paths)" in plan_of(whole)
    assert {row.run for row in whole.collect()} == {"run-0", "run-1", "run-2", "run-3"}

    three = Facts(spark, tmp_path, only=frozenset(["run-0", "run-1", "run-3"])).table("publish")
    assert "InMemoryFileIndex(1 paths)" in plan_of(three)
    assert "LeftSemi" in plan_of(three)
    assert not any(f"run-{number}" in plan_of(three) for number in range(4))
    assert {row.run for row in three.collect()} == {"run-0", "run-1", "run-3"}


def plan_of(frame: DataFrame) -> str:
    text: str = frame._jdf.queryExecution().toString()
    return text


def test_a_table_that_no_run_has_is_empty_or_unknown(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [Run("one", tables(note=[(0, "duplicate", 2)])), Run("two", {}, seed=2)])
    facts = Facts(spark, tmp_path)
    assert facts.table("publish").columns[:2] == ["run", "time"]
    assert facts.table("publish").count() == 0
    assert [tuple(row) for row in facts.table("note").collect()] == [("one", 0, "duplicate", 2)]
    with pytest.raises(RoamcastError, match="there is no table 'tree': no run has recorded such facts"):
        facts.table("tree")


def test_what_several_measures_need_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [Run("one", {}), Run("two", {}, seed=2), Run("three", {}, seed=3, status="failed")])
    facts, made = Facts(spark, tmp_path), []

    def names(given: Facts) -> DataFrame:
        made.append(given)
        return given.runs.select("run")

    assert [sorted(row.run for row in facts.once(names).collect()) for _ in range(2)] == [["one", "two"]] * 2
    assert made == [facts]
