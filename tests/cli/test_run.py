"""`roamcast run` from end to end: numbers worked out by hand, and folders that are complete or not there."""

import json
import os
import pty
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from roamcast.cli.main import main
from roamcast.sim.scenario.overrides import apply

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE = EXAMPLES / "line.toml"
COMMAND = [sys.executable, "-c", "from roamcast.cli.main import main; main()"]

RAISING = """
from roamcast.protocols.api import Broker, Parameters
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data

class Nothing(Parameters, frozen=True):
    pass

class Raising(Broker[Nothing]):
    def publish(self, now, publication):
        raise RuntimeError("a defect")
    def receive(self, now, sender, message):
        pass

protocol = Entry("raising", "raises when asked to publish", Nothing, Raising, (Data,))
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def roamcast(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def summary_of(*arguments: str | Path) -> dict[str, Any]:
    result = roamcast("run", *arguments, "--json")
    assert result.exit_code == 0, result.output
    summary: dict[str, Any] = json.loads(result.stdout)["summary"]
    return summary


BY_HAND = {
    "by_filters_alone": False,
    "events": 9,
    "events_wanted": 9,
    "pairs_expected": 9,
    "pairs_delivered": 9,
    "delivery": 1.0,
    "deliveries_unexpected": 0,
    "deliveries_repeated": 0,
    "delay_mean": 0.003008,  # two frames of 192 µs and 328 bytes at 2 Mb/s
    "delay_p50": 0.003008,
    "delay_p95": 0.003008,
    "delay_p99": 0.003008,
    "hops_mean": 2.0,
    "packets": 27,
    "bits": 27 * 2816,
    "packets_per_pair": 3.0,
    "bits_per_pair": 3.0 * 2816,
    "carrier_packets_per_pair": 3.0,
    "carrier_bits_per_pair": 3.0 * 2816,
    "airtime_share": pytest.approx(27 * 0.001504 / 10),
    "receptions": 36,  # of each event: 1 of node 0's, 2 of node 1's, 1 of node 2's
    "losses": {"collision": 0, "half_duplex": 0, "random_loss": 0, "queue_full": 0, "unreachable": 0},
    "notes": {"duplicate": 18},
    "sent": [
        {"kind": "data", "packets": 27, "bits": 27 * 2816, "airtime": 0.040608, "background": False, "carrier": True}
    ],
}


@pytest.mark.parametrize("core", [["--reference"], []], ids=["reference", "compiled"])
def test_three_nodes_in_a_line_give_the_numbers_worked_out_by_hand(core: list[str]) -> None:
    assert summary_of(LINE, *core) == BY_HAND


def test_scripted_links_lose_what_is_published_while_there_is_no_way() -> None:
    summary = summary_of(EXAMPLES / "links.toml", "--reference")
    assert (summary["pairs_expected"], summary["pairs_delivered"]) == (9, 7)
    assert summary["delivery"] == pytest.approx(7 / 9)
    assert summary["hops_mean"] == pytest.approx((4 * 2 + 3 * 1) / 7)
    assert summary["packets"] == 4 * 3 + 2 * 2 + 3 * 3


def test_the_flooding_example_delivers_most() -> None:
    summary = summary_of(EXAMPLES / "flooding.toml")
    assert summary["pairs_expected"] > 50
    assert 0.8 < summary["delivery"] <= 1
    assert summary["losses"]["collision"] > 0


CONTEXTS = """
nodes = 3
duration = 5
area = { width = 400, height = 100 }
movement = { model = "static", positions = [[0, 50], [150, 50], [300, 50]] }
radio = { propagation = "unit-disk", range = 200 }
mac = { model = "ideal" }
protocol = { name = "context" }

[[workload.subscribers]]
nodes = [0]
interest = "within(circle(150, 50, 10))"

[[workload.subscribers]]
nodes = [1]
interest = "within(circle(300, 50, 10))"

[[workload.publishers]]
nodes = [2]
rate = 1.0
start = 1
stop = 2
lifetime = 2
relevance = "within(circle(150, 50, 10))"
"""


def test_with_contexts_delivery_is_that_of_the_ideal_pairs() -> None:
    """Of the two subscriptions one asks about the place that the event concerns; filters alone expect both."""
    Path("contexts.toml").write_text(CONTEXTS)
    result = roamcast("run", "contexts.toml", "--reference", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["contexts"] == {"delivery": 1.0, "ideal": 1, "delivered": 1, "beyond": 0}
    assert (printed["summary"]["by_filters_alone"], printed["summary"]["delivery"]) == (True, 0.5)
    assert printed["summary"]["pairs_expected"] == 2
    shown = roamcast("run", "contexts.toml", "--reference", "--force").stdout
    assert "100.00 %, 1 of 1 ideal pairs" in shown


def test_a_run_leaves_its_facts_its_scenario_and_its_record() -> None:
    result = roamcast("run", LINE, "--reference", "--seed", "5", "--set", "name=a/b: c", "--json")
    printed = json.loads(result.stdout)
    out = Path("out/a-b-c-5")
    assert printed.pop("out") == str(out)
    assert json.loads((out / "run.json").read_text()) == printed
    assert {
        key: printed[key] for key in ("name", "seed", "protocol", "core", "simulated_s", "warmup_s", "changes")
    } == {
        "name": "a/b: c",
        "seed": 5,
        "protocol": "flooding",
        "core": "reference",
        "simulated_s": 10.0,
        "warmup_s": 0.0,
        "changes": ["name=a/b: c", "seed=5"],
    }
    assert set(printed["versions"]) == {"roamcast", "python", "numba"}
    assert printed["cpu_s"] > 0
    assert (out / "scenario.toml").read_bytes() == LINE.read_bytes()
    files = {
        "filter_constraint",
        "deliver",
        "leg",
        "note",
        "publish",
        "event_attribute",
        "series",
        "subscribe",
        "transmit",
    }
    assert {file.stem for file in out.glob("*.parquet")} == files
    assert pq.read_table(out / "deliver.parquet").num_rows == 9
    assert [path.name for path in Path("out").iterdir()] == [out.name]


def test_the_summary_is_printed_as_tables() -> None:
    result = roamcast("run", LINE, "--reference")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in (
        "line: flooding, seed 1, after 0 s of warm-up",
        "delivery 100.00 %",
        "events published 9, wanted by anyone: 9",
        "packets per delivered pair 3.00",
        "delay, 50 / 95 / 99 % 3.008 ms / 3.008 ms / 3.008 ms",
        "noted in the whole run duplicate 18",
        "data 27 76032 40.608 ms 3.00",
    ):
        assert line in lines
    assert lines[-1].startswith("10 s simulated in ")
    assert lines[-1].endswith(" s of CPU; facts in out/line-1")
    assert result.stderr == ""


def test_what_is_undefined_is_printed_as_a_dash() -> None:
    result = roamcast("run", LINE, "--reference", "--set", "workload.subscribers=[]")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert {"delivery –", "packets per delivered pair –", "only – –", "delay, mean –", "hops, mean –"} <= set(lines)


def test_progress_is_shown_on_a_terminal_unless_quiet() -> None:
    for options, shown in (([], True), (["--quiet"], False), (["--json"], False)):
        ours, theirs = pty.openpty()
        command = [*COMMAND, "run", str(LINE), "--reference", "--force", *options]
        subprocess.run(command, stderr=theirs, stdout=subprocess.PIPE, check=True)
        os.set_blocking(ours, False)
        try:
            written = os.read(ours, 100_000)
        except BlockingIOError:
            written = b""
        os.close(ours)
        os.close(theirs)
        assert (b"of 10 s" in written) is shown


# --- Changes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ("radio.range=100", ("radio", "range"), 100),
        ("radio.range=[100, 200.5]", ("radio", "range"), [100, 200.5]),
        ("protocol.name=gossip", ("protocol", "name"), "gossip"),
        ('name="two words"', ("name",), "two words"),
        ("name=two words", ("name",), "two words"),
        ("name=a=b", ("name",), "a=b"),
        ("record.frames=true", ("record", "frames"), True),
        ("a.b.c={d = 1}", ("a", "b", "c"), {"d": 1}),
        ("list[1].x=7", ("list", 1, "x"), 7),
        ("name=1\nother = 2", ("name",), "1\nother = 2"),
    ],
)
def test_a_change_sets_one_field(change: str, field: tuple[str | int, ...], value: object) -> None:
    raw: dict[str, Any] = {"radio": {"sense": 2}, "list": [{}, {"x": 1}]}
    apply(change, raw)
    found: Any = raw
    for step in field:
        found = found[step]
    assert found == value
    assert raw["radio"]["sense"] == 2


def test_changes_take_effect() -> None:
    """At 150 m node 1 is out of reach: nothing arrives, and each event is sent once."""
    summary = summary_of(LINE, "--reference", "--set", "radio.range=150", "--set", "workload.publishers[0].rate=2")
    assert (summary["events"], summary["pairs_delivered"], summary["packets"]) == (18, 0, 18)


# --- Complete, or not there -----------------------------------------------------------------------------------------


def test_an_earlier_run_is_replaced_only_by_force() -> None:
    assert roamcast("run", LINE, "--reference", "--out", "facts").exit_code == 0
    Path("facts/extra").touch()
    again = roamcast("run", LINE, "--reference", "--out", "facts")
    assert again.exit_code == 2
    words = "holds an earlier run; replace it with --force, or choose another with --out"
    assert again.stderr == f"error: facts: {words}\n"
    assert Path("facts/extra").exists()
    assert roamcast("run", LINE, "--reference", "--out", "facts", "--force").exit_code == 0
    assert not Path("facts/extra").exists()
    assert [path.name for path in Path().iterdir()] == ["facts"]


def test_a_table_that_is_gone_is_noticed() -> None:
    """Without its publications, a run would have missed nothing."""
    assert roamcast("run", LINE, "--reference", "--out", "facts").exit_code == 0
    Path("facts/publish.parquet").unlink()
    asked = roamcast("why", "facts", "--missed")
    words = "its table publish is missing: make it again with roamcast run --force"
    assert (asked.exit_code, asked.stderr) == (2, f"error: facts: {words}\n")


def test_what_is_no_run_is_not_replaced_even_by_force() -> None:
    Path("precious").mkdir()
    Path("precious/thesis.txt").touch()
    result = roamcast("run", LINE, "--reference", "--out", "precious", "--force")
    words = "is not empty and is not the folder of a run (run.json is missing); choose another with --out"
    assert (result.exit_code, result.stderr) == (2, f"error: precious: {words}\n")
    assert Path("precious/thesis.txt").exists()


def test_an_empty_folder_is_taken() -> None:
    Path("empty").mkdir()
    assert roamcast("run", LINE, "--reference", "--out", "empty").exit_code == 0
    assert Path("empty/run.json").exists()


def test_a_file_is_no_place_for_facts() -> None:
    Path("file").touch()
    on_it = roamcast("run", LINE, "--reference", "--out", "file")
    assert (on_it.exit_code, on_it.stderr) == (2, "error: file: is a file, not a folder\n")
    below = roamcast("run", LINE, "--reference", "--out", "file/below")
    assert (below.exit_code, below.stderr) == (2, "error: file/below: cannot be written: Not a directory\n")


@pytest.mark.parametrize("earlier", [False, True])
def test_a_run_that_raises_leaves_no_facts_and_what_was_there(earlier: bool) -> None:
    Path("raising.py").write_text(RAISING)
    if earlier:
        assert roamcast("run", LINE, "--reference", "--out", "facts").exit_code == 0
    before = {path: path.read_bytes() for path in Path("facts").rglob("*")}
    changes = ("--set", "protocol={name = 'raising.py:protocol'}")
    shutil.copy(LINE, "line.toml")
    result = roamcast("run", "line.toml", "--reference", "--out", "facts", "--force", *changes)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: RuntimeError: a defect (")
    assert "raising.py:11 in publish; node 0, publish, event 0:1, at " in result.stderr
    assert {path: path.read_bytes() for path in Path("facts").rglob("*")} == before
    assert {path.name for path in Path().iterdir()} - {"facts", "__pycache__"} == {"raising.py", "line.toml"}


def test_an_interrupt_leaves_nothing_and_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("roamcast.sim.run.run", interrupted)
    result = roamcast("run", LINE, "--reference")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert list(Path("out").iterdir()) == []


def test_a_full_disk_is_told_and_leaves_nothing() -> None:
    """Files may have 1,000 bytes here, which the system reports like a full disk: writing fails midway."""

    def tight() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    command = [*COMMAND, "run", str(LINE), "--reference"]
    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=tight, check=False)
    assert result.returncode == 2
    first_line = result.stderr.splitlines()[0]
    assert first_line.startswith("error: out/line-1: cannot be written: ")
    assert "File too large" in first_line
    assert list(Path("out").iterdir()) == []
