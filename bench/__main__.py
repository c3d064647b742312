"""`make bench`: every benchmark, or those named. Times are CPU times; what counts are the ratios within one run."""

import sys
from collections.abc import Callable

from bench import (
    content_index,
    hint_reference,
    lab_chaos,
    lab_parity,
    live,
    live_fuzz,
    live_fuzz_node,
    measures,
    simulator,
    trees,
)

BENCHMARKS: dict[str, Callable[[], object]] = {
    "index": content_index.run,
    "simulator": simulator.run_all,
    "hint": hint_reference.run,
    "trees": trees.run,
    "measures": measures.run,
    "live": live.run,
    "live-fuzz": live_fuzz.run,
    "live-fuzz-node": live_fuzz_node.run,
    "lab-parity": lab_parity.run,
    "lab-chaos": lab_chaos.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark is named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
