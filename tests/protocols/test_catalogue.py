"""Protocols by name: ours, those of installed packages, those in files, and what is said when there is none."""

import os
import re
from pathlib import Path

import msgspec
import pytest

from roamcast.content.context.text import parse_context
from roamcast.content.event import Event
from roamcast.content.filter import Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import RoamcastError
from roamcast.protocols.catalogue import CATALOGUE, find
from roamcast.protocols.counter import Counter, CounterBroker
from roamcast.protocols.entry import Entry, ProtocolError
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker
from roamcast.protocols.gossip import Gossip, GossipBroker

MINE = """
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Flooding, FloodingBroker
from roamcast.protocols.flooding import Data

class Mine(FloodingBroker):
    pass

ENTRY = Entry("mine", "for a test", Flooding, Mine, (Data,))
"""


def refusal(name: str, folder: Path = Path()) -> str:
    with pytest.raises(ProtocolError) as caught:
        find(name, folder)
    assert isinstance(caught.value, RoamcastError)
    return str(caught.value)


def test_ours() -> None:
    assert (find("flooding").parameters, find("flooding").broker) == (Flooding, FloodingBroker)
    assert (find("gossip").parameters, find("gossip").broker) == (Gossip, GossipBroker)
    assert (find("counter").parameters, find("counter").broker) == (Counter, CounterBroker)


def test_every_entry_stands_under_its_name_and_needs_no_parameters() -> None:
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert entry.summary
        entry.parameters()


def test_an_unknown_name_gets_the_nearest_and_all_others() -> None:
    said = refusal("gosip")
    assert said.startswith("no protocol is named 'gosip'; did you mean 'gossip'? known are ")
    assert ", ".join(sorted(CATALOGUE)) in said
    assert said.endswith("one of your own is 'file.py:name'")
    assert "did you mean" not in refusal("xyzzy")


def test_one_in_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.py").write_text(MINE)
    entry = find("sub/mine.py:ENTRY", tmp_path)
    assert (entry.name, entry.broker.__name__) == ("mine", "Mine")
    assert find(f"{tmp_path / 'sub' / 'mine.py'}:ENTRY").name == "mine"


def test_a_file_that_gives_none(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    (tmp_path / "wrong.py").write_text("def :")
    assert refusal("absent.py:ENTRY", tmp_path) == (
        f"protocol 'absent.py:ENTRY': there is no file {tmp_path / 'absent.py'}"
    )
    assert refusal("mine.py:Entry_", tmp_path).endswith("mine.py defines no 'Entry_'")
    assert refusal("mine.py:Mine", tmp_path) == (
        "protocol 'mine.py:Mine' is ABCMeta, not an Entry of roamcast.protocols.entry"
    )
    assert refusal("broken.py:ENTRY", tmp_path).endswith("broken.py raised ZeroDivisionError: division by zero")
    assert refusal("leaving.py:ENTRY", tmp_path).endswith("leaving.py raised SystemExit: 3")
    assert re.search(r"wrong\.py raised SyntaxError: ", refusal("wrong.py:ENTRY", tmp_path))


def test_a_file_runs_once_until_it_changes_and_may_postpone_its_annotations(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from __future__ import annotations\nimport msgspec\nfrom typing import Annotated\n"
        "from roamcast.protocols.api import Parameters\n"
        "class Own(Parameters, frozen=True):\n    n: Annotated[int, msgspec.Meta(ge=1)] = 1\n"
        + MINE.replace('"for a test", Flooding', '"for a test", Own')
    )
    entry = find("mine.py:ENTRY", tmp_path)
    assert find("mine.py:ENTRY", tmp_path) is entry
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"n": 0}, entry.parameters)
    mine.write_text(MINE)
    os.utime(mine, (1, 1))
    assert find("mine.py:ENTRY", tmp_path).parameters is Flooding


def test_one_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_protocols.py").write_text(MINE)
    installed = tmp_path / "theirs-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[roamcast.protocols]\ntheirs = their_protocols:ENTRY\nodd = their_protocols:Mine\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert find("theirs").name == "mine"
    assert refusal("odd").startswith("protocol entry point 'odd' is ABCMeta, not an Entry")
    assert "did you mean 'theirs'?" in refusal("their")


def test_an_entry_has_parameters_that_every_protocol_has() -> None:
    class Bare(msgspec.Struct):
        pass

    with pytest.raises(
        ProtocolError, match=r"its parameters, Bare, must be a subclass of roamcast\.protocols\.api\.Parameters"
    ):
        Entry("bare", "", Bare, FloodingBroker, (Data,))  # type: ignore[arg-type]  # that is the point


def test_an_entry_lists_its_messages() -> None:
    with pytest.raises(ProtocolError, match="'silent' names no messages"):
        Entry("silent", "", Flooding, FloodingBroker, ())
    assert Entry("e", "", Flooding, FloodingBroker, (Data,)).codec()


def test_what_a_protocol_does_not_understand_it_refuses_by_name() -> None:
    here, cheap = parse_context("within(circle(0, 0, 5))"), Filter.where("price", "<", 20)
    event = Event("t", id=1)
    flooding = find("flooding")
    assert list(flooding.refusals(Publication(event))) == list(flooding.refusals(Subscription(1, cheap))) == []
    assert list(flooding.refusals(Publication(event, 0, here, here))) == [
        "flooding does not understand lifetimes",
        "flooding does not understand contexts, such as a context of relevance",
        "flooding does not understand domains, such as a subscription domain",
    ]
    assert list(flooding.refusals(Subscription(1, cheap, None, here, here))) == [
        "flooding does not understand contexts, such as a context of interest",
        "flooding does not understand domains, such as a publication domain",
    ]
