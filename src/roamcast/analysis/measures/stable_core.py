"""Delivery over a stable core of subscriptions, and the cost of keeping the tree per event that some node wanted.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, sections V and VI): MDR and CTRL.

The rules this file owns:

* The **stable core** are the subscriptions in force from the warm-up to the end of the run without a change: what is
  lost because a subscription has only just been made, or is about to end, does not count. Expected and delivered are
  as in `analysis/pairs.py`; the ratio is one of all pairs, not a mean over events.
* Control messages are those of the role `control`, sent in the measured time, whatever their cause, each counted once;
  `control_all` adds those of the role `beacon`.

Both are computed only for runs with a tree.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.measures.measure import Measure, Values, family, good_share
from roamcast.analysis.measures.repairs import CONTROL
from roamcast.analysis.measures.traffic import total, totals
from roamcast.analysis.pairs import expected, expected_throughout, outcome
from roamcast.analysis.run import Run, mean, ratio

BEACON: Final = "beacon"


@family(
    good_share(
        "mdr",
        "delivery to the stable core, MDR (share of pairs)",
        "Share of the expected pairs delivered, over subscriptions that do not change",
    ),
    Measure(
        "control",
        "control messages, CTRL (per event that somebody wants)",
        "Messages that keep the tree and its routes, for each event that somebody wants, without beacons",
        unit="messages",
        good="low",
    ),
    Measure(
        "control_all",
        "control messages and beacons (per event that somebody wants)",
        "Messages that keep the tree and its routes, for each event that somebody wants",
        unit="messages",
        good="low",
    ),
)
def stable_core(run: Run) -> Values:
    if not run.has("tree"):
        return {}
    core, wanted = outcome(run, expected_throughout(run)), len(np.unique(expected(run).event))
    return {
        "mdr": mean(core.reached),
        "control": ratio(_messages(run, CONTROL), wanted),
        "control_all": ratio(_messages(run, CONTROL, BEACON), wanted),
    }


def _messages(run: Run, *roles: str) -> int:
    rows = totals(run)
    return total(rows.filter(pc.is_in(rows["role"], pa.array(roles))), "messages")
