"""`python -m bench power-cuts`: the store of a node, and its facts, through a thousand losses of power.

`tests/live/power/cuts.py` says what each life must find. With `sync = "normal"`, which promises less, the same trial
must lose something: that shows that the disk bites.

`python -m bench.power.cuts 300 7` cuts 300 times, with the seed 7.
"""

import sys
import tempfile
from pathlib import Path

from live.power.cuts import cut_power
from live.power.mount import lacking, mounted

CUTS = 1000
SEED = 1


def run(cuts: int = CUTS, seed: int = SEED) -> int:
    reason = lacking()
    if reason:
        print(f"power-cuts: not run: {reason}")
        return 2
    with tempfile.TemporaryDirectory() as place, mounted(Path(place)) as power:
        full = cut_power(Path(place), power, cuts, seed)
        told = f"{full.cuts} cuts with sync = full, {full.acknowledged} publications acknowledged"
        print(f"power-cuts: {told}: {len(full.lost)} things lost")
        for line in full.lost[:20]:
            print(f"  {line}")
        normal = cut_power(Path(place), power, cuts // 10, seed, sync="normal")
        print(f"power-cuts: {normal.cuts} cuts with sync = normal, which promises less: {len(normal.lost)} lost")
    return 1 if full.lost or not normal.lost else 0


if __name__ == "__main__":
    raise SystemExit(run(*map(int, sys.argv[1:3])))
