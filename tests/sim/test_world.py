"""Whole runs: exact, reproducible, and the same through the codec."""

import hashlib
import os
import subprocess
import sys

import pytest

from roamcast.sim import reference
from sim.worlds import SCENARIOS, facts, scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_cores_give_the_same_facts(name: str) -> None:
    compiled = facts(scenario(name))
    assert compiled["deliver"], "nothing was delivered: the comparison says little"
    assert compiled == facts(scenario(name), reference.Core)


@pytest.mark.parametrize("name", ["waypoint", "links"])
def test_passing_every_frame_through_the_codec_changes_nothing(name: str) -> None:
    assert facts(scenario(name), through_codec=True) == facts(scenario(name))


def test_another_seed_gives_another_run() -> None:
    assert facts(scenario("waypoint", seed=12)) != facts(scenario("waypoint"))


def digest(*names: str) -> str:
    return hashlib.sha256(repr([facts(scenario(name)) for name in names]).encode()).hexdigest()


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_another_process_with_another_hash_seed_gives_the_same_bytes(hash_seed: str) -> None:
    program = "from sim.test_world import digest; print(digest('waypoint', 'links'))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "tests"}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == digest("waypoint", "links")


def test_the_order_of_runs_does_not_matter() -> None:
    alone = facts(scenario("links"))
    facts(scenario("waypoint"))
    assert facts(scenario("links")) == alone


def test_the_workload_does_not_depend_on_radio_or_medium() -> None:
    one, other = facts(scenario("waypoint")), facts(scenario("waypoint", mac={"model": "ideal"}))
    for table in ("publish", "said", "subscribe", "asked", "leg"):
        assert one[table] == other[table]
    assert one["deliver"] != other["deliver"]


def test_facts_by_second_add_up_to_the_totals() -> None:
    recorded = facts(scenario("unit disk, overlap"))
    for metric in ("packets", "bits", "airtime", "receptions", "collision", "half_duplex"):
        total = sum(row[metric] for row in recorded["transmit"])
        assert total == sum(row[metric] for row in recorded["series"])
        assert total > 0, metric
