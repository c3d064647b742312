"""Whether a node wanted an event."""

from dataclasses import replace

from roamcast.analysis.terms import SubscriptionTerm, terms_of
from roamcast.analysis.why.causes import Cause
from roamcast.analysis.why.explain import Explainer, Explanation
from roamcast.analysis.why.record import RunRecord
from roamcast.content.text import parse_filter
from roamcast.facts.rows import read_events


def wishes(record: RunRecord, event: int, node: int) -> list[SubscriptionTerm]:
    """The node's subscriptions that match the event, whenever they were in force."""
    said = read_events(record.tables, {event})[event]
    terms = terms_of(record.tables["subscribe"])
    return [term for term in terms if term.node == node and parse_filter(term.filter).matches(said)]


def explain(record: RunRecord, event: int, node: int) -> Explanation:
    """Of any event and node; first of all, whether the node wanted it."""
    told = Explainer(record).explain(event, node)
    time = record.published[event].time
    if told.cause is None or any(wish.in_force_at(time) for wish in wishes(record, event, node)):
        return told
    return replace(told, cause=Cause.NOT_SUBSCRIBED, attempts=())
