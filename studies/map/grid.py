"""The map of winners: one square per cell.

The colour is the winner's; hatched if others are not separated from it, grey if no protocol reaches the threshold. The
number is how many times as much the next protocol costs.
"""

from collections.abc import Sequence
from typing import Final

from roamcast.report.markup import Markup, join, tag
from studies.map.paint import NOBODY, colour, picture, text
from studies.map.tables import AND, Atlas, Row
from studies.map.winners import THRESHOLD

_WIDE: Final = 144
_HIGH: Final = 74
_LEFT: Final = 84
_TOP: Final = 66
_NARROWEST: Final = 640
"""The least width, so that the title fits."""


def winners(found: Atlas, deadline: int) -> str:
    rows = [row for row in found.cells if row["deadline"] == str(deadline)]
    *downs, across = found.axes
    xs = sorted({row[across] for row in rows}, key=float)
    ys = sorted({_down(row, downs) for row in rows}, reverse=True)
    parts = [
        _cell(row, _LEFT + xs.index(row[across]) * _WIDE, _TOP + ys.index(_down(row, downs)) * _HIGH) for row in rows
    ]
    bottom = _TOP + len(ys) * _HIGH
    axes = [text(value, _LEFT + (place + 0.5) * _WIDE, bottom + 18, "middle") for place, value in enumerate(xs)]
    axes += [
        text(", ".join(f"{one:g}" for one in values), _LEFT - 10, _TOP + (place + 0.5) * _HIGH + 4, "end")
        for place, values in enumerate(ys)
    ]
    axes += [
        text(
            f"mean {across}" if across == "degree" else across, _LEFT + len(xs) * _WIDE / 2, bottom + 38, "middle head"
        ),
        text(", ".join("speed (m/s)" if axis == "speed" else axis for axis in downs), 12, _TOP - 12, "head"),
        text(
            "×: the next protocol's cost over the winner's. Hatched: others are not separated. Wins: in so many draws.",
            _LEFT,
            bottom + 60,
            "small",
        ),
    ]
    share = f"{THRESHOLD:.0%}".replace("%", " %")
    title = f"Cheapest protocol with at least {share} of what was possible within {deadline} s"
    hatch = tag(
        "pattern",
        tag("path", d="M0 8L8 0", stroke="#fff", stroke_width=1.6),
        id="hatch",
        width=8,
        height=8,
        patternUnits="userSpaceOnUse",
    )
    return picture(title, max(_NARROWEST, _LEFT + len(xs) * _WIDE + 20), bottom + 76, tag("defs", hatch), *parts, *axes)


def _down(row: Row, axes: Sequence[str]) -> tuple[float, ...]:
    return tuple(float(row[axis]) for axis in axes)


def _cell(row: Row, x: float, y: float) -> Markup:
    middle = x + _WIDE / 2
    box = {"x": f"{x:g}", "y": f"{y:g}", "width": _WIDE - 2, "height": _HIGH - 2}
    if not row["winner"]:
        return join(
            tag("rect", **box, fill=NOBODY),
            text("nobody", middle, y + 26, "middle head"),
            text(f"closest: {row['closest']}", middle, y + 42, "middle small"),
            text(row["delivered"], middle, y + 56, "middle small"),
        )
    rivals = row["not_separated"].split(AND) if row["not_separated"] else []
    knob = f" {float(row['knob']):.2g}" if row["knob"] else ""
    lines = [
        text(f"{row['winner']}{knob}", middle, y + 26, "middle head light"),
        text(f"× {row['margin']}" if row["margin"] else "no other", middle, y + 44, "middle light"),
    ]
    if rivals:
        many = "1 other" if len(rivals) == 1 else f"{len(rivals)} others"
        lines.append(text(f"or {many}; wins {float(row['wins']):.0%}", middle, y + 60, "middle small light"))
    hatched = tag("rect", **box, fill="url(#hatch)", opacity="0.3") if rivals else None
    return join(tag("rect", **box, fill=colour(row["winner"])), hatched, *lines)
