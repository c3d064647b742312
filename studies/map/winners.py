"""Who wins a cell: the cheapest protocol that delivers at least 95 % of what was possible.

The rules this file owns:

* **At equal delivery.** A protocol whose knob may be anything between two values is taken where its mean delivery comes
  up to the threshold, between two settings on the straight line, and so is the logarithm of its cost. Others, and those
  with whole numbers as knobs, are taken at their cheapest setting that reaches it.
* **Chance.** All of it is computed again with drawn weights of the seeds, the same for all protocols
  (`statistics.bootstrap`), choices included. The probability of winning is the share of the draws that a protocol wins.
* **Not separated** from the winner is a protocol that does as well in more than 5 % of the draws, divided by the number
  of rivals: that is, it reaches the threshold and costs no more, or the winner does not reach it. One of the rivals is
  `NOBODY`: perhaps no protocol reaches it.
* If no protocol's mean reaches the threshold, nobody wins.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from roamcast.statistics.bootstrap import Array, equal_weights, weights
from roamcast.statistics.intervals import Estimate
from studies.map.cells import Cell, Setting

THRESHOLD: Final = 0.95
RISK: Final = 0.05
DEADLINES: Final = (1, 10, 60)
COST: Final = "airtime_per_delivery"
NOBODY: Final = "nobody"


class Standing(NamedTuple):
    """A protocol in a cell."""

    protocol: str
    knob: float | None
    """Where it reaches the threshold; None if it has no knob, or does not."""
    delivery: float
    """Mean share of what was possible: at the threshold or above, or the most that it reached."""
    cost: float
    """Geometric mean; infinite if it does not reach the threshold."""
    wins: float
    """In what share of the draws."""


@dataclass(frozen=True)
class Verdict:
    """A cell at a deadline."""

    cell: Cell
    deadline: int
    standings: tuple[Standing, ...]
    """The cheapest first; then those that do not reach the threshold, the closest first."""
    rivals: tuple[str, ...]
    """Not separated from the winner."""
    margin: Estimate | None
    """How many times as much as the winner the next one costs; None if no other reaches the threshold."""

    @property
    def winner(self) -> Standing | None:
        first = self.standings[0]
        return first if math.isfinite(first.cost) else None

    @property
    def next(self) -> Standing | None:
        reached = [one for one in self.standings if math.isfinite(one.cost)]
        return reached[1] if len(reached) > 1 else None


def judge(cell: Cell, deadline: int, threshold: float = THRESHOLD) -> Verdict:
    measure = f"delivered_of_possible_{deadline}"
    drawn = weights(len(cell.seeds)) if len(cell.seeds) > 1 else equal_weights(len(cell.seeds))
    names, costs = list(cell.protocols()), []
    standings = []
    for name, settings in cell.protocols().items():
        levels, prices = _columns(cell, settings, measure)
        standings.append(_standing(name, settings, levels, prices, threshold))
        costs.append(_at_threshold(drawn, settings, levels, prices, threshold)[0])
    table = np.column_stack(costs)
    share = _shares(table)
    standings = [one._replace(wins=share[place]) for place, one in enumerate(standings)]
    ranked = sorted(standings, key=lambda one: (one.cost, -one.delivery))
    if not math.isfinite(ranked[0].cost):
        return Verdict(cell, deadline, tuple(ranked), (), None)
    first, *others = (names.index(one.protocol) for one in ranked)
    as_well = {names[other]: _as_well(table[:, first], table[:, other]) for other in others}
    as_well[NOBODY] = float(np.mean(np.isinf(table).all(axis=1)))
    rivals = tuple(name for name, often in as_well.items() if often > RISK / len(as_well))
    return Verdict(cell, deadline, tuple(ranked), rivals, _margin(ranked, table, names))


def _columns(cell: Cell, settings: Sequence[Setting], measure: str) -> tuple[Array, Array]:
    """Deliveries, and logarithms of costs: one seed a row, one setting a column."""
    levels = np.column_stack([cell.column(setting, measure) for setting in settings])
    prices = np.column_stack([np.log(cell.column(setting, COST)) for setting in settings])
    # Who delivered nothing in some run does not reach the threshold; an infinite mean has no draws.
    levels[:, ~np.isfinite(prices).all(axis=0)] = -1.0
    return levels, np.where(np.isfinite(prices), prices, 0.0)


def _at_threshold(
    drawn: Array, settings: Sequence[Setting], levels: Array, prices: Array, threshold: float
) -> tuple[Array, Array]:
    """By draw: the logarithm of the cost where the threshold is reached, infinite if it is not; and the knob there."""
    level, price = (np.einsum("ds,sp->dp", drawn, columns) for columns in (levels, prices))
    knobs = np.array([setting.knob if setting.knob is not None else np.nan for setting in settings])
    reached = level >= threshold
    cost = np.where(reached, price, np.inf)
    knob = np.broadcast_to(knobs, cost.shape)
    if all(setting.continuous for setting in settings):
        low, high = level[:, :-1], level[:, 1:]
        between = (reached[:, :-1] != reached[:, 1:]) & (low != high)
        part = np.where(between, (threshold - low) / np.where(between, high - low, 1.0), 0.0)
        at = np.where(between, price[:, :-1] + part * (price[:, 1:] - price[:, :-1]), np.inf)
        cost = np.concatenate([cost, at], axis=1)
        knob = np.concatenate([knob, knobs[:-1] + part * (knobs[1:] - knobs[:-1])], axis=1)
    best = cost.argmin(axis=1)
    rows = np.arange(len(cost))
    return cost[rows, best], knob[rows, best]


def _standing(protocol: str, settings: Sequence[Setting], levels: Array, prices: Array, threshold: float) -> Standing:
    cost, knob = (
        float(one[0]) for one in _at_threshold(equal_weights(len(levels)), settings, levels, prices, threshold)
    )
    means = levels.mean(axis=0)
    if not math.isfinite(cost):
        return Standing(protocol, None, max(0.0, float(means.max())), math.inf, 0.0)
    at = [mean for setting, mean in zip(settings, means, strict=True) if setting.knob is None or setting.knob == knob]
    delivery = float(max(at)) if at else threshold
    return Standing(protocol, None if math.isnan(knob) else knob, delivery, math.exp(cost), 0.0)


def _shares(costs: Array) -> list[float]:
    """Of each protocol: in what share of the draws it is the cheapest."""
    best = np.where(np.isfinite(costs).any(axis=1), costs.argmin(axis=1), -1)
    return [float(np.mean(best == place)) for place in range(costs.shape[1])]


def _as_well(winner: Array, other: Array) -> float:
    """In what share of the draws the other does as well as the winner."""
    return float(np.mean(np.isfinite(other) & (other <= winner)))


def _margin(ranked: Sequence[Standing], costs: Array, names: Sequence[str]) -> Estimate | None:
    """How many times as much the next protocol costs, with its 95 % interval over the draws in which both reach it."""
    if len(ranked) < 2 or not math.isfinite(ranked[1].cost):
        return None
    first, second = (costs[:, names.index(one.protocol)] for one in ranked[:2])
    both = np.isfinite(first) & np.isfinite(second)
    low, high = np.quantile(second[both] - first[both], [0.025, 0.975])
    return Estimate(ranked[1].cost / ranked[0].cost, math.exp(min(low, 700)), math.exp(min(high, 700)))
