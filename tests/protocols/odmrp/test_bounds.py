"""What somebody with the key can attach: its work and its memory are bounded, and nobody loses an event by that."""

import random
from collections.abc import Sequence
from time import process_time

import msgspec
import pytest

from roamcast.content.event import Event
from roamcast.content.filter import Constraint, Filter, Operator
from roamcast.content.text import parse_filter
from roamcast.content.widening import MAX_IN_FRAME
from roamcast.protocols.odmrp.content import MAX_FILTER, About, Content, MemberWish, wanted_of
from roamcast.protocols.odmrp.messages import MAX_ATTACHMENT, MAX_MEMBERS
from roamcast.protocols.odmrp.parameters import Odmrp
from roamcast.protocols.odmrp.tables import MAX_WISHES, GroupMembers

BUDGET = 2.0
"""Seconds of CPU. Without bounds these took from six seconds to hours."""
EVENT = Event.of("t", {"a": [5, "ab" * 20]}, b"", 1)


def content(*filters: Filter) -> Content:
    made = Content(5, Odmrp(grouping="subscription", merge=True), lambda work: None)
    made.change(filters)
    return made


def hostile(seed: int, alternatives: int, each: int) -> Filter:
    """It matches `EVENT`, and no constraint of it follows from another."""
    numbers = random.Random(seed).sample(range(100, 60000), alternatives * each)
    unequal = [Constraint("a", Operator.NE, number) for number in numbers]
    return Filter(tuple(tuple(unequal[start : start + each]) for start in range(0, len(unequal), each)))


def wanting(filter: Filter) -> bytes:
    attached = msgspec.msgpack.encode(MemberWish(filter=filter))
    assert len(attached) <= MAX_FILTER
    return attached


@pytest.mark.parametrize(("alternatives", "each"), [(1, 257), (257, 1)])
def test_a_filter_that_is_too_long_for_a_frame_wants_nothing_and_joins_nobody(alternatives: int, each: int) -> None:
    long, node = hostile(1, alternatives, each), content(hostile(1, alternatives, each))
    assert long.matches(EVENT)
    assert not node.wants(wanting(long), EVENT)
    assert not node.joins(1, msgspec.msgpack.encode(About(None, long)))
    shorter = Filter((hostile(1, 1, MAX_IN_FRAME).alternatives[0],))
    assert node.wants(wanting(shorter), EVENT)


def test_a_longer_subscription_is_widened_before_it_is_attached() -> None:
    node = content(parse_filter(" or ".join(f"a = {number}" for number in range(300))))
    wanted = wanted_of(node.wanted())
    assert wanted is not None
    assert wanted.filter is not None
    assert sum(map(len, wanted.filter.alternatives)) <= MAX_IN_FRAME
    assert all(node.wants(node.wanted(), Event.of("t", {"a": number}, b"", 1)) for number in range(300))


@pytest.mark.parametrize("each", [1, 4, 64])
def test_merging_what_many_want_takes_no_longer_than_it_may(each: int) -> None:
    wishes = [wanting(hostile(seed, 256 // each, each)) for seed in range(64)]
    node, started = content(), process_time()
    merged = node.merge(wishes)
    assert process_time() - started < BUDGET
    assert node.wants(merged, EVENT)


@pytest.mark.parametrize("each", [1, 4, 64])
def test_publishing_among_many_wishes_takes_no_longer_than_it_may(each: int) -> None:
    wishes = [wanting(hostile(seed, 256 // each, each)) for seed in range(64)]
    node, honest, started = content(), content(parse_filter("a = 5")), process_time()
    offers = node.offers(EVENT, lambda: wishes)
    assert process_time() - started < BUDGET
    assert [offer.filter for offer in offers] == [None], "by its digest, which a node with any wish understands"
    assert honest.joins(offers[0].group, node.about(EVENT, offers[0], lambda: wishes))


def test_comparing_a_group_with_own_subscriptions_takes_no_longer_than_it_may() -> None:
    node = content(*(hostile(seed, 1, 64) for seed in range(20)))
    about = msgspec.msgpack.encode(About(None, hostile(999, 4, 64)))
    started = process_time()
    assert node.joins(1, about), "in doubt"
    assert process_time() - started < BUDGET


def test_attachments_of_members_have_a_budget_of_bytes_together() -> None:
    members, attached = GroupMembers(lifetime=100, capacity=512, merge=lines), MAX_ATTACHMENT // 2
    for group in range(512):
        for node in range(16):
            members.hear(1, group, node, (group * 16 + node).to_bytes(4, "big") + bytes(attached - 4))
    held = {wish for group in range(512) for wish in members.of(1, group)}
    assert 0.9 * MAX_WISHES < len(held) * attached <= MAX_WISHES
    assert len(members.of(1, 511)) == 16, "the latest are there"


def lines(wishes: Sequence[bytes]) -> bytes:
    """An attachment of these tests: lines, of which a merged one has all."""
    return b"\n".join(sorted({line for wish in wishes for line in wish.split(b"\n")}))


def wishes_of(members: GroupMembers, now: int, group: int = 7) -> set[bytes]:
    return {line for wish in members.of(now, group) for line in wish.split(b"\n")}


def test_of_more_members_than_have_room_the_rest_is_merged() -> None:
    members = GroupMembers(lifetime=100, capacity=4, merge=lines)
    everybody = {f"{node}".encode() for node in range(500)}
    for now in (0, 50, 100, 150):
        for node in range(500):
            members.hear(now, 7, node, f"{node}".encode())
            assert len(members.of(now, 7)) <= MAX_MEMBERS + 3
        assert wishes_of(members, now) == everybody
    assert wishes_of(members, 250) == everybody
    assert wishes_of(members, 251) == set(), "150 was the last time"


def test_what_a_merged_member_has_given_up_expires_although_others_are_merged_later() -> None:
    members = GroupMembers(lifetime=100, capacity=4, merge=lines)
    members.hear(0, 7, 1000, b"gone")
    for now in range(10, 400, 10):
        for node in range(80):
            members.hear(now, 7, node, f"{node}".encode())
        if now <= 100:
            assert b"gone" in wishes_of(members, now)
    assert wishes_of(members, 390) == {f"{node}".encode() for node in range(80)}


def test_an_attachment_that_many_share_counts_once() -> None:
    members, wish = GroupMembers(lifetime=100, capacity=512, merge=lines), bytes(MAX_ATTACHMENT)
    for group in range(512):
        for node in range(64):
            members.hear(1, group, node, wish)
    assert all(len(members.of(1, group)) == 64 for group in range(512))
