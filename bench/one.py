"""Carrying documents, here and in the ONE, whose compiled classes are given by path: `python -m bench one --one=PATH`.

120 hosts walk, everybody wants every document, and keeps it. The ONE gets our movement, exported, and our documents at
our times; each document is addressed to one host and carried by all (its epidemic router), so what it counts as relayed
is what we count as delivered to others. It moves a document as a whole, one at a time from each host, at ticks: the
longer a tick, the fewer fit in. Here documents go in fragments, every one of which is on the air, to all who hear them,
after announces and requests.

CPU seconds, the Java machine included; deliveries stand beside them, since the two do not carry equally many.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

from roamcast.facts.sinks import MemorySink
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.mobility import export
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import Scenario, check

TICKS: Final = (1.0, 0.1)
"""s"""
DURATION: Final = 1000.0
HOSTS: Final = 120
SIZE: Final = 50_000
"""Bytes of a document."""
RANGE: Final = 100.0
MEGABITS: Final = 11


class Carried(NamedTuple):
    """What one simulator did."""

    cpu: float
    """s"""
    deliveries: int

    def line(self, name: str) -> str:
        each = 1e6 * self.cpu / max(1, self.deliveries)
        return f"  {name:<24}{self.cpu:8.2f} CPU s{self.deliveries:10,} deliveries{each:8.0f} µs each"


def scenario(scope: int, duration: float = DURATION, hosts: int = HOSTS) -> Scenario:
    parameters = {"scope": scope, "capacity": 0, "octets": 0, "interval": 15.0, "whole": True}
    raw: dict[str, Any] = {
        "nodes": hosts,
        "duration": duration,
        "area": {"width": 1000.0, "height": 1000.0},
        "movement": {"model": "random-waypoint", "speed": [0.5, 2.0]},
        "radio": {"propagation": "unit-disk", "range": RANGE},
        "mac": {"model": "ideal", "rate": MEGABITS, "basic_rate": MEGABITS},
        "protocol": {"name": "opportunistic", "parameters": parameters},
        "workload": {
            "disjoint": False,
            "subscribers": [{"count": hosts, "filter": "topic >= 0"}],
            "publishers": [
                {
                    "count": hosts,
                    "rate": 0.4 / hosts,
                    "timing": "poisson",
                    "type": "document",
                    "attributes": {"topic": [0]},
                    "size": SIZE,
                }
            ],
        },
    }
    return check(raw, "bench", Path())


def here(wanted: Scenario) -> tuple[Carried, list[tuple[int, int]]]:
    """Our run, and when which host published."""
    facts = MemorySink()
    cpu = simulate(wanted, facts).cpu
    hops: list[int] = facts.table("deliver")["hops"].to_pylist()
    published = facts.table("publish")
    return Carried(cpu, sum(map(bool, hops))), list(
        zip(published["time"].to_pylist(), published["node"].to_pylist(), strict=True)
    )


def in_the_one(classes: Path, wanted: Scenario, documents: list[tuple[int, int]], tick: float) -> Carried:
    with tempfile.TemporaryDirectory(prefix="roamcast-one-") as name:
        folder = Path(name)
        assert wanted.area is not None
        walks = export.taken(wanted.moving.walks(wanted.area, wanted.nodes, wanted.seed, folder), wanted.end)
        moves = export.one(walks, wanted.end, export.ExportOptions())
        (folder / "movement.txt").write_text("".join(f"{line}\n" for line in moves))
        (folder / "events.txt").write_text(
            "".join(
                f"{time / 1e9:.6f} C M{number} {host} {(host + 1) % wanted.nodes} {SIZE}\n"
                for number, (time, host) in enumerate(documents)
            )
        )
        (folder / "one.txt").write_text("".join(f"{key} = {value}\n" for key, value in _settings(wanted, tick).items()))
        before = os.times()
        words = ["java", "-Xmx1G", "-cp", str(classes.absolute()), "core.DTNSim", "-b", "1", "one.txt"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        after = os.times()
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stderr or done.stdout}")
        (report,) = folder.glob("*MessageStatsReport.txt")
        counted = dict(line.split(": ", 1) for line in report.read_text().splitlines() if ": " in line)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Carried(cpu, int(counted["relayed"]))


def _settings(wanted: Scenario, tick: float) -> dict[str, Any]:
    return {
        "Scenario.name": "one",
        "Scenario.simulateConnections": "true",
        "Scenario.updateInterval": tick,
        "Scenario.endTime": wanted.duration,
        "Scenario.nrofHostGroups": 1,
        "radio.type": "SimpleBroadcastInterface",
        "radio.transmitSpeed": MEGABITS * 125_000,
        "radio.transmitRange": RANGE,
        "Group.groupID": "h",
        "Group.nrofHosts": wanted.nodes,
        "Group.movementModel": "ExternalMovement",
        "Group.router": "EpidemicRouter",
        "Group.bufferSize": "2000M",
        "Group.speed": "1, 1",
        "Group.waitTime": "0, 0",
        "Group.nrofInterfaces": 1,
        "Group.interface1": "radio",
        "ExternalMovement.file": "movement.txt",
        "Events.nrof": 1,
        "Events1.class": "ExternalEventsQueue",
        "Events1.filePath": "events.txt",
        "MovementModel.rngSeed": wanted.seed,
        "MovementModel.worldSize": "1000, 1000",
        "Optimization.cellSizeMult": 5,
        "Optimization.randomizeUpdateOrder": "true",
        "Report.nrofReports": 1,
        "Report.report1": "MessageStatsReport",
        "Report.reportDir": ".",
        "Report.warmup": 0,
    }


def run(classes: str | None = None) -> None:
    if classes is None:
        print("one: give the compiled classes of the ONE (github.com/akeranen/the-one): python -m bench one --one=PATH")
        return
    load_kernel()
    print(f"carrying documents of {SIZE // 1000} kB for {DURATION:g} s, {HOSTS} hosts, everybody wants everything")
    ours, documents = here(scenario(1))
    print(ours.line("here, one hop"), flush=True)
    for tick in TICKS:
        theirs = in_the_one(Path(classes), scenario(1), documents, tick)
        print(theirs.line(f"the ONE, ticks of {tick:g} s"), flush=True)
