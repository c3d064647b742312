"""No loops, whatever happens: generated networks, losses, delays, stale knowledge, all sensible combinations of parts.

What is claimed, and checked after every single thing that happens to a node:

* With `activation = "confirmed"`, parent pointers never form a cycle, whatever is lost, late, or out of date, and
  whoever begins anew with what it had kept.
* With `activation = "at-once"`, in a network that loses nothing, a cycle is gone within `cycle_life`.
* A reply passes a node once per request, and no node that is on its path already.
* In a network that stays as it is and loses nothing for `settling` (rough.py), every connected part is one tree with
  one leader, and parents and children agree.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from protocols.tree.rough import RoughMesh, cycles, settled
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Subscription
from roamcast.protocols.api import Node
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.tree.messages import Rrep
from roamcast.protocols.tree.parameters import Coman, Maodv
from roamcast.protocols.tree.position import CONTRADICTIONS
from roamcast.units import SECOND, seconds

EXAMPLES = examples(400)
MOST_NODES = 8
LONGEST_DELAY = SECOND // 40
"""So that over eight nodes a request, with its jitter at each, and the reply to it are back within `retry_wait`."""


def cycle_life(params: Maodv) -> float:
    """How long a cycle can last in a network that loses nothing, in seconds.

    Ranks cannot rise from node to node all the way round, and a cycle has no leader by which its highest could rise. So
    one of its nodes hears from the beacons of its parent that this is not above it, or hears no beacons at all.
    """
    return params.hello * max(params.misses + 1.1, CONTRADICTIONS) + LONGEST_DELAY / SECOND


@dataclass
class Run:
    """A network and what happens to it."""

    protocol: str
    parameters: dict[str, Any]
    nodes: int
    links: list[tuple[Node, Node]]
    steps: list[tuple[float, str, Any]]
    """After so many seconds: a link comes or goes, a node begins anew, or what it knows is spoilt."""
    loss: float
    silent: bool
    delay: int
    seed: int
    mesh: RoughMesh = field(init=False, repr=False)

    def go(self) -> None:
        """All that happens, and then nothing for as long as it takes."""
        watch = self.parameters["activation"] == "confirmed"
        self.mesh = RoughMesh(
            CATALOGUE[self.protocol],
            range(self.nodes),
            self.links,
            self.parameters,
            seed=self.seed,
            delay=self.delay,
            loss=self.loss,
            silent=self.silent,
            watch=watch,
        )
        for pause, what, which in self.steps:
            self.mesh.wait(pause)
            getattr(self, what)(which)
        self.mesh.calm()
        self.mesh.settle()

    def toggle(self, pair: tuple[Node, Node]) -> None:
        (self.mesh.cut if pair in self.mesh.links else self.mesh.link)(*pair)

    def restart(self, node: Node) -> None:
        self.mesh.restart(node)
        self.mesh.look(node)

    def spoil(self, stale: tuple[Node, list[Node], int]) -> None:
        """Wrong ancestors and a wrong distance, as if news had not come for long."""
        node, ancestors, distance = stale
        tree = self.mesh.tree(node)
        if tree.position.parent is not None:
            tree.position.ancestors, tree.position.distance = tuple(ancestors), distance


@st.composite
def timings(draw: st.DrawFn) -> dict[str, Any]:
    """Short intervals, for short runs; their proportions are what matters."""
    return {
        "hello": draw(st.sampled_from([0.4, 0.5, 1.0])),
        "misses": draw(st.sampled_from([1, 2, 3])),
        "hearing": draw(st.sampled_from(["any", "beacons", "traffic"])),
        "unicast_breaks": draw(st.booleans()),
        "readopt": draw(st.sampled_from([True, True, False])),
        "tie": draw(st.sampled_from(["first", "leader"])),
        "children_break": draw(st.booleans()),
        "expanding": draw(st.booleans()),
        "outdated": draw(st.sampled_from(["drop", "pass on"])),
        "replies": draw(st.sampled_from(["all", "better"])),
        "updates": draw(st.sampled_from(["unicast", "broadcast"])),
        "group_hello": draw(st.sampled_from([1.0, 2.0])),
        "retries": draw(st.sampled_from([0, 1, 2])),
        "reply_wait": draw(st.sampled_from([0.0, 0.03, 0.1])),
        "retry_wait": 0.5,
        "jitter": draw(st.sampled_from([0.0, 0.01])),
        "routing": {"by": draw(st.sampled_from(["messages", "subscriptions"]))},
    }


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """All combinations of COMAN's parts that make sense."""
    ancestors = draw(st.booleans())
    rreq = draw(st.sampled_from(["on-tree", "members-drop", "free"]))
    return {
        "ancestors": ancestors,
        "rreq": rreq,
        "rewrite": draw(st.booleans()),
        "election": draw(st.booleans()) if ancestors else False,
        "merging": draw(st.sampled_from(["repair", "leaders"])) if rreq == "on-tree" else "leaders",
        "patience": draw(st.sampled_from([1.5, 2.5])),
    }


@st.composite
def runs(draw: st.DrawFn, activation: str) -> Run:
    protocol = draw(st.sampled_from(["coman", "maodv"]))
    parameters = draw(timings()) | {"activation": activation}
    if protocol == "coman":
        parameters |= draw(parts())
    nodes = draw(st.integers(2, MOST_NODES))
    every = [(a, b) for a in range(nodes) for b in range(a)]
    node = st.integers(0, nodes - 1)
    stale = st.tuples(node, st.lists(node, max_size=nodes), st.integers(0, nodes))
    pause = st.floats(0.0, 2.0)
    step = st.one_of(
        st.tuples(pause, st.just("toggle"), st.sampled_from(every)),
        st.tuples(pause, st.just("spoil"), stale),
        st.tuples(pause, st.just("restart"), node),
    )
    return Run(
        protocol,
        parameters,
        nodes,
        draw(st.lists(st.sampled_from(every), unique=True, min_size=nodes // 2)),
        draw(st.lists(step, max_size=25)),
        draw(st.sampled_from([0.0, 0.1, 0.3, 0.5])),
        draw(st.booleans()),
        draw(st.sampled_from([0, SECOND // 1000, SECOND // 100, LONGEST_DELAY])),
        draw(st.integers(0, 2**16)),
    )


relaxed = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@relaxed
@given(runs("confirmed"))
def test_confirmed_there_is_never_a_cycle_and_one_tree_in_the_end(run: Run) -> None:
    """The mesh itself fails at the first cycle."""
    run.go()
    assert settled(run.mesh) == []


@relaxed
@given(runs("at-once"))
def test_at_once_a_cycle_does_not_last_and_there_is_one_tree_in_the_end(run: Run) -> None:
    run.go()
    assert isinstance(run.mesh.params, Maodv)
    most = seconds(cycle_life(run.mesh.params))
    assert [(sorted(cycle), lasted) for cycle, lasted in run.mesh.ended if lasted > most] == []
    assert settled(run.mesh) == []


@pytest.mark.parametrize("protocol", ["maodv", "coman"])
@pytest.mark.parametrize("seed", range(3))
def test_forty_nodes_that_all_start_at_once_become_one_tree(protocol: str, seed: int) -> None:
    """A grid of 5 x 8, in which a few links are missing, with the defaults and a little loss at the start."""
    beside = [(n, n + 1) for n in range(40) if n % 8 != 7 and n % 5]
    mesh = RoughMesh(
        CATALOGUE[protocol], range(40), [*beside, *((n, n + 8) for n in range(32))], {}, seed=seed, loss=0.05
    )
    mesh.wait(20)
    mesh.calm()
    mesh.wait(60)
    assert settled(mesh) == []


@pytest.mark.parametrize("members", ["all", "clients"])
@pytest.mark.parametrize("protocol", ["maodv", "coman"])
def test_late_copies_of_a_request_send_no_reply_round_in_a_ring(protocol: str, members: str) -> None:
    """The mesh fails if a reply passes a node twice.

    Thirty nodes, links that come and go all the time, and messages that take up to 0.2 s: copies of a request are under
    way while the path that its first reply prepared is turned round.
    """
    timing = {"hello": 0.5, "group_hello": 1.0, "reply_wait": 0.1, "jitter": 0.1, "members": members}
    for seed in (0, 4):
        chance = random.Random(seed)
        every = [(a, b) for a in range(30) for b in range(a)]
        links = chance.sample(every, 60)
        mesh = RoughMesh(CATALOGUE[protocol], range(30), links, timing, seed=seed, delay=SECOND // 5, loss=0.1)
        for node in range(0, 30, 1 if members == "all" else 3):  # the others forward
            mesh[node].subscribe(0, Subscription(1, EVERYTHING))
        for _ in range(30):
            mesh.wait(chance.random())
            for pair in (chance.choice(links), chance.choice(links)):
                (mesh.cut if pair in mesh.links else mesh.link)(*pair)
        assert sum(isinstance(message, Rrep) for _, _, _, message in mesh.passed) > 30


# --- That the tests above can fail ------------------------------------------------------------------------------------


def line(nodes: int) -> RoughMesh:
    """A tree with its leader at the end, put there."""
    parameters = {"readopt": True}
    mesh = RoughMesh(CATALOGUE["maodv"], range(nodes), [(n, n + 1) for n in range(nodes - 1)], parameters, watch=False)
    for node in range(nodes - 1):
        tree = mesh.tree(node)
        tree.position.parent, tree.position.leader = node + 1, nodes - 1
        mesh.tree(node + 1).position.children = {node: 0}
    return mesh


def test_cycles_are_found() -> None:
    mesh = line(5)
    assert cycles(mesh.brokers) == []
    mesh.tree(3).position.parent = 1
    assert cycles(mesh.brokers) == [frozenset({1, 2, 3})]
    mesh.tree(4).position.parent = 0
    mesh.tree(0).position.parent = 4
    assert cycles(mesh.brokers) == [frozenset({0, 4}), frozenset({1, 2, 3})]
    mesh.watch = True
    with pytest.raises(AssertionError, match="frozenset"):
        mesh.look(3)


def test_how_long_a_cycle_lasts_is_written_down() -> None:
    mesh = line(3)
    for at, parent in ((5, 0), (9, None)):
        mesh._set_clock(at)
        mesh.tree(2).position.parent = parent
        mesh.look(2)
    assert mesh.ended == [(frozenset({0, 1, 2}), 4)]


def test_what_is_not_settled_is_found() -> None:
    assert settled(line(4)) == []
    mesh = line(4)
    mesh.tree(1).position.parent = None
    assert [words.split()[0] for words in settled(mesh)] == ["trees", "2", "[0,"]
    mesh = line(4)
    mesh.tree(0).position.leader = 0
    assert settled(mesh) == [
        "[0, 1, 2, 3] has the leaders {0, 3}",
        "[0, 1, 2, 3] has the roots [3] and the leaders {0, 3}",
    ]
    mesh = line(4)
    mesh.tree(3).position.children = {}
    assert settled(mesh) == ["3 has the children [] instead of [2]"]


def test_the_parts_are_all_the_sensible_ones() -> None:
    """Those that a generated run can have are those that are not refused."""
    assert Coman(ancestors=False, election=False, rreq="free", merging="leaders")
    with pytest.raises(ValueError, match="part D"):
        Coman(ancestors=False)
    with pytest.raises(ValueError, match="part E"):
        Coman(rreq="free")
