"""Which settings are worth considering at all: the Pareto set of a cell, and who surely is dominated.

The rules this file owns:

* Three things count: delivery of what was possible within 10 s, airtime for each delivery, and the mean delay with 10 s
  for what came later or never. Differences that do not matter: 1 point of delivery, 5 % of cost, 10 % of delay.
* One setting *dominates* another if it is not worse in any of them and better in one, by more than what does not
  matter. The *Pareto set* are those that no other dominates by their means.
* It *surely* dominates if that holds by paired one-sided t-tests: surely not worse by more than what does not matter in
  any, and surely better by more than that in one, with the level divided by three for the choice of which. Holm's
  procedure corrects for the rivals of a setting: that one is called dominated and is not happens to 2.5 % of settings
  at most. Values that are the same for all seeds are not certain: their spread counts as half of what matters.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from roamcast.statistics.bootstrap import Array
from roamcast.statistics.correction import holm
from roamcast.statistics.intervals import t_tail
from studies.map.cells import Cell, Setting
from studies.map.winners import COST

LEVEL: Final = 0.025
"""One-sided."""


class Objective(NamedTuple):
    measure: str
    sign: int
    """1: more is better; -1: less is."""
    matters: float
    """The least difference that does, in logarithms where those are compared."""
    logarithm: bool


OBJECTIVES: Final = (
    Objective("delivered_of_possible_10", +1, 0.01, logarithm=False),
    Objective(COST, -1, math.log(1.05), logarithm=True),
    Objective("delay_restricted_10", -1, math.log(1.10), logarithm=True),
)


class Front(NamedTuple):
    """Of one cell: names of settings."""

    pareto: tuple[str, ...]
    dominated: dict[str, str]
    """Surely: by whom, most surely."""


def front(cell: Cell) -> Front:
    pairs = [(one, other) for one in cell.settings for other in cell.settings if one != other]
    gains = {pair: [_gains(cell, *pair, objective) for objective in OBJECTIVES] for pair in pairs}
    beaten = {other.name for (one, other), gain in gains.items() if _dominates(gain)}
    surely: dict[str, str] = {}
    for setting in cell.settings:
        rivals = [one for one, other in pairs if other == setting]
        corrected = holm([_p_value(gains[rival, setting]) for rival in rivals])
        least = min(range(len(rivals)), key=corrected.__getitem__, default=None)
        if least is not None and corrected[least] <= LEVEL:
            surely[setting.name] = rivals[least].name
    return Front(tuple(setting.name for setting in cell.settings if setting.name not in beaten), surely)


def _gains(cell: Cell, one: Setting, other: Setting, objective: Objective) -> Array:
    """By how much the one is better, seed by seed."""
    mine, theirs = (cell.column(setting, objective.measure) for setting in (one, other))
    if objective.logarithm:
        with np.errstate(invalid="ignore"):
            difference = np.log(mine) - np.log(theirs)
        difference = np.where(np.isinf(mine) & np.isinf(theirs), 0.0, difference)
    else:
        difference = mine - theirs
    found: Array = objective.sign * difference
    return found


def _dominates(gains: list[Array]) -> bool:
    means = [float(gain.mean()) for gain in gains]
    matters = [objective.matters for objective in OBJECTIVES]
    return all(mean >= -most for mean, most in zip(means, matters, strict=True)) and any(
        mean > most for mean, most in zip(means, matters, strict=True)
    )


def _p_value(gains: list[Array]) -> float:
    """Of the hypothesis that it does not dominate."""
    matters = [objective.matters for objective in OBJECTIVES]
    not_worse = max(_above(gain, -most, most) for gain, most in zip(gains, matters, strict=True))
    better = min(_above(gain, most, most) for gain, most in zip(gains, matters, strict=True))
    return max(not_worse, min(1.0, len(OBJECTIVES) * better))


def _above(values: Array, bound: float, matters: float) -> float:
    """The one-sided p-value of a mean above the bound."""
    n = len(values)
    if n < 2 or np.isnan(values).any() or np.isneginf(values).any():
        return 1.0
    if np.isinf(values).any():
        return 0.0 if np.isinf(values).all() else 1.0
    spread = float(values.std(ddof=1)) or matters / 2
    return t_tail((float(values.mean()) - bound) / (spread / math.sqrt(n)), n - 1)
