"""All pairs that a run missed, each with its cause.

The pairs are those of `analysis/pairs.py`; of a run with contexts, those that an ideal system would have matched
(`analysis/context_truth.py`). The publisher's own subscriptions need no network and are left out.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from roamcast.analysis import context_truth
from roamcast.analysis.pairs import expected as expected_pairs
from roamcast.analysis.why.causes import Cause
from roamcast.analysis.why.explain import Explainer, Explanation
from roamcast.analysis.why.record import RunRecord


@dataclass(frozen=True)
class Missed:
    """What became of the pairs of a run."""

    expected: int
    """Pairs of an event and a node that wants it."""
    explanations: list[Explanation]
    """Of the missed ones, by time and node."""

    def counts(self) -> Counter[Cause]:
        return Counter(one.cause for one in self.explanations if one.cause is not None)

    @property
    def recorded(self) -> bool:
        """Whether the run recorded enough to tell every cause."""
        return not any(one.cause is Cause.NOT_RECORDED for one in self.explanations)


def expected(record: RunRecord) -> list[tuple[int, int]]:
    """(event, node): several subscriptions of one node are one, since they get the event together or not at all."""
    run = record.run
    if context_truth.has_contexts(record.tables):
        widest = 0.0 if record.reach is None else float(np.max(np.asarray(record.reach.outdoors)))
        ideal = context_truth.ideal(record.tables, reach=widest, start=run.start, end=run.end)
        pairs = {(event, node) for event, node, _ in ideal}
    else:
        wanted = expected_pairs(run)
        pairs = set(zip(wanted.events[wanted.event].tolist(), wanted.node.tolist(), strict=True))
    remote = {(event, node) for event, node in pairs if record.published[event].node != node}
    return sorted(remote, key=lambda pair: (record.published[pair[0]].time, pair))


def missed(record: RunRecord) -> Missed:
    """Every pair that was expected and not delivered."""
    explainer, pairs = Explainer(record), expected(record)
    lacking = [(event, node) for event, node in pairs if node not in record.delivered.get(event, {})]
    return Missed(len(pairs), [explainer.explain(event, node) for event, node in lacking])
