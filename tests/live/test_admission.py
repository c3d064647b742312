"""Admission: what reaches the broker, and what is asked for what does not."""

import random
from collections import Counter
from typing import Any

import pytest

from live.memory_store import authors
from live.test_introductions import OWNER, Agenda, own
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication
from roamcast.live.admission import MOST_CHECKED, Admission, NotCertified
from roamcast.live.authors import Authors
from roamcast.live.certificates import MembersFile
from roamcast.live.introductions import PATIENCE, Introduction
from roamcast.live.signatures import Signatures
from roamcast.protocols.flooding import Data
from roamcast.protocols.messages import Message
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import Announce
from roamcast.units import SECOND

WALL = 1_700_000_000 * 10**9


class Door:
    """An admission, what it admitted, and what it sent."""

    def __init__(self, known: Authors | None) -> None:
        self.admitted: list[Any] = []
        self.sent: list[tuple[int | None, Introduction]] = []
        self.counters: Counter[str] = Counter()
        self.agenda = Agenda()
        self.admission = Admission(
            known,
            (Data, Announce),
            self.agenda,  # type: ignore[arg-type]
            random.Random(1),
            self.counters,
            send=lambda to, message: self.sent.append((to, message)),
            admit=lambda sender, message: self.admitted.append(message),
        )

    def hear(self, now: int, message: Message) -> None:
        self.admission.hear(now, 9, message, 100)


def said(author: Authors, number: int = 1) -> Event:
    return Signatures(author).signed(Publication(Event("t", id=event_id(author.node, number))), WALL, 0).event


def test_an_event_of_an_unknown_author_waits_and_is_admitted_when_it_is_introduced() -> None:
    two = authors(2)
    door = Door(authors(1))
    message = Data(said(two), 0)
    door.hear(0, message)
    assert door.admitted == []
    assert [(to, asked.asked) for to, asked in door.sent if asked.asked] == [(9, (2,))]
    door.hear(1, Introduction(0, (own(two),)))
    assert door.admitted == [message]


def test_an_event_whose_author_nobody_knows_is_dropped() -> None:
    door = Door(authors(1))
    door.hear(0, Data(said(authors(2)), 0))
    door.agenda.run(PATIENCE)
    assert door.admitted == []
    assert door.counters == {"author unknown": 1}


def test_what_is_not_even_signed_neither_waits_nor_asks() -> None:
    door = Door(authors(1))
    door.hear(0, Data(Event("t", id=event_id(2, 1)), 0))
    assert (door.admitted, len(door.admission._introductions)) == ([], 0)
    assert door.counters == {"forged": 1}
    assert not [message for _, message in door.sent if message.asked]


def test_a_node_that_was_added_again_is_believed_although_its_introduction_got_lost() -> None:
    known, two = authors(1, OWNER), authors(2, OWNER)
    members = MembersFile().add(2, two.identity.public, OWNER)
    revoked = members.revoke(2, OWNER)
    known.take_members(members)
    known.take_members(revoked)
    again = revoked.add(2, two.identity.public, OWNER)
    two.take_members(again)
    door = Door(known)
    door.hear(0, Data(said(two, 1), 0))
    assert len(door.admission._introductions) == 0  # nothing waits for a revoked node
    assert [(to, asked.asked) for to, asked in door.sent if asked.asked] == [(9, (2,))]
    door.hear(1, Introduction(again.revocations.number, again.certificates))
    later = Data(said(two, 2), 0)
    door.hear(2, later)
    assert door.admitted == [later]


def test_the_signatures_checked_for_one_message_are_bounded_and_all_are_checked_in_time() -> None:
    known, two = authors(1), authors(2)
    known.take(own(two))
    count = 2 * MOST_CHECKED + 10
    listed = tuple(Document(said(two, number)).descriptor for number in range(1, count + 1))
    announce = Announce(1, 0, 1, (), (), None, (), (), listed, (0,) * count, ())
    door = Door(known)
    for second, checked in enumerate((MOST_CHECKED, 2 * MOST_CHECKED, count)):
        door.hear(second * SECOND, announce)
        assert door.admission._signatures.computed == checked
        assert door.admitted[-1].catalog == listed[:checked]


def test_without_signatures_everything_passes() -> None:
    door = Door(None)
    message = Data(Event("t", id=event_id(2, 1)), 0)
    door.hear(0, message)
    door.hear(0, Introduction(0))
    assert door.admitted == [message]
    assert door.admission.ahead_of(message) == []
    publication = Publication(message.event)
    assert door.admission.signed(publication, WALL, 0) is publication
    assert door.admission.authorship(message.event) == (2, None, None)


def test_a_publication_is_signed_once_and_again_only_for_another_network() -> None:
    known = authors(1)
    door = Door(known)
    signed = door.admission.signed(Publication(Event("t", id=event_id(1, 1))), WALL, 0)
    assert door.admission.signed(signed, WALL + 10**9, 0) is signed
    assert door.admission.authorship(signed.event) == (1, "first use", 1_700_000_000.0)
    owned = authors(1, OWNER)
    with pytest.raises(NotCertified, match="no valid certificate"):
        Door(owned).admission.signed(signed, WALL, 0)
    owned.take_members(MembersFile().add(1, owned.identity.public, OWNER))
    elsewhere = Door(owned).admission
    assert elsewhere.authorship(elsewhere.signed(signed, WALL, 0).event) == (1, "owner", 1_700_000_000.0)
    assert elsewhere.authorship(signed.event) is None


def test_a_sender_is_vouched_for_by_an_event_of_its_own_alone() -> None:
    two, three = authors(2), authors(3)
    door = Door(authors(1))
    own_event = Data(said(two), 0)
    assert not door.admission.vouches(2, own_event)  # nobody knows its key yet
    door.hear(0, Introduction(0, (own(two), own(three))))
    assert door.admission.vouches(2, own_event)
    assert not door.admission.vouches(3, own_event)  # passed on, or replayed under another number
    assert not door.admission.vouches(2, Data(Event("t", id=event_id(2, 1)), 0))  # not signed
    assert not Door(None).admission.vouches(2, own_event)
