"""The figure of a race: what every candidate reached, and what it cost."""

import math
from typing import Any, Final

from roamcast.report.atlas.paint import COLOURS, mark, picture, text
from roamcast.report.markup import Markup, join, tag
from roamcast.report.scale import Place

_LEFT: Final = 60
_WIDE: Final = 560
_TOP: Final = 70
_HIGH: Final = 320
_LINE: Final = 12.0
_CHARACTER: Final = 6.5
"""Height and width of a label's character, about."""


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

    shown = {name: one for name, one in figures.items() if one["cost"][0] is not None}
    labels = _apart({name: (x(one["cost"][0]) + 8, y(one["goal"][0]) - 6) for name, one in shown.items()})
    points = [_point(name, one, x, y, left=name in result["left"]) for name, one in shown.items()]
    points += [
        text(name, *place, "small head" if name in result["left"] else "small") for name, place in labels.items()
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
        text(result["goal"]["words"], 16, _TOP - 18, "head"),
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
        mark(_protocol(name), across, up, hollow=not left),
    )


def _protocol(candidate: str) -> str:
    """As the map's figures call it: a mode makes another protocol."""
    named = candidate.replace(" mode=", " ")
    return named if named in COLOURS else candidate.partition(" ")[0]


def _apart(places: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Labels, from the top down, each moved below those that it would cover."""
    found: dict[str, tuple[float, float]] = {}
    for name, (x, wanted) in sorted(places.items(), key=lambda item: item[1][1]):
        y = wanted
        for other, (x_other, y_other) in sorted(found.items(), key=lambda item: item[1][1]):
            beside = x + _CHARACTER * len(name) < x_other or x_other + _CHARACTER * len(other) < x
            if not beside and abs(y - y_other) < _LINE:
                y = y_other + _LINE
        found[name] = x, y
    return found


def _rule(y: float) -> Markup:
    return tag("path", d=f"M{_LEFT} {y:.1f}H{_LEFT + _WIDE}", class_="rule")


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [times * 10.0**power for power in powers for times in (1, 2, 5) if low <= times * 10.0**power <= high]
