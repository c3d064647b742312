"""Filters in frames are shorter than those of one's own applications, and nobody notices."""

from pathlib import Path

import pytest

from live.nodes import address, run, settings, take, until
from roamcast.content.event import Event
from roamcast.content.filter import MAX_CONSTRAINTS, Constraint, Filter, Operator
from roamcast.content.widening import MAX_IN_FRAME, too_long, widened
from roamcast.live.client import Client
from roamcast.live.filters import FramedFilters
from roamcast.live.node import Node
from roamcast.protocols.catalogue import find
from roamcast.protocols.hint import Beacon
from roamcast.protocols.tree.forwarding_messages import Routes


def even(count: int) -> Filter:
    """n = 0 or n = 2 or …"""
    return Filter(tuple((Constraint("n", Operator.EQ, 2 * number),) for number in range(count)))


def words(count: int) -> Filter:
    """What cannot be joined without letting much through."""
    return Filter(tuple((Constraint("w", Operator.CONTAINS, f"{number:x}!"),) for number in range(count)))


@pytest.mark.parametrize("make", [even, words])
def test_a_long_filter_is_widened_and_covers(make: object) -> None:
    assert callable(make)
    long, short = make(MAX_CONSTRAINTS), make(MAX_IN_FRAME)
    assert widened(short) is short
    assert too_long(long)
    wide = widened(long)
    assert not too_long(wide)
    for number in range(0, MAX_CONSTRAINTS, 10):
        assert wide.matches(Event.of("", {"n": 2 * number, "w": f"a {number:x}!"}))


def test_filters_are_found_wherever_a_protocol_puts_them() -> None:
    framed = FramedFilters(find("coman").messages)
    routes = Routes(1, 1, 0, True, False, False, added=(even(3), even(300)), removed=(words(4),))
    assert not framed.acceptable(routes)
    sent = framed.sendable(routes)
    assert framed.acceptable(sent)
    assert isinstance(sent, Routes)
    assert (sent.added[0], sent.removed) == (even(3), (words(4),))


def test_a_longer_one_in_a_frame_is_dropped(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, protocol="hint")) as node:
            encode = find("hint").codec().encode
            node.host.receive(9, encode(Beacon(even(MAX_IN_FRAME))))
            assert node.host.counters["too long a filter"] == 0
            before = node.host.tables
            node.host.receive(8, encode(Beacon(even(MAX_IN_FRAME + 1))))
            assert node.host.counters["too long a filter"] == 1
            assert node.host.tables == before

    run(test)


def test_an_application_may_want_more_and_gets_exactly_that(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            Node(settings(tmp_path, protocol="hint", changes=("summary=65536",))) as node,
            Client(address(node)) as client,
            client.subscribe(even(1000)) as events,
        ):
            for n in (1, 2, 3, 2000, 1998):
                await client.publish({"n": n})
            assert [event.values("n") for event in await take(events, 2)] == [(2,), (1998,)]
            await until(lambda: node.store.clean)
            assert node.host.counters["delivered"] == 2
            assert all(not too_long(wanted) for wanted in node.host.broker.local.filters)

    run(test)
