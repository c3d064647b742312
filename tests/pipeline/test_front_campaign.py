"""The page on Python: from nothing to a figure, on Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import roamcast
from roamcast.errors import RoamcastError
from test_front import BLOCKS


def test_from_nothing_to_a_figure(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib").use("agg")
    ((_, first),) = [block for block in BLOCKS if "walkers = " in block[1]]
    ((_, block),) = [block for block in BLOCKS if block[0].strip() == "campaign"]
    place = f'"{tmp_path / "out"}", spark=spark'
    names = {"spark": spark}
    exec(compile(first + block.replace('"out/compared"', place), "python.md", "exec"), names)
    assert "experiment: 3 variants, range 80, 120, 160, 3 seeds" in capsys.readouterr().out
    results = roamcast.load(tmp_path / "out").results.to_pandas()
    assert len(results) == 27
    means = results.groupby("range")["delivery"].mean()
    assert means[80] < means[160]


def test_runs_that_fail_are_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from dataclasses import replace\n"
        "from roamcast.protocols.catalogue import CATALOGUE\n"
        "class Broken(CATALOGUE['flooding'].broker):\n"
        "    def publish(self, now, publication): raise ValueError('no')\n"
        "BROKEN = replace(CATALOGUE['flooding'], name='broken', broker=Broken)\n"
    )
    line = roamcast.scenario("examples/line.toml")
    one = roamcast.experiment(scenario=line, variants={"b": {"protocol.name": f"{tmp_path}/broken.py:BROKEN"}}, seeds=2)
    with pytest.raises(RoamcastError, match=r"2 of 2 runs failed: .*ValueError"):
        roamcast.run_campaign(one, tmp_path / "out", spark=spark)
