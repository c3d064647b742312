"""A rough mesh: messages take their time, arrive out of order, or not at all; links come and go. For tests of trees.

After every single call of a broker the parent pointers are followed: with `watch`, a cycle fails the test at once;
without, the mesh writes down how long each lasted. A reply that passes a node twice always fails it.
"""

import heapq
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from roamcast.protocols.api import Broker, Handle, Node, Time
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import Message
from roamcast.protocols.testing import Mesh, RecordingPort
from roamcast.protocols.tree.broker import TreeBroker
from roamcast.protocols.tree.facts import TreeChanged
from roamcast.protocols.tree.messages import MERGE, Rrep
from roamcast.protocols.tree.parameters import Coman, Maodv
from roamcast.protocols.tree.position import CONTRADICTIONS
from roamcast.protocols.tree.rank import STEP, leader_rank
from roamcast.protocols.tree.tree import Tree
from roamcast.units import SECOND, seconds

Drop = Callable[[Node, Node, Message], bool]
"""Whether a message from one node to another is lost."""


TIMES: Final[dict[str, Any]] = {
    "hello": 1.0,
    "misses": 2,
    "group_hello": 5.0,
    "retries": 2,
    "reply_wait": 0.1,
    "retry_wait": 0.5,
    "jitter": 0.01,
    "hearing": "any",
    "unicast_breaks": True,
    "readopt": True,
    "tie": "leader",
}
"""What examples are worked out with, whatever the defaults are."""


def timed(protocol: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return TIMES | ({"patience": 2.5} if protocol == "coman" else {}) | dict(parameters)


@dataclass(frozen=True)
class _Arrival:
    sender: Node
    message: Message


@dataclass(frozen=True)
class _GivenUp:
    to: Node
    message: Message


class RoughMesh(Mesh):
    """`loss`: of a broadcast at each receiver, and of a unicast in all; `silent`: lost unicasts are not even reported.

    `drop` chooses further messages to lose, always without a word.
    """

    def __init__(
        self,
        entry: Entry,
        nodes: Iterable[Node],
        links: Iterable[tuple[Node, Node]],
        parameters: Mapping[str, Any],
        *,
        seed: int = 0,
        delay: Time = SECOND // 100,
        loss: float = 0.0,
        silent: bool = False,
        watch: bool = True,
    ) -> None:
        self.chance = random.Random(f"rough/{seed}")
        self.delay = delay
        self.loss = loss
        self.silent = silent
        self.watch = watch
        self.drop: Drop = lambda sender, to, message: False
        self.events = 0
        self.passed: list[tuple[Time, Node, Node | None, Message]] = []
        """What went out, with its sender and to whom: `log` does not have the last."""
        self.cycles: dict[frozenset[Node], Time] = {}
        """Those there are, and since when."""
        self.ended: list[tuple[frozenset[Node], Time]] = []
        """Those there were, and how long."""
        self._parents: dict[Node, Node | None] = {}
        self._replies: dict[Node, set[tuple[int, ...]]] = {}
        super().__init__(entry, nodes, links, parameters, seed)

    def tree(self, node: Node) -> Tree:
        return tree_of(self.brokers[node])

    def restart(self, node: Node) -> None:
        super().restart(node)
        self._replies[node] = set()  # it does not know what it has passed on

    def wait(self, duration: float) -> None:
        self.run(self.now + seconds(duration))

    def settle(self, parts: int | None = None) -> None:
        """Waits as long as it takes for so many trees to become one, if nothing more happens; all nodes if not told."""
        assert isinstance(self.params, Maodv)
        self.wait(settling(self.params, len(self.ports) if parts is None else parts))

    def run(self, until: Time) -> None:
        """As in a mesh, with a look at the pointers after everything that happens."""
        while self._queue and self._queue[0][0] <= until:
            time, _, node, what = heapq.heappop(self._queue)
            if time != self.now:
                self._set_clock(time)
            self._happen(node, what)
            self.look(node)
        self._set_clock(until)

    def _transmit(self, node: Node, handle: Handle) -> None:
        what: Any = handle
        if isinstance(what, _Arrival):
            self.brokers[node].receive(self.now, what.sender, what.message)
        elif isinstance(what, _GivenUp):
            self.brokers[node].unreachable(self.now, what.to, what.message)
        else:
            self._send(node, handle)

    def _send(self, node: Node, handle: Handle) -> None:
        sent = self.ports[node].sent.pop(handle, None)
        if sent is None:
            return
        self.log.append((self.now, node, sent.message))
        self.passed.append((self.now, node, sent.to, sent.message))
        self._look_at_reply(node, sent.message)
        if sent.to is None:
            for other in self.ports:
                if (node, other) in self.links and self.chance.random() >= self.loss:
                    self._later(other, node, sent.message)
            return
        there, lost = (node, sent.to) in self.links, self.chance.random() < self.loss
        # An acknowledgement can get lost too: what is reported may have arrived.
        if there and (not lost or self.chance.random() < 0.3):
            self._later(sent.to, node, sent.message)
        if not there or (lost and not self.silent):
            self._at_random(node, _GivenUp(sent.to, sent.message))

    def _look_at_reply(self, node: Node, message: Message) -> None:
        """Once per request and replier, whether a node replies itself or passes a reply on."""
        if isinstance(message, Rrep):
            reply = (message.origin, message.serial, message.attempt, message.replier)
            assert reply not in self._replies[node], (self.now, node, message)
            self._replies[node].add(reply)
            if message.hops and not message.serial & MERGE:  # a replier's ancestors may be out of date
                assert node not in message.path[:-1], (self.now, node, message)

    def _later(self, node: Node, sender: Node, message: Message) -> None:
        if not self.drop(sender, node, message):
            self._at_random(node, _Arrival(sender, message))

    def _at_random(self, node: Node, what: Any) -> None:  # noqa: ANN401  # one of the above
        self._at(self.now + round(self.chance.random() * self.delay), node, what)

    def look(self, node: Node) -> None:
        """Whatever is called changes one node; cycles can come and go only if its parent is another."""
        self.events += 1
        parent = self.tree(node).position.parent
        if self._parents.get(node) == parent:
            return
        self._parents[node] = parent
        there = cycles(self.brokers)
        if self.watch:
            assert there == [], (self.now, there)
        for gone in [cycle for cycle in self.cycles if cycle not in there]:
            self.ended.append((gone, self.now - self.cycles.pop(gone)))
        for cycle in there:
            self.cycles.setdefault(cycle, self.now)

    def calm(self) -> None:
        """From here on nothing is lost, and cycles are counted from now."""
        self.loss = 0
        self.cycles = dict.fromkeys(self.cycles, self.now)
        self.ended.clear()


def tree_of(broker: Broker[Any]) -> Tree:
    assert isinstance(broker, TreeBroker)
    return broker.tree


def grown(protocol: str, links: Iterable[tuple[Node, Node]], **parameters: Any) -> RoughMesh:  # noqa: ANN401
    """A network that has settled after each of its links was made; what it said meanwhile is forgotten."""
    links = list(links)
    nodes = sorted({node for link in links for node in link})
    watch = parameters.get("activation") != "at-once"
    given = timed(protocol, parameters)
    mesh = RoughMesh(CATALOGUE[protocol], nodes, [], given, delay=SECOND // 1000, watch=watch)
    for link in links:
        mesh.link(*link)
        mesh.settle(2)
    assert settled(mesh) == []
    mesh.passed.clear()
    for port in mesh.ports.values():
        port.facts.clear()
    return mesh


def lone(protocol: str, node: Node, **parameters: Any) -> tuple[Tree, RecordingPort]:  # noqa: ANN401
    """One node's tree, and what it says."""
    entry, port = CATALOGUE[protocol], RecordingPort()
    params = msgspec.convert(timed(protocol, parameters), entry.parameters)
    broker = entry.broker(node, params, port, random.Random(node))
    broker.start(0, {})
    port.clear()
    return tree_of(broker), port


def put(
    tree: Tree,
    parent: Node,
    *,
    leader: Node,
    distance: int = 2,
    sequence: int = 10,
    ancestors: tuple[Node, ...] = (),
    children: Iterable[Node] = (),
) -> None:
    """Gives a node its place in a tree whose ranks are a step apart from level to level."""
    tree.position.parent, tree.position.leader, tree.position.on_tree = parent, leader, True
    tree.position.distance, tree.position.sequence, tree.position.ancestors = distance, sequence, ancestors
    tree.position.children = dict.fromkeys(children, 0)
    tree.position._ceiling = leader_rank(sequence) - (distance - 1) * STEP
    tree.position.rank = tree.position._ceiling - STEP
    tree.position._heard = dict.fromkeys(tree.position.neighbours, 0)


def cycles(brokers: Mapping[Node, Broker[Any]]) -> list[frozenset[Node]]:
    """All cycles of parent pointers."""
    parents = {node: tree_of(broker).position.parent for node, broker in brokers.items()}
    found: list[frozenset[Node]] = []
    for start in parents:
        walk = [start]
        while (above := parents.get(walk[-1])) is not None and above not in walk:
            walk.append(above)
        if above is not None and (cycle := frozenset(walk[walk.index(above) :])) not in found:
            found.append(cycle)
    return found


def components(nodes: Iterable[Node], links: Iterable[tuple[Node, Node]]) -> list[list[Node]]:
    """The connected parts, by the obvious search."""
    near: dict[Node, set[Node]] = {node: set() for node in nodes}
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    parts, left = [], set(near)
    while left:
        part: set[Node] = set()
        todo = [min(left)]
        while todo:
            node = todo.pop()
            if node not in part:
                part.add(node)
                todo.extend(near[node])
        parts.append(sorted(part))
        left -= part
    return sorted(parts)


def settling(params: Maodv, nodes: int) -> float:
    """How long a network of so many nodes is left alone before it must be in order, in seconds.

    In this order: links that are gone are noticed, and children that have another parent let go; every repair is given
    up at the latest when each attempt and each possible reply has been waited for; a part whose leader is gone asks
    upwards until the topmost node leads; then, in every round of group hellos, at least two of the parts that touch
    become one, a round being the longest interval and what a merge takes; a last round tells everybody. The few
    milliseconds that messages are under way are within the rounding up of each part to its worst case.
    """
    notice = params.hello * (params.misses + 1.1 + CONTRADICTIONS)
    repair = params.retry_wait * (params.retries + 1 + (3 if params.expanding else 0) + nodes)
    leaderless = 0.0
    if isinstance(params, Coman) and params.election:
        leaderless = params.patience * params.group_hello + params.hello + params.retry_wait
    merge = 1.1 * params.group_hello + params.reply_wait + 2 * params.retry_wait
    return notice + repair + leaderless + nodes * merge


def settled(mesh: Mesh) -> list[str]:
    """What is not as it should be in a network that was left alone: one tree and one leader in every part.

    Parents and children agree, unless a parent may not take back a child that it has lost without the child's knowing.
    """
    assert isinstance(mesh.params, Maodv)
    trees = {node: tree_of(broker) for node, broker in mesh.brokers.items()}
    links = [(node, tree.position.parent) for node, tree in trees.items() if tree.position.parent is not None]
    wrong = []
    if components(mesh.ports, links) != (parts := components(mesh.ports, mesh.links)):
        wrong.append(f"trees {components(mesh.ports, links)} instead of {parts}")
    for node, tree in trees.items():
        children = [other for other, parent in links if parent == node]
        lost = set() if mesh.params.readopt else {*children} - {*tree.position.children}
        if sorted({*tree.position.children} | lost) != children:
            wrong.append(f"{node} has the children {sorted(tree.position.children)} instead of {children}")
    for part in parts:
        leaders = {trees[node].position.leader for node in part}
        if len(leaders) != 1 or not leaders <= set(part):
            wrong.append(f"{part} has the leaders {leaders}")
        roots = [node for node in part if trees[node].position.parent is None]
        if set(roots) != leaders:
            wrong.append(f"{part} has the roots {roots} and the leaders {leaders}")
    return wrong


def places(port: RecordingPort) -> list[TreeChanged]:
    """The changes of a node's place in its tree, in order."""
    return [fact for _, fact in port.facts if isinstance(fact, TreeChanged)]
