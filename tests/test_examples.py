"""Every example runs, and the page that explains one shows the files as they are."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import load

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "writing-a-protocol.md"


def examples(pattern: str) -> list[str]:
    found = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob(pattern))
    assert found, f"there is no example {pattern}"
    return found


@pytest.mark.parametrize("name", examples("*.py"))
def test_a_program_runs_to_its_end(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


# Cells share their names, and each prints what it prints in a notebook.
NOTEBOOK = """
import contextlib, io, json, sys
names = {}
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, names)
    print(json.dumps(printed.getvalue()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", examples("*.ipynb"))
def test_a_notebook_prints_what_it_shows(name: str) -> None:
    cells = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NOTEBOOK],
        input=json.dumps(["".join(cell["source"]) for cell in code]),
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in code]
    assert [json.loads(line) for line in done.stdout.splitlines()] == shown
    assert "hint" in shown[-2]


@pytest.mark.parametrize("name", [*examples("*.toml"), *examples("choose/*.toml")])
def test_a_scenario_runs_and_something_is_delivered(name: str) -> None:
    scenario, facts = load(EXAMPLES / name), MemorySink()
    report = run(scenario, facts, folder=EXAMPLES)
    assert report.simulated == scenario.duration
    assert facts.table("publish").num_rows > 0
    assert facts.table("deliver").num_rows > 0


@pytest.mark.parametrize(
    ("language", "file"),
    [("python", "my_gossip.py"), ("toml", "my_gossip.toml"), ("toml campaign", "campaigns/my_gossip.toml")],
)
def test_the_blocks_of_the_page_are_the_file_but_for_empty_lines(language: str, file: str) -> None:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    shown = "".join(blocks)
    assert filled_lines(shown) == filled_lines((EXAMPLES / file).read_text())


def filled_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
