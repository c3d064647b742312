"""Real multicast, as in the paper's section VI: who subscribes or publishes is a member, others forward or stand by."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from protocols.tree.rough import RoughMesh, components, lone, places, put, timed
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Node
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.forwarding_messages import Routed
from roamcast.protocols.tree.messages import NOWHERE, Ack, ChkUp, Hello, Mact, Rreq
from roamcast.protocols.tree.tree import HELLO
from roamcast.units import SECOND

BOTH = pytest.mark.parametrize("protocol", ["maodv", "coman"])
CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]
EXAMPLES = examples(300)


class Multicast(RoughMesh):
    """A network of nodes that are no members until they are told to be."""

    def __init__(
        self,
        protocol: str,
        links: Iterable[tuple[Node, Node]],
        seed: int = 0,
        loss: float = 0.0,
        **parameters: Any,  # noqa: ANN401
    ) -> None:
        links = list(links)
        super().__init__(
            CATALOGUE[protocol],
            sorted({node for link in links for node in link}),
            links,
            timed(protocol, {"members": "clients", "routing": {"by": "messages"}} | parameters),
            seed=seed,
            delay=SECOND // 1000,
            loss=loss,
        )

    def join(self, *nodes: Node) -> None:
        """One after the other, so that the first leads."""
        for node in nodes:
            self[node].subscribe(self.now, Subscription(1, EVERYTHING))
            self.look(node)
            self.wait(2)

    def leave(self, node: Node) -> None:
        self[node].unsubscribe(self.now, 1)
        self.look(node)

    def publish(self, node: Node, number: int) -> None:
        self[node].publish(self.now, Publication(Event.of("e", {}, id=event_id(node, number))))
        self.look(node)

    @property
    def planted(self) -> dict[Node, Node | None]:
        """The nodes of the tree with their parents."""
        trees = {node: self.tree(node) for node in self.ports}
        return {node: tree.position.parent for node, tree in trees.items() if tree.position.on_tree}

    def changes(self, node: Node) -> list[str]:
        return [place.change for place in places(self.ports[node])]


def settled_multicast(mesh: RoughMesh) -> list[str]:
    """What is not as it should be: the members of a part in one tree with one leader, no forwarder without need."""
    trees = {node: mesh.tree(node) for node in mesh.ports}
    links = [(node, tree.position.parent) for node, tree in trees.items() if tree.position.parent is not None]
    planted = [part for part in components(mesh.ports, links) if any(trees[node].position.on_tree for node in part)]
    wrong = []
    for part in components(mesh.ports, mesh.links):
        members = [node for node in part if trees[node].position.member]
        inside = [tree for tree in planted if set(tree) <= set(part)]
        if len(inside) != bool(members) or (members and not set(members) <= set(inside[0])):
            wrong.append(f"the members {members} are in the trees {inside}")
        leaders = {trees[node].position.leader for tree in inside for node in tree}
        if len(leaders) != bool(members) or not leaders <= set(members):
            wrong.append(f"the members {members} have the leaders {leaders}")
    for node, tree in trees.items():
        children = [other for other, parent in links if parent == node]
        if sorted(tree.position.children) != children:
            wrong.append(f"{node} has the children {sorted(tree.position.children)} instead of {children}")
        if tree.position.on_tree and not tree.position.member and not children:
            wrong.append(f"{node} forwards for nobody")
        if not tree.position.on_tree and (tree.position.parent, tree.position.leader, tree.position.distance) != (
            None,
            None,
            NOWHERE,
        ):
            wrong.append(f"{node} is not on the tree and has a place")
    return wrong


# --- Joining ----------------------------------------------------------------------------------------------------------


@BOTH
def test_without_members_there_is_no_tree(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.wait(30)
    assert mesh.planted == {}
    assert {type(message) for _, _, message in mesh.log} == {Hello}
    assert settled_multicast(mesh) == []


@BOTH
def test_the_first_member_leads_when_nobody_answers(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4)
    assert mesh.planted == {4: None}
    assert mesh.changes(4) == ["joining", "elected"]
    requests = [message for _, node, message in mesh.log if isinstance(message, Rreq) and node == 4]
    assert [(request.attempt, request.distance) for request in requests] == [(0, NOWHERE), (1, NOWHERE), (2, NOWHERE)]


@BOTH
def test_a_member_joins_over_forwarders(protocol: str) -> None:
    """The request goes through nodes that have no part in the tree; those on the way back do from then on."""
    mesh = Multicast(protocol, [*CHAIN, (2, 5)])
    mesh.join(4, 0)
    assert mesh.planted == {0: 1, 1: 2, 2: 3, 3: 4, 4: None}
    assert [mesh.tree(node).position.member for node in range(6)] == [True, False, False, False, True, False]
    assert mesh.changes(0) == ["joining", "joined"]
    assert mesh.tree(0).position.distance == 4
    assert settled_multicast(mesh) == []


@BOTH
def test_a_member_that_begins_anew_joins_as_fast_as_at_first(protocol: str) -> None:
    """Others still know the number of its former request, and would ignore another of the same number."""
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0)
    mesh.leave(0)
    mesh.wait(1)
    assert mesh.planted == {4: None}
    mesh.restart(0)
    mesh.ports[0].facts.clear()
    mesh[0].subscribe(mesh.now, Subscription(1, EVERYTHING))
    mesh.wait(0.2)  # it gathers replies for 0.1 s
    assert mesh.changes(0) == ["joining", "joined"]
    causes = {message.cause for _, _, message in mesh.log if isinstance(message, Rreq) and message.origin == 0}
    assert len(causes) == 2, "each repair is counted"


@BOTH
def test_a_forwarder_that_joins_needs_to_ask_nobody(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0)
    mesh.log.clear()
    mesh.join(2)
    assert not [message for _, _, message in mesh.log if isinstance(message, Rreq | Mact)]
    assert mesh.tree(2).position.member


@BOTH
def test_two_that_join_at_once_become_one_tree(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    for node in (0, 4):
        mesh[node].subscribe(mesh.now, Subscription(1, EVERYTHING))
    mesh.settle()
    assert settled_multicast(mesh) == []
    assert len(mesh.planted) == 5


# --- Leaving ----------------------------------------------------------------------------------------------------------


@BOTH
def test_forwarders_are_pruned_when_they_are_leaves(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0)
    mesh.leave(0)
    mesh.wait(1)
    assert mesh.planted == {4: None}
    assert [mesh.changes(node)[-1] for node in range(5)] == ["left", "left", "left", "left", "child"]
    assert settled_multicast(mesh) == []


@BOTH
def test_pruning_stops_at_a_member(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0, 2)
    mesh.leave(0)
    mesh.wait(1)
    assert mesh.planted == {2: 3, 3: 4, 4: None}


@BOTH
def test_a_member_that_others_need_stays_as_a_forwarder(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0, 2)
    mesh.leave(2)
    mesh.wait(1)
    assert len(mesh.planted) == 5
    assert not mesh.tree(2).position.member


@BOTH
def test_who_has_published_stays(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0)
    mesh.publish(0, 1)
    mesh.leave(0)
    mesh.wait(1)
    assert mesh.tree(0).position.member


@BOTH
def test_a_leader_that_leaves_hands_over(protocol: str) -> None:
    """The tree turns round as far as the first member below, here at its other end; what is left are leaves."""
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0)
    mesh.leave(4)
    mesh.wait(2)
    assert mesh.planted == {0: None}
    assert mesh.changes(0) == ["joining", "joined", "elected", "child"]
    assert settled_multicast(mesh) == []


@BOTH
def test_the_last_one_leaves_no_tree(protocol: str) -> None:
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4, 0)
    mesh.leave(0)
    mesh.wait(1)
    mesh.leave(4)
    mesh.wait(1)
    assert mesh.planted == {}
    assert settled_multicast(mesh) == []


# --- A forwarder without a leader -------------------------------------------------------------------------------------

BRANCHES = [*CHAIN, (3, 5)]


@BOTH
def test_a_forwarder_has_a_descendant_lead(protocol: str) -> None:
    """3 loses the leader 4 and is no member; neither are 2 and 1; so 0 leads, and 3 keeps 5 on the tree."""
    mesh = Multicast(protocol, BRANCHES)
    mesh.join(4, 0, 5)
    assert mesh.planted == {0: 1, 1: 2, 2: 3, 3: 4, 4: None, 5: 3}
    mesh.cut(3, 4)
    mesh.wait(8)
    assert mesh.planted == {0: None, 1: 0, 2: 1, 3: 2, 4: None, 5: 3}
    assert {mesh.tree(node).position.leader for node in (0, 1, 2, 3, 5)} == {0}
    elections = [(node, to) for _, node, to, mact in mesh.passed if isinstance(mact, Mact) and mact.flag == "elect"]
    assert elections == [(3, 2), (2, 1), (1, 0)]
    assert settled_multicast(mesh) == []


@BOTH
def test_if_one_child_does_not_answer_the_next_is_asked(protocol: str) -> None:
    mesh = Multicast(protocol, BRANCHES)
    mesh.join(4, 0, 5)

    def is_election(sender: Node, to: Node, message: Message) -> bool:
        return to == 2 and isinstance(message, Mact) and message.flag == "elect"

    mesh.drop = is_election
    mesh.cut(3, 4)
    mesh.wait(8)
    assert "elected" in mesh.changes(5)
    mesh.settle()
    assert settled_multicast(mesh) == []
    assert {mesh.tree(node).position.leader for node in (0, 1, 2, 3, 5)} == {5}


def test_a_forwarder_that_finds_no_leader_above_does_not_lead_either() -> None:
    """Part D: the parent says that this is no child of it. Nobody leads here but a member."""
    tree, port = lone("coman", 1, members="clients")
    put(tree, 2, leader=9, ancestors=(9, 2), children=[3])
    for second in range(1, 14):
        for neighbour in (2, 3):
            tree.position.hear(second * SECOND, neighbour)
        tree.timer(second * SECOND, HELLO)
    (check,) = [message for message in port.messages if isinstance(message, ChkUp)]
    port.clear()
    tree.receive(13 * SECOND, 2, Ack(check.repair, False))
    assert (tree.position.parent, tree.position.leader) == (None, None)
    ((to, election),) = [(sent.to, sent.message) for sent in port.sent.values()]
    assert isinstance(election, Mact)
    assert (to, election.flag) == (3, "elect")


# --- Delivery ---------------------------------------------------------------------------------------------------------


@BOTH
def test_events_go_along_the_tree_to_members_alone(protocol: str) -> None:
    """One transmission a link; forwarders pass on and deliver nothing; a node beside the tree hears nothing of it."""
    mesh = Multicast(protocol, [*BRANCHES, (2, 6)])
    mesh.join(4, 0, 5)
    mesh.log.clear()
    mesh.publish(4, 1)
    mesh.wait(1)
    assert [len(mesh.ports[node].delivered) for node in range(7)] == [1, 0, 0, 0, 1, 1, 0]
    assert [delivery.hops for delivery in mesh.ports[0].delivered] == [4]
    senders = sorted(node for _, node, message in mesh.log if isinstance(message, Routed))
    assert senders == [1, 2, 3, 3, 4]


@BOTH
def test_who_publishes_joins_by_that(protocol: str) -> None:
    """Its first event has no way onto the tree yet; the next do."""
    mesh = Multicast(protocol, CHAIN)
    mesh.join(4)
    mesh.publish(0, 1)
    mesh.wait(2)
    mesh.publish(0, 2)
    mesh.wait(1)
    assert [delivery.event.id for delivery in mesh.ports[4].delivered] == [event_id(0, 2)]
    assert settled_multicast(mesh) == []


# --- Whatever happens -------------------------------------------------------------------------------------------------


@st.composite
def stories(draw: st.DrawFn) -> tuple[Multicast, list[tuple[float, str, Any]]]:
    nodes = draw(st.integers(2, 7))
    every = [(a, b) for a in range(nodes) for b in range(a)]
    links = draw(st.lists(st.sampled_from(every), unique=True))
    one = st.integers(0, nodes - 1)
    pause = st.floats(0.0, 2.0)
    step = st.tuples(pause, st.sampled_from(["join", "join", "leave", "restart"]), one) | st.tuples(
        pause, st.just("toggle"), st.sampled_from(every)
    )
    parameters: dict[str, Any] = {"hello": 0.5, "group_hello": draw(st.sampled_from([1.0, 2.0]))}
    protocol = draw(st.sampled_from(["maodv", "coman"]))
    if protocol == "coman":
        parameters["merging"] = draw(st.sampled_from(["repair", "leaders"]))
    mesh = Multicast(
        protocol,
        every,
        draw(st.integers(0, 2**16)),
        draw(st.sampled_from([0.0, 0.1, 0.3])),
        **parameters,
    )
    for pair in every:
        if pair not in links:
            mesh.cut(*pair)
    return mesh, draw(st.lists(step, max_size=25))


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(stories())
def test_members_come_and_go_and_there_is_one_tree_in_the_end(story: tuple[Multicast, list[Any]]) -> None:
    """The mesh fails at the first cycle."""
    mesh, steps = story
    for pause, what, which in steps:
        mesh.wait(pause)
        if what == "toggle":
            (mesh.cut if which in mesh.links else mesh.link)(*which)
        elif what == "join":
            mesh[which].subscribe(mesh.now, Subscription(1, EVERYTHING))
            mesh.look(which)
        elif what == "restart":
            mesh.restart(which)
            mesh.look(which)
        else:
            mesh.leave(which)
    mesh.calm()
    mesh.settle()
    assert settled_multicast(mesh) == []
