"""What nodes say of themselves: constant, drawn, changing, as facts and as brokers see it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from roamcast.errors import ConfigError
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.attributes import attribute_changes
from roamcast.sim.scenario.scenario import check
from roamcast.units import SECOND


def scenario(*groups: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodes": 3,
        "duration": 10,
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1], [1, 2]]},
        "mac": {"model": "ideal"},
        "attributes": list(groups),
    }


def checked(*groups: dict[str, Any]) -> Any:  # noqa: ANN401  # a scenario
    return check(scenario(*groups), "test", Path())


def test_constant_and_drawn_values_hold_from_the_start() -> None:
    given = checked({"set": {"kind": "car"}}, {"nodes": [1], "set": {"seats": {"low": 1, "high": 4}, "fast": [True]}})
    changes = list(attribute_changes(given.attributes, 3, 7, given.end))
    assert [(change.time, change.node, sorted(change.values)) for change in changes] == [
        (0, 0, ["kind"]),
        (0, 1, ["kind"]),
        (0, 1, ["fast", "seats"]),
        (0, 2, ["kind"]),
    ]
    seats = changes[2].values["seats"]
    assert isinstance(seats, int)
    assert 1 <= seats <= 4
    assert changes == list(attribute_changes(given.attributes, 3, 7, given.end)), "the seed decides"


def test_values_that_change_are_drawn_anew_once_an_interval() -> None:
    given = checked({"nodes": [2], "set": {"n": {"low": 0.0, "high": 1.0}}, "change": 2.0})
    changes = list(attribute_changes(given.attributes, 3, 7, given.end))
    times = [change.time for change in changes]
    assert len(times) == 6  # at the start, and five intervals of 2 s
    assert times[0] == 0 < times[1] < 2 * SECOND
    assert {later - earlier for earlier, later in pairwise(times[1:])} == {2 * SECOND}
    assert len({change.values["n"] for change in changes}) == 6


def test_they_are_facts() -> None:
    sink = MemorySink()
    run(checked({"nodes": [1], "set": {"name": "x", "n": 2, "share": 0.5, "on": True}}), sink)
    assert sink.table("attribute").to_pylist() == [
        {
            "time": 0,
            "node": 1,
            "attribute": name,
            "kind": kind,
            **dict.fromkeys(("integer", "real", "text", "flag")),
            **value,
        }
        for name, kind, value in (
            ("name", "str", {"text": "x"}),
            ("n", "int", {"integer": 2}),
            ("share", "float", {"real": 0.5}),
            ("on", "bool", {"flag": True}),
        )
    ]


def test_a_broker_can_ask_for_them(tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(
        """
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker

class Asking(FloodingBroker):
    def publish(self, now, publication):
        self.port.note(f"{self.node} {self.port.attributes(now).get('kind')}")

ENTRY = Entry("asking", "", Flooding, Asking, (Data,))
""",
        encoding="utf-8",
    )
    raw = scenario({"set": {"kind": "car"}}, {"nodes": [2], "set": {"kind": "bus"}})
    raw |= {"protocol": {"name": "asking.py:ENTRY"}, "workload": {"publishers": [{"nodes": [0, 2], "rate": 0.1}]}}
    sink = MemorySink()
    run(check(raw, "test", tmp_path), sink, folder=tmp_path)
    assert [row["fact"] for row in sink.table("note").to_pylist()] == ["0 car", "2 bus"]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"nodes": [3], "set": {"a": 1}}, r"attributes\[0\].nodes: 3: nodes are numbered from 0 to 2"),
        ({"set": {"a": []}}, r"attributes\[0\].set.a: an empty list"),
        ({"set": {"a": {"low": 2, "high": 1}}}, r"attributes\[0\].set.a: low 2 is above high 1"),
        ({"set": {"a": 1}, "change": 0.0}, r"attributes\[0\].change: 0 s: at least 0.001 s"),
    ],
)
def test_what_is_wrong_is_named(group: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        checked(group)
