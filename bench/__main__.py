"""`make bench`: every benchmark, or those named. Times are CPU times; only the ratios within one run count.

Trials are no benchmarks: they take minutes of real time and must end well. They run only when named. `measures
--duckdb` measures the same in DuckDB, and prints the ratios.
"""

import functools
import sys
from collections.abc import Callable

from bench import (
    agreement,
    content_index,
    content_summary,
    context,
    device,
    estimates,
    hint_reference,
    judge,
    lab_chaos,
    lab_parity,
    lab_soak,
    links,
    live,
    live_fuzz,
    live_fuzz_messages,
    live_fuzz_node,
    many_runs,
    measures,
    odmrp,
    one,
    opportunistic,
    opportunistic_choices,
    opportunistic_memory,
    replay,
    roam,
    signatures,
    simulator,
    traces,
    trees,
    trees_table,
)
from bench.power import cuts as power_cuts

BENCHMARKS: dict[str, Callable[[], object]] = {
    "index": content_index.run,
    "summary": content_summary.run,
    "simulator": simulator.run_all,
    "estimates": estimates.run,
    "links": links.run,
    "hint": hint_reference.run,
    "trees": trees.run,
    "odmrp": odmrp.run,
    "opportunistic": opportunistic.run,
    "opportunistic-choices": opportunistic_choices.run,
    "opportunistic-memory": opportunistic_memory.run,
    "context": context.run,
    "measures": measures.run,
    "many-runs": many_runs.run,
    "traces": traces.run,
    "judge": judge.run,
    "replay": replay.run,
    "roam": roam.run,
    "live": live.run,
    "signatures": signatures.run,
    "device": device.run,
}
TRIALS: dict[str, Callable[[], object]] = {
    "agreement": agreement.run,
    "one": one.run,
    "live-fuzz": live_fuzz.run,
    "live-fuzz-messages": live_fuzz_messages.run,
    "live-fuzz-node": live_fuzz_node.run,
    "power-cuts": power_cuts.run,
    "lab-parity": lab_parity.run,
    "lab-chaos": lab_chaos.run,
    "lab-soak": lab_soak.run,
    "trees-table": trees_table.run,
}


_USAGE = """usage: python -m bench [NAME ...]

Runs the benchmarks that are named, or all of them. Times are CPU times; only the ratios within one run count.
"""
_OPTIONS = """
options:
  --ns3       with simulator: the same work in ns-3, if that is installed; --ns3=PATH: in the one installed there
  --one=PATH  with one: the compiled classes of the ONE
  --duckdb    with measures: the same measures in DuckDB
  --large     with replay: a page of 1,000 nodes and a million frames"""


def print_help() -> None:
    print(_USAGE)
    for title, known in (("benchmarks", BENCHMARKS), ("trials, which run only when named", TRIALS)):
        print(f"{title}:")
        for name, run in known.items():
            print(f"  {name:<22} {(sys.modules[run.__module__].__doc__ or '').splitlines()[0]}")
    print(_OPTIONS)


def main(names: list[str]) -> int:
    """Runs what is named; what the options do is said in `print_help`."""
    if "--help" in names or "-h" in names:
        print_help()
        return 0
    known = BENCHMARKS | TRIALS
    for option, name, other in (("--ns3", "simulator", simulator.run_beside_ns3), ("--one", "one", one.run)):
        given = [word for word in names if word == option or word.startswith(f"{option}=")]
        if given:
            names = [word for word in names if word not in given] or [name]
            known[name] = functools.partial(other, given[-1].partition("=")[2] or None)
    if "--duckdb" in names:
        names = [name for name in names if name != "--duckdb"]
        known["measures"] = measures.run_duckdb
    if "--large" in names:
        names = [name for name in names if name != "--large"] or ["replay"]
        known["replay"] = replay.run_large
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark is named {', '.join(unknown)}; `python -m bench --help` lists them", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        known[name]()
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
