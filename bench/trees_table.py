"""What the trees reach and what it costs: TC, TC*, NR, NI and MS of COMAN and of MAODV, with what each choice adds.

Table I of the paper on COMAN with a side of 750 m, 150 m range and 1 m/s, no dummy traffic, the ideal medium, and waits
of one second for replies. TC and TC* take a link for up until one of its ends notices, as the paper does. Measured by
the functions of the pipeline's measures, without Spark.
"""

import math
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

from roamcast.pipeline.measures.partitions import agreement, by_movement, by_tree, parts

import roamcast.papers
from roamcast.facts.sinks import MemorySink
from roamcast.pipeline.measures.repairs import costs, figures, repairs_of
from roamcast.pipeline.measures.tree import samples
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario import check, read
from roamcast.units import seconds

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "coman.toml"
SEEDS: Final = range(1, 11)
T_95: Final = 2.262
"""Of Student's distribution with nine degrees of freedom."""
DURATION, WARMUP, SIDE, RANGE, SPEED = 300.0, 60.0, 750.0, 150.0, 1.0
WAITS: Final = {"reply_wait": 1.0, "retry_wait": 1.0}

VARIANTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "coman": ("coman", {}),
    "coman, tie and readopt as maodv": ("coman", {"tie": "first", "readopt": False}),
    "maodv": ("maodv", {}),
    "maodv, tie by leader": ("maodv", {"tie": "leader"}),
    "maodv, readopt": ("maodv", {"readopt": True}),
    "maodv, stronger": ("maodv", {"tie": "leader", "readopt": True}),
    "coman, unicasts break nothing": ("coman", {"unicast_breaks": False}),
}
COLUMNS: Final = ("TC", "TC*", "NR", "NI", "MS", "transmissions", "repairs", "repaired")


def measured(protocol: str, parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """One run."""
    raw = {
        **read(SCENARIO),
        "duration": DURATION,
        "warmup": WARMUP,
        "seed": seed,
        "area": {"width": SIDE, "height": SIDE},
        "movement": {"model": "random-waypoint", "speed": [SPEED, SPEED]},
        "mac": {"model": "ideal", "rate": 2},
        "protocol": {"name": protocol, "parameters": WAITS | parameters},
    }
    sink = MemorySink()
    scenario = check(raw, "bench", Path())
    run_scenario(scenario, sink)
    start, instants = seconds(WARMUP), samples(seconds(WARMUP), seconds(DURATION))
    tree = by_tree(instants, scenario.nodes, sink.table("tree"))
    network = by_movement(instants, scenario.nodes, sink.table("leg"), RANGE, RANGE)
    assert network is not None
    repairs = [repair for repair in repairs_of(sink.table("tree")) if repair.began >= start]
    took, about = costs(repairs, sink.table("transmit")), figures(repairs)
    found = {
        "TC": float((parts(tree) == 1).mean()),
        "TC*": agreement(tree, network)[0],
        "NR": about["path"],
        "NI": took["nodes"],
        "MS": took["messages"],
        "transmissions": took["transmissions"],
        "repairs": len(repairs) / ((DURATION - WARMUP) / 60),
        "repaired": about["succeeded"],
    }
    return {name: math.nan if value is None else value for name, value in found.items()}


def run() -> None:
    print(f"{SIDE:.0f} m, {RANGE:.0f} m, {SPEED:.0f} m/s, ideal medium, waits of 1 s; {len(SEEDS)} seeds of")
    print(f"{DURATION - WARMUP:.0f} s after {WARMUP:.0f} s; mean and 95 % interval; repairs a minute")
    print(f"| variant | {' | '.join(COLUMNS)} |")
    print(f"|---|{'---|' * len(COLUMNS)}")
    for name, (protocol, parameters) in VARIANTS.items():
        rows = [measured(protocol, parameters, seed) for seed in SEEDS]
        cells = (_cell([row[column] for row in rows]) for column in COLUMNS)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cell(values: list[float]) -> str:
    return f"{mean(values):.3g} ± {T_95 * stdev(values) / math.sqrt(len(values)):.2g}"


if __name__ == "__main__":
    run()
