"""What it took to repair a tree of brokers, and how much of it changed.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, sections IV and V): MS, NI, NR and DF.

The rules this file owns:

* A **repair** is a cause that first appears in a row of `tree` with the change `broken`; its node is the initiator, and
  the parent that this node had until then is the *former parent*. Repairs that begin before the warm-up do not count.
  It **succeeded** if the initiator has a row `repaired` with that cause. Merges have causes of their own, and are none.
* **MS** counts messages of the role `control`, one each however often the link layer repeats it; what the repetitions
  add is in `repair_transmissions`. **NI** counts nodes that sent a RREQ or RREP.
* The **reconfiguration path** leads over tree links from the initiator to its former parent. The initiator may say
  `repaired` before the other nodes on the way have changed their places, so what counts is the first path there is
  within `SETTLED` of that row, as long as the initiator has not begun another repair. There is none if the two are in
  different parts; with the same parent again there is nothing to reconfigure. Neither has a number of nodes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.run import Run
from roamcast.facts.rows import rows_of
from roamcast.units import SECOND

CONTROL: Final = "control"
"""The role of messages that keep the tree and its routes, without beacons; not that of acknowledgements."""
SEARCH: Final = ("rreq", "rrep")
SETTLED: Final = SECOND // 10
"""How long after `repaired` the nodes on a new path may take to change their places, ns: longer than a message takes
over a few hops, and shorter than another repair, whose path it would be."""


@dataclass
class TreeRepair:
    """One repair, as far as it got."""

    cause: int
    initiator: int
    began: int
    former: int | None
    """The parent that was lost; None if unknown."""
    ended: int | None = None
    """When the initiator called it repaired."""
    same_parent: bool = False
    path: int | None = None
    """Nodes on the reconfiguration path, both ends included."""


# --- From places to repairs -----------------------------------------------------------------------------------------


class _TreeRow(NamedTuple):
    """Of `tree`."""

    time: int
    node: int
    change: str
    cause: int
    parent: int | None
    children: list[int] | None


def repairs_of(tree: pa.Table) -> list[TreeRepair]:
    """All repairs, in the order in which they began; `tree` is in the order of time."""
    rows = [_TreeRow(*row) for row in rows_of(tree, *_TreeRow._fields)]
    places = _TreePositions()
    repairs: dict[int, TreeRepair] = {}
    waiting: list[TreeRepair] = []
    seen: set[int] = set()
    for number, row in enumerate(rows):
        waiting = [one for one in waiting if row.time <= (one.ended or 0) + SETTLED]
        if row.change == "broken" and row.cause not in seen:
            repairs[row.cause] = TreeRepair(row.cause, row.node, row.time, places.parent.get(row.node))
            waiting = [one for one in waiting if one.initiator != row.node]
        seen.add(row.cause)
        places.put(row)
        repair = repairs.get(row.cause)
        if repair and row.change == "repaired" and row.node == repair.initiator and repair.ended is None:
            repair.ended = row.time
            repair.same_parent = row.parent is not None and row.parent == repair.former
            if repair.former is not None and not repair.same_parent:
                waiting.append(repair)
        if waiting and (number + 1 == len(rows) or rows[number + 1].time > row.time):
            for one in waiting:
                one.path = places.path(one.initiator, one.former)
            waiting = [one for one in waiting if one.path is None]
    return list(repairs.values())


class _TreePositions:
    """The parent and children of each node, as the node itself sees them."""

    def __init__(self) -> None:
        self.parent: dict[int, int | None] = {}
        self._children: dict[int, list[int]] = {}

    def put(self, row: _TreeRow) -> None:
        self.parent[row.node] = row.parent
        self._children[row.node] = row.children or []

    def path(self, start: int, end: int | None) -> int | None:
        """The number of nodes on the shortest path over tree links, including both ends; None if there is no path."""
        seen, edge, length = {start}, [start], 1
        while edge:
            if end in edge:
                return length
            edge = [other for node in edge for other in self._joined(node) if other not in seen]
            seen.update(edge)
            length += 1
        return None

    def _joined(self, node: int) -> Iterator[int]:
        """The nodes at the other ends of its tree links, counting only links on which both ends agree."""
        children = self._children.get(node, [])
        yield from (child for child in children if self.parent.get(child) == node)
        above = self.parent.get(node)
        if above is not None and node in self._children.get(above, []):
            yield above


# --- Figures of a run -----------------------------------------------------------------------------------------------


@family(
    Measure("repairs", "repairs (begun)", "Repairs of the tree that began after the warm-up"),
    Measure(
        "repairs_succeeded",
        "repairs that succeeded (share of repairs)",
        "Share of the repairs in which the initiator found a new parent",
        share=True,
        good="high",
    ),
    Measure(
        "repair_time", "mean time of a repair (s)", "Mean time that a successful repair took", unit="s", good="low"
    ),
    Measure(
        "repair_messages",
        "control messages, MS (per repair)",
        "Control messages sent for each repair",
        unit="messages",
        good="low",
    ),
    Measure(
        "repair_transmissions",
        "transmissions of control messages (per repair)",
        "Transmissions of control messages for each repair, repetitions of the link layer included",
        unit="packets",
        good="low",
    ),
    Measure(
        "repair_nodes",
        "nodes involved, NI (per repair)",
        "Mean number of nodes that sent a RREQ or RREP in a repair",
        unit="nodes",
        good="low",
    ),
    Measure(
        "repairs_same_parent",
        "repairs to the same parent (share of successful ones)",
        "Share of the successful repairs that led to the same parent",
        share=True,
    ),
    Measure(
        "reconfiguration_nodes",
        "reconfiguration path, NR (nodes per successful repair)",
        "Mean number of nodes on the way from the initiator to its old parent",
        unit="nodes",
        good="low",
    ),
    Measure("link_breaks", "link breaks, DF (per minute)", "Links of the tree that broke, a minute", unit="1/min"),
)
def repairs(run: Run) -> Values:
    if not run.has("tree"):
        return {}
    tree = run.table("tree", *_TreeRow._fields)
    # What a repair costs is known until the cooldown, so those that begin in it do not count.
    found = [repair for repair in repairs_of(tree) if run.start <= repair.began < run.stop]
    columns = ("node", "kind", "role", "cause", "messages", "packets")
    sent = run.table("transmit", *columns) if run.has("transmit") else None
    times = tree.filter(pc.equal(tree["change"], "broken"))["time"].to_numpy()
    breaks = int(((times >= run.start) & (times < run.stop)).sum())
    minutes = (run.stop - run.start) / (60 * SECOND)
    return figures(found) | costs(found, sent) | {"link_breaks": breaks / minutes if minutes > 0 else None}


def figures(repairs: list[TreeRepair]) -> dict[str, float | None]:
    """The figures of these repairs that follow from the rows of `tree`."""
    done = [repair for repair in repairs if repair.ended is not None]
    return {
        "repairs": float(len(repairs)),
        "repairs_succeeded": _mean(repair.ended is not None for repair in repairs),
        "repair_time": _mean((repair.ended - repair.began) / SECOND for repair in done if repair.ended is not None),
        "repairs_same_parent": _mean(repair.same_parent for repair in done),
        "reconfiguration_nodes": _mean(repair.path for repair in done if repair.path is not None),
    }


def costs(repairs: list[TreeRepair], sent: pa.Table | None) -> dict[str, float | None]:
    """Control messages and their transmissions per repair, and the nodes that took part in the search.

    `sent` are rows of `transmit`, if there are any.
    """
    if not repairs:
        return dict.fromkeys(("repair_messages", "repair_transmissions", "repair_nodes"))
    if sent is None:
        return dict.fromkeys(("repair_messages", "repair_transmissions", "repair_nodes"), 0.0)
    causes = pa.array([repair.cause for repair in repairs], pa.int64())
    ours = sent.filter(pc.and_(pc.is_in(sent["cause"], causes), pc.greater(sent["messages"], 0)))
    control = ours.filter(pc.equal(ours["role"], CONTROL))
    search = control.filter(pc.is_in(control["kind"], pa.array(SEARCH)))
    # Several rows may have one key.
    involved = search.group_by(["cause", "node"]).aggregate([]).num_rows
    totals = {
        "repair_messages": pc.sum(control["messages"]).as_py() or 0,
        "repair_transmissions": pc.sum(control["packets"]).as_py() or 0,
        "repair_nodes": involved,
    }
    return {name: total / len(repairs) for name, total in totals.items()}


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None
