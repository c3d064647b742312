"""`make bench`: every benchmark, or those named. Times are CPU times; what counts are the ratios within one run."""

import sys

from bench import content_index, hint_reference, measures, simulator, trees

BENCHMARKS = {
    "index": content_index.run,
    "simulator": simulator.run_all,
    "hint": hint_reference.run,
    "trees": trees.run,
    "measures": measures.run,
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
