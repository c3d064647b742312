"""What applications published and wanted: events, subscriptions, deliveries, decisions; what was missed, and why."""

import math
from collections.abc import Iterable
from typing import Any, Final, get_args

import numpy as np

from roamcast.analysis.possible import NEVER
from roamcast.analysis.terms import terms_of
from roamcast.analysis.why.causes import MEANING, Cause
from roamcast.analysis.why.missed import expected, missed
from roamcast.analysis.why.record import RunRecord
from roamcast.analysis.why.text import brief
from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.content.event import event_name
from roamcast.protocols.facts import Decided
from roamcast.report.replay.pack import ColumnPack
from roamcast.units import SECOND

_DECISIONS: Final = (*get_args(Decided), "local minimum")
_CAUSES: Final = tuple(Cause)
_TOLD: Final = 4000
"""Most missed pairs that get a sentence of explanation; the others have only their cause."""


def numbered(run: RecordedRun) -> dict[int, int]:
    """The page's number of each event, in the order of publication."""
    return {event: number for number, event in enumerate(run.record.published)}


def add_events(pack: ColumnPack, run: RecordedRun, event_number: dict[int, int]) -> dict[str, Any]:
    """Adds the columns; returns names, filters, and the texts of causes."""
    record = run.record
    published = list(record.published.values())
    pack.add("event.time", np.array([one.time for one in published]) / SECOND, "f8")
    pack.add("event.node", np.array([one.node for one in published]), "i4")
    pack.add("event.deadline", np.array([one.deadline for one in published]) / SECOND, "f8")
    delivered = [row for row in record.rows("deliver", "time", "node", "event", "hops") if row[2] in event_number]
    _add_rows(pack, "deliver", delivered, event_number)
    decided = [
        (one.time, one.node, event, _DECISIONS.index(one.decision), -1 if one.to is None else one.to)
        for event in published_order(record.decided, event_number)
        for one in record.decided[event]
    ]
    _add_rows(pack, "decision", decided, event_number)
    return {
        "events": _titles(run),
        **_add_subscriptions(pack, run),
        "decisions": _DECISIONS,
        **_add_pairs(pack, run, event_number),
    }


def published_order(events: Iterable[int], event_number: dict[int, int]) -> list[int]:
    """The events that were published, in the page's order."""
    return sorted((event for event in events if event in event_number), key=event_number.__getitem__)


def _add_rows(pack: ColumnPack, name: str, rows: list[tuple[Any, ...]], event_number: dict[int, int]) -> None:
    """Rows (time, node, event, code, to), grouped by event."""
    rows = sorted(((event_number[row[2]], *row) for row in rows), key=lambda row: row[:2])
    number = [row[0] for row in rows]
    pack.add(f"{name}.first", np.searchsorted(number, np.arange(len(event_number) + 1)), "i4")
    pack.add(f"{name}.time", np.array([row[1] for row in rows]) / SECOND, "f8")
    pack.add(f"{name}.node", np.array([row[2] for row in rows]), "i4")
    pack.add(f"{name}.code", np.array([row[4] for row in rows]), "i4")
    if name == "decision":
        pack.add("decision.to", np.array([row[5] for row in rows]), "i4")


def _titles(run: RecordedRun) -> list[list[str]]:
    """Name, type and content of each event."""
    contents: dict[int, list[str]] = {event: [] for event in run.record.published}
    columns = ("event", "attribute", "kind", "integer", "real", "text", "flag")
    for event, attribute, _, *values in run.record.rows("event_attribute", *columns):
        if attribute and event in contents:
            value = next((value for value in values if value is not None), "")
            contents[event].append(
                f"{attribute} = {value:.4g}" if isinstance(value, float) else f"{attribute} = {value}"
            )
    types = dict(run.record.rows("publish", "event", "type"))
    return [[event_name(event), types[event], ", ".join(words)] for event, words in contents.items()]


def _add_subscriptions(pack: ColumnPack, run: RecordedRun) -> dict[str, Any]:
    terms = terms_of(run.tables["subscribe"])
    texts = [term.filter for term in terms]
    filters = list(dict.fromkeys(texts))
    end = run.scenario.end
    pack.add("wish.one", np.array([term.node for term in terms]), "i4")
    pack.add("wish.other", np.array([filters.index(text) for text in texts]), "i4")
    pack.add("wish.from", np.array([term.start for term in terms]) / SECOND, "f8")
    pack.add("wish.until", np.array([min(term.end, end) for term in terms]) / SECOND, "f8")
    return {"filters": filters}


def _add_pairs(pack: ColumnPack, run: RecordedRun, event_number: dict[int, int]) -> dict[str, Any]:
    """Adds the expected pairs: when the event could have arrived, whether it did, and if not, why."""
    record = run.record
    pairs = sorted(expected(record), key=lambda pair: (event_number[pair[0]], pair[1]))
    possible = np.array([_possible(record, *pair) for pair in pairs])
    explained = {(one.published.event, one.node): one for one in missed(record).explanations}
    pack.add(
        "pair.first", np.searchsorted([event_number[event] for event, _ in pairs], range(len(event_number) + 1)), "i4"
    )
    pack.add("pair.node", np.array([node for _, node in pairs]), "i4")
    pack.add("pair.possible", possible, "f8")
    causes = [explained[pair].cause if pair in explained else None for pair in pairs]
    pack.add("pair.cause", np.array([-1 if cause is None else _CAUSES.index(cause) for cause in causes]), "i4")
    missing = [number for number, pair in enumerate(pairs) if pair in explained]
    told = {number: brief(record, explained[pairs[number]]) for number in missing[:_TOLD]}
    return {"causes": [[str(cause), MEANING[cause]] for cause in _CAUSES], "why": told}


def _possible(record: RunRecord, event: int, node: int) -> float:
    """The earliest time at which the event could have arrived, s; infinite: never, or not known."""
    times = record.earliest(event)
    return math.inf if times is None or times[node] == NEVER else float(times[node]) / SECOND
