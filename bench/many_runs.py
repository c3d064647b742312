"""Many tiny runs: CPU seconds for each, simulated and measured, and how many files they are.

`python -m bench.many_runs` simulates and measures 200 runs of a second; `python -m bench.many_runs 10000` takes ten
thousand. What a campaign costs beside its simulations is what this prints: starting processes, writing and reading many
small files, planning.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.cpu import cpu_seconds
from roamcast.campaign.define.experiment import experiment
from roamcast.campaign.define.plan import plan
from roamcast.campaign.folder.survey import settled
from roamcast.campaign.folder.verify import verify
from roamcast.pipeline.measure import measure
from roamcast.pipeline.session import session
from roamcast.pipeline.simulate import simulate

RUNS: Final = 200
MEASURES: Final = ("delivery", "overhead", "delay_p95")
_TINY: Final[dict[str, Any]] = {
    "name": "many",
    "scenario": {
        "nodes": 5,
        "duration": 1,
        "area": {"width": 100, "height": 100},
        "workload": {"subscribers": [{"count": 2}], "publishers": [{"count": 1, "rate": 5}]},
    },
    "variants": [{"name": "flooding"}],
}


def run(runs: int = RUNS) -> None:
    print(f"many runs: {runs:,} of a second, flooding among 5 nodes, on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as name, session() as spark:
        folder = Path(name)
        spark.range(1).count()
        warm = plan([experiment(_TINY | {"seeds": 4}, "many.toml", folder)])
        _timed("once in a session", 4, lambda: simulate(spark, warm, folder / "warm"))
        planned = plan([experiment(_TINY | {"seeds": runs}, "many.toml", folder)])
        _timed("simulated", runs, lambda: simulate(spark, planned, folder / "out"))
        _timed("measured", runs, lambda: measure(spark, folder / "out", MEASURES))
        _timed("nothing to do", runs, lambda: settled(planned, folder / "out"))
        _timed("verified", runs, lambda: verify(folder / "out"))
        files = [path for path in (folder / "out").rglob("*") if path.is_file()]
        print(f"  {len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")


def _timed(what: str, runs: int, work: Any) -> None:  # noqa: ANN401  # any function
    begin, before = time.perf_counter(), cpu_seconds()
    work()
    wall, cpu = time.perf_counter() - begin, cpu_seconds() - before
    print(f"  {what}: {cpu:.1f} CPU s, {1000 * cpu / runs:.1f} ms per run; {wall:.1f} s")


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
