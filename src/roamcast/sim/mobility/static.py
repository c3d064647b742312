"""Static: nodes that stay where they are put."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from roamcast.sim.mobility.base import Area, Leg, Model, Pen, Point, Problem, point_problems, stream


class Static(Model, tag="static", frozen=True, kw_only=True):
    """Nobody moves."""

    placement: Annotated[
        Literal["uniform", "grid"],
        Meta(description='"uniform": anywhere; "grid": in the middle of equal cells, row by row from the origin.'),
    ] = "uniform"
    positions: Annotated[
        tuple[Point, ...] | None,
        Meta(description="The place of every node as [x, y], m, within the area; instead of a placement."),
    ] = None

    def problems(self, area: Area, nodes: int) -> Iterator[Problem]:
        if self.positions is None:
            return
        if self.placement != "uniform":
            yield "placement", f'"{self.placement}" cannot be combined with positions: give either'
        if len(self.positions) != nodes:
            yield "positions", f"{len(self.positions)} positions for {nodes} nodes: there must be one for each"
        yield from point_problems("positions", "node", self.positions, area)

    def walks(self, area: Area, nodes: int, seed: int, folder: Path) -> list[Iterator[Leg]]:
        return [iter(Pen(area, place).stay()) for place in self._places(area, nodes, seed)]

    def _places(self, area: Area, nodes: int, seed: int) -> list[Point] | tuple[Point, ...]:
        if self.positions is not None:
            return self.positions
        if self.placement == "grid":
            return _grid(area, nodes)
        return [area.anywhere(stream(seed, node)) for node in range(nodes)]


def _grid(area: Area, nodes: int) -> list[Point]:
    """The middles of a grid's cells, as nearly square as their number allows; the last row may have empty cells."""
    columns = min(nodes, math.ceil(math.sqrt(nodes * area.width / area.height)))
    rows = math.ceil(nodes / columns)
    return [
        ((node % columns + 0.5) * area.width / columns, (node // columns + 0.5) * area.height / rows)
        for node in range(nodes)
    ]
