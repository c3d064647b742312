"""What a broker senses: in the simulator, where the core has its node."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.protocols.testing import RecordingPort
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

SENSING = """
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Flooding, FloodingBroker
from roamcast.protocols.flooding import Data

class Sensing(FloodingBroker):
    def start(self, now, kept):
        self.timer(now, 0)

    def timer(self, now, key):
        self.port.note(f"{now} {self.port.here(now)} {dict(self.port.attributes(now))}")
        self.port.set_timer(now + 1_000_000_000, key)

ENTRY = Entry("sensing", "", Flooding, Sensing, (Data,))
"""


def sensed(tmp_path: Path, **raw: Any) -> tuple[set[tuple[int, str]], MemorySink]:  # noqa: ANN401  # of a scenario
    (tmp_path / "sensing.py").write_text(SENSING)
    sink = MemorySink()
    scenario = check({"protocol": {"name": "sensing.py:ENTRY"}, "duration": 3.5, **raw}, "sensing", tmp_path)
    run(scenario, sink, folder=tmp_path, make_core=reference.Core)
    return {(row["node"], row["fact"]) for row in sink.table("note").to_pylist()}, sink


def test_nodes_that_stand_are_where_they_were_put(tmp_path: Path) -> None:
    found, _ = sensed(
        tmp_path,
        nodes=2,
        area={"width": 100, "height": 100},
        movement={"model": "static", "positions": [[1, 2], [30, 40.5]]},
    )
    times = ("0", "1000000000", "2000000000", "3000000000")
    assert found == {(0, f"{at} (1.0, 2.0) {{}}") for at in times} | {(1, f"{at} (30.0, 40.5) {{}}") for at in times}


def test_nodes_that_walk_are_on_their_leg(tmp_path: Path) -> None:
    found, sink = sensed(
        tmp_path,
        nodes=3,
        area={"width": 100, "height": 100},
        movement={"model": "random-waypoint", "speed": [20.0, 40.0]},
    )
    assert len(found) == 12
    legs = sink.table("leg").to_pylist()
    assert len(legs) > 3, "nobody turned: the comparison says little"
    for node, fact in found:
        now, _, rest = fact.partition(" ")
        x, y = (float(number) for number in rest.split(")")[0].strip("(").split(","))
        (leg,) = (leg for leg in legs if leg["node"] == node and leg["start"] <= int(now) < leg["end"])
        part = (int(now) - leg["start"]) / (leg["end"] - leg["start"])
        assert x == pytest.approx(leg["x0"] + part * (leg["x1"] - leg["x0"]))
        assert y == pytest.approx(leg["y0"] + part * (leg["y1"] - leg["y0"]))


def test_with_links_nobody_knows(tmp_path: Path) -> None:
    found, _ = sensed(tmp_path, nodes=2, radio={"propagation": "links"}, links={"up": [[0, 1]]})
    assert {fact.partition(" ")[2] for _, fact in found} == {"None {}"}


def test_in_a_test_it_is_what_the_test_says() -> None:
    port = RecordingPort()
    assert (port.here(5), port.attributes(5)) == (None, {})
    port = RecordingPort(position=(1.0, 2.0), properties={"role": "medic"})
    assert (port.here(5), port.attributes(5)) == ((1.0, 2.0), {"role": "medic"})
