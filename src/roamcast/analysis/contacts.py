"""Who could hear whom, and exactly when, from the facts of a run: no sampling, no time step.

The rules this file owns, which follow docs/model.md:

* A *contact* is a time [begin, until), in whole nanoseconds, during which any frame that starts would be received, as
  far as position and presence decide: `d² <= r²` in the core's own arithmetic. Random loss, collisions and queues are
  ignored.
* r is the sender's range. With a second range for buildings, or if both ends must be in range, it is the lesser of the
  two nodes' ranges at that instant.
* With opaque walls, both nodes are in the same room, or both outdoors.
* If the range is drawn for every frame, there is no single r. The caller chooses: `certain`, what every frame reaches
  (the lower bound); `possible`, what some frame may reach (the upper bound); `mean`, what every second frame reaches.
* With scripted or recorded links, a contact lasts from the row that adds the link to the row that removes it, whatever
  its loss.
* A node that is away hears nobody and is heard by nobody; one without a leg is nowhere.
* A *mutual* contact needs both directions, a directed one does not: they differ where ranges are drawn per node, and
  with links in one direction.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis import kernels
from roamcast.analysis.kernels import Bools, Floats, Ints
from roamcast.errors import RoamcastError
from roamcast.facts.rows import rows_of
from roamcast.facts.schema import TABLES

DrawnRange = Literal["certain", "mean", "possible"]

READ: Final = ("leg", "link", "away")
"""The tables that contacts follow from; one that is missing has no rows."""


@dataclass(frozen=True)
class Reach:
    """The settings of a radio that decide who is in range; metres."""

    outdoors: float | tuple[float, float] | Floats
    """One range; the bounds of a range drawn for every frame; or an array with each node's own."""
    indoors: float | None = None
    """The range inside buildings; None: the same as outdoors."""
    walls: bool = False
    """Whether walls are opaque."""
    both_ends: bool = False
    """Whether the lesser of the two nodes' ranges counts."""

    def by_node(self, nodes: int, drawn: DrawnRange) -> Floats:
        """Each node's range outdoors."""
        if isinstance(self.outdoors, tuple):
            low, high = self.outdoors
            return np.full(nodes, {"certain": low, "mean": (low + high) / 2, "possible": high}[drawn])
        ranges = np.asarray(self.outdoors, np.float64)
        if ranges.ndim and len(ranges) != nodes:
            raise RoamcastError(f"{len(ranges)} ranges for {nodes} nodes: give one for each, or one for all")
        return np.broadcast_to(ranges, (nodes,)).copy()


class Spans(NamedTuple):
    """Times [begin, until) of nodes, ordered by node and time; those of one node do not overlap or touch."""

    node: Ints
    begin: Ints
    until: Ints


@dataclass(frozen=True)
class Contacts:
    """Contacts from the start of a run to `end`, ordered by sender, receiver and time.

    Those of one pair do not overlap or touch. A mutual contact is listed once, with the smaller node as sender.
    """

    nodes: int
    end: int
    mutual: bool
    sender: Ints
    receiver: Ints
    begin: Ints
    until: Ints
    present: Spans
    """When each node was present: neither away nor without a position."""

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def pair(self) -> Ints:
        """A number for each pair."""
        return self.sender * self.nodes + self.receiver

    @property
    def target(self) -> Ints:
        """The targets of the arcs that `compiled` makes from these contacts."""
        return np.column_stack([self.receiver, self.sender]).ravel()

    def both_ways(self) -> "Contacts":
        """Directed contacts: a mutual one counts once in each direction."""
        if not self.mutual:
            return self
        columns = (
            np.concatenate([self.sender, self.receiver]),
            np.concatenate([self.receiver, self.sender]),
            np.tile(self.begin, 2),
            np.tile(self.until, 2),
        )
        return ordered(self.nodes, self.end, False, *columns, self.present)

    def while_in(self, other: "Contacts") -> "Contacts":
        """These contacts, cut down to the times at which the pair is in contact in `other` too."""
        which, begin, until = overlaps((self.pair, self.begin, self.until), (other.pair, other.begin, other.until))
        sender, receiver = self.sender[which], self.receiver[which]
        return Contacts(self.nodes, self.end, self.mutual, sender, receiver, begin, until, self.present)


def contacts(
    facts: Mapping[str, pa.Table],
    nodes: int,
    end: int,
    reach: Reach | None,
    *,
    directed: bool = False,
    drawn: DrawnRange = "certain",
) -> Contacts | None:
    """The contacts of a run of `nodes` nodes until `end` (ns), from its tables `leg` or `link`, and `away`.

    Without a reach, nodes have links and no positions. None if a node's movement was not recorded.
    """
    if end <= 0 or nodes < 1:
        raise RoamcastError(f"a run of {nodes} nodes and {end} ns has no contacts: both must be above 0")
    if directed and reach is not None and reach.both_ends:
        found = contacts(facts, nodes, end, reach, drawn=drawn)
        return None if found is None else found.both_ways()
    on = presence(_table(facts, "away"), nodes, end)
    if reach is None:
        columns = _by_links(_table(facts, "link"), nodes, end, directed)
    else:
        legs = _table(facts, "leg")
        _check_nodes("leg", nodes, legs["node"])
        if pc.count_distinct(legs["node"]).as_py() < nodes:
            return None
        columns = _by_legs(legs, nodes, end, reach, directed, drawn)
    return _while_present(ordered(nodes, end, not directed, *columns, on))


def ordered(
    nodes: int, end: int, mutual: bool, sender: Ints, receiver: Ints, begin: Ints, until: Ints, present: Spans
) -> Contacts:
    """Contacts from columns in any order."""
    order = np.lexsort((begin, receiver, sender))
    return Contacts(nodes, end, mutual, sender[order], receiver[order], begin[order], until[order], present)


# --- Who is there ---------------------------------------------------------------------------------------------------


def presence(away: pa.Table, nodes: int, end: int) -> Spans:
    """When each node was present, from the rows of `away` in order of time."""
    _check_nodes("away", nodes, away["node"])
    there = IntervalBuilder()  # a node that returns at the instant it left was never away
    for node in range(nodes):
        there.up((node, node), 0)
    for time, node, gone in rows_of(away, "time", "node", "away"):
        (there.down if gone else there.up)((node, node), time)
    who, _, begin, until = there.columns(end)
    return Spans(who, begin, until)


def _while_present(found: Contacts) -> Contacts:
    on = (found.present.node, found.present.begin, found.present.until)
    for end in ("sender", "receiver"):
        by_end = np.lexsort((found.begin, getattr(found, end)))
        which, begin, until = overlaps((getattr(found, end)[by_end], found.begin[by_end], found.until[by_end]), on)
        which = by_end[which]
        sender, receiver = found.sender[which], found.receiver[which]
        found = ordered(found.nodes, found.end, found.mutual, sender, receiver, begin, until, found.present)
    return found


# --- By links -------------------------------------------------------------------------------------------------------


class IntervalBuilder:
    """Makes intervals from ups and downs in order of time; a down and an up at the same instant cancel out."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], int] = {}
        self._done: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def up(self, pair: tuple[int, int], time: int) -> None:
        if pair not in self._since:
            done = self._done.get(pair)
            self._since[pair] = done.pop()[0] if done and done[-1][1] == time else time

    def down(self, pair: tuple[int, int], time: int) -> None:
        began = self._since.pop(pair, None)
        if began is not None and began < time:
            self._done.setdefault(pair, []).append((began, time))

    def columns(self, end: int) -> tuple[Ints, Ints, Ints, Ints]:
        """First and second of the pair, begin and until, by pair and time; intervals still open last until `end`."""
        for pair in list(self._since):
            self.down(pair, end)
        rows = [
            (*pair, begin, min(until, end)) for pair, done in self._done.items() for begin, until in done if begin < end
        ]
        first, second, begin, until = np.array(sorted(rows), np.int64).reshape(-1, 4).T
        return first, second, begin, until


def _by_links(link: pa.Table, nodes: int, end: int, directed: bool) -> tuple[Ints, Ints, Ints, Ints]:
    _check_nodes("link", nodes, link["sender"], link["receiver"])
    heard = IntervalBuilder()
    for time, sender, receiver, loss in rows_of(link, "time", "sender", "receiver", "loss"):
        (heard.down if loss is None else heard.up)((sender, receiver), time)
    sender, receiver, begin, until = heard.columns(end)
    if directed:
        return sender, receiver, begin, until
    there, back = np.flatnonzero(sender < receiver), np.flatnonzero(sender > receiver)
    back = back[np.lexsort((begin[back], sender[back], receiver[back]))]
    which, both_begin, both_until = overlaps(
        (sender[there] * nodes + receiver[there], begin[there], until[there]),
        (receiver[back] * nodes + sender[back], begin[back], until[back]),
    )
    return sender[there][which], receiver[there][which], both_begin, both_until


# --- By movement ----------------------------------------------------------------------------------------------------


def _by_legs(
    leg: pa.Table, nodes: int, end: int, reach: Reach, directed: bool, drawn: DrawnRange
) -> tuple[Ints, Ints, Ints, Ints]:
    node, start = leg["node"].to_numpy(), leg["start"].to_numpy()
    order = np.lexsort((start, node))
    node, start, stop = node[order], start[order], leg["end"].to_numpy()[order]
    x0, y0, x1, y1 = (leg[name].to_numpy()[order] for name in ("x0", "y0", "x1", "y1"))
    span = stop - start
    ranges = reach.by_node(nodes, drawn)[node]
    if reach.indoors is not None:
        ranges = np.where(leg["indoor"].to_numpy(zero_copy_only=False)[order], reach.indoors, ranges)
    room = leg["room"].to_numpy()[order] if reach.walls else np.zeros(len(node), np.int64)
    first = np.searchsorted(node, np.arange(nodes + 1))
    one_way = directed and reach.indoors is None and len(np.unique(ranges)) > 1
    way = np.column_stack([x0, y0, (x1 - x0) / span, (y1 - y0) / span])  # where from, and m/ns
    rows = kernels.pass_by(first, start, stop, way, ranges, room, end, one_way)
    sender, receiver, begin, until = rows.T
    if directed and not one_way:
        sender, receiver = np.concatenate([sender, receiver]), np.concatenate([receiver, sender])
        begin, until = np.tile(begin, 2), np.tile(until, 2)
    return sender, receiver, begin, until


# --- Small things ---------------------------------------------------------------------------------------------------


def changes(begin: Ints, until: Ints) -> tuple[Ints, Ints, Bools]:
    """Every begin and end in order of time: the time, the index of the contact, and whether it is a begin."""
    time, which = np.concatenate([begin, until]), np.tile(np.arange(len(begin)), 2)
    order = np.argsort(time, kind="stable")
    return time[order], which[order], order < len(begin)


Keyed = tuple[Ints, Ints, Ints]
"""Keys, begin and until, ordered by key and begin."""


def overlaps(ours: Keyed, theirs: Keyed) -> Keyed:
    """The overlaps of an interval of ours with one of theirs of the same key: (index in ours, begin, until).

    IntervalBuilder of theirs with the same key must not overlap.
    """
    # One layout of arrays, so that it is compiled once.
    return kernels.overlaps(*map(np.ascontiguousarray, (*ours, *theirs)))


def _table(facts: Mapping[str, pa.Table], name: str) -> pa.Table:
    return facts.get(name, TABLES[name].empty_table())


def _check_nodes(table: str, nodes: int, *columns: Iterable[int]) -> None:
    for column in columns:
        least, most = pc.min_max(column).as_py().values()
        if least is not None and not 0 <= least <= most < nodes:
            odd = least if least < 0 else most
            raise RoamcastError(f"the table `{table}` names node {odd}, but the run has {nodes} nodes, numbered from 0")
