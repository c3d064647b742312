"""Whole runs in the simulator."""

from collections import defaultdict
from pathlib import Path

import pytest

from roamcast.facts.recorder import Recorder
from roamcast.facts.schema import tables_of
from roamcast.facts.sinks import MemorySink
from roamcast.protocols.api import Broker
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


def test_one_call_for_all_receivers_means_the_same_as_one_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eighth law of `protocols/api.py`."""
    raw = read(CARRIED) | {"duration": 240.0, "cooldown": 0.0}
    raw["radio"]["loss"] = 0.2
    raw["protocol"]["parameters"]["scope"] = 3
    scenario = check(raw, "carried", CARRIED.parent)
    tables = []
    for one_by_one in (False, True):
        sink = MemorySink()
        recorder = Recorder(sink, tables_of(ENTRY.facts))
        world = World(scenario, recorder, compiled_core(), CARRIED.parent)
        if one_by_one:
            monkeypatch.setattr(world, "_hosted", Broker)
        world.run()
        recorder.close()
        tables.append({name: table.to_pylist() for name, table in sink.tables().items()})
    assert len(tables[0]["deliver"]) > 20
    assert tables[0] == tables[1]
