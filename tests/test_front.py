"""The front door: what `import roamcast` gives, and the page about it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import roamcast
from roamcast.errors import RoamcastError

PAGE = (Path(__file__).parents[1] / "docs/python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python( \w+)?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_every_name_is_there_and_on_the_page() -> None:
    assert sorted(roamcast._HOME) == roamcast.__all__
    for name in roamcast.__all__:
        assert getattr(roamcast, name).__name__ == name
        assert f"`{name}`" in PAGE
    assert set(roamcast.__all__) <= set(dir(roamcast))
    with pytest.raises(AttributeError, match="has no attribute 'Scenerio'"):
        roamcast.Scenerio  # noqa: B018


def test_importing_it_imports_nothing() -> None:
    code = "import sys, roamcast; print(sorted(name for name in sys.modules if name.startswith('roamcast.')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_the_blocks_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for needs, block in BLOCKS:
        if not needs:  # tests/pipeline/test_front_campaign.py runs the one that needs Spark
            exec(compile(block, "python.md", "exec"), names)
    told = capsys.readouterr().out.splitlines()
    assert told[0] == told[1] == "unnamed: gossip, 30 nodes, 60 s, seed 1"
    assert [line.split("  ")[0] for line in told[2:5]] == ["delivery", "pairs delivered", "packets per pair"]
    assert 0 < float(told[-1]) < 0.1


def test_what_is_wrong_is_refused_as_in_a_file() -> None:
    with pytest.raises(RoamcastError, match=r"the scenario: nodes"):
        roamcast.scenario(nodes=0, duration=1)
    with pytest.raises(RoamcastError, match=r"the scenario.*radio\.rnage"):
        roamcast.scenario(nodes=2, duration=1, radio={"rnage": 3})
    with pytest.raises(RoamcastError, match=r"line\.toml"):
        roamcast.run("examples/line.toml", changes={"nodes": -1})
    one = roamcast.scenario("examples/line.toml")
    with pytest.raises(RoamcastError, match="changes need a file"):
        roamcast.run(one, changes={"nodes": 3})
    with pytest.raises(RoamcastError, match=r"the experiment: axes"):
        roamcast.experiment(scenario=one, axes={"radio..range": [1]})


def test_a_run_of_a_file_is_the_run_of_its_scenario() -> None:
    one = roamcast.scenario("examples/line.toml", changes={"seed": 3})
    again = roamcast.run("examples/line.toml", changes={"seed": 3})
    assert roamcast.run(one).table("deliver") == again.table("deliver")
    assert repr(again) == "Run('line', flooding, 3 nodes, 10 s)"
