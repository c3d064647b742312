"""Memory over time: 20 nodes that publish and listen for ten minutes, while half of them come and go.

`python -m bench lab-soak` prints the memory of the nodes that stay (RssAnon: what a process has to itself) ten times.
`python -m bench.lab_soak 180 coman` takes 180 seconds, and another protocol. It ends with 1 if something went wrong, or
if memory still grows at the end: by more than `GROWTH` from the middle to the end, in the median over nodes.
"""

import asyncio
import re
import sys
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

from lab.chaos import ChaosReport, listen_for_ever, publish_for_ever, ring
from roamcast.lab.lab import Lab, work_folder
from roamcast.protocols.catalogue import CATALOGUE

NODES: Final = 20
STAYING: Final = range(0, NODES, 2)
"""Every other one: all paths lead over nodes that come and go."""
SECONDS: Final = 600.0
LOOKS: Final = 10
RATE: Final = 0.5
"""Events per second and node: ten per second in all, which all nodes get."""
CHURN: Final = 3.0
"""Seconds between two deaths."""
GROWTH: Final = 2.0
"""MB."""
PARAMETERS: Final[dict[str, dict[str, Any]]] = {"opportunistic": {"capacity": 500}}
"""A cache that is full before half of the time: its content does not count as a leak."""


def memory(pid: int) -> float:
    """MB that a process has to itself."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def _churn(lab: Lab, rng: Random, report: ChaosReport) -> None:
    leaving = [node for node in range(NODES) if node not in STAYING]
    while True:
        await asyncio.sleep(CHURN)
        node = rng.choice(leaving)
        await lab.kill(node)
        report.killed.append(node)
        await asyncio.sleep(rng.random() * CHURN)
        await lab.revive(node)


async def _soak(protocol: str, seconds: float) -> tuple[list[list[float]], ChaosReport]:
    report = ChaosReport([], [set() for _ in range(NODES)], [], [[] for _ in range(NODES)])
    looks: list[list[float]] = []
    with work_folder() as work:
        scenario = ring(NODES, protocol, seconds, seed=1, parameters=PARAMETERS.get(protocol))
        async with Lab(scenario, Path(), work) as lab:
            await lab.populate()
            lab.begin()
            tasks = [asyncio.create_task(_churn(lab, Random(1), report))]
            for node in range(NODES):
                tasks.append(asyncio.create_task(publish_for_ever(lab, node, RATE, report)))
                tasks.append(asyncio.create_task(listen_for_ever(lab, node, report)))
            for look in range(LOOKS):
                await asyncio.sleep(seconds / LOOKS)
                taken = [memory(lab.processes[node].pid) for node in STAYING]
                looks.append(taken)
                delivered = sum(len(report.got[node]) for node in STAYING)
                told = (
                    f"{seconds * (look + 1) / LOOKS:>8.0f}{min(taken):>10.1f}{median(taken):>10.1f}{max(taken):>10.1f}"
                )
                print(f"{told}{len(report.killed):>8}{delivered:>12,d}", flush=True)
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if not isinstance(outcome, asyncio.CancelledError):
                    report.disturbed.append(f"a task raised {outcome!r}")
            report.disturbed += [line for line in lab.report.problems() if _of_staying(line)]
            await lab.stop()
    return looks, report


def _of_staying(line: str) -> bool:
    found = re.match(r"node (\d+)", line)
    return found is None or int(found[1]) in STAYING


def run(seconds: float = SECONDS, protocol: str = "hint") -> bool:
    """Whether all went well."""
    print(
        f"lab-soak: {NODES} nodes in a ring, {protocol}; {len(STAYING)} stay, one of the others dies every {CHURN:g} s"
    )
    print(f"{'s':>8}{'MB, least':>10}{'median':>10}{'most':>10}{'deaths':>8}{'delivered':>12}")
    looks, report = asyncio.run(_soak(protocol, seconds))
    growth = median(end - middle for middle, end in zip(looks[LOOKS // 2 - 1], looks[-1], strict=True))
    print(f"from the middle to the end: {growth:+.1f} MB in the median; disturbed: {report.disturbed or 'nobody'}")
    return growth <= GROWTH and not report.disturbed


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = next((word for word in words if word in CATALOGUE), "hint")
    sys.exit(0 if run(next((float(word) for word in words if word.isdigit()), SECONDS), chosen) else 1)
