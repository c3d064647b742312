"""Statistics over seeds against numbers worked out by hand."""

import json
import math
from typing import Any

import pytest
from pyspark.sql import SparkSession

from roamcast.pipeline.schemas import PAIRED, RUN_MEASURES, RUNS, SUMMARY
from roamcast.pipeline.statistics import paired, summary

VALUES: dict[tuple[int, str], list[float | None]] = {
    # point, variant: values of the seeds 1, 2, 3
    (0, "hint"): [1.0, 2.0, 6.0],
    (0, "gossip"): [2.0, 2.0, 5.0],
    (1, "hint"): [4.0, None, None],
    (1, "gossip"): [1.0, 3.0, None],
}


def planned_and_measured() -> tuple[list[dict[str, Any]], list[tuple[str, str, float | None]]]:
    runs, measured = [], []
    for (point, variant), values in VALUES.items():
        for seed, value in enumerate(values, 1):
            run = f"{variant}-{point}-{seed}"
            axes = json.dumps({"p": point})
            place = {"experiment": "e", "variant": variant, "point": point, "axes": axes, "seed": seed}
            runs.append({"run": run, **place, "scenario": "{}", "folder": "", "estimate": 0.0})
            if value is not None or seed == 2:  # the third seed of a null failed: it has no row
                measured.append((run, "delay", value))
    # The same runs serve another experiment, on their own.
    shared = [row | {"experiment": "f"} for row in runs if row["variant"] == "hint" and row["point"] == 0]
    return runs + shared, measured


def test_intervals_and_differences(spark: SparkSession) -> None:
    planned, measured = planned_and_measured()
    runs, values = spark.createDataFrame(planned, RUNS), spark.createDataFrame(measured, RUN_MEASURES)
    by_variant = summary(runs, values, ["delay"], 3)
    assert by_variant.columns == SUMMARY.names
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
    found = {tuple(row[:5]): list(row[5:]) for row in by_variant.collect()}
    assert found == {key: pytest.approx(figures) for key, figures in expected.items()}

    differences = paired(runs, values, ["delay"], 3)
    assert differences.columns == PAIRED.names
    # hint − gossip: −1, 0, 1 at the first point, so sd 1; 3 at the second
    wide = 4.302653 / math.sqrt(3)
    same = [3, 0.0, 1.0, -wide, wide]
    # In parts of gossip: −1 of 2, 0 of 2, 1 of 5. The squares of −40, 10 and 30 from the mean add up to 2600.
    less = [3, -10.0, math.sqrt(1300), -10 - wide * math.sqrt(1300), -10 + wide * math.sqrt(1300)]
    # In parts of hint: 1 of 1, 0 of 2, −1 of 6; in sixths of 100, 6, 0 and −1.
    sd = 100 / 6 * math.sqrt(((13 / 3) ** 2 + (5 / 3) ** 2 + (8 / 3) ** 2) / 2)
    more = [3, 250 / 9, sd, 250 / 9 - wide * sd, 250 / 9 + wide * sd]
    assert {tuple(row[:6]): list(row[6:]) for row in differences.collect()} == {
        ("e", 0, '{"p": 0}', "hint", "gossip", "delay"): pytest.approx([*same, *less]),
        ("e", 0, '{"p": 0}', "gossip", "hint", "delay"): pytest.approx([*same, *more]),
        ("e", 1, '{"p": 1}', "hint", "gossip", "delay"): [1, 3.0, None, None, None, 1, 300.0, None, None, None],
        ("e", 1, '{"p": 1}', "gossip", "hint", "delay"): [1, -3.0, None, None, None, 1, -75.0, None, None, None],
    }


def test_intervals_of_many_seeds(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.pipeline.statistics._FEW", 2)
    planned, measured = planned_and_measured()
    runs, values = spark.createDataFrame(planned, RUNS), spark.createDataFrame(measured, RUN_MEASURES)
    widths = {
        tuple(row[1:3]): row["high"] and row["high"] - row["mean"]
        for row in summary(runs, values, ["delay"], 3).collect()
    }
    # Two values have the exact quantile; of three, z + … for two degrees of freedom, which are too few for it.
    assert widths["gossip", 1] == pytest.approx(12.706205)
    assert widths["hint", 1] is None
    z = 1.959964
    series = (
        z + (z**3 + z) / 8 + (5 * z**5 + 16 * z**3 + 3 * z) / 384 + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 3072
    )
    assert widths["hint", 0] == pytest.approx(series * math.sqrt(7 / 3), rel=1e-6)


def test_relative_differences_need_a_baseline_worth_the_name(spark: SparkSession) -> None:
    """Of 0 nobody has parts; of tree_connected, neither of less than 0.01."""
    values = {"maodv": [0.0, 0.0099, 0.01, 0.5], "coman": [0.3, 0.3, 0.04, 0.75]}
    planned = [
        {"run": f"{variant}{seed}", "experiment": "e", "variant": variant, "point": 0, "axes": "{}", "seed": seed}
        | {"scenario": "{}", "folder": "", "estimate": 0.0}
        for variant, by_seed in values.items()
        for seed in range(len(by_seed))
    ]
    measured = [
        (f"{variant}{seed}", measure, value)
        for variant, by_seed in values.items()
        for seed, value in enumerate(by_seed)
        for measure in ("tree_connected", "delay")
    ]
    runs, of_runs = spark.createDataFrame(planned, RUNS), spark.createDataFrame(measured, RUN_MEASURES)
    rows = (
        paired(runs, of_runs, ["tree_connected", "delay"], 4, {"tree_connected": 0.01})
        .where("baseline = 'maodv'")
        .collect()
    )
    found = {row["measure"]: (row["n"], row["relative_n"], row["relative_mean"]) for row in rows}
    assert found == {
        "tree_connected": (4, 2, pytest.approx((300 + 50) / 2)),
        "delay": (4, 3, pytest.approx((100 * 0.2901 / 0.0099 + 300 + 50) / 3)),
    }
