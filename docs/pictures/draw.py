"""Draws the pictures of the documentation: each NAME.txt of this folder becomes NAME.svg beside it.

The text has rows of boxes and rows of arrows, in columns; see the top of architecture.txt. No program is needed but
Python, and the same text gives the same bytes.
"""

import textwrap
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
ARROWS: Final = {"v": "down", "^": "up", "x": "both ways"}

WIDTH: Final = 520
"""Of a column, px; so are all that follow."""
GAP: Final = 36
BOX: Final = 50
ROW: Final = 8
"""Between two rows of boxes with no arrow between them."""
ARROW: Final = 40
TOP: Final = 44
CHARACTER: Final = 6.6
"""Of the small type, on average."""

STYLE: Final = """
text { font-family: system-ui, sans-serif; font-size: 12px; fill: #1c2733 }
.title { font-size: 14px; font-weight: 600 }
.name { font-size: 13px; font-weight: 600 }
.words { fill: #44525f }
rect { fill: #eef4fa; stroke: #5b7fa6; rx: 5 }
line { stroke: #5b7fa6; stroke-width: 1.5 }
.back { fill: #ffffff; stroke: none }
"""


class Row(NamedTuple):
    """A row of boxes (name and words), or of arrows (which, and words)."""

    arrows: bool
    cells: list[tuple[str, str]]


def columns(text: str) -> list[tuple[str, list[Row]]]:
    """The title and rows of each column."""
    found: list[tuple[str, list[Row]]] = []
    for line in text.splitlines():
        if line.startswith("="):
            found.append((line[1:].strip(), []))
        elif line and not line.startswith("#"):
            found[-1][1].append(_row(line))
    return found


def _row(line: str) -> Row:
    parts = [part.strip() for part in line.split(" | ")]
    if line[0] in ARROWS and line[1] == " ":
        return Row(True, [(part[0], part[1:].strip()) for part in parts])
    return Row(False, [(name, words.strip()) for name, _, words in (part.partition(":") for part in parts)])


def draw(text: str) -> str:
    """The picture as SVG."""
    drawn: list[str] = []
    bottom = 0
    found = columns(text)
    for number, (title, rows) in enumerate(found):
        left = GAP + number * (WIDTH + GAP)
        drawn.append(_text(left, TOP - 16, title, "title", "start"))
        y = TOP
        for row, following in pairwise([*rows, None]):
            assert row is not None
            drawn.extend(_arrows(left, y, row) if row.arrows else _boxes(left, y, row))
            y += ARROW if row.arrows else BOX
            if not row.arrows and following is not None and not following.arrows:
                y += ROW
        bottom = max(bottom, y)
    width, height = GAP + len(found) * (WIDTH + GAP), bottom + GAP // 2
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    body = "\n".join(drawn)
    return (
        f'{head} role="img">\n<style>{STYLE}</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="#5b7fa6"/></marker></defs>\n'
        f'<rect class="back" width="{width}" height="{height}"/>\n{body}\n</svg>\n'
    )


def _places(left: int, count: int) -> list[tuple[int, int]]:
    """Left edge and width of each cell of a row."""
    each = (WIDTH - (count - 1) * ROW) // count
    return [(left + number * (each + ROW), each) for number in range(count)]


def _boxes(left: int, y: int, row: Row) -> list[str]:
    drawn = []
    for (x, width), (name, words) in zip(_places(left, len(row.cells)), row.cells, strict=True):
        drawn.append(f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}"/>')
        drawn.append(_text(x + width // 2, y + 21, name, "name"))
        drawn.append(_text(x + width // 2, y + 38, words, "words"))
    return drawn


def _arrows(left: int, y: int, row: Row) -> list[str]:
    drawn = []
    for (x, width), (way, words) in zip(_places(left, len(row.cells)), row.cells, strict=True):
        start, end = (
            (' marker-start="url(#tip)"' if way in "^x" else ""),
            (' marker-end="url(#tip)"' if way in "vx" else ""),
        )
        at = x + 16
        drawn.append(f'<line x1="{at}" y1="{y + 3}" x2="{at}" y2="{y + ARROW - 3}"{start}{end}/>')
        lines = textwrap.wrap(words, int((width - 30) / CHARACTER))
        first = y + ARROW // 2 + 4 - 7 * (len(lines) - 1)
        drawn.extend(_text(at + 10, first + 14 * number, line, "words", "start") for number, line in enumerate(lines))
    return drawn


def _text(x: int, y: int, words: str, kind: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


if __name__ == "__main__":
    for source in sorted(HERE.glob("*.txt")):
        source.with_suffix(".svg").write_text(draw(source.read_text(encoding="utf-8")), encoding="utf-8")
