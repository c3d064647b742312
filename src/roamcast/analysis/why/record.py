"""The facts of one run, laid out so that questions about one event take little time."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.contacts import Contacts, presence
from roamcast.analysis.kernels import Bools, Floats, Ints
from roamcast.analysis.network import network, reach_of
from roamcast.analysis.possible import earliest
from roamcast.analysis.run import Run, once
from roamcast.analysis.tree_links import tree_links
from roamcast.facts.schema import TABLES
from roamcast.units import SECOND

NOBODY: Final = -1
RECEIVED: Final = "received"
_NEXT_FRAGMENT: Final = SECOND
"""A fragment follows the one before within this time, even on a busy channel."""
READ: Final = (
    *("publish", "subscribe", "event_attribute", "attribute", "deliver", "transmit", "away", "leg", "link"),
    *("frame", "reception", "decision", "tree", "cache", "holding", "match", "local_minimum"),
)
"""The tables that are looked at, where they are there."""


class PublishedEvent(NamedTuple):
    event: int
    node: int
    time: int
    deadline: int
    """The end of its lifetime, or of the run."""


class BrokerDecision(NamedTuple):
    time: int
    node: int
    decision: str
    to: int | None


class SentFrame(NamedTuple):
    """A transmission of an event."""

    number: int
    start: int
    end: int
    sender: int
    to: int
    """`NOBODY`: a broadcast."""
    kind: str
    size: int


class RunRecord:
    """A run's facts."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tables = {name: run.table(name) for name in READ if name in TABLES or run.has(name)}
        self.reach = None if run.has("link") else reach_of(run.scenario)
        """None: links, no positions."""
        self.contacts = network(run, directed=True, drawn="possible")
        """Directed; None: the movement was not recorded."""
        self.has_frames = self._has("frame")
        # Where decisions are recorded, a short run may have none.
        self.has_decisions = run.scenario.record.decisions or self._has("decision")
        self.has_tree = self._has("tree")

    @property
    def missing(self) -> list[str]:
        """What the run did not record, as fields of its scenario."""
        wanted = {"record.movement": self.contacts is None, "record.frames": not self.has_frames}
        wanted["record.decisions"] = not self.has_decisions
        return [field for field, lacks in wanted.items() if lacks]

    def _has(self, table: str) -> bool:
        return table in self.tables and self.tables[table].num_rows > 0

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Those columns of a table; none where it is not there."""
        found = self.tables.get(table, TABLES[table].empty_table() if table in TABLES else None)
        return [] if found is None else list(zip(*(found[name].to_pylist() for name in columns), strict=True))

    @cached_property
    def published(self) -> dict[int, PublishedEvent]:
        end = self.run.end
        return {
            event: PublishedEvent(event, node, time, end if lifetime is None else min(end, time + lifetime))
            for event, node, time, lifetime in self.rows("publish", "event", "node", "time", "lifetime")
        }

    @cached_property
    def delivered(self) -> dict[int, dict[int, int]]:
        """By event and node: when first."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for time, node, event in self.rows("deliver", "time", "node", "event"):
            found[event].setdefault(node, time)
        return found

    @cached_property
    def decided(self) -> dict[int, list[BrokerDecision]]:
        """By event, in the order of time."""
        found: dict[int, list[BrokerDecision]] = defaultdict(list)
        for time, node, event, decision, to in self.rows("decision", "time", "node", "event", "decision", "to"):
            found[event].append(BrokerDecision(time, node, decision, to))
        for time, node, event in self.rows("local_minimum", "time", "node", "event"):
            if event is not None:
                found[event].append(BrokerDecision(time, node, "local minimum", None))
        return found

    @cached_property
    def longest_decision(self) -> int:
        """The longest time from an event's publication to a decision about it, ns; -1: there is none."""
        times = ((event, one.time) for event, some in self.decided.items() for one in some)
        return max((time - self.published[event].time for event, time in times if event in self.published), default=-1)

    @cached_property
    def kept(self) -> dict[int, dict[int, list[tuple[int, bool, str]]]]:
        """By event and node: when it entered or left what the node keeps to pass on later, and why."""
        found: dict[int, dict[int, list[tuple[int, bool, str]]]] = defaultdict(lambda: defaultdict(list))
        for time, node, event, entered, change in self.rows("cache", "time", "node", "event", "entered", "change"):
            found[event][node].append((time, entered, change))
        for time, node, event, holds in self.rows("holding", "time", "node", "event", "holds"):
            if event is not None:
                found[event][node].append((time, holds, "held" if holds else "left the region or expired"))
        return found

    # --- Frames -----------------------------------------------------------------------------------------------------

    @cached_property
    def roles(self) -> dict[str, str]:
        return dict(self.rows("transmit", "kind", "role"))

    @cached_property
    def _frames(self) -> dict[str, Any]:
        """Columns of `frame`. Rows are in the order of their numbers, which begin with 0."""
        table = self.tables["frame"]
        columns: dict[str, Any] = {
            name: table[name].fill_null(NOBODY).to_numpy() for name in ("start", "end", "sender", "to", "event", "size")
        }
        columns["kind"], columns["kinds"] = coded(table["kind"])
        return columns

    @cached_property
    def _frames_by_event(self) -> tuple[Ints, Ints]:
        event = self._frames["event"]
        order = np.argsort(event, kind="stable")
        return event[order], order

    def frames_of(self, event: int) -> list[SentFrame]:
        """Those that carry the event or a part of it, in the order of their ends."""
        if not self.has_frames:
            return []
        events, order = self._frames_by_event
        low, high = np.searchsorted(events, event), np.searchsorted(events, event, "right")
        found = (self.frame(int(number)) for number in order[low:high])
        return [frame for frame in found if self.roles.get(frame.kind, "data") == "data"]

    def frame(self, number: int) -> SentFrame:
        columns = self._frames
        start, end, sender, to, size = (int(columns[name][number]) for name in ("start", "end", "sender", "to", "size"))
        return SentFrame(number, start, end, sender, to, columns["kinds"][columns["kind"][number]], size)

    @cached_property
    def _receptions(self) -> tuple[Ints, Ints, Ints, list[str]]:
        table = self.tables["reception"]
        return table["frame"].to_numpy(), table["node"].to_numpy(), *coded(table["outcome"])

    def outcomes(self, frames: Sequence[SentFrame]) -> tuple[Ints, Ints, Ints]:
        """What became of these frames, a row for each node that one was meant for: the frame's place among them, the
        node, and the outcome's number (`outcome`).
        """
        if not frames:
            return (np.empty(0, np.int64),) * 3
        column, node, outcome, _ = self._receptions
        numbers = np.array([frame.number for frame in frames], np.int64)
        low, high = np.searchsorted(column, numbers), np.searchsorted(column, numbers, "right")
        count = high - low
        place = np.repeat(np.arange(len(frames)), count)
        rows = np.arange(len(place)) + np.repeat(low - np.cumsum(count) + count, count)
        return place, node[rows], outcome[rows]

    def outcome(self, number: int) -> str:
        """The name of an outcome."""
        return self._receptions[3][number]

    @cached_property
    def received(self) -> int:
        """The number of the outcome `RECEIVED`; -1: nothing was received."""
        names = self._receptions[3]
        return names.index(RECEIVED) if RECEIVED in names else -1

    @cached_property
    def _longest(self) -> int:
        return int((self._frames["end"] - self._frames["start"]).max())

    def on_air(self, frame: SentFrame) -> list[SentFrame]:
        """The other frames that were on the air at the same time, anywhere."""
        start, end = self._frames["start"], self._frames["end"]
        # Frames are in the order of their ends.
        low = np.searchsorted(end, frame.start, "right")
        high = np.searchsorted(end, frame.end + self._longest, "right")
        rows = np.arange(low, high)
        together = rows[(start[low:high] < frame.end) & (rows != frame.number)]
        return [self.frame(int(number)) for number in together]

    def cut_off(self, frame: SentFrame) -> bool:
        """Whether the run ended after this fragment of a message and before the next."""
        return frame.size >= self.run.scenario.mac.mtu and self.run.end - frame.end < _NEXT_FRAGMENT

    @cached_property
    def queue_full(self) -> set[int]:
        """Nodes that lost a message with data to a full queue."""
        rows = self.rows("transmit", "node", "role", "queue_full")
        return {node for node, role, count in rows if role == "data" and count}

    # --- Where nodes are --------------------------------------------------------------------------------------------

    @cached_property
    def _away(self) -> dict[int, list[tuple[int, int]]]:
        on = presence(self.tables["away"], self.run.nodes, self.run.end)
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, begin, until in zip(*(column.tolist() for column in on), strict=True):
            found[node].append((begin, until))
        return found

    def is_there(self, node: int, time: int) -> bool:
        return any(begin <= time < until for begin, until in self._away[node])

    @cached_property
    def _legs(self) -> dict[int, tuple[Ints, Ints, Floats]]:
        leg = self.tables["leg"]
        node, start, stop = (leg[name].to_numpy() for name in ("node", "start", "end"))
        place = np.column_stack([leg[name].to_numpy() for name in ("x0", "y0", "x1", "y1")])
        return {int(one): (start[node == one], stop[node == one], place[node == one]) for one in np.unique(node)}

    def place(self, node: int, time: int) -> tuple[float, float] | None:
        """Where a node is; None without positions."""
        if node not in self._legs:
            return None
        start, stop, place = self._legs[node]
        row = max(int(np.searchsorted(start, time, "right")) - 1, 0)
        part = (time - start[row]) / (stop[row] - start[row])
        x0, y0, x1, y1 = place[row]
        return float(x0 + (x1 - x0) * part), float(y0 + (y1 - y0) * part)

    def distance(self, one: int, other: int, time: int) -> float | None:
        here, there = self.place(one, time), self.place(other, time)
        return None if here is None or there is None else float(np.hypot(here[0] - there[0], here[1] - there[1]))

    def earliest(self, event: int) -> Ints | None:
        """When the event could have been at each node, by contacts alone; None where the movement was not recorded."""
        rows, times = self._earliest
        return None if times is None else times[rows[event]]

    @cached_property
    def _earliest(self) -> tuple[dict[int, int], Ints | None]:
        """Of all events at once, which takes little more than of one."""
        every = list(self.published.values())
        rows = {one.event: row for row, one in enumerate(every)}
        if self.contacts is None:
            return rows, None
        where, when = (np.array([one[place] for one in every], np.int64) for place in (1, 2))
        return rows, earliest(self.contacts, where, when)

    @cached_property
    def tree(self) -> Contacts:
        """The links of the tree, each direction apart."""
        return tree_links(self.tables["tree"], self.run.nodes, self.run.end).both_ways()


@once
def record(run: Run) -> RunRecord:
    """A run's facts, prepared to explain why an event did not arrive."""
    return RunRecord(run)


def at(contacts: Contacts, time: int) -> Bools:
    """Which of the contacts are there at an instant."""
    there: Bools = (contacts.begin <= time) & (time < contacts.until)
    return there


def coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """A column of few different words: which of them each row has, and the words. Rows as strings would take 60 bytes
    each, and there are millions.
    """
    names = column.unique()
    numbers: Ints = pc.index_in(column, value_set=names).to_numpy()
    return numbers, names.to_pylist()
