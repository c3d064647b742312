"""What contexts cost: the default of the paper's evaluation, 100 hosts for 450 s, and the same at 400 hosts per km².

CPU seconds of a run, compilation excluded. Beside it what is on the air by kind of message and maximum speed, which
shows where the cost of X1 comes from.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import roamcast.papers
from bench.map_cells import print_costs
from roamcast.analysis.context_truth import count_delivered
from roamcast.analysis.run import Run
from roamcast.analysis.summary import RunSummary, summarise
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import check, read
from roamcast.units import SECOND

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "context.toml"
GOAL: Final = 5.0
"""CPU s that the paper's default should take."""
SPEEDS: Final = (1.0, 10.0, 20.0)
DENSE: Final = 500
"""Side of the area for 400 hosts per square km, m."""


def measured(raw: Mapping[str, Any]) -> tuple[float, RunSummary, str]:
    """CPU s of one run, its summary, and how many of the ideal pairs were delivered."""
    scenario, facts = check(dict(raw), "bench", Path()), MemorySink()
    report = simulate(scenario, facts)
    tables = facts.tables()
    found = count_delivered(tables, reach=scenario.radio.longest, end=round(scenario.duration * SECOND))
    summary = summarise(Run.over(tables, scenario))
    return report.cpu, summary, f"{found.delivered} of {found.ideal} ideal pairs"


def run() -> None:
    raw = read(SCENARIO)
    simulate(check({**raw, "duration": 20.0}, "bench", Path()), MemorySink())  # compiles the core
    kinds: dict[str, list[float]] = {}
    print("context: 100 hosts, 450 s, seed 1, compilation excluded")
    for number, speed in enumerate(SPEEDS):
        cpu, summary, delivered = measured({**raw, "movement": {**raw["movement"], "speed": [1.0, speed]}})
        goal = f"; the goal is {GOAL:g}" if speed == 10 else ""
        print(f"  100 hosts/km², up to {speed:2g} m/s {cpu:6.1f} CPU s{goal}; {delivered}")
        for kind in summary.sent:
            kinds.setdefault(kind.kind, [0.0] * len(SPEEDS))[number] = kind.bits / 1e6
    cpu, _, delivered = measured({**raw, "area": {"width": DENSE, "height": DENSE}})
    print(f"  400 hosts/km², up to 10 m/s {cpu:6.1f} CPU s; {delivered}")
    print(f"  {'Mbit by kind, up to m/s':<24}" + "".join(f"{speed:8g}" for speed in SPEEDS))
    for name, bits in (*kinds.items(), ("all", [sum(column) for column in zip(*kinds.values(), strict=True)])):
        print(f"  {name:<24}" + "".join(f"{amount:8.1f}" for amount in bits))
    print_costs("context", "flooding")


if __name__ == "__main__":
    run()
