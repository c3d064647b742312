"""What a tree costs: Table I of the paper on COMAN, 75 nodes for 980 s, with and without its dummy traffic.

CPU seconds of a run, beside those of the same traffic without any tree (flooding, and nobody has anything to say).
"""

import statistics
from pathlib import Path
from typing import Any, Final

import roamcast.papers
from bench.map_cells import print_costs
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario.scenario import check, read

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "coman.toml"
DEFAULT_TRAFFIC: Final = {"rate": 0.5, "size": 256}
SEEDS: Final = (1, 2, 3)


def cpu(protocol: str, background: dict[str, Any] | None) -> float:
    """The median over seeds."""
    raw = {**read(SCENARIO), "protocol": {"name": protocol}}
    if background is not None:
        raw["background"] = background
    taken = [run_scenario(check({**raw, "seed": seed}, "bench", Path()), MemorySink()).cpu for seed in SEEDS]
    return statistics.median(taken)


def run() -> None:
    run_scenario(check({**read(SCENARIO), "duration": 61.0}, "bench", Path()), MemorySink())  # compiles the core
    print(f"trees: Table I of the paper on COMAN, 75 nodes, 980 s, median of {len(SEEDS)} seeds, CPU s per run")
    alone = cpu("flooding", DEFAULT_TRAFFIC)
    print(f"  with 0.5 msg/s a node: no tree {alone:.2f}")
    for protocol in ("maodv", "coman"):
        taken = cpu(protocol, DEFAULT_TRAFFIC)
        print(f"    {protocol:6} {taken:5.2f}, {taken / alone:.1f} times that")
    print("  without traffic")
    for protocol in ("maodv", "coman"):
        print(f"    {protocol:6} {cpu(protocol, None):5.2f}")
    print_costs("maodv", "coman", "flooding")


if __name__ == "__main__":
    run()
