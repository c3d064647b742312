"""A minute of power cuts: every two seconds a random node of a ring of eight is killed with SIGKILL and started again.

`python -m bench lab-chaos [SECONDS]` prints what was acknowledged, lost, delivered and delivered twice, and exits with
1 if a promise was broken (`tests/lab/chaos.py` has them).
"""

import asyncio
import sys
from typing import Final

from lab.chaos import ChaosReport, chaos, ring
from roamcast.protocols.catalogue import CATALOGUE

NODES: Final = 8
INTERVAL: Final = 2.0
RATE: Final = 2.0
"""Events per second and node: in a minute fewer than a node remembers across a crash (1,024)."""
PROTOCOLS: Final = ("flooding", "hint", "coman")


def _tell(protocol: str, report: ChaosReport) -> bool:
    acknowledged, got = (sum(map(len, lists)) for lists in (report.acknowledged, report.got))
    print(
        f"{protocol}: {len(report.killed)} kills; {acknowledged} publications acknowledged, {len(report.lost)} of them "
        f"lost; {got} deliveries, {len(report.repeated)} of them repeated; disturbed: {report.disturbed or 'nobody'}",
        flush=True,
    )
    return not (report.lost or report.repeated or report.disturbed)


def run(seconds: float = 60.0) -> bool:
    """Whether all promises were kept."""
    print(f"chaos: {NODES} nodes in a ring for {seconds:g} s, one killed every {INTERVAL:g} s")
    kept = True
    for protocol in PROTOCOLS:
        if protocol in CATALOGUE:
            scenario = ring(NODES, protocol, seconds, seed=1)
            kept &= _tell(protocol, asyncio.run(chaos(scenario, interval=INTERVAL, rate=RATE)))
    return kept


if __name__ == "__main__":
    sys.exit(0 if run(*map(float, sys.argv[1:])) else 1)
