"""Mistakes of a first protocol are named in words, with the line that made them."""

from pathlib import Path

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim import world as worlds
from roamcast.sim.core import reference
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.raised import ProtocolRaised
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

PROTOCOL = """
from typing import ClassVar
from roamcast.protocols.api import Broker, Parameters
from roamcast.protocols.entry import Entry
from roamcast.protocols.facts import Fact
from roamcast.protocols.flooding import Data
from roamcast.protocols.messages import Message
from roamcast.units import SECOND

class Here(Message, frozen=True, tag="here"):
    pass

class Seen(Fact, frozen=True):
    table: ClassVar[str] = "seen"
    count: int

class Mine(Broker[Parameters]):
    def start(self, now, kept):
        super().start(now, kept)
        self.port.set_timer(now + SECOND, "go")

    def publish(self, now, publication):
        pass

    def receive(self, now, sender, message):
        pass

    def timer(self, now, key):
        STATEMENT

ENTRY = Entry("mine", "a first try", Parameters, Mine, (Here, Data), facts=(Seen,))
"""


def tried(
    folder: Path, statement: str, *changes: tuple[str, str], make_core: worlds.CoreMaker | None = reference.Core
) -> None:
    text = PROTOCOL.replace("STATEMENT", statement)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "mine.py").write_text(text)
    raw = {
        "nodes": 2,
        "duration": 3,
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1]]},
        "protocol": {"name": "mine.py:ENTRY"},
        "record": {"decisions": True},
    }
    run(check(raw, "a test", folder), MemorySink(), folder=folder, make_core=make_core)


@pytest.mark.parametrize(
    ("statement", "changes", "said"),
    [
        ("self.port.broadcast(Here())", [("(Here, Data)", "(Data,)")], "the message Here is not among the messages"),
        ("self.port.record(Seen(1))", [(", facts=(Seen,)", "")], "the fact Seen is not among the facts"),
        ("self.port.decide(1, 'unlucky')", [], "ValueError: decision 'unlucky': expected one of forwarded, suppressed"),
        ("self.port.set_timer(now - 5, key)", [], "RuntimeError: timers are set for now or earlier again and again"),
        ("{}['prize']", [], "KeyError: 'prize'"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    changes: list[tuple[str, str]],
    said: str,
) -> None:
    monkeypatch.setattr(worlds, "MOST_AT_ONCE", 1000)
    with pytest.raises(ProtocolRaised) as raised:
        tried(tmp_path, statement, *changes)
    assert str(raised.value).startswith(said)
    assert "mine.py:29 in timer; node 0, timer, at 1.000000 s)" in str(raised.value)


def test_seconds_instead_of_nanoseconds(tmp_path: Path) -> None:
    with pytest.raises(ProtocolRaised, match=r"^a time of 0\.5: times are whole nanoseconds"):
        tried(tmp_path, "self.port.broadcast(Here(), 0.5)", make_core=None)


def test_what_is_right_raises_nothing(tmp_path: Path) -> None:
    tried(tmp_path, "self.port.broadcast(Here(), 5); self.port.record(Seen(1)); self.port.decide(1, 'no route')")


def test_two_messages_with_one_tag_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="Here and Data have the same tag, 'data': give each one of its own"):
        tried(tmp_path, "pass", ('tag="here"', 'tag="data"'))
