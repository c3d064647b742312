"""Energy of the radios, from the time that they spend sending, receiving and idle.

The rules this file owns:

* The powers are those of a Lucent WaveLAN 802.11 card at 2 Mb/s and 4.74 V: 280 mA sending, 204 mA receiving, 178 mA
  idle (L. Feeney, M. Nilsson, Investigating the Energy Consumption of a Wireless Network Interface in an Ad Hoc
  Networking Environment, INFOCOM 2001). No radio sleeps.
* Sending is the airtime of all frames but background ones. Receiving is, for every frame received or lost by collision
  or chance, the mean airtime of its kind: facts count frames at nodes they were meant for. A node that overhears a
  unicast for others counts as idle, which makes protocols with much unicast look a little cheaper than they are.
* The rest of the measured time of all nodes is idle, which is nearly all of it. So there are two measures: all energy,
  and what was spent beyond idling, which a protocol can do something about.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.schema import BACKGROUND_ROLE
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.pairs import pairs
from roamcast.pipeline.measures.traffic import counted
from roamcast.units import SECOND

VOLT: Final = 4.74
SEND, RECEIVE, IDLE = 0.280 * VOLT, 0.204 * VOLT, 0.178 * VOLT
"""W."""


def times(facts: Facts) -> DataFrame:
    """(run, delivered, sending, receiving, whole): seconds, summed over all nodes. For `Facts.once`."""
    heard = F.col("receptions") + F.col("collision") + F.col("random_loss")
    spent = (
        facts.once(counted)
        .where(F.col("role") != BACKGROUND_ROLE)
        .groupBy("run")
        .agg(
            (F.sum("airtime") / SECOND).alias("sending"),
            (F.sum(F.try_divide(heard * F.col("airtime"), F.col("packets"))) / SECOND).alias("receiving"),
        )
    )
    whole = (F.col("nodes") * (F.col("simulated") - F.col("warmup"))).alias("whole")
    return (
        facts.runs.select("run", whole)
        .join(facts.once(pairs).select("run", "delivered"), "run", "inner")
        .join(spent, "run", "left")
        .fillna(0.0, ["sending", "receiving"])
        .select("run", "delivered", "sending", "receiving", "whole")
    )


def _beyond_idling(facts: Facts) -> DataFrame:
    joules = (SEND - IDLE) * F.col("sending") + (RECEIVE - IDLE) * F.col("receiving")
    return facts.once(times).select("run", F.try_divide(1000 * joules, F.col("delivered")).alias("value"))


def _all(facts: Facts) -> DataFrame:
    idle = F.col("whole") - F.col("sending") - F.col("receiving")
    joules = SEND * F.col("sending") + RECEIVE * F.col("receiving") + IDLE * idle
    return facts.once(times).select("run", F.try_divide(joules, F.col("delivered")).alias("value"))


MEASURES: Final = (
    Measure(
        About(
            name="energy_per_delivery",
            title="energy (J per delivery)",
            unit="J",
            description="Energy of all radios, sending, receiving and idle, for each delivered pair",
            good="low",
        ),
        _all,
    ),
    Measure(
        About(
            name="energy_beyond_idle",
            title="energy beyond idling (mJ per delivery)",
            unit="mJ",
            description="What the radios spent on sending and receiving beyond idling, for each delivered pair",
            good="low",
        ),
        _beyond_idling,
    ),
)
