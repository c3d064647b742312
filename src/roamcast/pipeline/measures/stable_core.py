"""Delivery over a stable core of subscriptions, and the cost of keeping the tree per event that some node wanted.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, sections V and VI): MDR and CTRL.

The rules this file owns:

* The **stable core** are the subscriptions in force from the warm-up to the end of the run without a change: what is
  lost because a subscription has only just been made, or is about to end, does not count. Expected and delivered are
  as in `pairs.py`; the ratio is one of all pairs, not a mean over events.
* Control messages are those of the role `control`, sent in the measured time, whatever their cause, each counted once;
  `control_all` adds those of the role `beacon`.

Both are computed only for runs with a tree, together with the pairs (`pairs.py`).
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs
from roamcast.pipeline.measures.repairs import CONTROL
from roamcast.pipeline.measures.traffic import counted

BEACON: Final = "beacon"


def _mdr(facts: Facts) -> DataFrame:
    return facts.once(pairs).select("run", F.try_divide(F.col("core_delivered"), F.col("core_expected")).alias("value"))


def _control(name: str, roles: tuple[str, ...], title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        ours = facts.once(counted).where(F.col("role").isin(*roles))
        sent = ours.groupBy("run").agg(F.sum("messages").alias("messages"))
        per_event = F.try_divide(F.coalesce("messages", F.lit(0)), F.col("wanted"))
        return facts.once(pairs).join(sent, "run", "left").select("run", per_event.alias("value"))

    return Measure(About(name=name, title=title, unit="messages", description=description, good="low"), function)


MEASURES: Final = (
    Measure(
        About(
            name="mdr",
            title="delivery to the stable core, MDR (share of pairs)",
            description="Share of the expected pairs delivered, over subscriptions that do not change",
            share=True,
            whole=True,
            good="high",
        ),
        _mdr,
    ),
    _control(
        "control",
        (CONTROL,),
        "control messages, CTRL (per event that somebody wants)",
        "Messages that keep the tree and its routes, for each event that somebody wants, without beacons",
    ),
    _control(
        "control_all",
        (CONTROL, BEACON),
        "control messages and beacons (per event that somebody wants)",
        "Messages that keep the tree and its routes, for each event that somebody wants",
    ),
)
