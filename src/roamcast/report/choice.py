"""The figure of a race: what every candidate reached, and what it cost."""

import math
from typing import Any, Final

from roamcast.report.atlas.paint import mark, picture, text
from roamcast.report.markup import Markup, join, tag
from roamcast.report.scale import Place

_LEFT: Final = 60
_WIDE: Final = 560
_TOP: Final = 70
_HIGH: Final = 320


def drawing(result: dict[str, Any]) -> str:
    """The figure, from the contents of `choice.json`."""
    figures = {name: result["fresh"].get(name) or one for name, one in result["race"].items()}
    costs: list[float] = [one["cost"][0] for one in figures.values() if one["cost"][0]]
    low, high = 0.8 * min(costs, default=1.0), 1.6 * max(costs, default=1.0)
    lowest: float = min([one["goal"][0] for one in figures.values()] + [result["goal"]["at_least"]])
    bottom = max(0.0, math.floor(10 * lowest - 0.5) / 10)

    def x(cost: float) -> float:
        return _LEFT + _WIDE * math.log(min(max(cost, low), high) / low) / math.log(high / low)

    def y(share: float) -> float:
        return float(_TOP + _HIGH * (1 - (min(max(share, bottom), 1.0) - bottom) / (1 - bottom)))

    points = [
        _point(name, one, x, y, left=name in result["left"])
        for name, one in figures.items()
        if one["cost"][0] is not None
    ]
    ticks = [bottom + (1 - bottom) * part / 5 for part in range(6)]
    axes = [join(_rule(y(tick)), text(f"{tick:.2f}", _LEFT - 8, y(tick) + 4, "end small")) for tick in ticks]
    axes += [text(f"{cost:g}", x(cost), _TOP + _HIGH + 16, "middle small") for cost in _decades(low, high)]
    wanted = y(result["goal"]["at_least"])
    goal = tag("path", d=f"M{_LEFT} {wanted:.1f}H{_LEFT + _WIDE}", stroke="#222", stroke_dasharray="4 3")
    return picture(
        "What the candidates reach, and at what cost",
        _LEFT + _WIDE + 150,
        _TOP + _HIGH + 50,
        *axes,
        goal,
        *points,
        text(result["goal"]["measure"], 16, _TOP - 18, "head"),
        text(
            f"{result['cost']} (logarithmic); filled: not dropped; dashed: the goal", _LEFT, _TOP + _HIGH + 38, "head"
        ),
    )


def _point(name: str, one: dict[str, Any], x: Place, y: Place, *, left: bool) -> Markup:
    (cost, cost_low, cost_high), (goal, goal_low, goal_high) = one["cost"], one["goal"]
    across, up = x(cost), y(goal)
    bars = []
    if cost_low is not None and cost_high is not None:
        bars.append(f"M{x(cost_low):.1f} {up:.1f}H{x(cost_high):.1f}")
    if goal_low is not None and goal_high is not None:
        bars.append(f"M{across:.1f} {y(goal_low):.1f}V{y(goal_high):.1f}")
    return join(
        tag("path", d="".join(bars), stroke="#777") if bars else None,
        mark(name.partition(" ")[0], across, up, hollow=not left),
        text(name, across + 8, up - 6, "small" if not left else "small head"),
    )


def _rule(y: float) -> Markup:
    return tag("path", d=f"M{_LEFT} {y:.1f}H{_LEFT + _WIDE}", class_="rule")


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [times * 10.0**power for power in powers for times in (1, 2, 5) if low <= times * 10.0**power <= high]
