"""Whether a run leaves its last events time to arrive: what is under way when it ends counts as lost.

The rules this file owns:

* **Left** is the time from the last possible publication to the end of the run: the cooldown, or more if publishers
  stop before it.
* An event is **hurried** if it is published so late that less is left for it than 95 % of the deliveries took at most.
  Publications are taken as spread evenly over the measured time.
* A run with more than `MANY` of its events hurried is to be warned about. The delays of a run that is cut off are cut
  off too: a longer cooldown may show longer ones.
* Before a run its delays are not known; but a protocol that carries events needs time, so none left is warned about.
"""

import math
from typing import Final

from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import Scenario
from roamcast.units import SECOND

MANY: Final = 0.05
_CACHE, _HOLDING = "cache", "holding"
"""Tables of protocols that carry events: always, or those with a lifetime."""


def left(scenario: Scenario) -> float:
    """Seconds between the last possible publication and the end of the run."""
    stops = [scenario.duration if group.stop is None else group.stop for group in scenario.workload.publishers]
    return scenario.duration - min(scenario.stop / SECOND, max(stops, default=0.0))


def hurried(scenario: Scenario, delay_p95: float | None) -> float:
    """The share of the events, by the 95th percentile of the delays, s; None: nothing was delivered."""
    remaining = left(scenario)
    published = scenario.duration - remaining - scenario.warmup
    late = (delay_p95 or 0.0) - remaining
    return min(1.0, late / published) if late > 0 and published > 0 else 0.0


def warning(scenario: Scenario, delay_p95: float | None) -> str | None:
    """One sentence about a run that leaves its events too little time, and what to do; None: it does not."""
    share = hurried(scenario, delay_p95)
    if share <= MANY or delay_p95 is None:
        return None
    more = math.ceil(delay_p95 - left(scenario))
    return (
        f"{100 * share:.0f} % of the events had too little time: 95 % of the deliveries took up to {delay_p95:.3g} s, "
        f"and {left(scenario):g} s are left after the last publication; what is under way at the end counts as lost. "
        f"Give it time: cooldown = {scenario.cooldown + more:g}, duration = {scenario.duration + more:g}, or more"
    )


def warning_before(scenario: Scenario) -> str | None:
    """The same before the run, for a protocol of the catalogue; None: no reason to warn is known."""
    entry = CATALOGUE.get(scenario.protocol.name)
    tables = () if entry is None else tuple(fact.table for fact in entry.facts)
    lasting = any(lifetime > 0 for group in scenario.workload.publishers for lifetime in group.lifetimes)
    if left(scenario) > 0 or not (_CACHE in tables or (_HOLDING in tables and lasting)):
        return None
    return (
        f"{scenario.protocol.name} carries events, and no time is left after the last publication: what is under way "
        "at the end counts as lost. Give the scenario a cooldown"
    )
