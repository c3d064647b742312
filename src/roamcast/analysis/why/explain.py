"""Why one subscriber did not get one event, from what the run recorded.

The rules this file owns, in the order in which they are asked:

1. Was the event delivered, or did it reach the subscriber's node and was not handed over?
2. Was there a way at all: over time, or, for an event that no node carried, at the instant of publication?
3. On a tree: did the tree join the two at publication?
4. At each gap (`ways.py`): when the run ends, does its holder still carry the event, or has not yet decided about it or
   sent all of it? Else, was a copy sent over it, and lost; sent too late; queued and never sent; or decided against? Of
   several gaps the one whose cause comes first in `causes.NEAREST` counts.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from roamcast.analysis.possible import NEVER
from roamcast.analysis.why.causes import DECISIONS, LOSSES, NEAREST, Cause
from roamcast.analysis.why.copies import Copy, copies
from roamcast.analysis.why.record import NOBODY, BrokerDecision, PublishedEvent, RunRecord, SentFrame
from roamcast.analysis.why.ways import Gap, gaps_at, gaps_over_time


class Lost(NamedTuple):
    """A copy that did not arrive at a node in range."""

    frame: SentFrame
    node: int
    outcome: str


@dataclass(frozen=True)
class Attempt:
    """What happened at one gap."""

    gap: Gap
    cause: Cause
    had: int
    """Since when the holder had the event, ns."""
    sent: tuple[SentFrame, ...] = ()
    """Frames with the event that the holder sent to everybody, or to the next node."""
    lost: tuple[Lost, ...] = ()
    decided: BrokerDecision | None = None
    """The holder's last decision that concerns the next node."""


@dataclass(frozen=True)
class Explanation:
    """The explanation for one event and one node."""

    published: PublishedEvent
    node: int
    cause: Cause | None
    """None: it was delivered."""
    copies: dict[int, Copy] = field(repr=False)
    attempts: tuple[Attempt, ...] = ()
    """The decisive ones first."""
    delivered: int | None = None
    earliest: int | None = None
    """When the event could have been there, by contacts alone; None: never, or the movement was not recorded."""


class Explainer:
    """Explains pairs of one run. What an event's pairs share is worked out once for each event."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self._event: int | None = None

    def explain(self, event: int, node: int) -> Explanation:
        self._look_at(event)
        published, had = self._published, self._had
        delivered = self.record.delivered.get(event, {}).get(node)
        first = int(self._earliest[node]) if self._earliest is not None else NEVER
        known = None if first >= published.deadline else first
        if delivered is not None:
            return Explanation(published, node, None, had, delivered=delivered, earliest=known)
        cause, attempts = self._missed(node, known)
        return Explanation(published, node, cause, had, attempts, earliest=known)

    def frames(self, event: int) -> list[SentFrame]:
        """Those that carry the event."""
        self._look_at(event)
        return self._frames

    def _look_at(self, event: int) -> None:
        if event == self._event:
            return
        record = self.record
        self._event, self._published = event, record.published[event]
        self._frames = record.frames_of(event)
        self._had = copies(record, self._published, self._frames)
        self._place, self._node, self._outcome = record.outcomes(self._frames)
        self._sender = np.array([frame.sender for frame in self._frames], np.int64)[self._place]
        self._earliest = record.earliest(event)
        self._kept = record.kept.get(event, {})

    # --- A missed pair ----------------------------------------------------------------------------------------------

    def _missed(self, node: int, possible: int | None) -> tuple[Cause, tuple[Attempt, ...]]:
        record, published = self.record, self._published
        if node in self._had:
            late = self._had[node].time >= published.deadline
            return (Cause.EXPIRED if late else Cause.NOT_HANDED_OVER), ()
        network = record.contacts
        if network is None:
            return Cause.NOT_RECORDED, ()
        there = record.is_there(node, published.time)
        if possible is None:
            return (Cause.NO_PATH if there else Cause.AWAY), ()
        if self._kept:
            # A node that only passes it on has it for a moment, and is not a carrier.
            carriers = {one: copy for one, copy in self._had.items() if one in self._kept}
            gaps = gaps_over_time(network, published.deadline, carriers, node)
        else:
            gaps = gaps_at(network, published.time, self._had, node)
            if not gaps:
                return (Cause.NO_PATH_THEN if there else Cause.AWAY), ()
        if record.has_tree:
            gaps = gaps_at(record.tree, published.time, self._had, node)
            if not gaps:
                return Cause.TREE_BROKEN, ()
        attempts = sorted((self._attempt(gap) for gap in gaps), key=lambda one: (NEAREST.index(one.cause), one.gap))
        return (attempts[0].cause if attempts else Cause.NOT_RECORDED), tuple(attempts)

    def _attempt(self, gap: Gap) -> Attempt:
        record = self.record
        sent = tuple(frame for frame in self._frames if frame.sender == gap.holder and frame.to in (NOBODY, gap.next))
        there = np.flatnonzero((self._sender == gap.holder) & (self._node == gap.next))
        lost = tuple(
            Lost(self._frames[self._place[row]], gap.next, record.outcome(self._outcome[row]))
            for row in there
            if self._outcome[row] != record.received
        )
        about = [
            one
            for one in record.decided.get(self._published.event, ())
            if one.node == gap.holder and one.to in (None, gap.next)
        ]
        decided = about[-1] if about else None
        cause = self._cause(gap, sent, lost, len(there) > len(lost), about)
        return Attempt(gap, cause, self._had[gap.holder].time, sent, lost, decided)

    def _cause(
        self, gap: Gap, sent: tuple[SentFrame, ...], lost: tuple[Lost, ...], received: bool, about: list[BrokerDecision]
    ) -> Cause:
        """`received`: a frame of the holder arrived at the next node."""
        record = self.record
        if self._still_carried(gap.holder) or (bool(sent) and record.cut_off(sent[-1])):
            return Cause.RUN_ENDED  # whatever became of earlier attempts, there would have been others
        if lost:
            counted = [one.outcome for one in lost]
            most = max(LOSSES, key=counted.count)
            return LOSSES[most]
        if received and not record.has_tree:
            return Cause.PARTIAL
        if sent and not received:
            # A carrier met the next node at another time, and sent nothing then.
            return self._no_longer_there(gap) or (Cause.SILENT if self._kept else Cause.OUT_OF_RANGE)
        against = [one for one in about if one.decision != "forwarded"]
        if against:
            return self._decision(against[-1])
        if any(one.decision == "forwarded" for one in about):
            return self._never_sent(gap.holder)
        if record.has_tree and any(one.node == gap.holder for one in record.decided.get(self._published.event, ())):
            return Cause.NO_ROUTE  # it passed the event on, but not to this neighbour on the tree
        if not (record.has_frames and record.has_decisions):
            return Cause.NOT_RECORDED
        if not about and record.run.end - self._had[gap.holder].time <= record.longest_decision:
            return Cause.RUN_ENDED  # its broker was waiting to decide
        return self._no_longer_there(gap) or Cause.SILENT

    def _still_carried(self, holder: int) -> bool:
        """Whether a node had the event in its keeping when the run ended, and its lifetime was not over."""
        changes = self._kept.get(holder, [])
        return any(entered for _, entered, _ in changes[-1:]) and self._published.deadline == self.record.run.end

    def _no_longer_there(self, gap: Gap) -> Cause | None:
        """Why a holder no longer had the event, if it had left its cache."""
        changes = self._kept.get(gap.holder)
        if not changes or changes[-1][1]:
            return None
        return Cause.EXPIRED if "expired" in changes[-1][2] else Cause.CACHE_FULL

    def _never_sent(self, holder: int) -> Cause:
        """It should have been sent, but no frame was."""
        if not self.record.has_frames:
            return Cause.NOT_RECORDED
        return Cause.QUEUE_FULL if holder in self.record.queue_full else Cause.RUN_ENDED

    def _decision(self, decided: BrokerDecision) -> Cause:
        """Near a local minimum, nodes that are farther from the region are not chosen: the minimum is the reason."""
        if decided.decision in ("local minimum", "not chosen") and any(
            one.decision == "local minimum" for one in self.record.decided[self._published.event]
        ):
            return Cause.LOCAL_MINIMUM
        return DECISIONS[decided.decision]
