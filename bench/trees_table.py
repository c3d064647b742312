"""What the trees reach and what it costs: TC, TC*, NR, NI and MS of COMAN and MAODV, with the effect of each choice.

Table I of the paper on COMAN with a side of 750 m, 150 m range and 1 m/s, no dummy traffic, and waits of one second for
replies; with the ideal medium, and with 802.11, where frames get lost. TC, TC* and reach take a link for up until one
of its ends notices, as the paper does; the physical ones go by the links that are there. Measured by the functions of
the pipeline's measures, without Spark.
"""

import math
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import roamcast.papers
from roamcast.analysis.measures.repairs import repairs
from roamcast.analysis.measures.tree import tree
from roamcast.analysis.run import Run
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario.scenario import check, read

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "coman.toml"
SEEDS: Final = range(1, 11)
T_95: Final = 2.262
"""The quantile of Student's distribution with nine degrees of freedom."""
DURATION, WARMUP, SIDE, RANGE, SPEED = 300.0, 60.0, 750.0, 150.0, 1.0
ALL: Final = {"reply_wait": 1.0, "retry_wait": 1.0, "hearing": "any"}

VARIANTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "coman": ("coman", {}),
    "coman, tie and readopt as maodv": ("coman", {"tie": "first", "readopt": False}),
    "maodv": ("maodv", {"readopt": False}),
    "maodv, tie by leader": ("maodv", {"tie": "leader", "readopt": False}),
    "maodv, readopt": ("maodv", {"readopt": True}),
    "maodv, stronger": ("maodv", {"tie": "leader", "readopt": True}),
    "coman, unicasts break nothing": ("coman", {"unicast_breaks": False}),
}
COLUMNS: Final = (
    *("TC", "TC*", "reach", "physical TC", "physical TC*", "physical reach"),
    *("NR", "NI", "MS", "transmissions", "repairs", "repaired"),
)


def measured(medium: str, protocol: str, parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """One run."""
    raw = {
        **read(SCENARIO),
        "duration": DURATION,
        "warmup": WARMUP,
        "seed": seed,
        "area": {"width": SIDE, "height": SIDE},
        "movement": {"model": "random-waypoint", "speed": [SPEED, SPEED]},
        "mac": {"model": medium, "rate": 2},
        "protocol": {"name": protocol, "parameters": ALL | parameters},
    }
    sink = MemorySink()
    scenario = check(raw, "bench", Path())
    run_scenario(scenario, sink)
    run = Run.over(sink.tables(), scenario)
    values = {**tree(run), **repairs(run)}
    found = {
        "TC": values["tree_connected"],
        "TC*": values["tree_matched"],
        "reach": values["tree_reach"],
        "physical TC": values["tree_connected_physical"],
        "physical TC*": values["tree_matched_physical"],
        "physical reach": values["tree_reach_physical"],
        "NR": values["reconfiguration_nodes"],
        "NI": values["repair_nodes"],
        "MS": values["repair_messages"],
        "transmissions": values["repair_transmissions"],
        "repairs": (values["repairs"] or 0) / ((DURATION - WARMUP) / 60),
        "repaired": values["repairs_succeeded"],
    }
    return {name: math.nan if value is None else value for name, value in found.items()}


def run() -> None:
    for medium in ("ideal", "dcf"):
        table(medium)


def table(medium: str) -> None:
    print(f"{SIDE:.0f} m, {RANGE:.0f} m, {SPEED:.0f} m/s, medium {medium}, waits of 1 s; {len(SEEDS)} seeds of")
    print(f"{DURATION - WARMUP:.0f} s after {WARMUP:.0f} s; mean and 95 % interval; repairs a minute")
    print(f"| variant | {' | '.join(COLUMNS)} |")
    print(f"|---|{'---|' * len(COLUMNS)}")
    for name, (protocol, parameters) in VARIANTS.items():
        rows = [measured(medium, protocol, parameters, seed) for seed in SEEDS]
        cells = (_cell([row[column] for row in rows]) for column in COLUMNS)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cell(values: list[float]) -> str:
    return f"{mean(values):.3g} ± {T_95 * stdev(values) / math.sqrt(len(values)):.2g}"


if __name__ == "__main__":
    run()
