"""What carrying documents costs: the default of the paper's evaluation, 120 hosts for 14,000 s with caches of 100.

CPU seconds and peak memory of a run, each in a process of its own, by hops and by medium access; beside them caches
that are first in, first out, and forget what they drop. `python -m bench.opportunistic 1400` runs a shorter time,
`python -m bench.opportunistic ideal 1 1 14000` one case only.
"""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import roamcast.papers
from roamcast.facts.sinks import MemorySink
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario.scenario import check, read

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "opportunistic.toml"
PAPER: Final = 14_000.0
"""s"""
GOALS: Final = {("ideal", 1, True): 20.0, ("ideal", 3, True): 60.0, ("dcf", 1, True): 40.0, ("dcf", 3, True): 120.0}
"""CPU s that the paper's run should take, by medium access, hops, and whether hosts remember what they had."""
USAGE: Final = """usage: python -m bench.opportunistic [SECONDS]
       python -m bench.opportunistic MAC HOPS REMEMBER SECONDS
  MAC       ideal, or dcf (802.11)
  HOPS      how far announces and documents travel: 1 to 8
  REMEMBER  1: hosts remember what they had; 0: they drop what came first, and forget what they dropped
  SECONDS   how long to simulate; without it 14000, as in the paper"""


class Cost(NamedTuple):
    cpu: float
    """s"""
    memory: float
    """At most, MB; with Python, numba and Arrow, and all facts of the run."""
    deliveries: int


def cost(mac: str, scope: int, remember: bool, duration: float) -> Cost:
    """Of one run in this process."""
    load_kernel()
    raw = read(SCENARIO) | {"duration": duration, "cooldown": 0.0}
    raw["mac"]["model"] = mac
    policy = "oldest" if remember else "oldest arrival"  # with "oldest", forgetting changes next to nothing
    raw["protocol"]["parameters"] |= {"scope": scope, "capacity": 100, "remember": remember, "policy": policy}
    facts = MemorySink()
    report = run_scenario(check(raw, "bench", Path()), facts)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(report.cpu, memory, facts.table("deliver").num_rows)


def described(mac: str, scope: int, remember: bool, duration: float, spent: Cost) -> str:
    goal = GOALS.get((mac, scope, remember))
    wanted = "no goal" if goal is None else f"goal {goal * duration / PAPER:.1f}"
    return (
        f"{mac:5} {scope} hop{'s' if scope > 1 else ' '} {'remembering' if remember else 'forgetting '}"
        f" {spent.cpu:6.1f} CPU s ({wanted}), {spent.memory:.0f} MB, {spent.deliveries} deliveries"
    )


def run(duration: float = PAPER) -> None:
    print(f"opportunistic: 120 hosts, {duration:g} s, caches of 100 documents of 50 kB, one run each", flush=True)
    for mac, scope, remember in (*GOALS, ("ideal", 1, False)):
        words = [sys.executable, "-m", "bench.opportunistic", mac, str(scope), str(int(remember)), str(duration)]
        print(" ", subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)


def main(words: list[str]) -> int:
    match words:
        case []:
            run()
        case [seconds] if _is_duration(seconds):
            run(float(seconds))
        case ["ideal" | "dcf" as mac, hops, "0" | "1" as remember, seconds] if hops in tuple(
            "12345678"
        ) and _is_duration(seconds):
            case = mac, int(hops), remember == "1", float(seconds)
            print(described(*case, cost(*case)))
        case _:
            print(USAGE, file=sys.stderr)
            return 2
    return 0


def _is_duration(word: str) -> bool:
    try:
        return 0 < float(word) < float("inf")
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
