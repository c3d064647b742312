"""Repairs and merges: who may answer, whom a request reaches, what is activated, how parts merge, who leads."""

from typing import Any

import msgspec
import pytest

from protocols.tree.rough import RoughMesh, grown, lone, places, put, settled
from roamcast.protocols.api import Node
from roamcast.protocols.messages import Message
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.messages import MERGE, Ack, ChkUp, Grph, Hello, Mact, Place, Rrep, Rreq
from roamcast.protocols.tree.parameters import Coman, Maodv
from roamcast.protocols.tree.position import CONTRADICTIONS
from roamcast.protocols.tree.rank import MAX_SEQUENCE, STEP, leader_rank
from roamcast.protocols.tree.search import REMEMBERED, Repair
from roamcast.protocols.tree.tree import GROUP_HELLO, HELLO
from roamcast.units import SECOND

BOTH = pytest.mark.parametrize("protocol", ["maodv", "coman"])
ME, PARENT, CHILD, OTHER, INITIATOR, LEADER = 1, 2, 3, 4, 5, 9
LOW = leader_rank(5)
REQUEST = Rreq(INITIATOR, 1, 0, sequence=10, distance=2, rank=LOW, ttl=127, on_tree=False, leader=None)


def said(port: RecordingPort, kind: type[Message]) -> list[Any]:
    return [message for message in port.messages if isinstance(message, kind)]


# --- Who may answer ---------------------------------------------------------------------------------------------------


def answers(protocol: str, request: Rreq, **place: Any) -> bool:  # noqa: ANN401
    tree, port = lone(protocol, ME)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT))
    for name, value in place.items():
        setattr(tree.search if name == "repair" else tree.position, name, value)
    tree.receive(0, OTHER, request)
    return bool(said(port, Rrep))


@BOTH
def test_a_reply_needs_every_condition(protocol: str) -> None:
    """Each that does not hold, all others holding, is reason enough to be silent."""
    assert answers(protocol, REQUEST)
    assert not answers(protocol, REQUEST, repair=Repair(1, "repaired", 2)), "i: it is repairing itself"
    assert not answers(protocol, msgspec.structs.replace(REQUEST, sequence=11)), "ii: it knows only an older number"
    assert not answers(protocol, msgspec.structs.replace(REQUEST, distance=1)), "iii: it is farther from the leader"
    assert not answers(protocol, REQUEST, leader=None), "it has no leader to offer"
    assert not answers(protocol, msgspec.structs.replace(REQUEST, rank=leader_rank(11))), "it cannot rise above that"


@BOTH
def test_a_reply_is_from_above_the_one_that_asks(protocol: str) -> None:
    """Where the parent told enough room, the node rises for it; the reply carries the rank it then has."""
    tree, port = lone(protocol, ME)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT))
    low = tree.position.rank + 100
    tree.receive(0, OTHER, msgspec.structs.replace(REQUEST, rank=low))
    (reply,) = said(port, Rrep)
    assert low < tree.position.rank == reply.rank < tree.position._ceiling


@BOTH
def test_a_leader_rises_by_its_number(protocol: str) -> None:
    tree, port = lone(protocol, ME)
    asks = msgspec.structs.replace(REQUEST, rank=leader_rank(77) + 3, sequence=500)
    tree.receive(0, OTHER, asks)
    (reply,) = said(port, Rrep)
    assert (reply.leader, reply.sequence, reply.rank) == (ME, 78, leader_rank(78))
    port.clear()
    tree.receive(0, OTHER, msgspec.structs.replace(asks, serial=2, rank=leader_rank(MAX_SEQUENCE)))
    assert said(port, Rrep) == [], "there is nothing above the last number"


# --- Whom a request reaches -------------------------------------------------------------------------------------------


def test_a_node_below_the_initiator_waits_for_its_parent() -> None:
    """What it hears of the request from others before is not the request: that would end it in its own subtree."""
    tree, port = lone("coman", ME)
    put(tree, PARENT, leader=LEADER, distance=4, ancestors=(LEADER, INITIATOR, PARENT))
    tree.receive(0, OTHER, REQUEST)
    tree.receive(0, OTHER, msgspec.structs.replace(REQUEST, on_tree=True))
    assert port.sent == {}
    tree.receive(0, PARENT, REQUEST)
    ((to, onward),) = [(sent.to, sent.message) for sent in port.sent.values()]
    assert (to, onward) == (None, msgspec.structs.replace(REQUEST, ttl=126, rank=tree.position.rank))
    tree.receive(0, PARENT, REQUEST)
    assert len(port.sent) == 1, "once"


def test_the_only_way_out_is_found_although_a_sibling_was_heard_first() -> None:
    """X and Y are below the initiator, Z below X; Z hears Y long before X, and is the only one with a way out."""
    z, y, x, initiator, outside, leader = range(6)
    mesh = grown("coman", [(initiator, leader), (outside, leader), (x, initiator), (y, initiator), (z, x)])
    mesh.link(y, z)
    mesh.link(z, outside)
    mesh.drop = lambda sender, to, message: (sender, to) == (initiator, x) and isinstance(message, Rreq)
    mesh.cut(initiator, leader)
    mesh.tree(initiator).lose(mesh.now, leader)
    mesh.wait(0.05)
    assert [node for _, node, _, message in mesh.passed if isinstance(message, Rreq)] == [initiator, y]
    mesh.drop = lambda sender, to, message: False
    mesh.wait(2)
    assert [mesh.tree(node).position.parent for node in (z, x, initiator)] == [outside, z, x]


def test_outside_of_the_subtree_a_request_goes_up_once() -> None:
    tree, port = lone("coman", ME)
    put(tree, PARENT, leader=LEADER, distance=4, ancestors=(LEADER, 7, PARENT), children=[CHILD])
    for sender in (OTHER, CHILD, 8):
        tree.receive(0, sender, REQUEST)
    ((to, onward),) = [(sent.to, sent.message) for sent in port.sent.values()]
    assert (to, onward) == (PARENT, msgspec.structs.replace(REQUEST, ttl=126, on_tree=True))
    tree.receive(0, PARENT, msgspec.structs.replace(REQUEST, serial=2, on_tree=True))
    assert len(port.sent) == 1, "downstream it would be of no use"


def test_in_maodv_a_member_that_cannot_answer_is_silent() -> None:
    tree, port = lone("maodv", ME)
    put(tree, PARENT, leader=LEADER, distance=4, children=[CHILD])
    for sender in (OTHER, CHILD, PARENT):
        tree.receive(0, sender, REQUEST)
    assert port.sent == {}


@BOTH
def test_a_reply_goes_on_only_if_the_place_is_one_for_this_node_too(protocol: str) -> None:
    """A forwarder on the way would become a child of the replier, and the parent of who asked."""
    for above, passed in ((1, True), (0, False)):
        tree, port = lone(protocol, ME, members="clients")
        tree.position.rank = LOW
        tree.receive(0, OTHER, REQUEST)
        port.clear()
        tree.receive(0, PARENT, Rrep(INITIATOR, 1, 0, PARENT, LEADER, 10, 1, 0, LOW + above, True, (LEADER, PARENT)))
        assert [sent.to for sent in port.sent.values()] == ([OTHER] if passed else [])


@BOTH
def test_a_reply_is_passed_on_once_and_a_place_offered_once(protocol: str) -> None:
    tree, port = lone(protocol, ME, members="clients")
    tree.position.rank = LOW
    tree.receive(0, OTHER, REQUEST)
    port.clear()
    reply = Rrep(INITIATOR, 1, 0, PARENT, LEADER, 10, 1, 0, LOW + 1, True, ())
    for again in (reply, reply, msgspec.structs.replace(reply, hops=3, distance=4), REQUEST):
        tree.receive(0, PARENT, again)
    assert len(said(port, Rrep)) == 1
    tree.receive(0, PARENT, msgspec.structs.replace(reply, replier=8))
    assert len(said(port, Rrep)) == 2, "a way to another place"
    tree.receive(0, PARENT, msgspec.structs.replace(reply, replier=ME))
    tree.receive(0, PARENT, msgspec.structs.replace(reply, replier=7, path=(LEADER, ME)))
    assert len(said(port, Rrep)) == 2, "it is on that path already"


def test_a_node_whose_parent_passes_a_stranger_s_reply_takes_the_rank_in_it_for_no_parent_s() -> None:
    """Only a parent that keeps its place speaks of itself; the other's rank is far above its own."""
    tree, _ = lone("coman", ME)
    put(tree, PARENT, leader=LEADER, distance=4, ancestors=(LEADER, 7, PARENT), children=[CHILD])
    tree.receive(0, CHILD, REQUEST)
    for placed, heard in ((False, 0), (True, 5)):
        before = tree.position._ceiling
        reply = Rrep(INITIATOR, 1, 0, PARENT, LEADER, 10, 1, 0, before + 5, placed, (LEADER, PARENT))
        tree.receive(0, PARENT, reply)
        assert tree.position._ceiling - before == heard


# --- What is activated ------------------------------------------------------------------------------------------------


def reversal(activation: str) -> tuple[RoughMesh, list[Node]]:
    """G's way back leads over its child B, to H; the MACT from G to B is lost without a word, once."""
    b, g, h, leader = range(4)
    mesh = grown("coman", [(h, leader), (g, leader), (b, g)], activation=activation)
    mesh.link(b, h)
    lost: list[Node] = []

    def drop(sender: Node, to: Node, message: Message) -> bool:
        if (sender, to) != (g, b) or not isinstance(message, Mact) or message.flag != "join" or lost:
            return False
        lost.append(sender)
        return True

    mesh.drop = drop
    mesh.cut(g, leader)
    mesh.tree(g).lose(mesh.now, leader)
    mesh.wait(0.3)
    assert lost == [g]
    return mesh, [b, g]


def test_a_lost_mact_leaves_two_parents_of_each_other_for_two_beacons_if_taken_at_once() -> None:
    """One of the two has a rank that is not below the other's, and hears so with the other's beacons."""
    mesh, (b, g) = reversal("at-once")
    assert (mesh.tree(b).position.parent, mesh.tree(g).position.parent) == (g, b)
    mesh.wait(CONTRADICTIONS * 1.0 + 0.01)
    ((pair, lasted),) = [entry for entry in mesh.ended if entry[1] > SECOND // 10]
    assert pair == {b, g}
    assert lasted <= (CONTRADICTIONS + 0.3) * SECOND
    mesh.settle(4)
    assert settled(mesh) == []


def test_a_lost_mact_changes_nothing_if_confirmed() -> None:
    mesh, (b, g) = reversal("confirmed")
    assert (mesh.tree(b).position.parent, mesh.tree(g).position.parent) == (g, None)
    assert mesh.tree(g).search.repair is not None
    mesh.wait(1.5)
    assert (mesh.tree(b).position.parent, mesh.tree(g).position.parent) == (2, b), "asked again"
    assert mesh.ended == []


@BOTH
def test_a_place_is_given_only_if_there_still_is_one(protocol: str) -> None:
    """Between the reply and its activation the replier may have lost its place."""
    join = Mact(INITIATOR, 1, "join", ME, LOW)
    for change, given in (
        ({}, True),
        ({"leader": None}, False),
        ({"repair": Repair(1, "repaired", 2)}, False),
        ({"rank": LOW}, False),
        ({"parent": OTHER}, False),
        ({"distance": 200}, False),
    ):
        tree, port = lone(protocol, ME)
        put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT))
        for name, value in change.items():
            setattr(tree.search if name == "repair" else tree.position, name, value)
        tree.receive(0, OTHER, join)
        assert (OTHER in tree.position.children) is given, change
        assert bool(said(port, Mact)) is given


@BOTH
def test_an_activation_that_is_not_answered_is_followed_by_the_next_reply(protocol: str) -> None:
    """Better ones first; then another request; then the node leads."""
    tree, port = lone(protocol, ME, retries=1)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT))
    tree.unreachable(0, PARENT, Hello(None, 0))
    serial = tree.search.repair.serial if tree.search.repair else 0
    rank = tree.position.rank + 5
    for hops, via in ((3, OTHER), (1, 8), (2, 7)):
        reply = Rrep(ME, serial, 0, via, LEADER, 10, 1, hops, rank, False, (LEADER, *range(20, 20 + hops), via))
        tree.receive(0, via, reply)
    asked: list[Node | None] = []
    while not tree.position.is_leader:
        at, key = min(port.timers)
        port.timers.remove((at, key))
        if key in (HELLO, GROUP_HELLO):
            continue
        tree.timer(at, key)
        asked += [sent.to for sent in port.sent.values() if isinstance(sent.message, Mact | Rreq)]
        port.sent.clear()
    assert asked == [None, 8, 7, OTHER, None]
    assert at == pytest.approx((0.1 + 3 * 0.5 + 0.5) * SECOND)


@BOTH
def test_no_wait_for_replies_activates_the_first(protocol: str) -> None:
    tree, port = lone(protocol, ME, reply_wait=0)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT))
    tree.unreachable(0, PARENT, Hello(None, 0))
    assert tree.search.repair is not None
    reply = Rrep(ME, tree.search.repair.serial, 0, OTHER, LEADER, 10, 1, 3, tree.position.rank + 5, True, ())
    tree.receive(0, OTHER, msgspec.structs.replace(reply, rank=tree.position.rank))
    assert said(port, Mact) == [], "no place for this node"
    tree.receive(0, OTHER, reply)
    (join,) = said(port, Mact)
    assert (join.flag, join.replier) == ("join", OTHER)


# --- Merging ----------------------------------------------------------------------------------------------------------

MERGERS = pytest.mark.parametrize(
    ("protocol", "parameters"),
    [("maodv", {}), ("coman", {}), ("coman", {"merging": "leaders"})],
    ids=["maodv", "coman", "coman-leaders"],
)


@MERGERS
def test_a_merge_turns_the_path_round(protocol: str, parameters: dict[str, Any]) -> None:
    """Of 3 - 1 - 0 and 5 - 4 - 2, the link 0 - 2 makes one tree below 5: 1 and 3 have their parents below them now."""
    mesh = grown(protocol, [(1, 3), (0, 1), (4, 5), (2, 4)], **parameters)
    assert [mesh.tree(node).position.parent for node in range(6)] == [1, 3, 4, None, 5, None]
    mesh.link(0, 2)
    mesh.settle(2)
    assert [mesh.tree(node).position.parent for node in range(6)] == [2, 0, 4, 1, 5, None]
    assert settled(mesh) == []
    assert [place.change for place in places(mesh.ports[3]) if place.parent is not None] == ["merged"]


def test_a_merge_prunes_what_it_replaces() -> None:
    """The group hello of 5 comes to 3 over 0 directly, which then has 3 below it, and ends its link with 1."""
    mesh = grown("maodv", [(1, 3), (0, 1), (4, 5), (2, 4)])
    mesh.link(0, 3)
    mesh.link(0, 2)
    mesh.settle(2)
    assert [mesh.tree(node).position.parent for node in range(6)] == [2, 3, 4, 0, 5, None]
    prunes = [(node, to) for _, node, to, mact in mesh.passed if isinstance(mact, Mact) and mact.flag == "prune"]
    assert prunes == [(0, 1)]
    assert settled(mesh) == []


@BOTH
def test_a_leader_that_merges_announces_no_new_number_until_it_is_done(protocol: str) -> None:
    """The number would raise its rank above the place that it is about to get."""
    tree, port = lone(protocol, ME)
    number = tree.position.sequence
    tree.search.repair = Repair(1 | MERGE, "merged", 0)
    tree.timer(0, GROUP_HELLO)
    assert (said(port, Grph), tree.position.sequence) == ([], number)
    assert port.timers == [(SECOND // 2, GROUP_HELLO)], "soon, for children may wait for it"
    tree.search.repair = None
    tree.timer(SECOND // 2, GROUP_HELLO)
    assert [hello.place.sequence for hello in said(port, Grph)] == [number + 1]


@BOTH
def test_a_number_is_its_leaders(protocol: str) -> None:
    """Who knew a higher number of another leader does not pass that on as this one's, nor ask for it in a repair."""
    tree, port = lone(protocol, ME)
    put(tree, PARENT, leader=8, sequence=2000)
    tree.receive(0, PARENT, Grph(Place(LEADER, 30, 1, tree.position._ceiling, ()), False, False, 0))
    (onward,) = said(port, Grph)
    assert (onward.place.leader, onward.place.sequence, onward.place.distance) == (LEADER, 30, 2)
    tree.position.sequence = 32  # told along the tree, before the flood comes
    tree.receive(0, OTHER, Grph(Place(LEADER, 31, 5, 0, ()), False, False, 0))
    assert [hello.place.sequence for hello in said(port, Grph)] == [30, 31]
    tree.position.sequence = 30
    tree.unreachable(0, PARENT, Hello(None, 0))
    assert [request.sequence for request in said(port, Rreq)] == [30]


@MERGERS
def test_two_leaders_in_one_tree_do_not_last(protocol: str, parameters: dict[str, Any]) -> None:
    """A node in the middle of a tree takes itself for a leader, and those below it follow it."""
    mesh = grown(protocol, [(node, node + 1) for node in (3, 2, 1, 0)], **parameters)
    for node, distance in ((2, 0), (1, 1), (0, 2)):
        tree = mesh.tree(node)
        tree.position.leader, tree.position.distance, tree.position.ancestors = 2, distance, tuple(range(2, node, -1))
    mesh.settle(2)
    assert settled(mesh) == []
    assert [mesh.tree(node).position.distance for node in range(5)] == [4, 3, 2, 1, 0]


# --- Is the leader there? ---------------------------------------------------------------------------------------------


def doubting() -> tuple[Any, RecordingPort, ChkUp]:
    """A node that has heard no group hello along the tree for too long, and asks."""
    tree, port = lone("coman", ME)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT), children=[CHILD])
    for second in range(1, 14):
        for neighbour in tree.position.neighbours:
            tree.position.hear(second * SECOND, neighbour)
        tree.timer(second * SECOND, HELLO)
    ((to, check),) = [(sent.to, sent.message) for sent in port.sent.values() if isinstance(sent.message, ChkUp)]
    assert to == PARENT
    return tree, port, check


@pytest.mark.parametrize(("child", "leads"), [(True, False), (False, True)])
def test_what_matters_is_whether_the_parent_has_us_for_a_child(child: bool, leads: bool) -> None:
    """That it is reachable is not enough."""
    tree, _, check = doubting()
    tree.receive(13 * SECOND, OTHER, Ack(check.repair, not child))
    tree.receive(13 * SECOND, PARENT, Ack(check.repair + 1, not child))
    assert tree.position.parent == PARENT, "answers of others, or to something else"
    tree.receive(13 * SECOND, PARENT, Ack(check.repair, child))
    assert tree.position.is_leader is leads
    assert (tree.position.parent is None) is leads


def test_a_check_is_answered_for_what_it_asks() -> None:
    tree, port = lone("coman", ME)
    put(tree, PARENT, leader=LEADER, children=[CHILD])
    for sender in (CHILD, OTHER):
        tree.receive(0, sender, ChkUp(77))
    assert [(sent.to, sent.message) for sent in port.sent.values()] == [(CHILD, Ack(77, True)), (OTHER, Ack(77, False))]


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize("reported", [True, False])
def test_no_answer_is_an_answer(member: bool, reported: bool) -> None:
    """The parent may have it for a child still, whose answer was lost: it is told, or it would have half a link."""
    tree, port, check = doubting()
    tree.position.member = member
    (key,) = [key for _, key in port.timers if isinstance(key, tuple) and "check" in key]
    if reported:
        tree.unreachable(13 * SECOND, PARENT, check)
    tree.timer(14 * SECOND, key)
    assert (tree.position.is_leader, tree.position.parent) == (member, None)
    assert [sent.to for sent in port.sent.values() if sent.message == Mact(0, 0, "prune")] == [PARENT]


def test_a_member_that_leads_since_its_parent_was_silent_has_no_half_link() -> None:
    """0 below 1 below 2, the leader; group hellos and answers from 1 to 0 are lost, beacons are not."""
    mesh = grown("coman", [(0, 1), (1, 2)])
    mesh.drop = lambda sender, to, message: (sender, to) == (1, 0) and isinstance(message, Grph | Ack)
    while not mesh.tree(0).position.is_leader:
        mesh.wait(0.01)
    mesh.wait(0.01)
    assert mesh.tree(1).position.children == {}


def test_a_parent_that_is_lost_meanwhile_is_a_matter_for_a_repair() -> None:
    """The repair asks others, and is not cut short by the answer that never comes."""
    tree, port, check = doubting()
    (key,) = [key for _, key in port.timers if isinstance(key, tuple) and "check" in key]
    tree.receive(13 * SECOND, PARENT, Mact(0, 0, "prune"))
    tree.timer(14 * SECOND, key)
    tree.receive(14 * SECOND, PARENT, Ack(check.repair, False))
    assert not tree.position.is_leader
    assert tree.search.repair is not None


def test_group_hellos_along_the_tree_keep_doubts_away() -> None:
    tree, port = lone("coman", ME)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT), children=[CHILD])
    place = Place(LEADER, 11, 3, leader_rank(11) - STEP, (LEADER, 7, 6, PARENT))
    for second in range(1, 30):
        tree.receive(second * SECOND, PARENT, Grph(place, False, True, 0))
        tree.position.hear(second * SECOND, CHILD)
        tree.timer(second * SECOND, HELLO)
    assert said(port, ChkUp) == []
    assert (tree.position.ancestors, tree.position.distance) == ((LEADER, 7, 6, PARENT), 4)
    (*_, onward) = said(port, Grph)
    assert (onward.on_tree, onward.place.path, onward.place.distance) == (True, (LEADER, 7, 6, PARENT, ME), 4)


# --- Parameters and bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"ancestors": False}, "election .part D. needs ancestors .part A."),
        ({"rreq": "free"}, 'merging = "repair" .part E. needs rreq = "on-tree" .part B.'),
        ({"rreq": "members-drop"}, 'merging = "repair" .part E. needs rreq = "on-tree" .part B.'),
        ({"rreq": "upwards"}, "Invalid enum value 'upwards'.*rreq"),
        ({"patience": 0}, "patience"),
        ({"retry_wait": 0}, "retry_wait"),
        ({"misses": 0}, "misses"),
        ({"patiance": 2}, "unknown field `patiance`"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=named):
        msgspec.convert(parameters, Coman)


def test_parts_may_be_left_out() -> None:
    msgspec.convert({"ancestors": False, "election": False}, Coman)
    msgspec.convert({"rreq": "free", "merging": "leaders"}, Coman)
    with pytest.raises(msgspec.ValidationError, match="ancestors"):
        msgspec.convert({"ancestors": True}, Maodv)


@BOTH
def test_what_strangers_ask_for_is_bounded(protocol: str) -> None:
    """Requests, replies, activations and leaders: as many as are remembered, and not one more."""
    tree, port = lone(protocol, ME, members="clients")
    for number in range(2 * REMEMBERED):
        origin = 100 + number
        tree.receive(0, OTHER, msgspec.structs.replace(REQUEST, origin=origin))
        reply = Rrep(origin, 1, 0, LEADER, LEADER, 10, 1, 1, leader_rank(10), True, (LEADER,))
        tree.receive(0, PARENT, reply)
        tree.receive(0, OTHER, Mact(origin, 1, "join", LEADER, LOW))
        tree.receive(0, OTHER, Grph(Place(origin, 1, 0, leader_rank(1), ()), False, False, 0))
        port.clear()
    tables = (tree.search._reverse, tree.search._forward, tree.search._pending, tree._seen, tree.routes)
    assert [len(table) for table in tables] == [REMEMBERED] * 5
    assert min(node for node in tree._seen) == 100 + REMEMBERED, "the oldest went"
