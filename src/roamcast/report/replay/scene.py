"""Where things are: the area, nodes and their movement, ranges, buildings and regions of context.

Nodes that have links and no positions are drawn on a circle, and so are those whose movement was not recorded.
"""

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa

from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.content.context.rules import region_of
from roamcast.content.context.text import parse_context
from roamcast.content.region import Circle
from roamcast.report.replay.pack import ColumnPack
from roamcast.sim.mobility import Buildings
from roamcast.units import SECOND

_CIRCLE: Final = 500.0
"""Radius of the circle for nodes without positions, m."""


def add_scene(pack: ColumnPack, run: RecordedRun, event_number: dict[int, int]) -> dict[str, Any]:
    """Adds the columns of the movement; returns what else to draw."""
    scenario, reach = run.scenario, run.record.reach
    placed = run.record.contacts is not None and reach is not None
    if placed:
        assert reach is not None
        _add_legs(pack, run.tables["leg"], scenario.nodes, scenario.end)
        pack.add("range", reach.by_node(scenario.nodes, "mean"), "f4")
    else:
        _add_circle(pack, scenario.nodes, scenario.duration)
    area = scenario.area
    side = [2.4 * _CIRCLE, 2.4 * _CIRCLE]
    return {
        "area": [area.width, area.height] if placed and area is not None else side,
        "placed": placed,
        "indoor_range": scenario.radio.indoor_range,
        "buildings": _buildings(run) if placed else [],
        "regions": _regions(run, event_number),
    }


def _add_legs(pack: ColumnPack, leg: pa.Table, nodes: int, end: int) -> None:
    node, start = leg["node"].to_numpy(), leg["start"].to_numpy()
    order = np.lexsort((start, node))
    order = order[start[order] < end]
    pack.add("leg.first", np.searchsorted(node[order], np.arange(nodes + 1)), "i4")
    pack.add("leg.start", start[order] / SECOND, "f8")
    pack.add("leg.end", leg["end"].to_numpy()[order] / SECOND, "f8")
    for name in ("x0", "y0", "x1", "y1"):
        pack.add(f"leg.{name}", leg[name].to_numpy()[order], "f8")
    pack.add("leg.indoor", leg["indoor"].to_numpy(zero_copy_only=False)[order], "u1")


def _add_circle(pack: ColumnPack, nodes: int, duration: float) -> None:
    angle = 2 * math.pi * np.arange(nodes) / nodes
    x, y = 1.2 * _CIRCLE + _CIRCLE * np.sin(angle), 1.2 * _CIRCLE + _CIRCLE * np.cos(angle)
    pack.add("leg.first", np.arange(nodes + 1), "i4")
    pack.add("leg.start", np.zeros(nodes), "f8")
    pack.add("leg.end", np.full(nodes, duration), "f8")
    for name, place in (("x0", x), ("y0", y), ("x1", x), ("y1", y)):
        pack.add(f"leg.{name}", place, "f8")
    pack.add("leg.indoor", np.zeros(nodes), "u1")
    pack.add("range", np.zeros(nodes), "f4")


def _buildings(run: RecordedRun) -> list[list[float]]:
    moving, area = run.scenario.moving, run.scenario.area
    if not isinstance(moving, Buildings) or area is None:
        return []
    return [list(building) for building in moving.plan(area, run.scenario.seed)]


def _regions(run: RecordedRun, event_number: dict[int, int]) -> list[dict[str, Any]]:
    """Contexts of relevance and of interest, each with the time during which it is in force; of relevance, with the
    page's number of the event.
    """
    found = []
    end = run.scenario.end
    wanted = (("publish", "event", "relevance"), ("subscribe", "subscription", "interest"))
    for table, which, column in wanted:
        rows = run.record.rows(table, "time", which, "lifetime", column)
        for time, number, lifetime, text in rows:
            context = None if text is None else parse_context(text)
            region = None if context is None else region_of(context)
            if region is None:
                continue
            until = end if lifetime is None else min(end, time + lifetime)
            shape = [region.x, region.y, region.radius] if isinstance(region, Circle) else _corners(region)
            event = event_number[number] if which == "event" else -1
            found.append(
                {"kind": column, "event": event, "from": time / SECOND, "until": until / SECOND, "shape": shape}
            )
    return found


def _corners(region: Any) -> list[list[float]]:  # noqa: ANN401  # a rectangle or a polygon
    """Clockwise, as the page draws circles: where shapes turn in opposite directions, what they share is not filled."""
    corners = [list(corner) for corner in region.corners]
    turned = sum(ax * by - bx * ay for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True))
    return corners[::-1] if turned > 0 else corners
