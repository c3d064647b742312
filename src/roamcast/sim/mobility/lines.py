"""A movement file's lines, read in one pass, and the rules for numbers in them.

Every error in a file becomes a `ScenarioError` that names the file, the line, its text and the rule.
"""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from roamcast.errors import RoamcastError
from roamcast.sim.mobility.base import FOREVER, Area, ScenarioError, nanoseconds

SHOWN: Final = 120
"""How many characters of an offending line are shown: a file of the wrong kind may have very long lines."""

NODE: Final = re.compile(r"[0-9]{1,9}")


T = TypeVar("T")


class Refused(RoamcastError):
    """A line is not what its format requires. The reason has none of the line's values, so that it can be counted."""


class MovementFile:
    """The lines of one file. `error` is about the current line."""

    def __init__(self, path: Path, area: Area, nodes: int) -> None:
        self._path = path
        self._extent = {"x": area.width, "y": area.height}
        self._nodes = nodes
        self._number = 0
        self._text = ""

    def __iter__(self) -> Iterator[str]:
        """Every line, without the white space around it; blank ones too."""
        self._number, self._text = 0, ""
        try:
            # Bytes that are not UTF-8 are shown escaped in the error of the reader that cannot parse them.
            with self._path.open(encoding="utf-8-sig", errors="backslashreplace") as file:
                for self._number, text in enumerate(file, 1):
                    self._text = text.strip()
                    yield self._text
        except OSError as problem:
            raise ScenarioError(f"{self._path}: cannot be read: {problem.strerror}") from None

    def parse(self, parse: Callable[[str], T], text: str) -> T:
        """What the current line says; an error names it."""
        try:
            return parse(text)
        except Refused as problem:
            raise self.error(str(problem)) from None

    def error(self, rule: str) -> ScenarioError:
        shown = self._text if len(self._text) <= SHOWN else self._text[:SHOWN] + "…"
        return ScenarioError(f"{self._path}, line {self._number}: {rule}\n  {shown}")

    def error_in_file(self, rule: str) -> ScenarioError:
        """An error about the file as a whole."""
        return ScenarioError(f"{self._path}: {rule}")

    def missing(self, node: int, what: str) -> ScenarioError:
        return self.error_in_file(f"node {node} has no {what}; the scenario has nodes 0 to {self._nodes - 1}")

    def node(self, text: str) -> int:
        if not NODE.fullmatch(text):
            raise self.error(f"expected the number of a node, not {text!r}")
        node = int(text)
        if node >= self._nodes:
            raise self.error(f"node {node}: the scenario has nodes 0 to {self._nodes - 1}")
        return node

    def time(self, seconds: float) -> int:
        """The time in ns."""
        if not (seconds >= 0 and (time := nanoseconds(seconds)) < FOREVER):
            raise self.error(f"time {seconds:g} s: it must be 0 or more, and below 4.6e9")
        return time

    def coordinate(self, axis: str, value: float, node: int) -> float:
        if not 0 <= value <= self._extent[axis]:
            raise self.error(
                f"node {node} at {axis} = {value:g} m: it must lie in the area, 0 to {self._extent[axis]:g} m"
            )
        return value


def real(what: str, text: str, least: float = -math.inf) -> float:
    """The number of a text; raises `Refused`."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # `float` also reads "1_000", which no writer of movement files means.
    if not math.isfinite(value) or "_" in text:
        raise Refused(f"{what} is not a number")
    if value < least:
        raise Refused(f"{what} is below {least:g}")
    return value
