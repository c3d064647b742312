"""Shared by the figures of a map: colours, marks, and the frame of a picture."""

from collections.abc import Iterable
from typing import Final

from roamcast.report.markup import Markup, join, tag

COLOURS: Final = {
    "flooding": "#d55e00",
    "gossip": "#a86f00",
    "hint": "#0072b2",
    "maodv": "#b0508a",
    "coman": "#7a2e5d",
    "odmrp extended": "#00805c",
    "odmrp one-channel": "#3f9479",
    "opportunistic": "#7a4fbf",
    "context": "#8c8c00",
    "counter": "#5b3a1e",
    "roam": "#c2185b",
}
"""Protocols keep their colours in all figures; a protocol that is not listed gets the last."""
OTHER: Final = "#333333"
NOBODY: Final = "#c9c9c9"
_SHAPES: Final = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.5 -3.5H3.5V3.5H-3.5Z",
    "M0 -4.5L4.5 3.5H-4.5Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 4.5L4.5 -3.5H-4.5Z",
)
_CHARACTER: Final = 7.0
"""The average width of a character, px."""
_STYLE: Final = """
text { font-family: system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; font-size: 12px; fill: #222 }
.title { font-size: 15px; font-weight: 600 }
.head { font-weight: 600 }
.middle { text-anchor: middle }
.end { text-anchor: end }
.small { font-size: 10.5px }
.light { fill: #fff }
.rule { stroke: #ddd; stroke-width: 1; fill: none }
.frame { stroke: #777; stroke-width: 1; fill: none }
"""


def colour(protocol: str) -> str:
    return COLOURS.get(protocol, OTHER)


def mark(protocol: str, x: float, y: float, *, hollow: bool = False) -> Markup:
    """A protocol's mark. Protocols differ by shape too: not everyone can tell them by colour."""
    names = list(COLOURS)
    shape = _SHAPES[names.index(protocol) % len(_SHAPES) if protocol in names else 0]
    paint = colour(protocol)
    fill, edge = ("#fff", paint) if hollow else (paint, "#fff")
    return tag("path", d=shape, transform=f"translate({x:.1f} {y:.1f})", fill=fill, stroke=edge)


def text(words: object, x: float, y: float, class_: str | None = None) -> Markup:
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", class_=class_)


def legend(protocols: Iterable[str], x: float, y: float) -> tuple[Markup, float]:
    """A legend in one row, and its right end."""
    parts = []
    for name in protocols:
        parts += [mark(name, x + 6, y - 4), text(name, x + 16, y)]
        x += 34 + _CHARACTER * len(name)
    return join(*parts), x


def picture(title: str, width: float, height: float, *parts: object) -> str:
    """An SVG file: always light, with a title for screen readers."""
    return (
        tag(
            "svg",
            tag("title", title),
            tag("style", Markup(_STYLE)),
            tag("rect", width=width, height=height, fill="#fff"),
            text(title, 16, 24, "title"),
            *parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:g} {height:g}",
            width=f"{width:g}",
            height=f"{height:g}",
            role="img",
        )
        + "\n"
    )
