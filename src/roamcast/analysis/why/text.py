"""An explanation in words: a paragraph that stands alone, and the rows of a table."""

from collections.abc import Iterator

from roamcast.analysis.terms import FOR_EVER
from roamcast.analysis.why.air import heard_beside
from roamcast.analysis.why.causes import MEANING, Cause
from roamcast.analysis.why.explain import Attempt, Explanation, Lost
from roamcast.analysis.why.record import NOBODY, RunRecord
from roamcast.analysis.why.ways import hops_between
from roamcast.analysis.why.wishes import wishes
from roamcast.content.event import event_name
from roamcast.units import SECOND

HEAD = ("had it", "since", "decided", "sent", "next", "what became of it there")
_SHOWN = 3
"""Nodes, frames or losses that one sentence names."""


def clock(time: int) -> str:
    """A time of the run, in s."""
    return f"{time / SECOND:.6f} s"


def span(time: int) -> str:
    return f"{time / SECOND:.3f} s" if time >= SECOND else f"{time / 1e6:.3f} ms"


def paragraph(record: RunRecord, told: Explanation) -> str:
    """All that is known about the pair, in a few sentences."""
    published, node = told.published, told.node
    sentences = [f"Node {published.node} published event {event_name(published.event)} at {clock(published.time)}."]
    sentences.append(subscribed(record, published.event, node))
    if told.cause is None:
        sentences += _delivered(told)
    else:
        if told.cause is not Cause.NOT_SUBSCRIBED:
            sentences.append(_way(record, told))
        sentences += _failed(record, told)
        sentences += _remedy(record, told)
    return " ".join(sentences)


def brief(record: RunRecord, told: Explanation) -> str:
    """Why it was missed, for a reader who knows the event and the node."""
    return " ".join([_way(record, told), *_failed(record, told)])


def subscribed(record: RunRecord, event: int, node: int) -> str:
    """Whether the node wanted the event then."""
    time, matching = record.published[event].time, wishes(record, event, node)
    if in_force := [wish for wish in matching if wish.in_force_at(time)]:
        one = in_force[0]
        return f"Node {node} wanted it: its subscription {one.subscription}, {one.filter}, was in force."
    if not matching:
        return f"Node {node} never had a subscription that matches it."
    later = [wish for wish in matching if wish.start > time]
    if later:
        return f"Node {node} did not want it yet: its subscription began at {clock(later[0].start)}."
    return f"Node {node} no longer wanted it: its subscription had ended at {clock(matching[-1].end)}."


def _delivered(told: Explanation) -> Iterator[str]:
    assert told.delivered is not None
    yield f"It was delivered at {clock(told.delivered)}, {span(told.delivered - told.published.time)} later."
    way = [told.node]
    while (copy := told.copies.get(way[-1])) is not None and copy.sender != NOBODY and copy.sender not in way:
        way.append(copy.sender)
    if way[-1] == told.published.node and len(way) > 1:
        yield f"Its way: {' → '.join(map(str, reversed(way)))}."
    if told.earliest is not None and told.earliest > told.published.time:
        least = span(told.earliest - told.published.time)
        yield f"By contacts alone it could have been there {least} after publication."


def _way(record: RunRecord, told: Explanation) -> str:
    published = told.published
    if record.contacts is None:
        return "Whether a path was there is not known: the movement was not recorded."
    hops = hops_between(record.contacts, published.time, published.node, told.node)
    if hops is not None:
        return f"At that moment a path of {hops} {'hop' if hops == 1 else 'hops'} led there."
    gone = "" if record.is_there(told.node, published.time) else f"Node {told.node} was away. "
    if told.earliest is None:
        return f"{gone}No path led there, neither at that moment nor over time."
    later = span(told.earliest - published.time)
    return f"{gone}No path led there at that moment; one over time did, {later} after publication."


def _failed(record: RunRecord, told: Explanation) -> Iterator[str]:
    cause = told.cause
    assert cause is not None
    if cause is Cause.TREE_BROKEN:
        yield _tree(record, told)
    decisive = [one for one in told.attempts if one.cause is cause]
    if decisive:
        names = _listed([str(holder) for holder in dict.fromkeys(one.gap.holder for one in decisive)])
        several = len({one.gap.holder for one in decisive}) > 1
        yield f"The last on the way that had it: {'nodes' if several else 'node'} {names}."
        yield _attempt(record, decisive[0])
    elif cause is Cause.NOT_HANDED_OVER:
        arrived = told.copies[told.node].time
        yield f"It reached node {told.node} at {clock(arrived)}, which did not hand it over."
        ended = [wish.end for wish in wishes(record, told.published.event, told.node) if wish.end < FOR_EVER]
        if ended and max(ended) <= arrived:
            yield f"Its subscription had ended at {clock(max(ended))}."
        yield from _domains(record, told)
    yield f"Cause: {cause}: {MEANING[cause]}."


def _attempt(record: RunRecord, one: Attempt) -> str:
    holder, following = one.gap
    if one.cause is Cause.RUN_ENDED and (one.sent or one.decided is None or one.decided.decision != "forwarded"):
        return f"Node {holder} had it since {clock(one.had)}, and node {following} had not got it when the run ended."
    if one.lost:
        lost = next((lost for lost in one.lost if lost.outcome.replace("_", " ") == one.cause), one.lost[0])
        often = f" ({len(one.lost)} times)" if len(one.lost) > 1 else ""
        what = f"it was lost{often}{_loss(record, lost)}"
        return f"Node {holder} sent it at {clock(lost.frame.start)}; at node {following} {what}."
    if one.cause is Cause.SILENT and one.sent:
        return f"Node {holder} had it since {clock(one.had)} and met node {following}, but sent nothing of it then."
    if one.cause is Cause.PARTIAL:
        return f"Node {holder} sent it from {clock(one.sent[0].start)} on; node {following} got a part of it."
    if one.cause is Cause.OUT_OF_RANGE:
        where = f"was out of range{_far(record, one)}"
        return f"Node {holder} sent it at {clock(one.sent[0].start)}, when node {following} {where}."
    if one.decided is not None and one.decided.decision != "forwarded":
        return f"Node {holder} decided at {clock(one.decided.time)}: {one.decided.decision}."
    if one.decided is not None:
        return f"Node {holder} decided at {clock(one.decided.time)} to pass it on, and it was never on the air."
    return f"Node {holder} had it since {clock(one.had)}; node {following} got no copy from it."


def _loss(record: RunRecord, lost: Lost) -> str:
    if lost.outcome == "random_loss":
        return " by chance"
    beside = heard_beside(record, lost)
    if lost.outcome == "half_duplex":
        own = [heard for heard in beside if heard.frame.sender == lost.node]
        return (
            f" because that node was sending itself ({own[0].frame.kind})" if own else " because it was sending itself"
        )
    if not beside:
        return " to other frames"
    frames = [
        f"a {heard.frame.kind} frame of node {heard.frame.sender}"
        + ("" if heard.distance is None else f" at {heard.distance:.0f} m")
        for heard in beside
    ]
    return f" in a collision with {_listed(frames)}"


def _far(record: RunRecord, one: Attempt) -> str:
    distance = record.distance(one.gap.holder, one.gap.next, one.sent[0].start)
    return "" if distance is None else f", {distance:.0f} m away"


def _tree(record: RunRecord, told: Explanation) -> str:
    rows: dict[int, tuple[str, int | None]] = {}
    for time, node, change, parent in record.rows("tree", "time", "node", "change", "parent"):
        if time <= told.published.time:
            rows[node] = change, parent
    change, parent = rows.get(told.node, ("not on the tree", None))
    above = "no parent" if parent is None else f"node {parent} as its parent"
    links = "no tree links led to it from a node with the event"
    return f"Then node {told.node} had {above} (last change: {change}), and {links}."


def _domains(record: RunRecord, told: Explanation) -> Iterator[str]:
    rows = record.rows("match", "event", "subscriber", "step", "holds")
    refused = [
        step for event, node, step, holds in rows if (event, node) == (told.published.event, told.node) and not holds
    ]
    if refused:
        yield f"The {refused[-1]} did not hold."


def _remedy(record: RunRecord, told: Explanation) -> Iterator[str]:
    settled = (Cause.NOT_SUBSCRIBED, Cause.NO_PATH, Cause.NO_PATH_THEN, Cause.AWAY, Cause.TREE_BROKEN)
    if record.missing and told.cause not in settled:
        yield f"To know more, record it: roamcast run … {' '.join(f'--set {field}=true' for field in record.missing)}."


def _listed(names: list[str]) -> str:
    shown = names[:_SHOWN] + ([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def rows(record: RunRecord, told: Explanation) -> Iterator[tuple[str, ...]]:
    """One for each gap, under `HEAD`."""
    for one in told.attempts:
        decided = "–" if one.decided is None else one.decided.decision
        sent = ", ".join(clock(frame.start) for frame in one.sent[:_SHOWN]) or "–"
        lost = "; ".join(f"{loss.outcome.replace('_', ' ')}{_beside(record, loss)}" for loss in one.lost[:_SHOWN])
        yield str(one.gap.holder), clock(one.had), decided, sent, str(one.gap.next), lost or str(one.cause)


def _beside(record: RunRecord, lost: Lost) -> str:
    if lost.outcome != "collision":
        return ""
    senders = [str(heard.frame.sender) for heard in heard_beside(record, lost)]
    return f" (with {_listed(senders)})" if senders else ""
