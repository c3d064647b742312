"""Docstrings as reStructuredText: they are plain text with `code` in backticks, lists, and indented examples.

What they say is shown as it stands: a `*` or a `_` outside backticks is the character, never markup.
"""

import re
from dataclasses import dataclass
from typing import Final

_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SPECIAL: Final = re.compile(r"([\\*_|<>\[\]:`])")
_ITEM: Final = re.compile(r"( *)([-*]|\d+\.) +(?=\S)")


@dataclass
class Unit:
    """A paragraph, an item of a list, or an example."""

    head: str
    """What an item begins with, with its indentation; empty: a paragraph."""
    lines: list[str]
    example: bool = False


def as_rst(_app: object, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Rewrites a docstring in place: a listener of Sphinx's autodoc."""
    lines[:] = [line for unit in _units(lines) for line in _rst(unit)]


def _units(lines: list[str]) -> list[Unit]:
    units: list[Unit] = []
    ended = True
    for line in lines:
        item = _ITEM.match(line)
        indented = line.startswith("  ")
        last = None if ended else units[-1]
        ended = not line.strip()
        if ended:
            continue
        if item:
            units.append(Unit(f"{item[1]}{item[2]} ", [line[len(item[0]) :]]))
        elif last and (last.example if indented and not last.head else indented == bool(last.head)):
            last.lines.append(line)
        else:
            units.append(Unit("", [line], example=indented))
    return units


def _rst(unit: Unit) -> list[str]:
    if unit.example:
        return ["::", "", *(f"    {line}" for line in unit.lines), ""]
    return [unit.head + _text(" ".join(line.strip() for line in unit.lines)), ""]


def _text(text: str) -> str:
    """Code as literals, everything else as it stands."""
    found, end = [], 0
    for code in _CODE.finditer(text):
        found += [_escaped(text[end : code.start()]), f"``{code[1].strip()}``\\ "]
        end = code.end()
    return "".join([*found, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
