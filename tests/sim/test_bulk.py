"""Bulks and tracked messages, from a broker to the others: law 7 of the contract, and who is told what and when."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check
from roamcast.sim.world import CoreMaker

PROTOCOL = """
import itertools
from typing import ClassVar
from roamcast.protocols.api import Broker, Parameters
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Bulk, Message

class Piece(Message, frozen=True, tag="piece"):
    document: int
    number: int
    data: bytes

    @property
    def cause(self):
        return 100 + self.document

class Word(Message, frozen=True, tag="word"):
    tracked: ClassVar[bool] = True
    document: int

class Document(Bulk):
    piece = Piece

    def __init__(self, number, count, size):
        self.number, self.count, self.size = number, count, size

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        return Piece(self.number, number, bytes(self.size))

    @property
    def event_id(self):
        return 9_000 + self.number

class Options(Parameters, frozen=True, kw_only=True):
    alone: bool = False
    pieces: int = 20
    size: int = 300
    words: bool = False

def _document_of(sent):
    return sent.number if isinstance(sent, Bulk) else sent.document

class Sender(Broker):
    calls = itertools.count()

    def start(self, now, kept):
        for turn in range(3):
            self.port.set_timer(now + (1 + 5 * self.node + 300 * turn) * 1_000_000, turn)

    def publish(self, now, publication):
        pass

    def timer(self, now, turn):
        number = self.node * 10 + turn
        bulk = Document(number, self.params.pieces, self.params.size)
        if self.params.words:
            self.port.broadcast(Word(number))
            self.port.unicast(self.node ^ 1, Word(50 + number))
        elif self.params.alone:
            for piece in range(len(bulk)):
                self.port.broadcast(bulk[piece])
        else:
            self.port.broadcast_bulk(bulk)

    def receive(self, now, sender, message):
        self.port.note(f"{sender} {message.document} {getattr(message, 'number', '')}")

    def left(self, now, message):
        self.port.note(f"left {_document_of(message)}")

    def dropped(self, now, message):
        self.port.note(f"dropped {_document_of(message)}")

class Ordered(Sender):
    def receive_bulk(self, now, sender, bulk, received):
        self.port.note(f"{next(self.calls)} {bulk.number} {received:b}")

    def left(self, now, bulk):
        self.port.note(f"{next(self.calls)} {bulk.number} left")

ENTRY = Entry("sender", "", Options, Sender, (Piece, Word))
ORDERED = Entry("ordered", "", Options, Ordered, (Piece, Word))
"""
LINKS = {"up": [[a, b] for a in range(4) for b in range(a)], "loss": 0.3}


def facts(
    folder: Path,
    entry: str = "ENTRY",
    core: CoreMaker | None = None,
    codec: bool = False,
    **more: Any,  # noqa: ANN401  # fields of a scenario
) -> dict[str, list[Any]]:
    (folder / "bulky.py").write_text(PROTOCOL)
    parameters = more.pop("parameters", {})
    raw: dict[str, Any] = {
        "nodes": 4,
        "duration": 2.0,
        "radio": {"propagation": "links"},
        "links": LINKS,
        "protocol": {"name": f"bulky.py:{entry}", "parameters": parameters},
        **more,
    }
    sink = MemorySink()
    run(check(raw, "bulky", folder), sink, folder=folder, make_core=core, through_codec=codec)
    return {name: table.to_pylist() for name, table in sink.tables().items()}


def notes(of: dict[str, list[Any]]) -> dict[tuple[int, str], int]:
    return {(row["node"], row["fact"]): row["count"] for row in of["note"]}


IDEAL = {"model": "ideal"}


def test_a_bulk_is_its_pieces(tmp_path: Path) -> None:
    """Law 7: with the ideal MAC and equal sizes the same draws decide over the pieces, sent alone or not."""
    whole = notes(facts(tmp_path, mac=IDEAL))
    alone = notes(facts(tmp_path, mac=IDEAL, parameters={"alone": True}))
    pieces = {key: count for key, count in whole.items() if not key[1].startswith("left")}
    assert pieces == alone
    assert 400 < len(pieces) < 4 * 3 * 3 * 20 - 100
    assert {key for key in whole if key not in pieces} == {
        (node, f"left {10 * node + turn}") for node in range(4) for turn in range(3)
    }


@pytest.mark.parametrize("mac", [IDEAL, {"model": "dcf"}], ids=["ideal", "dcf"])
def test_through_the_codec_it_arrives_piece_by_piece_and_means_the_same(tmp_path: Path, mac: dict[str, Any]) -> None:
    assert facts(tmp_path, mac=mac, codec=True) == facts(tmp_path, mac=mac)


@pytest.mark.parametrize("away", [(), ({"on": [0.05, 0.2], "off": [0.01, 0.1]},)], ids=["", "away"])
@pytest.mark.parametrize("mode", ["restart", "suspended"])
def test_both_cores_give_the_same_facts(tmp_path: Path, away: tuple[dict[str, Any], ...], mode: str) -> None:
    more: dict[str, Any] = {"away": [{**group, "mode": mode} for group in away], "record": {"frames": True}}
    compiled = facts(tmp_path, **more)
    assert len(compiled["note"]) > 20
    assert compiled == facts(tmp_path, core=reference.Core, **more)


def test_the_receivers_come_first_by_number_and_then_the_sender(tmp_path: Path) -> None:
    links = {"up": LINKS["up"]}
    recorded = notes(facts(tmp_path, "ORDERED", links=links, mac=IDEAL, parameters={"pieces": 3}))
    calls = sorted((int(fact.split()[0]), node, *fact.split()[1:]) for node, fact in recorded)
    expected = []
    for turn in range(3):
        for sender in range(4):
            document = str(10 * sender + turn)
            expected += [(node, document, "111") for node in range(4) if node != sender] + [(sender, document, "left")]
    assert [call[1:] for call in calls] == expected


def test_a_bulk_for_which_the_queue_is_full_is_dropped(tmp_path: Path) -> None:
    # The first, of 62 pieces of 12 ms, is still being sent when the third comes 0.6 s later; the second waits.
    recorded = notes(
        facts(tmp_path, duration=20.0, mac={"queue": 1, "rate": 1}, parameters={"pieces": 62, "size": 1400})
    )
    told = {(node, fact) for node, fact in recorded if fact.startswith(("left", "dropped"))}
    fates = enumerate(["left", "left", "dropped"])
    assert told == {(node, f"{fate} {10 * node + turn}") for turn, fate in fates for node in range(4)}


def test_tracked_messages_are_told_of_when_broadcast(tmp_path: Path) -> None:
    recorded = notes(facts(tmp_path, mac=IDEAL, parameters={"words": True}))
    assert {(node, fact) for node, fact in recorded if fact.startswith("left")} == {
        (node, f"left {10 * node + turn}") for node in range(4) for turn in range(3)
    }


def test_frames_and_costs_of_a_bulk(tmp_path: Path) -> None:
    recorded = facts(tmp_path, mac=IDEAL, record={"frames": True})
    frames = [row for row in recorded["frame"] if row["cause"] == 112]  # node 1's third
    assert [(row["sender"], row["kind"], row["event"], row["packets"]) for row in frames] == [
        (1, "piece", 9_012, 1)
    ] * 20
    rows = [row for row in recorded["transmit"] if row["cause"] == 112]
    # A version byte, an array of four, "piece" (1 + 5), two small numbers and bytes (3 + 300): 313 bytes and 64.
    bits = 20 * (192 + 8 * (313 + 64))
    assert [(row["node"], row["messages"], row["packets"], row["bits"]) for row in rows] == [(1, 20, 20, bits)]


def test_messages_count_if_they_were_sent(tmp_path: Path) -> None:
    # At 1 ms node 0 broadcasts a word, which takes more than 0.4 ms, and has another in its queue; then it is gone.
    away = [{"nodes": [0], "mode": "restart", "times": [[0.0011, 9.0]]}]
    recorded = facts(tmp_path, parameters={"words": True}, away=away)
    rows = [row for row in recorded["transmit"] if row["node"] == 0 and row["kind"] == "word" and row["packets"]]
    assert [(row["messages"], row["packets"]) for row in rows] == [(1, 1)]


def test_of_a_bulk_that_broke_off_what_was_sent_counts(tmp_path: Path) -> None:
    # A piece takes 1.7 ms, with the ideal MAC back to back: from 1 ms to 2.1 ms the first is sent.
    away = [{"nodes": [0], "mode": "restart", "times": [[0.0021, 9.0]]}]
    recorded = facts(tmp_path, mac=IDEAL, away=away)
    rows = [row for row in recorded["transmit"] if row["cause"] == 100]
    assert [(row["node"], row["messages"], row["packets"]) for row in rows] == [(0, 1, 1)]


def test_a_piece_is_one_frame_even_if_it_is_longer_than_the_mtu(tmp_path: Path) -> None:
    recorded = facts(tmp_path, mac={**IDEAL, "mtu": 100}, record={"frames": True})
    assert {(row["packets"], row["size"]) for row in recorded["frame"]} == {(1, 313)}
