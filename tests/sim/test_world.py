"""Whole runs: exact, reproducible, and the same through the codec."""

import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check
from roamcast.sim.world import CoreMaker
from roamcast.units import SECOND
from sim.worlds import SCENARIOS, facts, scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_cores_give_the_same_facts(name: str) -> None:
    compiled = facts(scenario(name))
    assert compiled["deliver"], "nothing was delivered: the comparison says little"
    assert compiled == facts(scenario(name), reference.Core)


@pytest.mark.parametrize("name", ["away", "away, ideal"])
def test_nothing_reaches_or_leaves_a_node_that_is_away(name: str) -> None:
    recorded = facts(scenario(name))
    spans: dict[int, list[tuple[int, int]]] = {}  # when each node is away
    for row in recorded["away"]:
        if row["away"]:
            spans.setdefault(row["node"], []).append((row["time"], 2**62))
        else:
            gone, _ = spans[row["node"]].pop()
            spans[row["node"]].append((gone, row["time"]))

    def away(node: int, time: int) -> bool:
        return any(gone <= time < back for gone, back in spans.get(node, ()))

    frames = {row["frame"]: row for row in recorded["frame"]}
    assert len(spans) >= 10
    assert not [row for row in frames.values() if away(row["sender"], row["start"])]
    receptions = recorded["reception"]
    assert len(receptions) > 100
    for row in receptions:
        frame = frames[row["frame"]]
        assert not away(row["node"], frame["start"])
        assert not away(row["node"], frame["end"] - 1)
    assert recorded["deliver"]
    assert not [row for row in recorded["deliver"] if away(row["node"], row["time"])]


def test_nothing_goes_through_an_opaque_wall() -> None:
    recorded = facts(scenario("opaque walls"))
    rooms: dict[int, list[tuple[int, int]]] = {}
    for leg in recorded["leg"]:
        rooms.setdefault(leg["node"], []).append((leg["start"], leg["room"]))

    def room(node: int, time: int) -> int:
        return [number for start, number in rooms[node] if start <= time][-1]

    frames = {row["frame"]: row for row in recorded["frame"]}
    met = [
        (room(frame["sender"], frame["start"]), room(row["node"], frame["start"]))
        for row in recorded["reception"]
        for frame in [frames[row["frame"]]]
    ]
    assert all(here == there for here, there in met)
    assert len({here for here, _ in met}) > 2
    open_air = facts(scenario("opaque walls", radio={"range": 100.0}))
    assert len(open_air["reception"]) > 1.5 * len(met)


@pytest.mark.parametrize("name", ["waypoint", "links"])
def test_passing_every_frame_through_the_codec_changes_nothing(name: str) -> None:
    assert facts(scenario(name), through_codec=True) == facts(scenario(name))


def test_another_seed_gives_another_run() -> None:
    assert facts(scenario("waypoint", seed=12)) != facts(scenario("waypoint"))


@functools.cache
def digest(*names: str) -> str:
    return hashlib.sha256(repr([facts(scenario(name)) for name in names]).encode()).hexdigest()


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_another_process_with_another_hash_seed_gives_the_same_bytes(hash_seed: str) -> None:
    program = "from sim.test_world import digest; print(digest('waypoint', 'links'))"
    path = os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
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
    for table in ("publish", "event_attribute", "subscribe", "filter_constraint", "leg"):
        assert one[table] == other[table]
    assert one["deliver"] != other["deliver"]


def test_facts_by_second_add_up_to_the_totals() -> None:
    recorded = facts(scenario("unit disk, overlap"))
    for metric in ("messages", "packets", "bits", "airtime", "receptions", "collision", "half_duplex"):
        total = sum(row[metric] for row in recorded["transmit"])
        assert total == sum(row[metric] for row in recorded["series"])
        assert total > 0, metric


CAUSED = """
from dataclasses import replace
import msgspec
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Flooding, FloodingBroker
from roamcast.protocols.messages import Message

class Repair(Message, frozen=True, tag="repair"):
    number: int

    @property
    def cause(self):
        return self.number

class Caused(FloodingBroker):
    def start(self, now, kept):
        self.port.broadcast(Repair(7))
        if self.node == 0:
            self.port.unicast(1, Repair(8))
            self.port.unicast(2, Repair(9))

    def receive(self, now, sender, message):
        pass

ENTRY = Entry("caused", "", Flooding, Caused, (Repair,))
"""


@pytest.mark.parametrize("core", [None, reference.Core])
def test_what_a_cause_took_is_counted_by_node(tmp_path: Path, core: CoreMaker | None) -> None:
    """Two nodes in range, a third out of it: a broadcast each, a unicast that arrives, one that is tried 8 times."""
    (tmp_path / "caused.py").write_text(CAUSED)
    raw = {
        "nodes": 3,
        "duration": 2.0,
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1]]},
        "protocol": {"name": "caused.py:ENTRY"},
    }
    sink = MemorySink()
    run(check(raw, "caused", tmp_path), sink, folder=tmp_path, make_core=core)
    rows = [row for row in sink.table("transmit").to_pylist() if row["kind"] == "repair"]
    packets = {(row["node"], row["cause"]): row["packets"] for row in rows if row["packets"]}
    assert packets == {(0, 7): 1, (1, 7): 1, (2, 7): 1, (0, 8): 1, (0, 9): 8}
    messages = {(row["node"], row["cause"]): row["messages"] for row in rows if row["messages"]}
    assert messages == dict.fromkeys(packets, 1), "however often it was tried"
    # A version byte, an array of two, "repair" (1 + 6) and a small number: 10 bytes, and 64 of headers.
    assert {row["bits"] // row["packets"] for row in rows if row["packets"]} == {192 + 8 * 74}
    # The broadcasts all start at 0 and collide, so that only the unicast is received; by no cause, at the receiver.
    assert [(row["node"], row["cause"], row["receptions"]) for row in rows if row["receptions"]] == [(1, 0, 1)]


def test_a_subscription_ends_with_its_lifetime() -> None:
    raw = {
        "nodes": 2,
        "duration": 20.0,
        "seed": 1,
        "protocol": {"name": "opportunistic"},
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1]]},
        "workload": {
            "subscribers": [{"nodes": [1], "start": 1.0, "lifetime": 5.0}],
            "publishers": [{"nodes": [0], "rate": 1.0}],
        },
    }
    recorded = facts(check(raw, "lifetimes", Path()), reference.Core)
    begun, ended = recorded["subscribe"]
    assert (begun["active"], begun["time"], begun["lifetime"]) == (True, SECOND, 5 * SECOND)
    assert (ended["active"], ended["time"], ended["subscription"]) == (False, 6 * SECOND, begun["subscription"])
