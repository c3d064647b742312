"""The paper's Figures 3 to 8, with its node names.

The figures are drawn; the text gives most of what matters, and each docstring says what of it is from there. The rest
is chosen so that everything which the text says comes true. A tree is grown link by link, on a network that has no
others, and then links change. Of two leaders the one with the higher number stays, so each figure's leader has the
highest.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from protocols.tree.rough import RoughMesh, grown, places, settled
from roamcast.protocols.api import Node
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.coman import reconfigured
from roamcast.protocols.tree.facts import TreeChanged
from roamcast.protocols.tree.messages import Ack, ChkUp, Hello, Mact, Rrep, Rreq


def figure(protocol: str, tree: Iterable[tuple[Node, Node]], **parameters: Any) -> RoughMesh:  # noqa: ANN401
    """A network that has formed the given tree: links of a child and its parent, from the leader outwards."""
    mesh = grown(protocol, tree, **parameters)
    assert parents(mesh) == {max(mesh.ports): None} | dict(tree)
    return mesh


def parents(mesh: RoughMesh) -> dict[Node, Node | None]:
    return {node: mesh.tree(node).position.parent for node in mesh.ports}


def sent(mesh: RoughMesh, kind: type[Message]) -> list[tuple[Node, Node | None, Any]]:
    return [(sender, to, message) for _, sender, to, message in mesh.passed if isinstance(message, kind)]


def activations(mesh: RoughMesh) -> list[tuple[Node, Node | None]]:
    """The links over which a place was asked for, in order."""
    return [(sender, to) for sender, to, mact in sent(mesh, Mact) if mact.flag == "join"]


def changes(mesh: RoughMesh, kind: str) -> list[tuple[Node, TreeChanged]]:
    return [(node, place) for node, port in mesh.ports.items() for place in places(port) if place.change == kind]


def cut(mesh: RoughMesh, child: Node, parent: Node) -> None:
    """Ends a link; both notice by their next unicast or by missing beacons, the child first in all that follows."""
    mesh.cut(child, parent)
    mesh.tree(child).lose(mesh.now, parent)
    mesh.tree(parent).lose(mesh.now, child)


# --- Figure 3: two replies, one is chosen -----------------------------------------------------------------------------


def test_figure_3() -> None:
    """From the text: the request has a distance of 2, two replies come, one is activated.

    The nodes have no names. The one nearer to the leader is taken, for both replies come over one hop; a third
    neighbour is farther from the leader than the request says, and is silent.
    """
    farther, initiator, as_far, nearer, upstream, leader = range(6)
    tree = [(upstream, leader), (nearer, leader), (initiator, upstream), (as_far, upstream), (farther, as_far)]
    mesh = figure("maodv", tree)
    for neighbour in (as_far, nearer, farther):
        mesh.link(initiator, neighbour)
    cut(mesh, initiator, upstream)
    mesh.wait(1)
    assert [request.distance for sender, _, request in sent(mesh, Rreq) if sender == initiator] == [2]
    replies = sorted((sender, reply.distance) for sender, to, reply in sent(mesh, Rrep) if to == initiator)
    assert replies == [(as_far, 2), (nearer, 1)]
    assert activations(mesh) == [(initiator, nearer)]
    assert parents(mesh) == {leader: None} | dict(tree) | {initiator: nearer}
    assert mesh.tree(initiator).position.distance == 2


# --- Figure 4: the shortest reconfiguration path ----------------------------------------------------------------------


class Figure4:
    """From the text: G loses H; A is below H, and H below the leader L; the reply of A comes to G by E, D, B.

    So E is below A, which is as far from L as G is, while E is too far to answer; and B and D are below G. C and F are
    of Figure 1: not on the path.
    """

    A, B, C, D, E, F, G, H, L = range(9)
    TREE = ((H, L), (A, H), (G, H), (E, A), (F, A), (B, G), (D, B), (C, B))


def test_figure_4() -> None:
    f = Figure4
    mesh = figure("coman", f.TREE)
    assert mesh.tree(f.A).position.ancestors == (f.L, f.H)
    mesh.link(f.D, f.E)
    cut(mesh, f.G, f.H)
    mesh.wait(1)
    ((replier, reply),) = [(sender, reply) for sender, to, reply in sent(mesh, Rrep) if to == f.G]
    assert (replier, reply.path) == (f.B, (f.L, f.H, f.A, f.E, f.D, f.B))
    assert reconfigured((f.L, f.H), reply.path) == len({f.G, f.B, f.D, f.E, f.A, f.H})
    assert parents(mesh) == {f.L: None} | dict(f.TREE) | {f.G: f.B, f.B: f.D, f.D: f.E}
    assert mesh.tree(f.G).position.ancestors == reply.path
    assert mesh.tree(f.C).position.ancestors == reply.path, "told by B"


def test_figure_4_with_a_shorter_path() -> None:
    """With B in range of H, three nodes do: G, B and H. The longer path is offered too, and not taken."""
    f = Figure4
    mesh = figure("coman", f.TREE)
    mesh.link(f.D, f.E)
    mesh.link(f.B, f.H)
    cut(mesh, f.G, f.H)
    mesh.wait(1)
    paths = sorted(reply.path for _, to, reply in sent(mesh, Rrep) if to == f.G)
    assert paths == sorted([(f.L, f.H, f.B), (f.L, f.H, f.A, f.E, f.D, f.B)])
    assert [reconfigured((f.L, f.H), path) for path in sorted(paths, key=len)] == [3, 6]
    assert parents(mesh) == {f.L: None} | dict(f.TREE) | {f.G: f.B, f.B: f.H}


@pytest.mark.parametrize(
    ("before", "after", "nodes"),
    [
        ((), (), 1),  # of a leader that stays one
        ((1,), (1,), 2),  # the same parent again: the two ends
        ((1, 2), (1, 3), 4),  # itself, 3, 1, 2
        ((1, 2), (1,), 3),  # itself, 1, 2
        ((1, 2, 3), (1, 2, 4, 5), 5),  # itself, 5, 4, 2, 3
        ((1, 2), (3, 4), 5),  # nothing in common: all of both
        ((), (3, 4), 3),  # it had nobody
    ],
)
def test_reconfigured_counts_the_nodes_of_the_path(before: tuple[int, ...], after: tuple[int, ...], nodes: int) -> None:
    assert reconfigured(before, after) == nodes


@pytest.mark.parametrize(("ancestors", "parent"), [(True, "near"), (False, "few hops")])
def test_part_a_prefers_few_changes_to_few_hops(ancestors: bool, parent: str) -> None:
    """A neighbour of G offers a place far away over one hop; G's child has one near its former parent, over two."""
    child, far, g, top_far, h, leader = range(6)
    tree = [(h, leader), (g, h), (child, g), (top_far, leader), (far, top_far)]
    mesh = figure("coman", tree, ancestors=ancestors, election=False)
    mesh.link(g, far)  # <leader, top_far, far>: five nodes, with g and h
    mesh.link(child, h)  # <leader, h, child>: three, with g
    cut(mesh, g, h)
    mesh.wait(1)
    assert mesh.tree(g).position.parent == {"near": child, "few hops": far}[parent]


# --- Figures 5 and 6: requests among members --------------------------------------------------------------------------


class Figure5:
    """From the text: E leads, C is below it and loses it; A and D are farther from E than C; A hears C, D hears A.

    E and B are in range of D and can answer. That the activation of E's reply makes a loop of D, B and E has D below
    B and B below E. A is below C, as its hearing C and its distance have it.
    """

    A, B, C, D, E = range(5)
    TREE = ((C, E), (B, E), (A, C), (D, B))


def figure_5(**parameters: Any) -> RoughMesh:  # noqa: ANN401  # parameters
    f = Figure5
    mesh = figure("coman", f.TREE, **parameters)
    mesh.link(f.A, f.D)
    mesh.link(f.D, f.E)
    cut(mesh, f.C, f.E)
    return mesh


def tree_links(mesh: RoughMesh) -> set[frozenset[Node]]:
    """Those that both ends take for one."""
    near = {node: mesh.tree(node).position.neighbours for node in mesh.ports}
    return {frozenset((a, b)) for a in near for b in near[a] if a in near[b]}


def test_figure_5() -> None:
    """Requests that travel freely: both answer, E's way is the shorter, and then D, B and E are in a ring."""
    f = Figure5
    mesh = figure_5(rreq="free", merging="leaders")
    mesh.wait(0.4)
    assert {reply.replier for _, to, reply in sent(mesh, Rrep) if to == f.C} == {f.B, f.E}
    assert activations(mesh) == [(f.C, f.A), (f.A, f.D), (f.D, f.E)]
    assert {frozenset((f.D, f.B)), frozenset((f.B, f.E)), frozenset((f.E, f.D))} <= tree_links(mesh)


def test_a_free_request_can_be_answered_by_the_parent_of_who_passes_it_on() -> None:
    """As in Figure 5, with E out of D's range: what B replies comes to C as well, and leads under D."""
    f = Figure5
    mesh = figure_5(rreq="free", merging="leaders", rewrite=False)
    mesh.cut(f.D, f.E)
    mesh.wait(0.4)
    assert {reply.replier for _, to, reply in sent(mesh, Rrep) if to == f.C} == {f.B}
    assert parents(mesh) == {f.E: None, f.B: f.E, f.D: f.B, f.A: f.D, f.C: f.A}


@pytest.mark.parametrize("rewrite", [True, False])
def test_figure_6(rewrite: bool) -> None:
    """From the text: A-D is the hop off the tree, D sends the request on to B alone, E plays no role, B replies.

    Part C: the MACT stops at D, or goes on to B.
    """
    f = Figure5
    mesh = figure_5(rewrite=rewrite)
    mesh.wait(0.4)
    requests = [(sender, to, request.on_tree) for sender, to, request in sent(mesh, Rreq)]
    assert requests == [(f.C, None, False), (f.A, None, False), (f.D, f.B, True)]
    replies = [(sender, to, reply.replier) for sender, to, reply in sent(mesh, Rrep)]
    told = f.D if rewrite else f.B
    assert replies == [(f.B, f.D, f.B), (f.D, f.A, told), (f.A, f.C, told)]
    assert activations(mesh) == [(f.C, f.A), (f.A, f.D)] + ([] if rewrite else [(f.D, f.B)])
    assert parents(mesh) == {f.E: None, f.B: f.E, f.D: f.B, f.A: f.D, f.C: f.A}
    assert len(tree_links(mesh)) == 4, "no ring"


def test_members_that_drop_requests_leave_figure_5_in_two_parts() -> None:
    """MAODV's rule: nobody in range of C can answer, and C leads its part until the two merge."""
    f = Figure5
    mesh = figure_5(rreq="members-drop", merging="leaders")
    mesh.wait(1.4)
    assert sent(mesh, Rrep) == []
    mesh.wait(0.2)
    assert mesh.tree(f.C).position.is_leader
    mesh.settle(5)
    assert settled(mesh) == []


# --- Figures 7 and 8: a MACT is lost ----------------------------------------------------------------------------------


class Figure7:
    """From the text: A, B, C and D are the part without a leader, A the nearest to the former one; E was above A.

    (Figure 8 has that A loses E, and that D loses C and finds B.) Here B and C are below A, D below C, E below the
    leader L; and F, below L too, answers A. Nothing but the lost MACT may tell F of A: also the beacons of A, which
    name F, are lost, else F would take A for a child by those.
    """

    A, B, C, D, E, F, L = range(7)
    TREE = ((E, L), (F, L), (A, E), (B, A), (C, A), (D, C))
    PART = (A, B, C, D)


def lost_mact(**parameters: Any) -> RoughMesh:  # noqa: ANN401  # parameters
    f = Figure7
    mesh = figure("coman", f.TREE, activation="at-once", **parameters)
    mesh.drop = lambda sender, to, message: (sender, to) == (f.A, f.F) and isinstance(message, Mact | Hello)
    mesh.link(f.A, f.F)
    return mesh


PATIENCE = 2.5 * 5 + 1 + 0.5 + 0.1
"""The group hellos that stay away, the next beacon, the wait for an answer; the way of messages."""


def test_figure_7() -> None:
    """E is without the tree too, leads itself, and comes back by merging: the only thing that is said of it."""
    f = Figure7
    mesh = lost_mact()
    cut(mesh, f.A, f.E)
    cut(mesh, f.E, f.L)
    mesh.wait(1)
    assert activations(mesh) == [(f.A, f.F)]
    assert (mesh.tree(f.A).position.parent, mesh.tree(f.F).position.children) == (f.F, {}), (
        "A believes it is done, F knows nothing"
    )
    mesh.wait(PATIENCE)
    checks = {(sender, to) for sender, to, _ in sent(mesh, ChkUp)}
    assert checks <= {(f.A, f.F), (f.B, f.A), (f.C, f.A), (f.D, f.C)}
    assert (f.A, f.F) in checks
    answers = {(sender, to, answer.child) for sender, to, answer in sent(mesh, Ack)}
    assert answers == {(to, sender, sender != f.A) for sender, to in checks}
    assert sorted(node for node, _ in changes(mesh, "elected")) == [f.A, f.E]

    mesh.drop = lambda sender, to, message: False
    mesh.link(f.E, f.D)
    mesh.settle(7)
    assert settled(mesh) == []
    assert {mesh.tree(node).position.leader for node in mesh.ports} == {f.L}
    assert [node for node, _ in changes(mesh, "merged") if node == f.E] == [f.E]


def test_figure_7_without_part_d_has_a_part_without_a_leader() -> None:
    """What the paper found: the part never merges. That A still follows F's group hellos is all that it has."""
    f = Figure7
    mesh = lost_mact(election=False)
    cut(mesh, f.A, f.E)
    mesh.wait(60)
    assert changes(mesh, "elected") == []
    assert (mesh.tree(f.A).position.parent, mesh.tree(f.F).position.children) == (f.F, {})


def test_figure_8() -> None:
    """Two repairs at once: D finds B, A's MACT is lost. Both would lead if it were enough to have lost the upstream."""
    f = Figure7
    mesh = lost_mact()
    mesh.link(f.D, f.B)
    cut(mesh, f.D, f.C)
    cut(mesh, f.A, f.E)
    mesh.wait(1)
    assert mesh.tree(f.D).position.parent == f.B
    assert f.D in mesh.tree(f.B).position.children
    assert (mesh.tree(f.A).position.parent, mesh.tree(f.F).position.children) == (f.F, {})
    mesh.wait(PATIENCE)
    assert [node for node, _ in changes(mesh, "elected")] == [f.A]
    followers = [node for node in f.PART if f.A in {place.leader for place in places(mesh.ports[node])}]
    assert followers == [f.A, f.B, f.C, f.D]
    mesh.drop = lambda sender, to, message: False
    mesh.settle(7)
    assert settled(mesh) == []
