"""What the trees reach and what it costs: TC, TC*, NR, NI and MS of COMAN and MAODV, with the effect of each choice.

Table I of the paper on COMAN with 150 m range, 5 m/s and no dummy traffic, in a dense area and in a sparse one. Every
variant changes one thing of what both protocols share. TC, TC* and reach take a link for up until one of its ends
notices, as the paper does; the physical ones go by the links that are there. Measured by the functions of the
pipeline's measures, without Spark.
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
SEEDS: Final = range(1, 4)
T_95: Final = 4.303
"""The quantile of Student's distribution with two degrees of freedom."""
PAIRED: Final = range(11, 19)
PAIRED_T_95: Final = 2.365
DOUBTFUL: Final = ("all replies", "links to children break", "updates by unicast")
DURATION, WARMUP, SIDES, SPEED = 260.0, 60.0, (750.0, 2000.0), 5.0

CHANGES: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "hearing own messages": {"hearing": "any"},
    "children taken back": {"readopt": True},
    "tie by leader": {"tie": "leader"},
    "requests everywhere": {"expanding": False},
    "updates by unicast": {"updates": "unicast"},
    "all replies": {"replies": "all"},
    "outdated members pass on": {"outdated": "pass on"},
    "links to children break": {"children_break": True},
}
VARIANTS: Final = {
    ", ".join(filter(None, (protocol, name))): (protocol, changes)
    for protocol in ("coman", "maodv")
    for name, changes in CHANGES.items()
}
COLUMNS: Final = ("TC", "TC*", "reach", "physical reach", "NR", "NI", "MS", "repairs", "repaired")


def measured(side: float, protocol: str, parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """One run."""
    shared = read(SCENARIO)
    raw = {
        **shared,
        "duration": DURATION,
        "warmup": WARMUP,
        "seed": seed,
        "area": {"width": side, "height": side},
        "movement": {"model": "random-waypoint", "speed": [SPEED, SPEED]},
        "protocol": {"name": protocol, "parameters": shared["protocol"]["parameters"] | parameters},
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
        "physical reach": values["tree_reach_physical"],
        "NR": values["reconfiguration_nodes"],
        "NI": values["repair_nodes"],
        "MS": values["repair_messages"],
        "repairs": (values["repairs"] or 0) / ((DURATION - WARMUP) / 60),
        "repaired": values["repairs_succeeded"],
    }
    return {name: math.nan if value is None else value for name, value in found.items()}


def run() -> None:
    for side in SIDES:
        table(side)
    differences()


def table(side: float) -> None:
    print(f"side {side:.0f} m, {SPEED:.0f} m/s; {len(SEEDS)} seeds of {DURATION - WARMUP:.0f} s after {WARMUP:.0f} s;")
    print("mean and 95 % interval; repairs a minute")
    print(f"| variant | {' | '.join(COLUMNS)} |")
    print(f"|---|{'---|' * len(COLUMNS)}")
    for name, (protocol, parameters) in VARIANTS.items():
        rows = [measured(side, protocol, parameters, seed) for seed in SEEDS]
        cells = (_cell([row[column] for row in rows]) for column in COLUMNS)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def differences() -> None:
    """By seed, which shows more with as many runs: of changes that the tables leave in doubt."""
    print(f"COMAN, side {SIDES[0]:.0f} m: differences from the first by seed, {len(PAIRED)} others")
    first = [measured(SIDES[0], "coman", {}, seed) for seed in PAIRED]
    for name in DOUBTFUL:
        changed = [measured(SIDES[0], "coman", CHANGES[name], seed) for seed in PAIRED]
        cells = (
            _cell([after[column] - before[column] for after, before in zip(changed, first, strict=True)], PAIRED_T_95)
            for column in COLUMNS
        )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cell(values: list[float], t_95: float = T_95) -> str:
    return f"{mean(values):.3g} ± {t_95 * stdev(values) / math.sqrt(len(values)):.2g}"


if __name__ == "__main__":
    run()
