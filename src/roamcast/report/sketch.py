"""A sketch of what was simulated: the area with its nodes and who hears whom, and the network in a few numbers.

It is made from the recorded movement of the experiment's first finished run. The network is sampled at `INSTANTS`
instants between warm-up and end; there is a link if both ends are in each other's (mean) range.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.analysis.network import reach_of
from roamcast.campaign.define.described import ReportedExperiment
from roamcast.campaign.folder.layout import MANIFEST_FILE, RUNS_FILE
from roamcast.campaign.folder.recorded import RecordedRun, open_run
from roamcast.errors import RoamcastError
from roamcast.report.markup import Markup, tag
from roamcast.report.numbers import number, value_text
from roamcast.sim.scenario.scenario import Scenario
from roamcast.storage import Store
from roamcast.units import SECOND

INSTANTS: Final = 20
_SIDE: Final = 240.0
"""The longer side of the picture."""
_MARGIN: Final = 6.0
_MOST_NODES: Final = 2000
"""More nodes could not be seen in the picture, and computing all their distances would take long."""

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Network:
    """A run's network: at one instant, for the picture, and over the run, in numbers."""

    places: Floats
    """x and y of each node."""
    linked: Bools
    """Which nodes hear each other."""
    degree: float
    """Mean number of neighbours."""
    connected: float
    """Mean share of pairs of nodes that a path joins."""


def sketch_of(out: Path, experiment: ReportedExperiment, store: Store | None = None) -> Markup | None:
    """Picture and numbers, without what is not known, such as movement that was not recorded. `store` has the facts,
    if they are not in the folder."""
    try:
        first = _first_run(out, experiment, store)
        if first is None:
            return None
        where, run = first
        network = network_in(run)
    except (RoamcastError, OSError, pa.ArrowException, msgspec.DecodeError):
        return None  # a folder without facts still has its measures to report
    facts = tag("ul", *(tag("li", text) for text in (*_facts(run.scenario, network), f"(here: {where})")))
    return tag("div", _picture(run.scenario, network) if network else None, facts, class_="sketch")


def _first_run(out: Path, experiment: ReportedExperiment, store: Store | None) -> tuple[str, RecordedRun] | None:
    """The first variant, point and seed of an experiment that recorded movement or links, in words and in facts."""
    manifest = pq.read_table(out / MANIFEST_FILE, columns=["run", "rows"], partitioning=None).to_pylist()
    recorded = {row["run"] for row in manifest if {"leg", "link"} & {table for table, _ in row["rows"] or ()}}
    planned = pq.read_table(out / RUNS_FILE, columns=["run", "experiment", "variant", "axes", "seed"])
    mine = planned.filter(pc.equal(planned["experiment"], experiment.name)).to_pylist()
    row = next((row for row in mine if row["run"] in recorded), None)
    if row is None:
        return None
    point = [f"{label} {value_text(value)}" for label, value in json.loads(row["axes"] or "{}").items()]
    return ", ".join([row["variant"], *point, f"seed {row['seed']}"]), open_run(out / row["run"], store)


def network_in(run: RecordedRun) -> Network | None:
    """The network; None without positions, or if walls and rooms decide which nodes hear each other."""
    scenario, legs = run.scenario, run.table("leg")
    nodes = scenario.nodes
    reach = reach_of(scenario)
    if reach is None or reach.walls or reach.indoors is not None or not 2 <= nodes <= _MOST_NODES or not legs.num_rows:
        return None
    ranges = reach.by_node(nodes, "mean")
    least = np.minimum.outer(ranges, ranges)
    start, end = scenario.warmup * SECOND, scenario.end
    seen = []
    for instant in np.linspace(start, end, INSTANTS, endpoint=False):
        places = places_at(legs, nodes, int(instant))
        apart = np.hypot(*(np.subtract.outer(side, side) for side in places.T))
        linked = apart <= least
        np.fill_diagonal(linked, val=False)
        seen.append((places, linked))
    pairs = nodes * (nodes - 1)
    degrees = [float(linked.sum()) / nodes for _, linked in seen]
    joined = [sum(size * (size - 1) for size in island_sizes(linked)) / pairs for _, linked in seen]
    return Network(*seen[0], float(np.mean(degrees)), float(np.mean(joined)))


def places_at(legs: pa.Table, nodes: int, instant: int) -> Floats:
    """Where each node is; NaN before its first leg, and at the end of its last after it."""
    columns = {name: legs[name].to_numpy() for name in ("node", "start", "end", "x0", "y0", "x1", "y1")}
    begun = np.flatnonzero(columns["start"] <= instant)
    order = begun[np.lexsort((columns["start"][begun], columns["node"][begun]))]
    node = columns["node"][order]
    last = order[np.append(node[1:] != node[:-1], True)] if len(order) else order
    start, end = columns["start"][last], columns["end"][last]
    part = np.clip((instant - start) / np.maximum(end - start, 1), 0.0, 1.0)
    places = np.full((nodes, 2), np.nan)
    for axis, (begin, goal) in enumerate((("x0", "x1"), ("y0", "y1"))):
        places[columns["node"][last], axis] = columns[begin][last] * (1 - part) + columns[goal][last] * part
    return places


def island_sizes(linked: Bools) -> list[int]:
    """The number of nodes in each connected part."""
    left, sizes = np.ones(len(linked), np.bool_), []
    while left.any():
        island = np.zeros(len(linked), np.bool_)
        edge = np.zeros(len(linked), np.bool_)
        edge[left.argmax()] = True
        while edge.any():
            island |= edge
            edge = linked[edge].any(axis=0) & ~island
        left &= ~island
        sizes.append(int(island.sum()))
    return sizes


# --- In words and in a picture --------------------------------------------------------------------------------------


def _facts(scenario: Scenario, network: Network | None) -> Iterator[str]:
    area = f" in {number(scenario.area.width)} m × {number(scenario.area.height)} m" if scenario.area else ""
    yield f"{scenario.nodes} nodes{area}"
    if scenario.radio.propagation != "links":
        yield f"range {_bounds(scenario.radio.range)} m"
    if scenario.area is not None:
        moving = scenario.moving
        speed = getattr(moving, "speed", None)
        yield f"{moving.__struct_config__.tag}" + (f" at {_bounds(speed)} m/s" if speed is not None else "")
    if network is not None:
        yield f"mean degree {network.degree:.1f}"
        yield f"{100 * network.connected:.0f} % of the pairs of nodes connected"
    warmup = f", of which the first {number(scenario.warmup)} s are the warm-up" if scenario.warmup else ""
    joined = " and" if scenario.warmup else ", of which"
    cooldown = f"{joined} the last {number(scenario.cooldown)} s the cooldown" if scenario.cooldown else ""
    yield f"{number(scenario.duration)} s{warmup}{cooldown}"


def _bounds(value: float | tuple[float, float]) -> str:
    if isinstance(value, tuple):
        return number(value[0]) if value[0] == value[1] else value_text(list(value))
    return number(value)


def _picture(scenario: Scenario, network: Network) -> Markup:
    """The network right after the warm-up, and the range of one node."""
    known = ~np.isnan(network.places).any(axis=1)
    far = network.places[known].max(axis=0)
    width, height = (scenario.area.width, scenario.area.height) if scenario.area else far
    unit = _SIDE / max(width, height, 1e-9)
    right, bottom = unit * width, unit * height
    spots = network.places * unit
    spots[:, 1] = bottom - spots[:, 1]
    links = [
        f"M{spots[one][0]:.1f} {spots[one][1]:.1f}L{spots[other][0]:.1f} {spots[other][1]:.1f}"
        for one, other in np.argwhere(np.triu(network.linked))
    ]
    middle = int(np.nanargmin(np.hypot(spots[:, 0] - right / 2, spots[:, 1] - bottom / 2)))
    return tag(
        "svg",
        tag("rect", width=f"{right:.1f}", height=f"{bottom:.1f}", class_="area"),
        tag("path", d="".join(links), class_="links"),
        *(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=2.4, class_="node") for x, y in spots[known]),
        tag(
            "circle",
            cx=f"{spots[middle][0]:.1f}",
            cy=f"{spots[middle][1]:.1f}",
            r=f"{unit * _reach(scenario):.1f}",
            class_="reach",
        ),
        viewBox=f"{-_MARGIN} {-_MARGIN} {right + 2 * _MARGIN:.1f} {bottom + 2 * _MARGIN:.1f}",
        role="img",
        aria_label="The area with its nodes and who hears whom after the warm-up; the ring is one node's range",
    )


def _reach(scenario: Scenario) -> float:
    value = scenario.radio.range
    return sum(value) / 2 if isinstance(value, tuple) else value
