"""What carrying documents costs: the default of the paper's evaluation, 120 hosts for 14,000 s with caches of 100.

CPU seconds and peak memory of a run, each in a process of its own, by hops and by medium access; what forgetting costs
beside it. `python -m bench.opportunistic 1400` runs a shorter time.
"""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

import roamcast.papers
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario import check, read

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "opportunistic.toml"
CASES: Final = (
    ("ideal", 1, True, 20.0),
    ("ideal", 3, True, 60.0),
    ("dcf", 1, True, 40.0),
    ("dcf", 3, True, 120.0),
    ("ideal", 1, False, None),
)
"""Medium access, hops, whether hosts remember what they had, and the CPU s that it should take."""


def cost(mac: str, scope: int, remember: bool, duration: float) -> tuple[float, float, int]:
    """CPU s, MB at most, and deliveries, of one run in this process."""
    raw = read(SCENARIO)
    raw["mac"]["model"] = mac
    raw["protocol"]["parameters"] |= {"scope": scope, "capacity": 100, "remember": remember}
    run_scenario(check({**raw, "duration": 20.0}, "bench", Path()), MemorySink())  # compiles the core
    facts = MemorySink()
    report = run_scenario(check({**raw, "duration": duration}, "bench", Path()), facts)
    return report.cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, facts.table("deliver").num_rows


def run(duration: float = 14_000.0) -> None:
    print(f"opportunistic: 120 hosts, {duration:g} s, caches of 100 documents of 50 kB, one run each")
    for mac, scope, remember, goal in CASES:
        words = [sys.executable, "-m", "bench.opportunistic", mac, str(scope), str(int(remember)), str(duration)]
        cpu, memory, delivered = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        wanted = f"; the goal is {goal * duration / 14_000:.0f}" if goal is not None else ""
        print(
            f"  {mac:5} {scope} hop{'s' if scope > 1 else ' '} {'' if remember else 'forgetting '}"
            f"{float(cpu):6.1f} CPU s{wanted}, {float(memory):.0f} MB, {delivered} deliveries"
        )


if __name__ == "__main__":
    if len(sys.argv) == 5:
        print(*cost(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1", float(sys.argv[4])))
    else:
        run(*map(float, sys.argv[1:2]))
