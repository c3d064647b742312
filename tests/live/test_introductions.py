"""Introductions: authors are known before their events are judged, and everything about it is bounded."""

import random
from typing import Any

import msgspec
import pytest

from live.memory_store import authors
from roamcast.live.authors import Authors
from roamcast.live.certificates import MAX_REVOKED, Certificate, MembersFile, Revocations
from roamcast.live.identity import Identity
from roamcast.live.introductions import (
    FORGOTTEN,
    MAX_CERTIFICATES,
    MAX_WAITING,
    MAX_WAITING_BYTES,
    PATIENCE,
    Introduction,
    Introductions,
)
from roamcast.protocols.codec import Codec
from roamcast.protocols.messages import Message
from roamcast.units import SECOND


class Note(Message, frozen=True, tag="note"):
    number: int


class Agenda:
    """Tasks for later, carried out by the test."""

    def __init__(self) -> None:
        self.tasks: list[tuple[int, Any]] = []

    def plan(self, at: int, task: Any) -> int:  # noqa: ANN401  # a function
        self.tasks.append((at, task))
        return 0

    def run(self, until: int) -> None:
        while due := sorted([task for task in self.tasks if task[0] <= until], key=lambda task: task[0]):
            self.tasks.remove(due[0])
            due[0][1](due[0][0])


class One:
    """A node's introductions, and what came of them."""

    def __init__(self, known: Authors) -> None:
        self.sent: list[tuple[int | None, Introduction]] = []
        self.judged: list[tuple[int, Message]] = []
        self.agenda = Agenda()
        self.introductions = Introductions(
            known,
            self.agenda,  # type: ignore[arg-type]
            random.Random(1),
            send=lambda to, message: self.sent.append((to, message)),
            judge=lambda sender, message, _: self.judged.append((sender, message)),
        )

    def certificates(self) -> list[int]:
        return [certificate.node for _, message in self.sent for certificate in message.certificates]


OWNER = Identity.new()


def own(known: Authors) -> Certificate:
    assert known.own is not None
    return known.own


def test_an_author_is_introduced_once_until_somebody_appears() -> None:
    known, other = authors(1), authors(2)
    known.take(own(other))
    ahead = One(known).introductions.ahead_of
    one = One(known)
    ahead = one.introductions.ahead_of
    assert [message.certificates for message in ahead([2])] == [(own(other),)]
    assert ahead([2]) == []
    assert [message.certificates for message in ahead([1, 2, 9])] == [(own(known),)]
    one.introductions.meet(0, 7)
    assert [message.certificates for message in ahead([1, 2, 2])] == [(own(known), own(other))]
    one.introductions.meet(1, 7)
    assert ahead([1, 2]) == []
    one.introductions.meet(1 + FORGOTTEN + 1, 7)
    assert len(ahead([1, 2])) == 1


def test_a_new_certificate_is_introduced_at_once() -> None:
    known = authors(1, OWNER)
    members = MembersFile().add(1, known.identity.public, OWNER)
    known.take_members(members)
    one = One(known)
    assert len(one.introductions.ahead_of([1])) == 1
    assert one.introductions.ahead_of([1]) == []
    known.take_members(members.revoke(1, OWNER).add(1, known.identity.public, OWNER))
    assert len(one.introductions.ahead_of([1])) == 1


def test_newcomers_are_greeted_together_and_not_more_than_once_a_second() -> None:
    one = One(authors(1))
    for sender in range(100):
        one.introductions.meet(0, sender)
    one.agenda.run(SECOND // 4)
    assert one.certificates() == [1]
    for moment in range(100):
        one.introductions.meet(SECOND // 2 + moment, 1000 + moment)
    one.agenda.run(3 * SECOND)
    assert one.certificates() == [1, 1]


def test_a_message_waits_for_its_authors_and_its_sender_is_asked() -> None:
    known, two, three = authors(1), authors(2), authors(3)
    one = One(known)
    one.introductions.ask(0, 9, (2, 3))
    one.introductions.wait(0, 9, Note(1), 10, (2, 3))
    one.introductions.ask(1, 9, (2,))
    one.introductions.wait(1, 9, Note(2), 10, (2,))
    assert [(to, message.asked) for to, message in one.sent] == [(9, (2, 3))]  # not asked again at once
    one.introductions.hear(2, 8, Introduction(0, (own(two),)))
    assert one.judged == [(9, Note(2))]
    one.introductions.hear(3, 8, Introduction(0, (own(three),)))
    assert one.judged == [(9, Note(2)), (9, Note(1))]
    assert len(one.introductions) == 0


def test_nobody_waits_for_ever() -> None:
    one = One(authors(1))
    one.introductions.wait(0, 9, Note(1), 10, (2,))
    one.agenda.run(PATIENCE - 1)
    assert one.judged == []
    one.agenda.run(PATIENCE)
    assert one.judged == [(9, Note(1))]


@pytest.mark.parametrize(("size", "most"), [(1, MAX_WAITING), (MAX_WAITING_BYTES // 4, 4)])
def test_what_waits_is_bounded(size: int, most: int) -> None:
    one = One(authors(1))
    for number in range(most + 5):
        one.introductions.wait(0, 9, Note(number), size, (100 + number,))
    assert len(one.introductions) == most
    assert [message for _, message in one.judged] == [Note(most + number) for number in range(5)]


def test_who_is_asked_answers_to_all_once_a_second() -> None:
    known, other = authors(1), authors(2)
    known.take(own(other))
    one = One(known)
    asked = Introduction(0, (), (2, 1, 77))
    for moment in range(10):
        one.introductions.hear(moment, 5, asked)
    assert [(to, [each.node for each in message.certificates]) for to, message in one.sent] == [(None, [2, 1])]
    one.introductions.hear(SECOND + 9, 5, asked)
    assert len(one.sent) == 2


def test_neighbours_exchange_revocations() -> None:
    members = MembersFile().add(2, Identity.new().public, OWNER)
    behind, ahead = authors(1, OWNER), authors(3, OWNER)
    for known in (behind, ahead):
        known.take_members(members)
    ahead.take_members(members.revoke(2, OWNER))
    one, other = One(behind), One(ahead)
    one.introductions.hear(0, 3, Introduction(ahead.revocations.number))
    ((to, inquiry),) = one.sent
    assert (to, inquiry.number) == (3, 0)
    other.introductions.hear(1, 1, inquiry)
    ((_, answer),) = other.sent
    one.introductions.hear(2, 3, answer)
    assert behind.revocations == ahead.revocations
    assert behind.is_revoked(2)
    for moment in range(3, 20):  # whoever keeps claiming to be behind, or ahead, gets no more
        other.introductions.hear(moment, 1, inquiry)
        one.introductions.hear(moment, 3, Introduction(2**62))
    assert len(other.sent) == 1
    assert len(one.sent) == 1


def test_a_message_that_waits_is_judged_when_its_author_turns_out_to_be_revoked() -> None:
    known = authors(1, OWNER)
    one = One(known)
    one.introductions.wait(0, 9, Note(1), 10, (2,))
    revoked = MembersFile().add(2, Identity.new().public, OWNER).revoke(2, OWNER).revocations
    one.introductions.hear(1, 9, Introduction(revoked.number, (), (), revoked))
    assert one.judged == [(9, Note(1))]


def test_an_introduction_has_bounds() -> None:
    known = authors(1)
    many = Introduction(0, (own(known),) * (MAX_CERTIFICATES + 1))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(many), type=Introduction)
    longest = Revocations(2**62, {2**31 - 1 - number: 2**62 for number in range(MAX_REVOKED)})
    codec = Codec((Introduction,))
    message = Introduction(2**62, (own(known),) * MAX_CERTIFICATES, (2**31 - 1,) * MAX_CERTIFICATES, longest)
    assert codec.decode(codec.sendable(message)) == message
    all_of_them = One(known).introductions.ahead_of([1, *range(50)])
    assert [len(message.certificates) for message in all_of_them] == [1]
