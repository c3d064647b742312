"""Why pairs were missed: `causes`, a family of shares by cause.

The causes are those of `roamcast.analysis.why`. The rules this file owns:

* A share is of all expected pairs of an event and a node: the shares of a run and its delivery add up to 1.
* A run that did not record frames and decisions has no shares: its causes are not known.
"""

from typing import Final

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.run import Run
from roamcast.analysis.why.causes import MEANING, Cause
from roamcast.analysis.why.missed import missed
from roamcast.analysis.why.record import record

NEVER_MEASURED: Final = (Cause.NOT_SUBSCRIBED, Cause.NOT_RECORDED)
"""Causes that cannot occur for an expected pair in a run with a full record."""
NAMES: Final = {cause: f"cause_{cause.replace(' ', '_')}" for cause in Cause if cause not in NEVER_MEASURED}


@family(
    *(
        Measure(
            name,
            f"missed: {cause} (share of pairs)",
            f"Share of the pairs missed because {MEANING[cause]}",
            share=True,
        )
        for cause, name in NAMES.items()
    )
)
def causes(run: Run) -> Values:
    if not run.has("frame", "decision", "publish", "subscribe"):
        return {}
    found = missed(record(run))
    counts = found.counts()
    return {name: counts[cause] / found.expected for cause, name in NAMES.items()} if found.expected else {}
