"""The figure of a race: one row per candidate, by rank, with what it reached on the left and what it cost on the
right. Rows keep labels from overlapping, however alike the candidates are."""

import math
from collections.abc import Sequence
from typing import Any, Final

from roamcast.report.markup import Markup, join, tag
from roamcast.report.paint import COLOURS, mark, picture, text
from roamcast.report.scale import Place

_NAMES: Final = 190
_PANEL: Final = 300
_GAP: Final = 40
_TOP: Final = 74
_ROW: Final = 22
_SHARES: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_CROWDED: Final = 100.0
"""If the greatest cost is this many times the least, only powers of ten are labelled."""


def drawing(result: dict[str, Any]) -> str:
    """The figure, from the contents of `choice.json`."""
    figures = result["race"] | result["fresh"]
    names = [name for name in result["ranking"] if name in figures]
    rows = {name: _TOP + _ROW * (place + 0.5) for place, name in enumerate(names)}
    bottom = _TOP + _ROW * len(names)
    share, cost, ticks = _share, *_cost_scale([figures[name]["cost"][0] for name in names])
    wanted = share(result["goal"]["at_least"])
    return picture(
        f"{result['scenario']}: what the candidates reach, and at what cost",
        _NAMES + 2 * _PANEL + _GAP + 30,
        bottom + 60,
        text(result["goal"]["words"], _NAMES, _TOP - 14, "head"),
        text(result["cost"]["words"], _NAMES + _PANEL + _GAP, _TOP - 14, "head"),
        *(_tick(share(tick), f"{tick:g}", bottom) for tick in _SHARES),
        *(_tick(cost(tick), f"{tick:g}", bottom) for tick in ticks),
        tag("path", d=f"M{wanted:.1f} {_TOP}V{bottom}", stroke="#222", stroke_dasharray="4 3"),
        *(_row(name, figures[name], y, share, cost, left=name in result["left"]) for name, y in rows.items()),
        text("filled: not dropped; dashed: the goal; bars: 95 % intervals over seeds", _NAMES, bottom + 44, "small"),
    )


def _share(value: float) -> float:
    return _NAMES + _PANEL * min(max(value, 0.0), 1.0)


def _cost_scale(costs: Sequence[float | None]) -> tuple[Place, list[float]]:
    """A logarithmic scale around these costs, and its ticks."""
    known = [cost for cost in costs if cost]
    low, high = 0.7 * min(known, default=1.0), 1.4 * max(known, default=1.0)
    first = _NAMES + _PANEL + _GAP

    def place(cost: float) -> float:
        return first + _PANEL * math.log(min(max(cost, low), high) / low) / math.log(high / low)

    steps = (1, 2, 5) if high / low < _CROWDED else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return place, [tick for tick in ticks if low <= tick <= high]


def _tick(x: float, words: str, bottom: float) -> Markup:
    return join(
        tag("path", d=f"M{x:.1f} {_TOP}V{bottom:.1f}", class_="rule"), text(words, x, bottom + 16, "middle small")
    )


def _row(name: str, one: dict[str, Any], y: float, share: Place, cost: Place, *, left: bool) -> Markup:
    parts = [text(name, _NAMES - 14, y + 4, "end head" if left else "end"), _point(name, one["goal"], y, share, left)]
    if one["cost"][0] is None:
        parts.append(text("delivered nothing in some run", _NAMES + _PANEL + _GAP, y + 4, "small"))
    else:
        parts.append(_point(name, one["cost"], y, cost, left))
    return join(*parts)


def _point(name: str, estimate: Sequence[float | None], y: float, place: Place, left: bool) -> Markup:
    mean, low, high = estimate
    point = mark(_protocol(name), place(mean), y, hollow=not left)
    if low is None or high is None:
        return point
    return join(tag("path", d=f"M{place(low):.1f} {y:.1f}H{place(high):.1f}", stroke="#777"), point)


def _protocol(candidate: str) -> str:
    """The protocol's name in the map's figures, where each mode counts as a protocol."""
    named = candidate.replace(" mode=", " ")
    return named if named in COLOURS else candidate.partition(" ")[0]
