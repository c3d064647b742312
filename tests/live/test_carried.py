"""Every event in a message is found, whatever the protocol, and what stands beside it is its author's."""

from typing import Any

import msgspec
import pytest

from roamcast.content.context.host import HostView
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event, event_id
from roamcast.content.signed import root_of
from roamcast.content.subscription import Publication
from roamcast.live.carried import CarriedEvents
from roamcast.protocols.catalogue import find, known
from roamcast.protocols.context.messages import Digest, EventItem, Matched
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.flooding import Data
from roamcast.protocols.messages import Message, kind_of
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import Announce

PRESENCE = Presence(HostView((0.0, 0.0)))
HERE, THERE = parse_context("within(rect(0, 0, 1, 1))"), parse_context("x > 3")
CARRYING = {
    "flooding": {"data"},
    "gossip": {"data"},
    "counter": {"data"},
    "hint": {"hinted"},
    "maodv": {"routed"},
    "coman": {"routed"},
    "odmrp": {"join_event", "data"},
    "context": {"event", "event-refresh", "matched-event", "digest"},
    "opportunistic": {"announce"},
    "roam": {"roam"},
}
"""Pieces of documents are not events before they are put together: their broker asks its port."""


def event(number: int = 1, **said: Any) -> Event:  # noqa: ANN401  # of a publication
    return Publication(Event.of("t", {}, b"p", event_id(2, number)), **said).to_be_signed(5, 0).event


@pytest.mark.parametrize("protocol", sorted(known()))
def test_the_kinds_that_carry_events(protocol: str) -> None:
    messages = find(protocol).messages
    found = CarriedEvents(messages)
    assert {kind_of(kind) for kind in messages if found._fields.get(kind)} == CARRYING[protocol]


class Deep(msgspec.Struct, frozen=True, array_like=True):
    listed: tuple[tuple[int, Event], ...]
    named: dict[str, list[Event]]
    perhaps: Event | None = None


class Odd(Message, frozen=True, tag="odd"):
    number: int
    deep: Deep | None


def test_events_are_found_wherever_they_stand() -> None:
    one, two, three = event(1), event(2), event(3)
    found = CarriedEvents((Odd,))
    deep = Deep(((7, one),), {"a": [two]}, three)
    assert [carried.event for carried in found.within(Odd(1, deep))] == [one, two, three]
    assert found.within(Odd(1, None)) == []


def fits(message: Message) -> list[bool]:
    return [carried.fits for carried in CarriedEvents((type(message),)).within(message)]


def test_an_event_must_be_signed_and_whole() -> None:
    assert fits(Data(event(), 0)) == [True]
    assert fits(Data(Event("t", id=event_id(2, 1)), 0)) == [False]
    signed = event().signed
    assert signed is not None
    bare = msgspec.structs.replace(signed, payload=b"", root=root_of(1, bytes(16)))
    assert fits(Data(msgspec.structs.replace(event(), body=bare), 0)) == [False]
    assert fits(Data(msgspec.structs.replace(event(), id=-1), 0)) == [False]


def test_a_descriptor_has_no_payload() -> None:
    listed = Document(event()).descriptor
    whole = msgspec.structs.replace(listed, event=event())
    announce = Announce(1, 0, 1, (), (), None, (), (), (listed, whole), (5, 6), (7, None))
    assert fits(announce) == [True, False]


def item(said: Event, relevance: Any = None, domain: Any = None, left: int = 0) -> EventItem:  # noqa: ANN401  # contexts
    return EventItem(2, said, left, relevance, domain, 1, None)


def test_contexts_beside_an_event_are_those_that_its_author_signed() -> None:
    said = event(relevance=HERE, subscription_domain=THERE)
    others = item(said, THERE, HERE), item(said, HERE), item(said), item(event(), HERE)
    assert fits(Digest(PRESENCE, (item(said, HERE, THERE), item(event()), *others), ())) == [True] * 2 + [False] * 4
    for domain in (THERE, HERE, None):
        matched = Matched(
            presence=PRESENCE,
            region=None,
            event=said,
            subscription_domain=domain,
            subscriber=1,
            subscription=1,
            event_version=1,
            subscription_version=1,
        )
        assert fits(matched) == [domain is THERE]


def test_a_message_without_what_is_refused() -> None:
    documents = [Document(event(number)).descriptor for number in (1, 2, 3)]
    announce = Announce(1, 0, 1, (), (), None, (), (), tuple(documents), (5, 6, 7), (8, None, 9))
    rest = announce.without(frozenset({event_id(2, 2)}))
    assert (rest.catalog, rest.ages, rest.lives) == ((documents[0], documents[2]), (5, 7), (8, 9))
    assert rest.listing.contents == {documents[0].content: frozenset({event_id(2, 1), event_id(2, 3)})}
    digest = Digest(PRESENCE, (item(event(1)), item(event(2))), ())
    assert digest.without(frozenset({event_id(2, 1)})).events == (item(event(2)),)
    assert Data(event(), 0).without(frozenset({event_id(2, 1)})) is None


@pytest.mark.parametrize(
    ("lifetime", "left", "fitting"), [(100, 100, True), (100, 101, False), (None, 0, True), (None, 1, False)]
)
def test_what_is_left_of_a_lifetime_is_no_more_than_its_author_has_signed(
    lifetime: int | None, left: int, fitting: bool
) -> None:
    """The age of an event changes on the way and is not signed: a member may lie about it up to this."""
    assert fits(Digest(PRESENCE, (item(event(lifetime=lifetime), left=left),), ())) == [fitting]
