"""Statistics over seeds against numbers worked out by hand."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from roamcast.statistics.over_seeds import DESCRIBED, INTERVAL, PLAN_COLUMNS, described, pooled

VALUES: dict[tuple[int, str], list[float | None]] = {
    # point, variant: values of the seeds 1, 2, 3
    (0, "hint"): [1.0, 2.0, 6.0],
    (0, "gossip"): [2.0, 2.0, 5.0],
    (1, "hint"): [4.0, None, None],
    (1, "gossip"): [1.0, 3.0, None],
}


def table(rows: Sequence[Any], *columns: str) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])


def over_seeds(
    planned: list[tuple[Any, ...]], measured: Sequence[tuple[str, str, float | None]], **floors: float
) -> dict[str, list[dict[str, Any]]]:
    """The rows of variants and those of pairs."""
    tables = described(table(planned, *PLAN_COLUMNS), table(measured, "run", "measure", "value"), floors)
    whole = pa.concat_tables(tables)
    assert whole.schema == DESCRIBED
    rows = whole.to_pylist()
    return {
        "summary": [row for row in rows if row["baseline"] is None],
        "paired": [row for row in rows if row["baseline"] is not None],
    }


def by_place(rows: list[dict[str, Any]], *place: str, prefixes: tuple[str, ...] = ("",)) -> dict[Any, list[Any]]:
    names = [f"{prefix}{name}" for prefix in prefixes for name in INTERVAL.names]
    return {tuple(row[name] for name in place): [row[name] for name in names] for row in rows}


def planned_and_measured() -> tuple[list[tuple[Any, ...]], list[tuple[str, str, float | None]]]:
    runs, measured = [], []
    for (point, variant), values in VALUES.items():
        for seed, value in enumerate(values, 1):
            run = f"{variant}-{point}-{seed}"
            runs.append((run, "e", variant, point, json.dumps({"p": point}), seed))
            if value is not None or seed == 2:  # the third seed of a null failed: it has no row
                measured.append((run, "delay", value))
    # The same runs serve another experiment, on their own.
    shared = [(run, "f", *place) for run, _, *place in runs if place[:2] == ["hint", 0]]
    return runs + shared, measured


def test_intervals_and_differences() -> None:
    found = over_seeds(*planned_and_measured())
    # sd of 1, 2, 6: √((4 + 1 + 9) / 2) = √7; t for two degrees of freedom: 4.302653
    margin = 4.302653 * math.sqrt(7 / 3)
    hint = [3, 3.0, math.sqrt(7), 3 - margin, 3 + margin]
    other = 4.302653  # 2, 2, 5: sd √3, over √3
    two = 12.706205  # 1, 3: sd √2, over √2
    expected = {
        ("e", "hint", 0, '{"p": 0}', "delay"): hint,
        ("f", "hint", 0, '{"p": 0}', "delay"): hint,
        ("e", "gossip", 0, '{"p": 0}', "delay"): [3, 3.0, math.sqrt(3), 3 - other, 3 + other],
        ("e", "hint", 1, '{"p": 1}', "delay"): [1, 4.0, None, None, None],
        ("e", "gossip", 1, '{"p": 1}', "delay"): [2, 2.0, math.sqrt(2), 2 - two, 2 + two],
    }
    of_variants = by_place(found["summary"], "experiment", "variant", "point", "axes", "measure")
    assert of_variants == {key: pytest.approx(figures) for key, figures in expected.items()}

    # hint − gossip: −1, 0, 1 at the first point, so sd 1; 3 at the second
    wide = 4.302653 / math.sqrt(3)
    same = [3, 0.0, 1.0, -wide, wide]
    # In parts of gossip: −1 of 2, 0 of 2, 1 of 5. The squares of −40, 10 and 30 from the mean add up to 2600.
    less = [3, -10.0, math.sqrt(1300), -10 - wide * math.sqrt(1300), -10 + wide * math.sqrt(1300)]
    # In parts of hint: 1 of 1, 0 of 2, −1 of 6; in sixths of 100, 6, 0 and −1.
    sd = 100 / 6 * math.sqrt(((13 / 3) ** 2 + (5 / 3) ** 2 + (8 / 3) ** 2) / 2)
    more = [3, 250 / 9, sd, 250 / 9 - wide * sd, 250 / 9 + wide * sd]
    place = ("experiment", "point", "axes", "variant", "baseline", "measure")
    assert by_place(found["paired"], *place, prefixes=("", "relative_")) == {
        ("e", 0, '{"p": 0}', "hint", "gossip", "delay"): pytest.approx([*same, *less]),
        ("e", 0, '{"p": 0}', "gossip", "hint", "delay"): pytest.approx([*same, *more]),
        ("e", 1, '{"p": 1}', "hint", "gossip", "delay"): [1, 3.0, None, None, None, 1, 300.0, None, None, None],
        ("e", 1, '{"p": 1}', "gossip", "hint", "delay"): [1, -3.0, None, None, None, 1, -75.0, None, None, None],
    }


def test_intervals_of_many_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.statistics.over_seeds._EXACT", 2)
    rows = over_seeds(*planned_and_measured())["summary"]
    widths = {(row["variant"], row["point"]): row["high"] and row["high"] - row["mean"] for row in rows}
    # Two values have the exact quantile; of three, z + … for two degrees of freedom, which are too few for it.
    assert widths["gossip", 1] == pytest.approx(12.706205)
    assert widths["hint", 1] is None
    z = 1.959964
    series = (
        z + (z**3 + z) / 8 + (5 * z**5 + 16 * z**3 + 3 * z) / 384 + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 3072
    )
    assert widths["hint", 0] == pytest.approx(series * math.sqrt(7 / 3), rel=1e-6)


def test_relative_differences_need_a_baseline_worth_the_name() -> None:
    """Of 0 nobody has parts; of tree_connected, neither of less than 0.01."""
    values = {"maodv": [0.0, 0.0099, 0.01, 0.5], "coman": [0.3, 0.3, 0.04, 0.75]}
    seeds = [(variant, seed, value) for variant, by_seed in values.items() for seed, value in enumerate(by_seed)]
    planned = [(f"{variant}{seed}", "e", variant, 0, "{}", seed) for variant, seed, _ in seeds]
    measured = [
        (f"{variant}{seed}", name, value) for variant, seed, value in seeds for name in ("tree_connected", "delay")
    ]
    rows = over_seeds(planned, measured, tree_connected=0.01)["paired"]
    found = {
        row["measure"]: (row["n"], row["relative_n"], row["relative_mean"])
        for row in rows
        if row["baseline"] == "maodv"
    }
    assert found == {
        "tree_connected": (4, 2, pytest.approx((300 + 50) / 2)),
        "delay": (4, 3, pytest.approx((100 * 0.2901 / 0.0099 + 300 + 50) / 3)),
    }


def test_variants_are_compared_where_they_share_seeds() -> None:
    """The seeds of a point may be others than those of the next, and a variant need not be at every point."""
    planned = [("a", "e", "x", 0, "{}", 1), ("b", "e", "x", 0, "{}", 2), ("c", "e", "y", 0, "{}", 2)]
    planned += [("d", "e", "x", 1, "{}", 7), ("f", "e", "y", 2, "{}", 7)]
    found = over_seeds(
        planned, [(run, "m", value) for run, value in zip("abcdf", (1.0, 2.0, 5.0, 3.0, 4.0), strict=True)]
    )
    assert by_place(found["summary"], "variant", "point").keys() == {("x", 0), ("y", 0), ("x", 1), ("y", 2)}
    differences = by_place(found["paired"], "variant", "baseline", "point")
    assert {place: figures[:2] for place, figures in differences.items()} == {
        ("x", "y", 0): [1, -3.0],
        ("y", "x", 0): [1, 3.0],
    }


def test_many_measures_have_the_statistics_that_each_has_alone() -> None:
    """To the last bit, however measures are divided into tasks: sums go through the seeds in their order."""
    planned = [(f"{seed:02}{v}", "e", v, 0, "{}", seed) for seed in range(20) for v in ("x", "y")]
    values = {
        name: [(run, name, math.sin(place * k)) for place, (run, *_) in enumerate(planned)]
        for k, name in enumerate("abc", 1)
    }
    together = over_seeds(planned, [row for rows in values.values() for row in rows])
    for rows in values.values():
        alone = over_seeds(planned, rows[::-1])
        assert all(row in together[kind] for kind in together for row in alone[kind])
    first = values["a"][:40:2]
    total = 0.0
    for _, _, value in first:
        total += value
    (of_x,) = (row for row in together["summary"] if (row["variant"], row["measure"]) == ("x", "a"))
    assert of_x["mean"] == total / 20


def test_a_pooled_ratio_is_that_of_the_sums() -> None:
    """Runs 1 and 2 differ only in their seed: 1 of 2 and 3 of 6, pooled 4 of 8; the third run is alone, the fourth has
    nothing to divide by, the fifth no value."""
    plan = pa.table({"run": ["1", "2", "1", "3", "4", "5", "6"], "same": [0, 0, 0, 1, 2, 3, 3]})
    values = {"1": (1.0, 2.0), "2": (3.0, 6.0), "3": (1.0, 4.0), "4": (0.0, 0.0), "5": (None, 3.0)}
    rows = [
        (run, name, value) for run, pair in values.items() for name, value in zip(("part", "whole"), pair, strict=True)
    ]
    found = pooled(plan, table(rows, "run", "measure", "value"), "share", "part", "whole").to_pylist()
    assert [row["measure"] for row in found] == ["share"] * 5
    # 1/2 + (1 − 2/2) / 4 and 1/2 + (3 − 6/2) / 4
    assert {row["run"]: row["value"] for row in found} == {"1": 0.5, "2": 0.5, "3": 0.25, "4": None, "5": None}
