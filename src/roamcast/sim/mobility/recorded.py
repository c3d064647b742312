"""Recorded: movement from a file, measured or made by another tool.

The formats are described where they are read: `ns2` and `samples` for small text files, `trace` for traces of any size
that `roamcast traces import` has made. A file with a bad line is refused before anything runs; the error names it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from roamcast.sim.mobility.base import Area, Leg, Model, Problem
from roamcast.sim.mobility.lines import MovementFile
from roamcast.sim.mobility.ns2 import read_ns2
from roamcast.sim.mobility.samples import SEPARATORS, read_samples
from roamcast.sim.mobility.trace import Subset, Window, leg_walks

READERS: Final[dict[str, Callable[[MovementFile, Area, int], list[Iterator[Leg]]]]] = {
    "ns2": read_ns2,
    "csv": read_samples,
}


class Recorded(Model, tag="recorded", frozen=True, kw_only=True):
    """Nodes move as a file says."""

    file: Annotated[str, Meta(description="The file, relative to the folder of the scenario.", min_length=1)]
    format: Annotated[
        Literal["auto", "ns2", "csv", "trace"],
        Meta(
            description='"ns2": commands of ns-2; "csv": samples time,node,x,y in s and m; "trace": a folder from '
            '`roamcast traces import`; "auto": the file tells.'
        ),
    ] = "auto"
    window: Window = None
    subset: Subset = "first"
    absence: Annotated[
        Literal["restart", "suspended"],
        Meta(
            description="What a node does while the trace does not have it: it starts again when it comes back, "
            "or sleeps meanwhile; as with [[away]]."
        ),
    ] = "restart"

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        for field, given in (("window", self.window is not None), ("subset", self.subset != "first")):
            if given and self.format in ("ns2", "csv"):
                yield field, f'needs a trace: it cannot be combined with format = "{self.format}"'

    def is_trace(self, folder: Path) -> bool:
        """Whether it is a folder from `roamcast traces import`."""
        return self.format == "trace" or (self.format == "auto" and (folder / self.file).is_dir())

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        """Raises `ScenarioError` for a file that cannot be read or followed."""
        if self.is_trace(folder):
            return leg_walks(folder / self.file, area, nodes, seed, self.window, self.subset)
        lines = MovementFile(folder / self.file, area, nodes)
        return READERS[_tell(lines) if self.format == "auto" else self.format](lines, area, nodes)


def _tell(lines: MovementFile) -> str:
    """The format of a file, by its first line that is not blank or a comment."""
    for text in lines:
        if text.startswith(("$", "set ")):
            return "ns2"
        if any(mark in text for mark in SEPARATORS) and not text.startswith("#"):
            return "csv"
        if text and not text.startswith("#"):
            raise lines.error("expected movement of ns-2 ($node_…) or a header such as time,node,x,y")
    raise lines.error_in_file("it is empty: expected movement of ns-2 or samples time,node,x,y")
