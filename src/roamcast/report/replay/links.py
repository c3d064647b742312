"""States with a duration, between nodes or at one: contacts, tree links, relays, forwarders, caches, absences."""

from collections import defaultdict

import numpy as np

from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.report.replay.pack import ColumnPack
from roamcast.units import SECOND

Row = tuple[int, int, int, int]
"""Two numbers (nodes, or a node and an event), begin and end in ns."""


def add_links(pack: ColumnPack, run: RecordedRun, event_number: dict[int, int]) -> None:
    """Each kind as four columns: one, other, from, until."""
    end = run.scenario.end
    tree = run.record.tree if run.record.has_tree else None
    for name, found in (("contact", run.record.contacts), ("tree", tree)):
        if found is None:
            _add(pack, name, [])
        else:
            once = found.sender < found.receiver
            _add_columns(pack, name, found.sender[once], found.receiver[once], found.begin[once], found.until[once])
    _add(pack, "relay", _relays(run, end))
    _add(pack, "forwarder", _switched(run.record.rows("mesh", "time", "node", "group", "forwards"), end))
    _add(pack, "kept", _kept(run, event_number, end))
    gone = [(time, node, 0, away) for time, node, away in run.record.rows("away", "time", "node", "away")]
    _add(pack, "away", _switched(gone, end))


def _add(pack: ColumnPack, name: str, rows: list[Row]) -> None:
    _add_columns(pack, name, *np.array(rows, np.int64).reshape(-1, 4).T)


def _add_columns(pack: ColumnPack, name: str, one: object, other: object, begin: object, until: object) -> None:
    pack.add(f"{name}.one", np.asarray(one), "i4")
    pack.add(f"{name}.other", np.asarray(other), "i4")
    pack.add(f"{name}.from", np.asarray(begin) / SECOND, "f8")
    pack.add(f"{name}.until", np.asarray(until) / SECOND, "f8")


def _switched(rows: list[tuple[int, int, int, bool]], end: int) -> list[Row]:
    """From rows (time, one, other, on) to the intervals in which something was on."""
    since: dict[tuple[int, int], int] = {}
    found: list[Row] = []
    for time, one, other, on in rows:
        if on:
            since.setdefault((one, other), time)
        elif (one, other) in since:
            found.append((one, other, since.pop((one, other)), time))
    return found + [(*pair, began, end) for pair, began in since.items()]


def _relays(run: RecordedRun, end: int) -> list[Row]:
    """Links from a node to each of its multipoint relays."""
    changes = []
    chosen: dict[int, set[int]] = defaultdict(set)
    for time, node, relays in run.record.rows("relays", "time", "node", "relays"):
        now = set(relays or ())
        changes += [(time, node, relay, False) for relay in sorted(chosen[node] - now)]
        changes += [(time, node, relay, True) for relay in sorted(now - chosen[node])]
        chosen[node] = now
    return _switched(changes, end)


def _kept(run: RecordedRun, event_number: dict[int, int], end: int) -> list[Row]:
    rows = [
        (time, node, event_number[event], entered)
        for event, nodes in run.record.kept.items()
        if event in event_number
        for node, changes in nodes.items()
        for time, entered, _ in changes
    ]
    return _switched(sorted(rows), end)
