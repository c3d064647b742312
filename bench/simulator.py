"""The simulator: CPU time per simulated second, and the ratio to the plain core measured in the same run.

A: 100 nodes at 10-20 m/s, two publishers that flood, and a beacon a node every 5 s. B: 75 nodes of which each floods
inside the core. C: as A, with messages of ten fragments. Then A's density with 1,000 and 10,000 nodes, where the cost
of a transmission should hardly grow. With `--ns3`, the work of A and B also in ns-3, where that is installed; with
`--ns3=PATH` in the one that was installed there.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

from msgspec.structs import replace

from bench import ns3
from bench.ns3 import Load
from roamcast.facts.sinks import MemorySink
from roamcast.sim.core import reference
from roamcast.sim.core.interface import Upcall
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.sim.world import CoreMaker


def scenario_a(nodes: int = 100, duration: float = 300.0, size: int = 256) -> Scenario:
    side = 100.0 * nodes**0.5
    return _scenario(
        nodes=nodes,
        duration=duration,
        area={"width": side, "height": side},
        movement={"model": "random-waypoint", "speed": [10.0, 20.0]},
        background={"rate": 0.2, "size": 60, "reach": "neighbours"},
        workload={"subscribers": [{"count": 10}], "publishers": [{"count": 2, "rate": 0.5, "size": size}]},
        record={"movement": False},
    )


def scenario_b() -> Scenario:
    return flooding_scenario(0.5)


def flooding_scenario(rate: float, threshold: float = 10.0, seed: int = 1) -> Scenario:
    """75 nodes, each of which floods `rate` messages a second."""
    return _scenario(
        nodes=75,
        seed=seed,
        duration=100.0,
        area={"width": 1250.0, "height": 1250.0},
        movement={"model": "random-waypoint", "speed": [5.0, 5.0]},
        background={"rate": rate, "size": 256, "reach": "network"},
        radio={"range": 150.0, "threshold": threshold},
    )


def flooding_load(rate: float) -> Load:
    """What the nodes of `flooding_scenario` send."""
    return Load(75, rate, 256)


def scenario_c() -> Scenario:
    return scenario_a(duration=30.0, size=14_000)


def _scenario(**raw: Any) -> Scenario:  # noqa: ANN401  # fields of a scenario
    return check({"radio": {"range": 150.0}, **raw}, "bench", Path())


EQUAL: Final = 3.0
"""dB by which a frame must be stronger than what interferes, for as many to be received as in ns-3."""


class Cost:
    """CPU time of one run; the best of several, since the machine is shared."""

    def __init__(self, scenario: Scenario, core: CoreMaker | None = None, repeat: int = 1) -> None:
        seconds = []
        for _ in range(repeat):
            sink = MemorySink()
            started = process_time()
            run(scenario, sink, make_core=core)
            seconds.append(process_time() - started)
        self.packets = sum(sink.table("transmit")["packets"].to_pylist())
        self.received = sum(sink.table("transmit")["receptions"].to_pylist())
        self.a_second = 1000 * min(seconds) / scenario.duration
        self.a_packet = 1e6 * min(seconds) / self.packets


def run_all() -> None:
    print("simulator: CPU ms a simulated second")
    print(f"{'scenario':<22}{'compiled':>10}{'reference':>11}{'ratio':>7}{'µs a transmission':>19}")
    run(scenario_b(), MemorySink())  # compiles or reads the compiled code
    for name, scenario, compiled in (
        ("A  100 nodes, flooding", scenario_a(), Cost(scenario_a(), repeat=3)),
        ("B  75 nodes, all flood", scenario_b(), Cost(scenario_b(), repeat=3)),
        ("C  as A, long messages", scenario_c(), Cost(scenario_c(), repeat=3)),
    ):
        plain = Cost(scenario, reference.Core)
        ratio = plain.a_second / compiled.a_second
        print(f"{name:<22}{compiled.a_second:>10.2f}{plain.a_second:>11.1f}{ratio:>7.1f}{compiled.a_packet:>19.1f}")
    _print_growth()
    _print_shares()
    _print_start()
    _print_memory()


def _print_growth() -> None:
    """Set-up and steady state apart, from runs of two lengths: neither should take longer per node in a large network.

    What a flood costs does: it reaches more nodes. So the steady state is told per transmission too.
    """
    print(f"{'A, growing':<22}{'set-up, s':>11}{'µs a node':>11}{'ms a second':>13}{'µs a transmission':>19}")
    for nodes in (100, 1_000, 3_000, 10_000, 30_000):
        short, long = Cost(scenario_a(nodes, 5.0), repeat=2), Cost(scenario_a(nodes, 15.0), repeat=2)
        whole = [cost.a_packet * cost.packets / 1e6 for cost in (short, long)]
        steady = (whole[1] - whole[0]) / 10
        set_up, each = whole[0] - 5 * steady, 10 * steady / (long.packets - short.packets)
        line = f"{set_up:>11.2f}{1e6 * set_up / nodes:>11.0f}{1000 * steady:>13.1f}{1e6 * each:>19.1f}"
        print(f"{f'   {nodes:,} nodes':<22}{line}", flush=True)


def _print_shares() -> None:
    """Where the time goes: in the compiled core, crossings included, or in the world and the brokers around it."""
    from roamcast.sim.core import kernel  # noqa: PLC0415  # not before a run is asked for: loading it takes a second

    class Timed(kernel.Core):
        cpu, calls = 0.0, 0

        def advance(self, until: int) -> Upcall:
            started = process_time()
            upcall = super().advance(until)
            Timed.cpu += process_time() - started
            Timed.calls += 1
            return upcall

    for nodes, duration in ((100, 300.0), (1_000, 30.0), (10_000, 10.0)):
        Timed.cpu, Timed.calls = 0.0, 0
        cost = Cost(scenario_a(nodes, duration), Timed)
        in_core = 1e6 * (Timed.cpu - Timed.calls * _clock()) / cost.packets
        around = cost.a_packet - 1e6 * Timed.cpu / cost.packets
        print(
            f"A  {nodes:,} nodes, µs per transmission: {in_core:.1f} in the core, {around:.1f} around it, "
            f"{Timed.calls / cost.packets:.2f} crossings"
        )


def _clock() -> float:
    """What asking for the time takes, s."""
    started = process_time()
    for _ in range(10_000):
        process_time()
    return (process_time() - started) / 10_000


_RUNS_BESIDE: Final = 9
"""Our runs after each of ns-3, which takes a hundred times as long and so has the machine's ups and downs in it."""


def run_beside_ns3(prefix: str | None = None) -> None:
    """With the ns-3 at a path, or the installed one; also with the threshold with which both do the same work: with the
    default more frames are lost here (`docs/model.md`)."""
    if (other := ns3.found(prefix)) is None:
        return
    run(scenario_b(), MemorySink())  # compiles or reads the compiled code
    with ns3.folder() as place:
        folder = Path(place)
        print(f"simulator and ns-{other.version} ({other.built(folder)})")
        print(f"{'':<26}{'CPU ms per s':^18}{'':>7}{'sent per s':^16}{'received per s':^16}{'µs per copy':^16}{'':>7}")
        pairs = f"{'here':>8}{'ns-3':>8}" * 3
        print(f"{'':<26}{'here':>9}{'ns-3':>9}{'ratio':>7}{pairs}{'ratio':>7}")
        beside = Load(2, 0.5, _message_size(scenario_a()), beacons=0.2)
        for title, scenario, load in (
            ("A  100 nodes, flooding", scenario_a(), beside),
            ("B  75 nodes, all flood", scenario_b(), flooding_load(0.5)),
        ):
            equal = replace(scenario, radio=replace(scenario.radio, threshold=EQUAL))
            scenarios = {title: scenario, f"   captured at {EQUAL:g} dB": equal}
            theirs: list[ns3.Done] = []
            ours: dict[str, list[Cost]] = {title: [] for title in scenarios}
            for _ in range(3):  # alternately, and the median of each, since the machine is shared
                theirs.append(other.run(scenario, load, folder))
                for name, one in scenarios.items():
                    ours[name] += [Cost(one) for _ in range(_RUNS_BESIDE)]
            for name, one in scenarios.items():
                print(_beside(name, one, ours[name], theirs), flush=True)


def _beside(title: str, scenario: Scenario, ours: list[Cost], theirs: list[ns3.Done]) -> str:
    """A row of the table. What both send and receive stands there since it must be equal for a fair ratio."""
    here, there = median(cost.a_second for cost in ours), median(done.cpu for done in theirs)
    sent, received = ours[0].packets / scenario.duration, ours[0].received / scenario.duration
    each, of_each = 1000 * here / received, 1000 * there / theirs[0].received
    return (
        f"{title:<26}{here:>9.2f}{there:>9.1f}{there / here:>7.0f}{sent:>8.0f}{theirs[0].sent:>8.0f}"
        f"{received:>8.0f}{theirs[0].received:>8.0f}{each:>8.2f}{of_each:>8.1f}{of_each / each:>7.0f}"
    )


def _message_size(scenario: Scenario) -> int:
    """Bytes of a flooded message of the protocol: the event and what goes with it."""
    sink = MemorySink()
    run(replace(scenario, duration=20.0, record=replace(scenario.record, frames=True)), sink)
    sizes: list[int] = sink.table("frame")["size"].to_pylist()
    return max(sizes)


def _print_start() -> None:
    """How long a fresh process with a warm cache takes to its first run's end."""
    program = "from bench.simulator import *; run(scenario_a(100, 1.0), MemorySink())"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-c", program], check=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"a fresh process, cache warm, with a run of 1 s: {spent:.2f} s CPU")


def _print_memory() -> None:
    """Peak memory of a process that simulates 10,000 nodes, for a short and for a longer time, and 100,000."""
    for nodes, duration in ((10_000, 5), (10_000, 30), (100_000, 2)):
        program = (
            "from bench.simulator import *\n"
            f"run(scenario_a({nodes}, {duration}.0), lambda table, batch: None)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
        )
        answer = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ}
        )
        print(f"{nodes:,} nodes for {duration} s: {answer.stdout.strip()} MB at the peak")
