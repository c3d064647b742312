"""Whole runs in the simulator."""

from collections import defaultdict
from pathlib import Path

import pytest

from roamcast.facts.recorder import Recorder
from roamcast.facts.schema import tables_of
from roamcast.facts.sinks import MemorySink
from roamcast.protocols.opportunistic.broker import ENTRY, OpportunisticBroker
from roamcast.sim.run import compiled_core
from roamcast.sim.scenario.scenario import check, read
from roamcast.sim.world import World

CARRIED = Path(__file__).parents[3] / "examples" / "opportunistic.toml"


@pytest.mark.parametrize("loss", [0.0, 0.2], ids=["no loss", "loss, so that documents are put together from pieces"])
def test_a_payload_exists_once_however_many_nodes_carry_it(loss: float) -> None:
    raw = read(CARRIED) | {"duration": 300.0, "cooldown": 0.0}
    raw["radio"]["loss"] = loss
    scenario = check(raw, "carried", CARRIED.parent)
    recorder = Recorder(MemorySink(), tables_of(ENTRY.facts))
    world = World(scenario, recorder, compiled_core(), CARRIED.parent)
    world.run()
    payloads: defaultdict[int, list[bytes]] = defaultdict(list)
    for broker in world.brokers:
        assert isinstance(broker, OpportunisticBroker)
        for held in broker._holdings.cache:
            payloads[held.document.id].append(held.document.event.payload)
    assert max(map(len, payloads.values())) > 10
    assert all(len(set(map(id, copies))) == 1 for copies in payloads.values())
