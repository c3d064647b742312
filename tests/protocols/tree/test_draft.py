"""What MAODV's draft has and section II of the paper on COMAN does not tell, each as a parameter."""

from typing import Any

import msgspec
import pytest

from protocols.tree.rough import lone, put
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.messages import ANY_WAY, Mact, Place, Rrep, Rreq
from roamcast.protocols.tree.rank import leader_rank
from roamcast.protocols.tree.tree import Tree
from roamcast.units import SECOND

BOTH = pytest.mark.parametrize("protocol", ["maodv", "coman"])
ME, PARENT, CHILD, OTHER, INITIATOR, THIRD, LEADER = 1, 2, 3, 4, 5, 6, 9
REQUEST = Rreq(INITIATOR, 1, 0, sequence=10, distance=2, rank=leader_rank(5), ttl=3, on_tree=False, leader=None)


def seated(protocol: str, **parameters: Any) -> tuple[Tree, RecordingPort]:  # noqa: ANN401
    tree, port = lone(protocol, ME, **parameters)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT))
    for child in (CHILD, OTHER):
        tree.position.add_child(0, child)
    return tree, port


def asked(tree: Tree, port: RecordingPort) -> list[int]:
    """How far each request of a search goes until the node gives up and leads."""
    now = 0
    while tree.search.repair is not None:
        ((at, key),) = [(at, key) for at, key in port.timers if isinstance(key, tuple) and key[1] == "wait"][-1:]
        now = max(now, at)
        tree.timer(now, key)
    return [message.ttl for message in port.messages if isinstance(message, Rreq)]


# --- Expanding requests: section 9.8 --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distance", "hops"),
    [
        (1, [3, 5, 7]),
        (2, [4, 6]),
        (5, [7]),
        (9, [11]),
    ],
)
@BOTH
def test_requests_go_farther_and_farther(protocol: str, distance: int, hops: list[int]) -> None:
    """The first goes two hops beyond the leader's distance, each further one two more, up to seven; then everywhere,
    once and as often again as there are retries. A request that is heard by neighbours alone is not passed on."""
    tree, port = seated(protocol, expanding=True)
    tree.position.distance = distance
    tree.lose(0, PARENT)
    assert asked(tree, port) == [*(ttl - 1 for ttl in hops), ANY_WAY, ANY_WAY, ANY_WAY]


@BOTH
def test_requests_go_everywhere(protocol: str) -> None:
    tree, port = seated(protocol, expanding=False)
    tree.lose(0, PARENT)
    assert asked(tree, port) == [ANY_WAY] * 3


def test_a_request_ends_where_its_hops_do() -> None:
    tree, port = lone("maodv", ME, members="clients")
    tree.position.on_tree = False
    tree.receive(0, OTHER, msgspec.structs.replace(REQUEST, ttl=1))
    (onward,) = port.messages
    assert isinstance(onward, Rreq)
    assert onward.ttl == 0
    port.clear()
    tree.receive(0, OTHER, msgspec.structs.replace(REQUEST, serial=2, ttl=0))
    assert port.messages == []


# --- Members with an old number: section 9.3 ------------------------------------------------------------------------


def test_a_member_with_an_old_number_passes_a_request_on() -> None:
    newer, nearer = msgspec.structs.replace(REQUEST, sequence=11), msgspec.structs.replace(REQUEST, distance=1)
    tree, port = seated("maodv", outdated="pass on")
    tree.receive(0, THIRD, nearer)
    assert port.messages == [], "its number is new enough; that it is too far away is no reason"
    tree.receive(0, THIRD, newer)
    (onward,) = port.messages
    assert isinstance(onward, Rreq)
    assert (onward.sequence, onward.ttl) == (11, 2)
    tree, port = seated("maodv", outdated="drop")
    tree.receive(0, THIRD, newer)
    assert port.messages == []


# --- Replies on their way: section 9.5 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "passed"),
    [("all", [(7, 10, 3), (8, 10, 3), (9, 10, 2), (10, 11, 5)]), ("better", [(7, 10, 3), (9, 10, 2), (10, 11, 5)])],
)
def test_later_replies_are_passed_on_only_if_newer_or_shorter(which: str, passed: list[tuple[int, int, int]]) -> None:
    """By replier, number and hops on arrival."""
    tree, port = lone("maodv", ME, members="clients", replies=which)
    tree.position.on_tree = False
    tree.receive(0, INITIATOR, REQUEST)
    port.clear()
    for replier, sequence, hops in ((7, 10, 3), (8, 10, 3), (9, 10, 2), (10, 11, 5)):
        reply = Rrep(INITIATOR, 1, 0, replier, LEADER, sequence, 1, hops, leader_rank(20), True, ())
        tree.receive(0, OTHER, reply)
    replies = [message for message in port.messages if isinstance(message, Rrep)]
    assert [(reply.replier, reply.sequence, reply.hops - 1) for reply in replies] == passed


# --- New distances: section 9.8 -------------------------------------------------------------------------------------


@BOTH
def test_children_hear_of_a_new_distance_by_one_broadcast(protocol: str) -> None:
    news = Mact(INITIATOR, 1, "update", place=Place(LEADER, 10, 6, leader_rank(10) - 1, (LEADER, PARENT)))
    for updates, receivers in (("unicast", [CHILD, OTHER]), ("broadcast", [None])):
        tree, port = seated(protocol, updates=updates)
        tree.receive(SECOND, PARENT, news)
        assert tree.position.distance == 7
        assert [sent.to for sent in port.sent.values()] == receivers
        assert {sent.message.place for sent in port.sent.values() if isinstance(sent.message, Mact)} == {
            tree.position.place
        }


@BOTH
def test_only_children_take_a_new_distance_over(protocol: str) -> None:
    tree, _ = seated(protocol)
    before = tree.position.distance
    tree.receive(
        0, THIRD, Mact(INITIATOR, 1, "update", place=Place(LEADER, 10, 6, leader_rank(10) - 1, (LEADER, THIRD)))
    )
    assert tree.position.distance == before


# --- Links to children: AODV's draft 05, section 9.7 ----------------------------------------------------------------


@BOTH
def test_a_unicast_that_is_given_up_may_break_the_link_to_a_child(protocol: str) -> None:
    for breaks, left in ((False, [CHILD, OTHER]), (True, [OTHER])):
        tree, _ = seated(protocol, children_break=breaks)
        tree.unreachable(0, CHILD, Mact(0, 0, "update"))
        assert list(tree.position.children) == left
