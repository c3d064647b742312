"""What a member once kept a node busy with: each attack of `bench.fuzz.attacks`, and the work that is left of it."""

import random
from collections.abc import Callable, Iterator
from time import process_time

import pytest
from bench.fuzz.attacks import ATTACKS, LONGEST, Input, Node, framed, slowest

from roamcast.content import filter as filters
from roamcast.content.event import Event, event_id
from roamcast.content.filter import Constraint, Filter, Operator
from roamcast.content.subscription import Publication
from roamcast.content.text import parse_filter
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.codec import FrameError
from roamcast.protocols.messages import limits_of
from roamcast.protocols.opportunistic import catalog
from roamcast.protocols.opportunistic.messages import Announce
from roamcast.protocols.tree import forwarding
from roamcast.protocols.tree.broker import TreeBroker
from roamcast.protocols.tree.forwarding_messages import Routes

BOUND = 0.2
"""Seconds of CPU for one call on a busy machine; a quiet one takes a quarter. They took from 1.5 to 53."""


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_call_takes_long(attack: Callable[[], Iterator[Input]]) -> None:
    spent, call = slowest(attack)
    if spent >= BOUND:  # the machine, or the call?
        spent, call = slowest(attack, times=2)
    assert spent < BOUND, call


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE)
def test_every_kind_has_a_largest_length_far_below_what_the_link_can_carry(entry: object) -> None:
    for message in entry.messages:  # type: ignore[attr-defined]
        octets, elements = limits_of(message)
        assert octets <= LONGEST / 8
        assert elements <= 2**16
        assert message.role != "control" or elements <= 2**14


@pytest.mark.parametrize("kind", ["data", "nonsense"])
def test_a_frame_that_is_too_long_is_refused_in_no_time(kind: str) -> None:
    codec = CATALOGUE["flooding"].codec()
    frame = framed([kind, ["t", {"a": [1] * 2_000_000}, b"", 7], 0])
    started = process_time()
    with pytest.raises(FrameError):
        codec.decode(frame)
    assert process_time() - started < 0.02


def test_what_every_receiver_would_refuse_is_not_sent() -> None:
    codec = CATALOGUE["coman"].codec()
    filter = Filter(tuple((Constraint("a", Operator.CONTAINS, f"{n:060}"),) for n in range(256)))
    message = Routes(1, 1, 0, True, False, False, (filter,))
    with pytest.raises(FrameError, match=r"'routes' with 1.* bytes: at most 16384 are allowed"):
        codec.sendable(message)
    with pytest.raises(FrameError):
        codec.decode(codec.encode(message))


def test_an_announce_makes_so_many_comparisons_and_goes_on_at_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """By counting: each pair of a profile and a content is matched once, a share at each announce, and none is left."""
    made = 0
    holds = Constraint.holds

    def counted(constraint: Constraint, event: Event) -> bool:
        nonlocal made
        made += len(event.values(constraint.attribute))
        return holds(constraint, event)

    monkeypatch.setattr(filters.Constraint, "holds", counted)
    monkeypatch.setattr(catalog, "MAX_TESTS", 2000)
    node = Node("opportunistic", {"neighbours": 64}, wanted=None)
    for serial in range(1, 41):
        event = Event.of("t", {"a": [serial * 1000 + n for n in range(10)]}, id=event_id(5, serial))
        node.broker.publish(0, Publication(event))
    for neighbour in range(6, 26):
        wanted = [(Constraint("a", Operator.EQ, -n - 1000 * neighbour),) for n in range(19)]
        wanted.append((Constraint("a", Operator.EQ, neighbour * 1000),))  # the document with this serial
        node.hear(neighbour, framed(Announce(1, 0, 1, (), (), Filter(tuple(wanted)), (), (), (), (), ())))
    offered: set[int] = set()
    turns = total = 0
    while len(offered) < 20:
        turns += 1
        made = 0
        node.port.clear()
        node.broker.timer(node.port.now, "announce")
        assert 0 < made <= 2000
        total += made
        for message in node.port.messages:
            assert isinstance(message, Announce)
            offered.update(listed.event.id & 0xFFFFFFFF for listed in message.catalog)
    assert offered == set(range(6, 26))
    # The last of them is the 25th document: 20 profiles of 20 constraints were matched with 24 documents or more of 10
    # values. A comparison that holds ends a pair.
    assert 20 * 20 * 24 * 10 * 0.9 < total <= 20 * 20 * 40 * 10
    assert turns >= total / 2000


def test_invented_profiles_do_not_keep_an_honest_one_waiting() -> None:
    node = Node("opportunistic", wanted=None)
    for serial in range(1, 51):
        event = Event.of("t", {"a": serial, "b": list(range(50))}, id=event_id(5, serial))
        node.broker.publish(0, Publication(event))
    for neighbour in range(6, 206):  # one document with one of these profiles takes ten times its share of an announce
        wanted = Filter(tuple((Constraint("b", Operator.EQ, -n - 1000 * neighbour),) for n in range(200)))
        node.hear(neighbour, framed(Announce(1, 0, 1, (), (), wanted, (), (), (), (), ())))
    node.hear(900, framed(Announce(1, 0, 1, (), (), parse_filter("a > 0"), (), (), (), (), ())))
    node.port.clear()
    node.broker.timer(node.port.now, "announce")
    assert sum(len(message.catalog) for message in node.port.messages if isinstance(message, Announce)) == 50


def test_filters_of_many_neighbours_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MAX_TOTAL", 500)
    node = Node("coman")
    assert isinstance(node.broker, TreeBroker)
    rng, summarised = random.Random(1), 0
    for neighbour in range(1, 5):
        node.broker.routing.link_up(0, neighbour)
        for serial in range(1, 4):
            texts = ["".join(rng.choices("ab", k=12)) for _ in range(100)]
            added = tuple(Filter(((Constraint("a", Operator.CONTAINS, text),),)) for text in texts)
            node.broker.receive(0, neighbour, Routes(1, serial, 0, serial == 1, True, False, added))
            summarised += node.port.notes["summarised"]
            node.port.clear()
        assert node.broker.routing.tables()["interests"] <= 500 + 1
    assert summarised >= 3


@pytest.mark.parametrize("bounded", [True, False], ids=["bounded", "control"])
@pytest.mark.parametrize("late", [True, False], ids=["links come later", "links are there"])
def test_filters_times_links_are_bounded_and_no_event_is_lost(
    bounded: bool, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one change may touch. The one who brings too much gets more events than it wants, and none fewer."""
    if bounded:
        monkeypatch.setattr(forwarding, "MAX_ADVERTISED", 500)
    node = Node("coman", wanted=None)
    assert isinstance(node.broker, TreeBroker)
    routing = node.broker.routing
    links = range(1, 11)
    for neighbour in [1] if late else links:
        routing.link_up(0, neighbour)
    wanted = tuple(Filter(((Constraint("a", Operator.EQ, n),),)) for n in range(100))
    node.hear(1, framed(Routes(1, 1, 0, True, False, False, wanted)))
    for neighbour in links:
        routing.link_up(0, neighbour)
    sent = []
    for number, value in enumerate((7, 700)):
        node.port.clear()
        event = Event.of("t", {"a": value}, id=event_id(2, number + 1))
        node.broker.receive(0, 2, node.codec.decode(framed(["routed", event, 0, []])))
        sent.append(sorted(one.to for one in node.port.sent.values() if one.to is not None))
    assert routing.tables()["interests"] == (1 if bounded else 100)
    assert sent == [[1], [1] if bounded else []]


def test_an_event_that_takes_too_long_to_match_goes_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node("coman", wanted=None)
    assert isinstance(node.broker, TreeBroker)
    for neighbour in (1, 2, 3):
        node.broker.routing.link_up(0, neighbour)
    for neighbour in (2, 3):
        added = tuple(Filter(((Constraint("a", Operator.CONTAINS, f"{neighbour} {n:03}"),),)) for n in range(250))
        node.hear(neighbour, framed(Routes(1, 1, 0, True, False, False, added)))
    few = Event.of("t", {"a": "2 007"}, id=event_id(1, 1))
    many = Event.of("t", {"a": [f"x{n}" for n in range(500)]}, id=event_id(1, 2))
    sent = []
    for event in (few, many):
        node.port.clear()
        node.broker.receive(0, 1, node.codec.decode(framed(["routed", event, 0, []])))
        sent.append(sorted(one.to for one in node.port.sent.values() if one.to is not None))
    assert sent == [[2], [2, 3]]
