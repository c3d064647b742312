"""Whether two folders of the same campaign have the same measures: for changes that must not change a number.

    python -m bench.same_values BEFORE AFTER

Values that differ by no more than 1e-12 of themselves are the same: the order of a sum may change. What only one of the
folders has is listed, and does not count as a difference. Exits with 1 if a number differs.
"""

import sys
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

TOLERANCE: Final = 1e-12
KEYS: Final = {
    "run": ("run", "measure"),
    "summary": ("experiment", "variant", "point", "measure"),
    "paired": ("experiment", "point", "variant", "baseline", "measure"),
}
_SHOWN: Final = 10


def compare(before: Path, after: Path) -> int:
    """Prints what differs; returns how many numbers do."""
    differing = 0
    for name, keys in KEYS.items():
        old, new = (_rows(folder / "measures" / f"{name}.parquet", keys) for folder in (before, after))
        both = [
            (key, column, old[key][column], new[key][column]) for key in old.keys() & new.keys() for column in old[key]
        ]
        wrong = [one for one in both if not _same(one[2], one[3])]
        print(f"{name}: {len(both) - len(wrong)} of {len(both)} values are the same")
        for key, column, was, now in sorted(wrong, key=str)[:_SHOWN]:
            print(f"  {', '.join(map(str, key))}: {column} {was} -> {now}")
        for folder, alone in ((before, old.keys() - new.keys()), (after, new.keys() - old.keys())):
            if alone:
                names = sorted({str(key[-1]) for key in alone})
                print(f"  only in {folder}: {', '.join(names[:_SHOWN])}{' …' * (len(names) > _SHOWN)}")
        differing += len(wrong)
    return differing


def _rows(file: Path, keys: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = pq.read_table(file, partitioning=None).to_pylist()
    return {tuple(row[key] for key in keys): row for row in rows}


def _same(old: Any, new: Any) -> bool:  # noqa: ANN401  # a value of a table
    if isinstance(old, float) and isinstance(new, float):
        return abs(old - new) <= TOLERANCE * max(1.0, abs(old), abs(new))
    return bool(old == new)


if __name__ == "__main__":
    sys.exit(compare(*map(Path, sys.argv[1:3])) > 0)
