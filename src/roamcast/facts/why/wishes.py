"""Whether a node wanted an event."""

from dataclasses import replace

from roamcast.facts.rows import read_events
from roamcast.facts.summary import Term, terms_of
from roamcast.facts.why.causes import Cause
from roamcast.facts.why.explain import Explainer, Explanation
from roamcast.facts.why.record import Record


def wishes(record: Record, event: int, node: int) -> list[Term]:
    """The node's subscriptions that match the event, whenever they were in force."""
    said = read_events(record.tables, {event})[event]
    return [term for term in terms_of(record.tables) if term.node == node and term.filter.matches(said)]


def in_force_at(term: Term, time: int) -> bool:
    """Both ends count, as everywhere."""
    return term.start <= time and (term.end is None or time <= term.end)


def explain(record: Record, event: int, node: int) -> Explanation:
    """Of any event and node; first of all, whether the node wanted it."""
    told = Explainer(record).explain(event, node)
    time = record.published[event].time
    if told.cause is None or any(in_force_at(wish, time) for wish in wishes(record, event, node)):
        return told
    return replace(told, cause=Cause.NOT_SUBSCRIBED, attempts=())
