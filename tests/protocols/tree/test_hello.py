"""Beacons, and who is there: links that break, half-links, parents that cannot be one, and what goes before data."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.tree.rough import TIMES, RoughMesh, lone, places, put, settled, tree_of
from roamcast.content.event import Event
from roamcast.protocols.api import Node
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.messages import Message
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.forwarding_messages import Routed
from roamcast.protocols.tree.messages import MAX_DEPTH, Ack, ChkUp, Grph, Hello, Mact, Place, Rrep, Rreq
from roamcast.protocols.tree.position import CONTRADICTIONS, KEPT, MAX_CHILDREN, SILENCE
from roamcast.protocols.tree.rank import MAX_RANK, leader_rank
from roamcast.protocols.tree.search import KEPT as SERIAL
from roamcast.protocols.tree.search import Pending
from roamcast.protocols.tree.tree import GROUP_HELLO, HELLO, Tree
from roamcast.units import SECOND, seconds

BOTH = pytest.mark.parametrize("protocol", ["maodv", "coman"])
ME, PARENT, CHILD, OTHER, LEADER = 1, 2, 3, 4, 9


def seated(protocol: str, **parameters: float | str) -> tuple[Tree, RecordingPort]:
    """A node with a parent and a child."""
    tree, port = lone(protocol, ME, **parameters)
    put(tree, PARENT, leader=LEADER, ancestors=(LEADER, PARENT), children=[CHILD])
    return tree, port


def unicasts(port: RecordingPort) -> list[tuple[Node | None, Message]]:
    return [(sent.to, sent.message) for sent in port.sent.values() if sent.to is not None]


# --- Beacons ----------------------------------------------------------------------------------------------------------


@BOTH
def test_beacons_name_the_upstream(protocol: str) -> None:
    tree, port = seated(protocol)
    tree.timer(0, HELLO)
    assert port.messages == [Hello(PARENT, tree.position.rank)]
    ((at, key),) = port.timers
    assert key == HELLO
    assert 0.9 * SECOND <= at <= SECOND


@BOTH
@pytest.mark.parametrize("misses", [1, 2, 5])
def test_a_link_is_lost_when_so_many_beacons_were_missed(protocol: str, misses: int) -> None:
    tree, _ = seated(protocol, misses=misses)
    until = seconds(misses + 0.1)
    tree.timer(until, SILENCE)
    assert list(tree.position.neighbours) == [PARENT, CHILD]
    tree.timer(until + 1, SILENCE)
    assert list(tree.position.neighbours) == []
    assert tree.search.repair is not None


@BOTH
def test_silence_is_noticed_when_it_is_due(protocol: str) -> None:
    """By a timer of its own, not with the node's own beacons: one at a time, moved on while others are heard."""
    tree, port = lone(protocol, ME, misses=2)
    for at, child in ((0, CHILD), (SECOND, OTHER)):
        tree.position.add_child(at, child)
    assert [timer for timer in port.timers if timer[1] == SILENCE] == [(seconds(2.1) + 1, SILENCE)]
    tree.receive(seconds(1.5), CHILD, Hello(ME, 0))
    for due, left in (((2.1, 0), [CHILD, OTHER]), ((3.1, 0), [CHILD]), ((3.6, 0), [])):
        ((at, key),) = [(at, key) for at, key in port.timers if key == SILENCE]
        assert at == seconds(due[0]) + 1
        port.timers.clear()
        tree.timer(at, key)
        assert sorted(tree.position.children) == left
    assert [key for _, key in port.timers if key == SILENCE] == [], "nobody is left"
    tree.position.add_child(seconds(9), CHILD)
    assert (seconds(11.1) + 1, SILENCE) in port.timers


@BOTH
@pytest.mark.parametrize(("hearing", "there"), [("any", (PARENT, CHILD)), ("beacons", ())])
def test_what_counts_as_hearing(protocol: str, hearing: str, there: tuple[Node, ...]) -> None:
    """Messages of the routing show that a neighbour is there, if the parameter has it so."""
    tree, _ = seated(protocol, hearing=hearing)
    for sender in (PARENT, CHILD):
        tree.receive(2 * SECOND, sender, Routed(Event.of("e", {}, id=1), 0))
    tree.timer(3 * SECOND, SILENCE)
    assert tree.position.neighbours == there


@BOTH
@pytest.mark.parametrize("hearing", ["traffic", "any"])
def test_background_traffic_counts_as_hearing_if_asked_for(protocol: str, hearing: str) -> None:
    """A neighbour that is heard in other traffic is lost so long after that, to the nanosecond."""
    tree, port = lone(protocol, ME, misses=2, hearing=hearing)
    for child in (CHILD, OTHER):
        tree.position.add_child(0, child)
    port.other_traffic[CHILD] = seconds(1.25)
    due = []
    while silences := [at for at, key in port.timers if key == SILENCE]:
        port.timers.clear()
        tree.timer(silences[0], SILENCE)
        due.append((silences[0], sorted(tree.position.children)))
    if hearing == "any":
        assert due == [(seconds(2.1) + 1, [])]
    else:
        assert due == [(seconds(2.1) + 1, [CHILD]), (seconds(3.35) + 1, [])]


@BOTH
def test_a_unicast_that_is_given_up_breaks_the_link_to_the_parent_and_no_other(protocol: str) -> None:
    """A child that is given up without its knowledge would be half a link; its beacons say when it is gone."""
    tree, port = seated(protocol)
    data = Routed(Event.of("e", {}, id=1), 0)
    for neighbour in (OTHER, CHILD):
        tree.unreachable(0, neighbour, data)
        assert (list(tree.position.neighbours), tree.search.repair) == ([PARENT, CHILD], None)
    tree.unreachable(0, PARENT, data)
    assert tree.position.parent is None
    (request,) = port.messages
    assert isinstance(request, Rreq)
    assert request.distance == 2
    assert [place.change for place in places(port)] == ["broken"]


@BOTH
def test_a_unicast_that_is_given_up_may_mean_nothing(protocol: str) -> None:
    tree, port = seated(protocol, unicast_breaks=False)
    tree.unreachable(0, PARENT, Routed(Event.of("e", {}, id=1), 0))
    assert (tree.position.parent, tree.search.repair, port.messages) == (PARENT, None, [])


# --- Half-links -------------------------------------------------------------------------------------------------------


@BOTH
def test_a_parent_takes_back_a_child_that_names_it(protocol: str) -> None:
    tree, port = seated(protocol)
    tree.receive(0, OTHER, Hello(ME, 0))
    assert tree.position.neighbours == (PARENT, CHILD, OTHER)
    assert unicasts(port)[-1] == (OTHER, Mact(0, 0, "update", place=tree.position.place))
    said = len(port.sent)
    tree.receive(0, OTHER, Hello(ME, 0))
    assert len(port.sent) == said, "once"


@BOTH
def test_in_maodv_s_draft_beacons_name_no_parent(protocol: str) -> None:
    """What a parent makes of its name in a beacon is a parameter: in the draft, nothing."""
    entry = CATALOGUE[protocol]
    for parameters, taken in (({}, True), ({"readopt": False}, False)):
        broker = entry.broker(ME, msgspec.convert(parameters, entry.parameters), RecordingPort(), random.Random(1))
        broker.start(0, {})
        broker.receive(0, OTHER, Hello(ME, 0))
        assert (OTHER in tree_of(broker).position.children) is taken


@BOTH
def test_half_links_heal(protocol: str) -> None:
    """The parent drops its child, which does not know: within two beacons the parent has it again, and no repair."""
    mesh = RoughMesh(CATALOGUE[protocol], range(3), [(0, 1), (1, 2)], TIMES)
    mesh.settle(3)
    assert settled(mesh) == []
    child, parent = next(
        (node, mesh.tree(node).position.parent) for node in mesh.ports if mesh.tree(node).position.parent is not None
    )
    assert parent is not None
    mesh.tree(parent).position.drop_child(mesh.now, child)
    mesh.passed.clear()
    mesh.wait(1.1)
    assert child in mesh.tree(parent).position.children
    assert not [message for *_, message in mesh.passed if isinstance(message, Rreq)]


@BOTH
def test_a_node_on_no_tree_is_nobodys_parent(protocol: str) -> None:
    tree, port = lone(protocol, ME, members="clients")
    tree.receive(0, OTHER, Hello(ME, 0))
    assert unicasts(port) == [(OTHER, Mact(0, 0, "prune"))]
    assert tree.position.children == {}


@BOTH
def test_a_child_that_names_another_is_let_go_the_second_time(protocol: str) -> None:
    """The first may have been on its way when the child came; one that names us in between is sure again."""
    tree, _ = seated(protocol)
    tree.receive(0, CHILD, Hello(OTHER, 0))
    tree.receive(0, CHILD, Hello(ME, 0))
    tree.receive(0, CHILD, Hello(None, 0))
    assert CHILD in tree.position.children
    tree.receive(0, CHILD, Hello(OTHER, 0))
    assert CHILD not in tree.position.children


# --- Parents that cannot be one ---------------------------------------------------------------------------------------


@BOTH
def test_a_parent_whose_rank_has_fallen_is_given_up(protocol: str) -> None:
    """It began anew and has lost what it kept, so it knows nothing of us. One beacon may be late; two are not."""
    tree, _ = seated(protocol)
    assert CONTRADICTIONS == 2
    told = tree.position._ceiling
    tree.receive(0, PARENT, Hello(None, told - 1))
    tree.receive(0, PARENT, Hello(None, told))
    tree.receive(0, PARENT, Hello(None, told - 1))
    assert tree.position.parent == PARENT
    tree.receive(0, PARENT, Hello(None, told - 1))
    assert tree.position.parent is None
    assert tree.search.repair is not None


@BOTH
def test_a_parent_whose_rank_is_not_above_is_given_up(protocol: str) -> None:
    """It was taken before it said yes, so that nothing is known of its rank."""
    tree, _ = seated(protocol)
    tree.position._ceiling = 0
    tree.receive(0, PARENT, Hello(None, tree.position.rank))
    tree.receive(0, PARENT, Hello(None, tree.position.rank + 1))
    tree.receive(0, PARENT, Hello(None, tree.position.rank + 1))
    assert tree.position.parent == PARENT
    for _ in range(CONTRADICTIONS):
        tree.receive(0, PARENT, Hello(None, tree.position.rank))
    assert tree.position.parent is None


@BOTH
@pytest.mark.parametrize("again", [0, 2, 4])
def test_a_node_that_begins_anew_is_above_its_former_self(protocol: str, again: Node) -> None:
    """A leaf, an inner node, the leader. Who took it for its parent may go on to: the mesh fails at a cycle."""
    mesh = RoughMesh(CATALOGUE[protocol], range(5), [(0, 1), (1, 2), (2, 3), (3, 4)], TIMES)
    mesh.settle()
    before = mesh.tree(again).position.rank
    mesh.restart(again)
    mesh.look(again)
    assert mesh.tree(again).position.rank > before
    mesh.settle()
    assert settled(mesh) == []


@BOTH
@pytest.mark.parametrize("again", [0, 2, 4])
def test_a_node_that_has_lost_what_it_kept_finds_its_way(protocol: str, again: Node) -> None:
    """Its rank is low again; the ranks of those who were below it are not."""
    mesh = RoughMesh(CATALOGUE[protocol], range(5), [(0, 1), (1, 2), (2, 3), (3, 4)], TIMES, watch=False)
    mesh.settle()
    before = mesh.tree(again).position.rank
    mesh.ports[again].kept.clear()
    mesh.restart(again)
    mesh.look(again)
    assert mesh.tree(again).position.rank < before
    mesh.settle()
    assert settled(mesh) == []
    assert mesh.cycles == {}


def test_ranks_are_kept_ahead_and_so_rarely() -> None:
    """Whenever a life ends, what is kept is above every rank it had; a thousand group hellos keep it once more."""
    tree, port = lone("maodv", ME)
    kept = []
    for second in range(1000):
        tree.timer(second * SECOND, GROUP_HELLO)
        kept.append(port.kept[KEPT])
        assert leader_rank(int.from_bytes(kept[-1], "big")) > tree.position.rank
    assert len(set(kept)) <= 2


def test_serials_are_kept_ahead_and_so_rarely() -> None:
    """Whenever a life ends, the next one has other serials; a thousand requests keep them four times."""
    used: list[int] = []
    kept: dict[str, bytes] = {}
    for _ in range(2):
        tree, port = lone("maodv", ME)
        tree.search.remember_serials(kept)
        records = set()
        for _ in range(1000):
            used.append(tree.search.next_serial())
            records.add(port.kept[SERIAL])
        assert len(records) == 4
        kept = port.kept
    assert len(set(used)) == 2000


@BOTH
def test_a_parent_is_taken_only_if_its_rank_is_above(protocol: str) -> None:
    """The rule that everything rests on, at the last moment: this node may have risen since it asked."""
    for above, taken in ((1, True), (0, False), (-1, False)):
        tree, _ = seated(protocol)
        tree.search._pending[ME, 1] = Pending(OTHER, None, 0)
        place = Place(LEADER, 10, 1, tree.position.rank + above, (LEADER, OTHER))
        tree.receive(0, OTHER, Mact(ME, 1, "update", place=place))
        assert tree.position.parent == (OTHER if taken else PARENT)


@BOTH
def test_a_parent_is_taken_only_if_it_was_asked(protocol: str) -> None:
    tree, _ = seated(protocol)
    place = Place(LEADER, 10, 1, tree.position.rank + 1, (LEADER, OTHER))
    for pending in (None, Pending(CHILD, None, 0)):
        if pending is not None:
            tree.search._pending[ME, 1] = pending
        tree.receive(0, OTHER, Mact(ME, 1, "update", place=place))
        assert tree.position.parent == PARENT


# --- What comes first, and what is bounded ----------------------------------------------------------------------------


def test_control_messages_go_before_data() -> None:
    assert [kind.urgent for kind in (Hello, Rreq, Rrep, Mact, Grph, ChkUp, Ack)] == [True] * 7
    assert not Routed.urgent


@BOTH
def test_children_are_bounded(protocol: str) -> None:
    """Anybody can name us as its parent. Who is heard stays; who was not heard for longest goes."""
    tree, _ = seated(protocol)
    for number in range(3 * MAX_CHILDREN):
        now = 1 + number
        tree.receive(now, 100 + number, Hello(ME, 0))
        tree.receive(now, CHILD, Hello(ME, 0))
        assert len(tree.position.children) <= MAX_CHILDREN
    assert CHILD in tree.position.children
    assert 100 not in tree.position.children
    assert 100 + 3 * MAX_CHILDREN - 1 in tree.position.children


nodes = st.sampled_from([0, ME, PARENT, CHILD, OTHER, LEADER, 2**31 - 1])
ranks = st.sampled_from([0, 1, 2**32, 10 * 2**32, MAX_RANK - 1, MAX_RANK])
sequences = st.sampled_from([0, 9, 10, 11, 2**30 - 1, 2**30])
distances = st.sampled_from([0, 1, 2, MAX_DEPTH - 1, MAX_DEPTH, 254, 255])
serials = st.sampled_from([0, 1, 2, 1 << 31, (1 << 31) + 1, 2**32 - 1])
attempts = st.sampled_from([0, 1, 255])
paths = st.sampled_from([(), (LEADER,), (LEADER, PARENT), (ME,), tuple(range(255))])
PLACES = st.builds(Place, nodes, sequences, distances, ranks, paths)
hostile = st.one_of(
    st.builds(Hello, st.none() | nodes, ranks),
    st.builds(
        Rreq,
        nodes,
        serials,
        attempts,
        sequences,
        distances,
        ranks,
        distances,
        st.booleans(),
        st.none() | nodes,
    ),
    st.builds(
        Rrep, nodes, serials, attempts, nodes, nodes, sequences, distances, distances, ranks, st.booleans(), paths
    ),
    st.builds(
        Mact,
        nodes,
        serials,
        st.sampled_from(["join", "update", "prune", "elect"]),
        nodes,
        ranks,
        st.none() | PLACES,
    ),
    st.builds(Grph, PLACES, st.booleans(), st.booleans(), serials),
    st.builds(ChkUp, serials),
    st.builds(Ack, serials, st.booleans()),
)
senders = st.sampled_from([PARENT, CHILD, OTHER, LEADER])


@BOTH
@given(calls=st.lists(st.tuples(st.sampled_from(["receive", "fail", "timers"]), senders, hostile), max_size=40))
def test_whatever_is_said_the_rank_stays_between_its_bounds(
    protocol: str, calls: list[tuple[str, Node, Message]]
) -> None:
    """The two laws that no message may break: a rank never falls, and is below what the parent told of its own."""
    tree, port = seated(protocol)
    codec = CATALOGUE[protocol].codec()
    for now, (what, sender, message) in enumerate(calls):
        before = tree.position.rank
        if what == "receive" and type(message) in CATALOGUE[protocol].messages:
            tree.receive(now, sender, codec.decode(codec.encode(message)))
        elif what == "fail":
            for sent in list(port.sent.values()):
                if sent.to == sender:
                    tree.unreachable(now, sender, sent.message)
        elif what == "timers":
            for _, key in list(port.timers):
                tree.timer(now, key)
        assert before <= tree.position.rank <= MAX_RANK
        assert tree.position.parent is None or tree.position.rank < tree.position._ceiling
        assert tree.position.parent not in tree.position.children
        for said in port.messages:
            assert codec.decode(codec.encode(said)) == said
