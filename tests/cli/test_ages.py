"""`roamcast ages`: a ferry worked out by hand, and wrong requests."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from lxml import etree

from roamcast import papers
from roamcast.cli.main import main

# Published at 10 s and a bit by node 0. It meets 1 from 20 to 30 s; 1 meets 2 from 40 to 50; from 60 to 70, 0, 1 and 3
# are a line. Nodes 2 and 3 want everything, 1 nothing.
FERRY = """
name = "ferry"
nodes = 4
duration = 100
radio = { propagation = "links" }

[protocol]
name = "opportunistic"
parameters = { interval = 1.0, carry = "everything" }

[links]
up = []
change = [
  { at = 20, up = [[0, 1]] }, { at = 30, down = [[0, 1]] },
  { at = 40, up = [[1, 2]] }, { at = 50, down = [[1, 2]] },
  { at = 60, up = [[0, 1], [1, 3]] }, { at = 70, down = [[0, 1], [1, 3]] },
]

[workload]
subscribers = [{ nodes = [2, 3] }]
publishers = [{ nodes = [0], rate = 1, start = 10, stop = 11 }]
"""


def roamcast(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ages")
    (folder / "ferry.toml").write_text(FERRY)
    for name, *more in (
        ("carried",),
        ("flooded", "--set", "protocol.name=flooding", "--set", "protocol.parameters={}"),
        ("unwanted", "--set", "workload.subscribers=[]"),
    ):
        made = roamcast("run", str(folder / "ferry.toml"), "--out", str(folder / name), *more)
        assert made.exit_code == 0, made.output
    return folder


def shares(folder: Path, *more: str) -> dict[str, Any]:
    result = roamcast("ages", str(folder), "--by", "20,35,55", "--json", *more)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_ferry_by_hand(folder: Path) -> None:
    found = shares(folder / "carried")
    assert found["pairs"] == 2
    assert found["ages"] == [20, 35, 55]
    assert found["delivered"] == found["possible"] == [0.0, 0.5, 1.0]
    assert found["of_deliveries"] == [0.0, 0.5, 1.0]
    assert found["possible_interested"] == [0.0, 0.0, 0.0]  # 1 wants nothing, and all goes through it
    assert 29 <= found["peak"] <= 53


def test_flooding_carries_nothing(folder: Path) -> None:
    found = shares(folder / "flooded")
    assert found["delivered"] == [0.0, 0.0, 0.0]
    assert found["of_deliveries"] == [None, None, None]
    assert found["possible"] == [0.0, 0.5, 1.0]
    assert found["peak"] is None
    assert "Nothing arrived within" in roamcast("ages", str(folder / "flooded")).stdout


def test_relays_carry_nothing_but_reach_further(folder: Path) -> None:
    found = shares(folder / "carried", "--hops", "2")
    assert found["possible_interested"] == [0.0, 0.0, 0.5]  # 3, when it is in a line with 0
    assert found["possible"] == [0.0, 0.5, 1.0]


def test_contacts_must_last_for_a_transfer(folder: Path) -> None:
    assert shares(folder / "carried", "--transfer", "9.9")["possible"] == [0.0, 0.0, 0.5]  # at 3 only after 69.9 s
    assert shares(folder / "carried", "--transfer", "11")["possible"] == [0.0, 0.0, 0.0]


def test_a_table_with_round_ages_and_a_figure(folder: Path) -> None:
    drawn = folder / "ages.svg"
    result = roamcast("ages", str(folder / "carried"), "--figure", str(drawn))
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [row[0] for row in rows] == ["5", "10", "15", "20", "25", "30", "35", "40", "45", "50"]
    assert rows[6] == ["35", "0.500", "1.000", "0.500", "0.000"]  # the other arrives after more than 50 s
    assert "Most arrive at an age of" in result.stdout
    words = set(map(str, etree.fromstring(drawn.read_bytes()).itertext()))
    assert {"delivered", "possible", "possible if only the interested carry"} <= words


def test_contexts_are_not_looked_at_and_it_says_so(folder: Path) -> None:
    assert "contexts" not in roamcast("ages", str(folder / "carried")).stdout
    placed = Path(papers.__file__).parent / "scenarios" / "context.toml"
    made = roamcast("run", str(placed), "--set", "duration=20", "--out", str(folder / "placed"))
    assert made.exit_code == 0, made.output
    assert "By filters alone" in roamcast("ages", str(folder / "placed")).stdout
    for name, expected in (("carried", False), ("placed", True)):
        assert json.loads(roamcast("ages", str(folder / name), "--json").stdout)["by_filters_alone"] is expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--by", "0"), "expected whole seconds from 1 to 100"),
        (("--by", "1,two"), "expected whole seconds from 1 to 100"),
        (("--by", "101"), "expected whole seconds from 1 to 100"),
        (("--transfer", str(math.nan)), "--transfer nan: expected a number of seconds"),
        (("--transfer", str(math.inf)), "--transfer inf: expected a number of seconds"),
        (("--figure", "ages.png"), "ends in .svg"),
        (("--figure", "no/such/ages.svg"), "cannot be written"),
    ],
)
def test_wrong_requests_are_refused(folder: Path, words: tuple[str, ...], says: str) -> None:
    result = roamcast("ages", str(folder / "carried"), *words)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_run_without_what_it_takes_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "nobody else wanted any event" in roamcast("ages", str(folder / "unwanted")).stderr
    moving = (
        "name = 'm'\nnodes = 2\nduration = 5\narea = { width = 9, height = 9 }\nrecord = { movement = false }\n"
        "movement = { model = 'random-waypoint', speed = [1.0, 2.0] }\nradio = { range = 5 }\n"
    )
    workload = "[workload]\nsubscribers = [{ nodes = [1] }]\npublishers = [{ nodes = [0], rate = 1 }]\n"
    (tmp_path / "m.toml").write_text(moving + workload)
    assert roamcast("run", str(tmp_path / "m.toml"), "--out", str(tmp_path / "m")).exit_code == 0
    assert "its movement was not recorded" in roamcast("ages", str(tmp_path / "m")).stderr
