"""Small scenarios, and the same in both worlds."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis.oracle import summarise
from roamcast.analysis.summary import RunSummary
from roamcast.facts.sinks import MemorySink
from roamcast.lab.lab import LabReport, run_lab
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check

Facts = dict[str, pa.Table]
Links = list[list[int]]

LINE: Links = [[0, 1], [1, 2], [2, 3], [3, 4]]
RING: Links = [[node, (node + 1) % 6] for node in range(6)]
GRID: Links = [
    *([3 * row + column, 3 * row + column + 1] for row in range(3) for column in range(2)),
    *([3 * row + column, 3 * row + column + 3] for row in range(2) for column in range(3)),
]


def linked(links: Links, protocol: str, *, seed: int = 1, duration: float = 3.0, **parts: Any) -> Scenario:  # noqa: ANN401
    """A scenario on links, with the ideal medium access; `parts` are its other tables, `parameters` the protocol's."""
    raw = {
        "name": "parity",
        "seed": seed,
        "nodes": 1 + max(max(link) for link in links),
        "duration": duration,
        "radio": {"propagation": "links"},
        "links": {"up": links, "loss": parts.pop("loss", 0.0), "change": parts.pop("change", [])},
        "mac": {"model": "ideal"},
        "protocol": {"name": protocol, "parameters": parts.pop("parameters", {})},
        **parts,
    }
    return check(raw, "tests", Path())


def simulated(scenario: Scenario) -> Facts:
    sink = MemorySink()
    run(scenario, sink, make_core=reference.Core)
    return sink.tables()


async def live(scenario: Scenario) -> Facts:
    facts, report = await reported(scenario)
    assert report.whole, list(report.problems())
    return facts


async def reported(scenario: Scenario) -> tuple[Facts, LabReport]:
    sink = MemorySink()
    report = await run_lab(scenario, sink)
    return sink.tables(), report


async def live_all(scenarios: Sequence[Scenario]) -> list[Facts]:
    """All at once: they take no longer than one."""
    return list(await asyncio.gather(*map(live, scenarios)))


def delivered(facts: Facts) -> set[tuple[int, int, int]]:
    """(event, node, subscription)."""
    columns = (facts["deliver"].column(name).to_pylist() for name in ("event", "node", "subscription"))
    return set(zip(*columns, strict=True))


def summary(facts: Facts) -> RunSummary:
    return summarise(facts, 0.0)
