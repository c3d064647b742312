"""The goal of a race: a measure, its least value, a deadline, and the cost to minimise."""

from dataclasses import dataclass
from typing import Final

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.campaign.define.plan import CampaignError
from roamcast.config.errors import suggestion

COSTS: Final = {"airtime": "airtime_per_delivery", "packets": "overhead", "bits": "bits_per_delivery"}
_DELIVERY: Final = "delivery"
_OF_POSSIBLE: Final = "of-possible"
_OTHERWISE: Final = {_DELIVERY: "delivery", _OF_POSSIBLE: "delivered_of_possible"}
"""The measures that these names stand for if there is no deadline."""


@dataclass(frozen=True)
class Goal:
    """The value to reach, and the cost to minimise."""

    words: str
    """The goal in words."""
    measure: str
    at_least: float
    cost: str
    possible: str
    """The measure of what any protocol could have reached."""

    @property
    def read(self) -> tuple[str, str, str]:
        """The measures that are read for every run."""
        return self.measure, self.cost, self.possible


def goal(measure: str, at_least: float, deadline: float | None, cost: str) -> Goal:
    """`measure` is `delivery` or `of-possible`, which may have a deadline, or another share where high is good."""
    words = {_OF_POSSIBLE: "delivery of what was possible"}.get(measure, measure)
    if deadline is None:
        return Goal(words, _known(measure), at_least, COSTS[cost], "possible")
    if measure not in _OTHERWISE:
        raise CampaignError(f"--within goes with {_DELIVERY} and {_OF_POSSIBLE}, not with {measure}")
    CATALOGUE.within(deadline)
    named = "satisfaction" if measure == _DELIVERY else _OTHERWISE[measure]
    words = f"{words} within {deadline:g} s"
    return Goal(words, f"{named}_{deadline:g}", at_least, COSTS[cost], f"possible_{deadline:g}")


def _known(measure: str) -> str:
    if measure in _OTHERWISE:
        return _OTHERWISE[measure]
    shares = [name for name in CATALOGUE if CATALOGUE[name].share and CATALOGUE[name].good == "high"]
    if measure in shares:
        return measure
    what = "is not a share to be high" if measure in CATALOGUE else "is not a measure"
    raise CampaignError(f"--at-least {measure}: {what}; {suggestion(measure, [*_OTHERWISE, *shares])}")
