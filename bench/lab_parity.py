"""The same scenarios on real nodes and in the simulator, over repeated runs: delivery and cost in both worlds.

`python -m bench lab-parity` prints, for each scenario and measure, the mean and its 95 % interval over seeds 1 to 8 of
either world, and whether each mean lies in the other's interval. The labs of one scenario run four at a time, so this
takes about as long as two of them for each scenario.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from roamcast.analysis.run import Run
from roamcast.analysis.summary import RunSummary, summarise
from roamcast.facts.sinks import MemorySink
from roamcast.lab.lab import run_lab
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.statistics.intervals import Estimate, interval

SEEDS: Final = range(1, 9)
AT_ONCE: Final = 4
MEASURES: Final = ("delivery", "packets_per_pair", "carrier_packets_per_pair", "hops_mean")
SETTLING: Final = 5.0
"""Seconds before the first event, for beacons and trees."""
DURATION: Final = 30.0

GRID: Final = [
    *([3 * row + column, 3 * row + column + 1] for row in range(3) for column in range(2)),
    *([3 * row + column, 3 * row + column + 3] for row in range(2) for column in range(3)),
]
CHANGING: Final = {
    "up": GRID,
    "change": [{"at": 12.0, "down": [[4, 5], [1, 4]]}, {"at": 20.0, "up": [[4, 5], [1, 4]], "down": [[3, 4], [4, 7]]}],
}
PROTOCOLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("flooding", {}),
    ("gossip", {"p": 0.6}),
    ("hint", {"interval": 1.0, "credits": 1}),
    ("maodv", {"hello": 0.2, "group_hello": 1.0, "retry_wait": 0.2}),
    ("coman", {"hello": 0.2, "group_hello": 1.0, "retry_wait": 0.2}),
)


def agree(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two samples agree: the mean of each lies in the interval of the other's mean, up to rounding."""
    if min(len(one), len(other)) < 2:
        raise ValueError("two runs or more are needed on each side to compare them")
    first, second = interval(one), interval(other)
    return _contains(first, second.mean) and _contains(second, first.mean)


def _contains(found: Estimate, value: float) -> bool:
    slack = 1e-9 * max(1.0, abs(found.mean))
    return found.low - slack <= value <= found.high + slack


def scenario(protocol: str, parameters: dict[str, Any], air: dict[str, Any], seed: int) -> Scenario:
    raw = {
        "name": "parity",
        "seed": seed,
        "duration": DURATION,
        "warmup": SETTLING,
        "mac": {"model": "ideal"},
        "protocol": {"name": protocol, "parameters": parameters},
        "workload": {
            "subscribers": [{"count": 3}],
            "publishers": [{"count": 2, "rate": 1.0, "start": SETTLING, "stop": DURATION - 1.0}],
        },
        **air,
    }
    return check(raw, "bench", Path())


AIRS: Final[dict[str, dict[str, Any]]] = {
    "grid of 9": {"nodes": 9, "radio": {"propagation": "links"}, "links": {"up": GRID}},
    "grid of 9, links change": {"nodes": 9, "radio": {"propagation": "links"}, "links": CHANGING},
    "12 nodes walking": {
        "nodes": 12,
        "area": {"width": 400.0, "height": 400.0},
        "movement": {"model": "random-waypoint", "speed": [1.0, 3.0]},
        "radio": {"propagation": "unit-disk", "range": 130.0},
    },
}


def _simulated(one: Scenario) -> RunSummary:
    sink = MemorySink()
    simulate(one, sink)
    return summarise(Run.over(sink.tables(), one))


async def _live_all(scenarios: list[Scenario]) -> list[RunSummary]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def live(one: Scenario) -> RunSummary:
        sink = MemorySink()
        async with turn:
            report = await run_lab(one, sink)
        if not report.whole:
            raise RuntimeError("; ".join(report.problems()))
        return summarise(Run.over(sink.tables(), one))

    return list(await asyncio.gather(*map(live, scenarios)))


def _rows(lives: list[RunSummary], simulations: list[RunSummary]) -> Iterator[tuple[str, str, str, str]]:
    for measure in MEASURES:
        samples = [[getattr(one, measure) for one in world] for world in (lives, simulations)]
        if None in samples[0] + samples[1]:
            yield measure, "–", "–", "not measured"
            continue
        live, simulated = map(interval, samples)
        yield measure, str(live), str(simulated), "agree" if agree(*samples) else "DIFFER"


def run() -> None:
    print(f"parity: {DURATION:g} s after {SETTLING:g} s, mean and 95 % interval of seeds {SEEDS[0]} to {SEEDS[-1]}")
    for protocol, parameters in PROTOCOLS:
        for name, air in AIRS.items():
            scenarios = [scenario(protocol, parameters, air, seed) for seed in SEEDS]
            simulations = [_simulated(one) for one in scenarios]
            lives = asyncio.run(_live_all(scenarios))
            for measure, live, simulated, verdict in _rows(lives, simulations):
                label = f"{protocol}, {name}"
                print(f"{label:<34}{measure:<26}live {live:<18}simulated {simulated:<18}{verdict}", flush=True)


if __name__ == "__main__":
    run()
