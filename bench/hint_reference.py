"""Hint-driven routing in the reference scenario of its paper, compared with flooding and gossip.

Two tables of means and standard deviations over the same seeds: the protocols as the paper compares them (its Figures
6 and 7), and the choices it leaves open, one changed at a time. Then the memory of a short and of a long run.
Overhead counts what all nodes sent, beacons included, for each event delivered to a subscriber.
"""

import multiprocessing
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from roamcast.analysis.run import Run
from roamcast.analysis.summary import summarise
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario.scenario import Scenario, check

SEEDS: Final = range(1, 6)
WARMUP: Final = 60.0
MEASURED: Final = 1000.0
PROCESSES: Final = 2


@dataclass(frozen=True)
class Case:
    """One row of a table: what differs from the reference scenario with hint and no credit."""

    label: str
    protocol: str = "hint"
    parameters: dict[str, Any] = field(default_factory=dict)
    radio: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The numbers of one run."""

    delivery: float
    overhead: float
    beacons: float
    """The part of the overhead that carries no event."""
    hops: float
    cpu: float
    """Milliseconds per simulated second."""


PROTOCOLS: Final = (
    Case("flooding", "flooding"),
    *(Case(f"gossip, p = {tenths / 10}", "gossip", {"p": tenths / 10}) for tenths in range(1, 10)),
    *(Case(f"hint, credits = {credits}", parameters={"credits": credits}) for credits in range(6)),
)

CHOICES: Final = (
    Case("the defaults"),  # a spread of 0.03 s
    *(Case(f"spread = {spread} s", parameters={"spread": spread}) for spread in (0.0, 0.003, 0.01, 0.1)),
    Case('suppression = "covered"', parameters={"suppression": "covered"}),
    Case('beaconing = "all"', parameters={"beaconing": "all"}),
    *(Case(f"tolerance = {tolerance}", parameters={"tolerance": tolerance}) for tolerance in (0.0, 0.5)),
    *(Case(f"life = {life}", parameters={"life": life}) for life in (9, 5, 2)),
    *(Case(f"jitter = {jitter}", parameters={"jitter": jitter}) for jitter in (0.1, 0.5)),
    Case("range drawn for each node", radio={"drawn": "node"}),
    Case("both ends in range", radio={"drawn": "node", "ends": "both"}),
    Case("range of 150 m", radio={"range": 150.0}),
)


def reference(case: Case, seed: int, duration: float = WARMUP + MEASURED) -> Scenario:
    raw = {
        "nodes": 100,
        "seed": seed,
        "duration": duration,
        "warmup": WARMUP,
        "area": {"width": 1000.0, "height": 1000.0},
        "movement": {"model": "random-waypoint", "speed": [10.0, 20.0]},
        "radio": {"range": [100.0, 200.0], **case.radio},
        "workload": {
            "subscribers": [{"count": 10, "filter": "true"}],
            "publishers": [{"count": 2, "rate": 0.5, "size": 256}],
        },
        "protocol": {"name": case.protocol, "parameters": case.parameters},
        "record": {"movement": False},
    }
    return check(raw, "bench", Path())


def _outcome(task: tuple[Case, int]) -> Outcome:
    case, seed = task
    facts = MemorySink()
    scenario = reference(case, seed)
    report = run_scenario(scenario, facts)
    found = summarise(Run.over(facts.tables(), scenario))
    assert found.delivery is not None
    assert found.packets_per_pair is not None
    assert found.carrier_packets_per_pair is not None
    assert found.hops_mean is not None
    return Outcome(
        found.delivery,
        found.packets_per_pair,
        found.packets_per_pair - found.carrier_packets_per_pair,
        found.hops_mean,
        1000 * report.cpu / report.simulated,
    )


def _warm_up() -> None:
    """Compiles, or reads the compiled code, so that no measured run does."""
    run_scenario(reference(PROTOCOLS[0], 1, WARMUP + 1), MemorySink())


def _outcomes(cases: Iterable[Case]) -> Iterator[list[Outcome]]:
    """For each case, the numbers of all seeds."""
    _warm_up()  # before the others are made: they would all compile at once
    with multiprocessing.get_context("spawn").Pool(PROCESSES, _warm_up) as pool:
        tasks = [(case, seed) for case in cases for seed in SEEDS]
        outcomes = pool.imap(_outcome, tasks)
        for _ in range(len(tasks) // len(SEEDS)):
            yield [next(outcomes) for _ in SEEDS]


def _print_table(title: str, cases: tuple[Case, ...]) -> None:
    print(f"{title:<28}{'delivery':>16}{'overhead':>16}{'beacons':>9}{'hops':>6}{'CPU ms/s':>10}")
    for case, outcomes in zip(cases, _outcomes(cases), strict=True):
        delivery = _spread([outcome.delivery for outcome in outcomes], 3)
        overhead = _spread([outcome.overhead for outcome in outcomes], 2)
        beacons, hops, cpu = (
            statistics.fmean(values)
            for values in zip(*((outcome.beacons, outcome.hops, outcome.cpu) for outcome in outcomes), strict=True)
        )
        print(f"{case.label:<28}{delivery:>16}{overhead:>16}{beacons:>9.2f}{hops:>6.1f}{cpu:>10.2f}", flush=True)


def _spread(values: list[float], digits: int) -> str:
    return f"{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def _print_memory() -> None:
    """Peak memory of fresh processes that throw all facts away: simulated time alone must not add to it.

    By default the duplicate windows (4,096 events) take more than an hour to fill, and the batches of facts (50,000
    rows a table) hours; with small ones, all that has a bound has reached it long before the shorter run ends.
    """
    for label, window, batch in (("defaults", 4096, 50_000), ("small window and batches", 256, 1000)):
        peaks = ", ".join(f"{_peak(duration, window, batch):.1f} MB for {duration} s" for duration in (2000, 8000))
        print(f"peak memory, {label}: {peaks}")


def _peak(duration: int, window: int, batch: int) -> float:
    program = (
        "import resource\n"
        "from roamcast import trace\n"
        "from bench.hint_reference import *\n"
        f"trace.BATCH = {batch}\n"
        f"case = Case('', parameters={{'window': {window}}})\n"
        f"run_scenario(reference(case, 1, {duration}.0), lambda table, batch: None)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(answer.stdout)


def run() -> None:
    print(f"hint: the reference scenario for {MEASURED:.0f} s after {WARMUP:.0f} s, mean ± deviation of seeds 1 to 5")
    _print_table("protocols", PROTOCOLS)
    print()
    _print_table("hint, one choice changed", CHOICES)
    print()
    _print_memory()
