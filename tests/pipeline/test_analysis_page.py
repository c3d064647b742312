"""The page on analysis: its blocks run, one after the other, on the campaign that it names."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from roamcast.campaign.define.plan import load_experiment
from roamcast.cli.main import main
from roamcast.pipeline.run import run_campaign

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/data-and-clusters.md").read_text()
BLOCKS = re.findall(r"^```python( \w+)?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_blocks_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_campaign([load_experiment(ROOT / "examples/campaigns/range.toml")], Path("out/ranges"), spark=spark)
    one = CliRunner().invoke(main, ["run", str(ROOT / "examples/line.toml"), "--out", "out/one"])
    assert one.exit_code == 0, one.output
    names: dict[str, Any] = {"spark": spark}
    assert len(BLOCKS) == 7
    for needs, block in BLOCKS:
        if needs.strip() == "connect":
            continue  # tests/pipeline/test_connect.py has a server
        if needs.strip() == "duckdb" and importlib.util.find_spec("duckdb") is None:
            continue  # no dependency of roamcast; the block is then not tried
        exec(compile(block, "data-and-clusters.md", "exec"), names)
    told = capsys.readouterr().out
    for word in ("flooding", "gossip 0.6", "hint", "receptions were lost in collisions"):
        assert word in told
