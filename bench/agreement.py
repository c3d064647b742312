"""The simulator beside ns-3: does a flood get as far, and how many copies of a frame are received?

The nodes of `simulator.scenario_b`, of which each floods, from hardly any load to more than the air can take. ns-3 gets
our movement, exported as a file of ns-2; its chance is its own. Ours is run with the 10 dB by which a frame must be
stronger to survive, as in ns-2, and with fewer: in ns-3 a frame survives by its error rate.
"""

from pathlib import Path
from statistics import mean
from typing import Final

from bench import ns3
from bench.simulator import flooding_load, flooding_scenario
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as run_scenario

RATES: Final = (0.02, 0.1, 0.25, 0.5, 1.0)
"""Floods of each node per second."""
THRESHOLDS: Final = (10.0, 6.0, 3.0)
"""dB"""
SEEDS: Final = (1, 2, 3)


def run() -> None:
    if (other := ns3.found()) is None:
        return
    print(f"floods of 75 nodes here and in ns-{other.version}, {len(SEEDS)} seeds")
    print(f"{'':>10}{'share of nodes that a flood reaches':^48}{'copies received of a frame':^48}")
    worlds = "".join(f"{f'{threshold:g} dB':>12}" for threshold in THRESHOLDS) + f"{'ns-3':>12}"
    print(f"{'rate':>10}{worlds}{worlds}")
    with ns3.folder() as folder:
        for rate in RATES:
            measured = [_here(rate, threshold) for threshold in THRESHOLDS] + [_in_ns3(other, rate, Path(folder))]
            reached = "".join(f"{share:>12.3f}" for share, _ in measured)
            print(f"{rate:>10g}{reached}" + "".join(f"{copies:>12.2f}" for _, copies in measured), flush=True)


def _here(rate: float, threshold: float) -> tuple[float, float]:
    sent, received = [], []
    for seed in SEEDS:
        facts = MemorySink()
        scenario = flooding_scenario(rate, threshold, seed)
        run_scenario(scenario, facts)
        counted = facts.table("transmit")
        sent.append(sum(counted["packets"].to_pylist()) / scenario.duration)
        received.append(sum(counted["receptions"].to_pylist()) / scenario.duration)
    return _measured(rate, mean(sent), mean(received))


def _in_ns3(other: ns3.Ns3, rate: float, folder: Path) -> tuple[float, float]:
    done = [other.run(flooding_scenario(rate, seed=seed), flooding_load(rate), folder) for seed in SEEDS]
    return _measured(rate, mean(one.sent for one in done), mean(one.received for one in done))


def _measured(rate: float, sent: float, received: float) -> tuple[float, float]:
    """The share of the other nodes that pass a flood on, and the copies received of a frame."""
    nodes = flooding_load(rate).publishers
    return (sent / (nodes * rate) - 1) / (nodes - 1), received / sent
