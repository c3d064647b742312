"""Energy of the radios, from the time that they spend sending, receiving and idle.

The rules this file owns:

* The powers are those of a Lucent WaveLAN 802.11 card at 2 Mb/s and 4.74 V: 280 mA sending, 204 mA receiving, 178 mA
  idle (L. Feeney, M. Nilsson, Investigating the Energy Consumption of a Wireless Network Interface in an Ad Hoc
  Networking Environment, INFOCOM 2001). No radio sleeps.
* Sending is the airtime of all frames but background ones. Receiving is, for every frame received or lost by collision
  or chance, the mean airtime of its kind: facts count frames at nodes they were meant for. A node that overhears a
  unicast for others counts as idle, which makes protocols with much unicast look a little cheaper than they are.
* What counts as sent is that of `traffic`: of a cooldown, only messages that carry events.
* The rest of the measured time of all nodes is idle, which is nearly all of it. So there are two measures: all energy,
  and what was spent beyond idling, which a protocol can do something about.
"""

from typing import Final

import numpy as np

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.measures.traffic import ours
from roamcast.analysis.pairs import pairs
from roamcast.analysis.run import Run, ratio
from roamcast.units import SECOND

VOLT: Final = 4.74
SEND, RECEIVE, IDLE = 0.280 * VOLT, 0.204 * VOLT, 0.178 * VOLT
"""W."""


@family(
    Measure(
        "energy_per_delivery",
        "energy (J per delivery)",
        "Energy of all radios, sending, receiving and idle, for each delivered pair",
        unit="J",
        good="low",
    ),
    Measure(
        "energy_beyond_idle",
        "energy beyond idling (mJ per delivery)",
        "What the radios spent on sending and receiving beyond idling, for each delivered pair",
        unit="mJ",
        good="low",
    ),
)
def energy(run: Run) -> Values:
    rows, delivered = ours(run), int(pairs(run).reached.sum())
    packets, airtime = rows["packets"].to_numpy(), rows["airtime"].to_numpy()
    heard = sum(rows[column].to_numpy() for column in ("receptions", "collision", "random_loss"))
    # Summed over all nodes, in seconds.
    sending = float(airtime.sum()) / SECOND
    receiving = float((heard * airtime / np.maximum(packets, 1))[packets > 0].sum()) / SECOND
    idle = run.nodes * (run.stop - run.start) / SECOND - sending - receiving
    beyond = (SEND - IDLE) * sending + (RECEIVE - IDLE) * receiving
    return {
        "energy_per_delivery": ratio(SEND * sending + RECEIVE * receiving + IDLE * idle, delivered),
        "energy_beyond_idle": ratio(1000 * beyond, delivered),
    }
