"""Attacks with more signatures than a node has time for: it checks so many per second, and nobody else loses by it."""

import pytest

from live.memory_store import authors
from live.test_admission import Door, said
from live.test_introductions import own
from roamcast.live import checks
from roamcast.live.authors import Authors
from roamcast.live.certificates import Certificate
from roamcast.live.introductions import Introduction
from roamcast.protocols.flooding import Data
from roamcast.units import SECOND

PER_SECOND, BURST = 200, 16
ATTACKER, HONEST = 66, 9


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_COST", SECOND // PER_SECOND)
    monkeypatch.setattr(checks, "BURST", BURST)


def door_for(*others: Authors) -> Door:
    """That of a node that knows these authors."""
    known = authors(1)
    for author in others:
        known.take(own(author))
    return Door(known)


def flooded(events: int) -> tuple[Door, int, set[int]]:
    """Within a second a member sends so many events that it signs properly, and an honest neighbour twenty: the
    signatures that were checked until then, and the honest events that were admitted."""
    member, two = authors(ATTACKER), authors(2)
    door = door_for(member, two)
    true = [said(two, number) for number in range(1, 21)]
    for number in range(events):
        now = number * SECOND // events
        door.agenda.run(now)
        door.admission.hear(now, ATTACKER, Data(said(member, number + 1), 0), 100)
        if number % (events // 20) == 0 and true:
            door.admission.hear(now, HONEST, Data(true.pop(0), 0), 100)
    door.agenda.run(SECOND)
    assert not true
    return door, door.admission._signatures.computed, {one.event.id for one in door.admitted if one.event.author == 2}


@pytest.mark.usefixtures("few")
def test_a_flood_of_signatures_costs_so_many_per_second_and_no_honest_event() -> None:
    door, computed, honest = flooded(500)
    assert PER_SECOND <= computed <= PER_SECOND + BURST + 1
    assert len(honest) == 20
    assert door.admission.tables["messages to be checked"] > 0


def test_with_a_higher_budget_the_same_flood_is_checked_whole() -> None:
    _, computed, honest = flooded(500)
    assert (computed, len(honest)) == (520, 20)


@pytest.mark.usefixtures("few")
def test_what_waits_is_checked_later_in_the_order_of_its_sender() -> None:
    member = authors(ATTACKER)
    door = door_for(member)
    for number in range(1, 101):
        door.admission.hear(0, ATTACKER, Data(said(member, number), 0), 100)
    assert len(door.admitted) == BURST
    door.agenda.run(SECOND)
    assert [one.event.id & 0xFFFFFFFF for one in door.admitted] == list(range(1, 101))
    assert door.counters == {}


@pytest.mark.usefixtures("few")
def test_too_many_that_wait_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_WAITING", 50)
    member, two = authors(ATTACKER), authors(2)
    door = door_for(member, two)
    for number in range(1, 101):
        door.admission.hear(0, ATTACKER, Data(said(member, number), 0), 100)
    door.admission.hear(0, HONEST, Data(said(two), 0), 100)
    assert door.counters["not checked"] == 100 - BURST - 50 + 1
    assert door.admission.tables["messages to be checked"] == 50
    door.agenda.run(SECOND // 10)
    assert [one.event.author for one in door.admitted].count(2) == 1  # it waited behind one message, not behind 50


@pytest.mark.usefixtures("few")
def test_a_copy_of_what_was_checked_does_not_wait() -> None:
    member = authors(ATTACKER)
    door = door_for(member)
    copies = [Data(said(member, number), 0) for number in range(1, BURST + 2)]
    for message in copies:
        door.admission.hear(0, ATTACKER, message, 100)
    door.admission.hear(0, HONEST, replaced(copies[0]), 100)
    assert door.admitted == [*copies[:BURST], replaced(copies[0])]


def replaced(message: Data) -> Data:
    return Data(message.event, message.hops + 1)


@pytest.mark.usefixtures("few")
def test_invented_certificates_are_bounded_too_and_an_honest_one_has_its_turn() -> None:
    """They cost as much as events: eight in a frame."""
    door = door_for()
    known = door.admission.authors
    assert known is not None
    true, before = own(authors(2)), known.computed
    for number in range(100):
        invented = tuple(Certificate(100 + 8 * number + n, true.key, 0, bytes(64)) for n in range(8))
        door.admission.hear(0, ATTACKER, Introduction(0, invented), 700)
    door.admission.hear(0, HONEST, Introduction(0, (true,)), 100)
    assert known.computed - before <= BURST + 8
    door.agenda.run(SECOND // 4)
    assert known.computed - before <= PER_SECOND // 4 + BURST + 8
    assert known.certificate(2) == true


@pytest.mark.usefixtures("few")
def test_what_a_broker_has_put_together_is_not_checked_when_the_budget_is_used_up_and_may_come_again() -> None:
    member = authors(ATTACKER)
    door = door_for(member)
    events = [said(member, number) for number in range(1, BURST + 2)]
    assert [door.admission.is_authentic(event) for event in events] == [True] * BURST + [False]
    assert door.admission.is_authentic(events[0])
    assert door.counters == {"not checked": 1}
    door.admission.hear(SECOND, HONEST, Introduction(0), 10)  # time passes
    assert door.admission.is_authentic(events[-1])


@pytest.mark.usefixtures("few")
def test_what_was_admitted_is_delivered_whatever_the_budget() -> None:
    member = authors(ATTACKER)
    door = door_for(member)
    for number in range(1, 2 * BURST):
        door.admission.is_authentic(said(member, number))
    assert door.admission.authorship(said(member, 1000)) is not None
