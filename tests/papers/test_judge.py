"""Verdicts on literal tables.

Most tables have two seeds, m - d and m + d, for which everything can be done by hand: the standard deviation is d √2,
and the 95 % t-interval m ± 12.706 d √2 / √2 = m ± 12.706 d.
"""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from papers.known import MEASURED
from roamcast.campaign.folder.results import read_values
from roamcast.errors import RoamcastError
from roamcast.papers.checks import KINDS
from roamcast.papers.claims import WANTS, Claim, Term
from roamcast.papers.judge import judge
from roamcast.papers.terms import ClaimedCurves
from roamcast.papers.verdict import CheckResult
from roamcast.statistics.curves import VALUES
from roamcast.statistics.evidence import Sample

Seeds = tuple[float, ...]
Line = dict[float, Seeds] | Seeds
"""Values by seed, by place on the axis x; or those of a level line."""

HOLDS, FAILS, OPEN, MISSING = "holds", "does not hold", "inconclusive", "not measured"


def table(**curves: Line) -> pa.Table:
    """The values of one experiment; a name is variant_measure."""
    rows = []
    for name, line in curves.items():
        variant, _, measure = name.partition("_")
        points: list[tuple[dict[str, float], Seeds]] = (
            [({"x": x}, values) for x, values in line.items()] if isinstance(line, dict) else [({}, line)]
        )
        for number, (axes, values) in enumerate(points):
            rows += [
                ("e", variant, number, json.dumps(axes), seed, measure, value)
                for seed, value in enumerate(values, start=1)
            ]
    return pa.table(dict(zip(VALUES.names, map(list, zip(*rows, strict=True)), strict=True)), schema=VALUES)


def term(name: str, **place: Any) -> dict[str, Any]:  # noqa: ANN401  # as in TOML
    variant, _, measure = name.partition("_")
    return {"experiment": "e", "variant": variant, "measure": measure, **place}


def result(kind: str, values: pa.Table, of: dict[str, Any], **more: Any) -> CheckResult:  # noqa: ANN401  # as in TOML
    """Of numbers that are exact, unless said otherwise: two seeds that say the same are enough."""
    check = {"says": "so", "kind": kind, "of": of, "exact": True, **more}
    claim = msgspec.convert({"id": "T1", "paper": "p", "figure": "1", "text": "t", "checks": [check]}, Claim)
    (verdict,) = judge([claim], values, MEASURED)
    return verdict.checks[0]


# --- Estimates ------------------------------------------------------------------------------------------------------


def test_a_sample_has_the_mean_and_its_t_interval() -> None:
    def of(*values: float) -> tuple[float, ...]:
        return Sample(values).interval(0.95)

    assert of(3.0, 5.0) == pytest.approx((4, 4 - 12.706, 4 + 12.706), abs=1e-3)
    # 1, 2, 3: deviation 1, t = 4.303 for 2 degrees of freedom.
    assert of(1.0, 2.0, 3.0) == pytest.approx((2, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=1e-3)
    # Ten values 1 … 10: deviation 3.02765, t = 2.262 for 9.
    half = 2.262 * 3.02765 / 10**0.5
    assert of(*map(float, range(1, 11))) == pytest.approx((5.5, 5.5 - half, 5.5 + half), abs=1e-3)


def test_shares_that_are_the_same_with_all_of_many_seeds_decide() -> None:
    """The 20th root of 0.025 is 0.832."""
    values = table(a_delivery=(1.0,) * 20, b_delivery=(1.0,) * 20, a_overhead=(3.0,) * 20)
    found = result("about", values, term("a_delivery"), value=0.75, exact=False)
    assert (found.outcome, found.measured) == (FAILS, "1 (0.832 to 1)")
    found = result("at least", values, term("a_delivery"), value=0.8, exact=False)
    assert (found.outcome, found.measured) == (HOLDS, "1 (0.832 to 1)")
    found = result("at least", values, term("a_delivery"), value=0.9, exact=False)
    assert (found.outcome, found.measured) == (OPEN, "1 (0.832 to 1)")
    found = result("not below", values, term("a_delivery"), than=term("b_delivery"), exact=False)
    assert (found.outcome, found.measured) == (OPEN, "1 against 1, +0 (−0.168 to +0.168)")
    found = result("about", values, term("a_overhead"), value=9.0, exact=False)
    assert (found.outcome, found.measured) == (OPEN, "3 (no interval)")


def test_one_seed_says_nothing_about_the_interval() -> None:
    one = table(a_delivery={0: (0.7,)})
    assert result("about", one, term("a_delivery"), value=0.7, exact=False).outcome == OPEN
    rising = table(a_delivery={0: (0.1,), 1: (0.9,)})
    assert result("rises", rising, term("a_delivery"), exact=False).outcome == OPEN


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        ((0.68, 0.68), HOLDS),  # 15 % below 0.8
        ((0.72, 0.72), HOLDS),  # 10 %: the border counts
        ((0.73, 0.73), FAILS),
        ((0.63, 0.63), FAILS),
        ((0.8, 0.8), FAILS),
        ((0.67, 0.69), OPEN),  # 15 % ± 12.706 · 1.25 %
    ],
)
def test_a_fall_by_about_a_share_of_the_first_point(last: Seeds, outcome: str) -> None:
    """Within 0.05 of 0.15, relative to the first."""
    values = table(a_delivery={1: (0.8, 0.8), 24: last})
    found = result("falls by about", values, term("a_delivery"), value=0.15)
    assert found.outcome == outcome


# --- Against a value ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "measure", "value", "seeds", "outcome"),
    [
        ("about", "delivery", 0.7, (0.74, 0.74), HOLDS),
        ("about", "delivery", 0.7, (0.76, 0.76), FAILS),
        ("about", "delivery", 0.7, (0.74, 0.742), OPEN),  # 0.741 ± 0.0127, and the edge is 0.75
        ("about", "delivery", 0.7, (0.759, 0.761), OPEN),  # 0.76 ± 0.0127
        ("about", "overhead", 2.5, (2.87, 2.87), HOLDS),  # to 2.875
        ("about", "overhead", 2.5, (2.12, 2.12), FAILS),  # from 2.125
        ("about", "overhead", 2.5, (2.86, 2.87), OPEN),
        ("above", "delivery", 0.85, (0.86, 0.86), HOLDS),
        ("above", "delivery", 0.85, (0.85, 0.85), FAILS),
        ("above", "delivery", 0.85, (0.86, 0.87), OPEN),  # 0.865 ± 0.064
        ("below", "delivery", 1.0, (0.99, 0.99), HOLDS),
        ("below", "delivery", 1.0, (1.0, 1.0), FAILS),
        ("below", "delivery", 1.0, (0.98, 0.99), OPEN),
        ("at least", "overhead", 5.0, (5.0, 5.0), HOLDS),
        ("at least", "overhead", 5.0, (4.9, 4.9), FAILS),
        ("at least", "overhead", 5.0, (5.0, 5.1), OPEN),
        ("at most", "overhead", 5.0, (5.0, 5.0), HOLDS),
        ("at most", "overhead", 5.0, (5.1, 5.1), FAILS),
        ("at most", "overhead", 5.0, (4.9, 5.0), OPEN),
    ],
)
def test_a_level(kind: str, measure: str, value: float, seeds: Seeds, outcome: str) -> None:
    line: Line = {0: seeds}
    values = table(**{f"a_{measure}": line})
    assert result(kind, values, term(f"a_{measure}"), value=value).outcome == outcome


def test_every_point_counts_and_the_worst_is_shown() -> None:
    values = table(a_delivery={1: (0.9, 0.9), 2: (0.8, 0.8), 3: (0.7, 0.7), 4: (0.85, 0.87)})
    found = result("above", values, term("a_delivery"), value=0.85)
    assert (found.outcome, found.measured) == (FAILS, "at 1 of 4 places, the tightest x = 3: 0.7 (0.7 to 0.7)")
    found = result("above", values, term("a_delivery", at={"x": 1}), value=0.85)
    assert (found.outcome, found.measured) == (HOLDS, "x = 1: 0.9 (0.9 to 0.9)")


def test_only_the_points_where_another_measure_is_surely_above() -> None:
    delivery: Line = {1: (0.3, 0.3), 2: (0.49, 0.52), 3: (0.7, 0.7)}
    values = table(a_delivery=delivery, a_overhead={1: (2.0, 2.0), 2: (3.0, 3.0), 3: (6.0, 6.0)})
    where = {"measure": "delivery", "above": 0.5}
    found = result("at least", values, term("a_overhead"), value=5.0, where=where)
    assert (found.outcome, found.measured) == (HOLDS, "x = 3: 6 (6 to 6)")
    where["above"] = 0.8
    assert result("at least", values, term("a_overhead"), value=5.0, where=where).outcome == MISSING


def test_a_number_of_its_own() -> None:
    values = table(a_delivery={0: (0.76, 0.76)}, a_overhead={0: (3.0, 3.0)})
    own = {"number": 0.1, "reason": "the text says roughly"}
    assert result("about", values, term("a_delivery"), value=0.7, **own).outcome == HOLDS
    assert result("about", values, term("a_overhead"), value=2.5, **own).outcome == FAILS
    own["number"] = 0.21
    assert result("about", values, term("a_overhead"), value=2.5, **own).outcome == HOLDS


# --- Along the axis -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "measure", "line", "outcome"),
    [
        # Paired by seed: each rises by 0.1, however far the seeds are apart.
        ("rises", "delivery", {0: (0.2, 0.6), 1: (0.1, 0.1), 2: (0.3, 0.7)}, HOLDS),
        ("rises", "delivery", {0: (0.3, 0.7), 1: (0.2, 0.6)}, FAILS),
        ("rises", "delivery", {0: (0.2, 0.6), 1: (0.3, 0.8)}, OPEN),  # 0.15 ± 0.635
        ("rises", "delivery", {0: (0.2, 0.6), 1: (0.2, 0.6)}, FAILS),
        ("falls", "overhead", {0: (5.0, 6.0), 1: (4.0, 5.0)}, HOLDS),
        ("falls", "overhead", {0: (4.0, 5.0), 1: (5.0, 6.0)}, FAILS),
        ("falls", "overhead", {0: (5.0, 6.0), 1: (4.0, 5.5)}, OPEN),
        ("steadily rises", "overhead", {0: (1.0, 1.0), 1: (2.0, 2.0), 2: (3.0, 3.0)}, HOLDS),
        ("steadily rises", "overhead", {0: (1.0, 1.0), 1: (2.0, 2.5), 2: (3.0, 3.0)}, OPEN),  # 1.25 ± 3.2
        ("steadily rises", "overhead", {0: (1.0, 1.0), 1: (2.0, 2.02), 2: (3.0, 3.0)}, HOLDS),  # 1.01 and 0.99 ± 0.13
        ("steadily rises", "overhead", {0: (1.0, 1.0), 1: (2.0, 2.0), 2: (1.5, 1.5)}, FAILS),
        ("steadily rises", "overhead", {0: (1.0, 1.0), 1: (2.0, 2.0), 2: (1.5, 2.1)}, OPEN),
        ("steadily falls", "overhead", {0: (3.0, 3.0), 1: (2.0, 2.0), 2: (1.0, 1.02)}, HOLDS),
        ("steadily falls", "overhead", {0: (3.0, 3.0), 1: (3.0, 3.0), 2: (1.0, 1.0)}, FAILS),
        ("steadily falls", "overhead", {0: (3.0, 3.0), 1: (2.9, 3.2), 2: (1.0, 1.0)}, OPEN),
        # The whole range counts, not its ends: 0.74 - 0.70 and 0.76 - 0.70.
        ("hardly moves", "delivery", {0: (0.7, 0.7), 1: (0.74, 0.74), 2: (0.72, 0.72)}, HOLDS),
        ("hardly moves", "delivery", {0: (0.7, 0.7), 1: (0.76, 0.76), 2: (0.72, 0.72)}, FAILS),
        ("hardly moves", "delivery", {0: (0.7, 0.7), 1: (0.73, 0.75), 2: (0.72, 0.72)}, OPEN),
        ("hardly moves", "overhead", {0: (2.28, 2.28), 1: (2.0, 2.0)}, HOLDS),  # 14 % of the least
        ("hardly moves", "overhead", {0: (2.32, 2.32), 1: (2.0, 2.0)}, FAILS),  # 16 %
        ("hardly moves", "overhead", {0: (2.26, 2.3), 1: (2.0, 2.0)}, OPEN),
        # A third of the axis, from 0 to 0.9, is 0.3: 0.7 of a rise of 0.9 between 0.3 and 0.6.
        ("is steep", "delivery", {0: (0, 0), 0.3: (0.1, 0.1), 0.6: (0.8, 0.8), 0.9: (0.9, 0.9)}, HOLDS),
        ("is steep", "delivery", {0: (0, 0), 0.3: (0.3, 0.3), 0.6: (0.6, 0.6), 0.9: (0.9, 0.9)}, FAILS),
        ("is steep", "delivery", {0: (0, 0), 0.3: (0.1, 0.1), 0.6: (0.7, 0.8), 0.9: (0.9, 0.9)}, OPEN),
        ("is steep", "delivery", {0: (0.5, 0.5), 0.3: (0.4, 0.4), 0.9: (0.3, 0.3)}, MISSING),
        *((kind, "delivery", {0: (0.5, 0.5)}, MISSING) for kind in ("rises", "steadily falls", "hardly moves")),
    ],
)
def test_a_course(kind: str, measure: str, line: Line, outcome: str) -> None:
    assert result(kind, table(**{f"a_{measure}": line}), term(f"a_{measure}")).outcome == outcome


def test_a_course_in_words() -> None:
    found = result("rises", table(a_delivery={0: (0.2, 0.6), 1: (0.3, 0.7)}), term("a_delivery"))
    assert found.measured == "x = 0 to x = 1: 0.5 against 0.4, +0.1 (+0.1 to +0.1)"


# --- Against another ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "measure", "left", "right", "outcome"),
    [
        ("lower than", "delivery", (0.4, 0.6), (0.5, 0.7), HOLDS),
        ("lower than", "delivery", (0.5, 0.7), (0.5, 0.7), FAILS),
        ("lower than", "delivery", (0.4, 0.7), (0.5, 0.75), OPEN),
        ("higher than", "delivery", (0.5, 0.7), (0.4, 0.6), HOLDS),
        ("higher than", "delivery", (0.4, 0.6), (0.5, 0.7), FAILS),
        ("higher than", "delivery", (0.5, 0.75), (0.4, 0.7), OPEN),
        ("slightly below", "delivery", (0.86, 0.86), (0.9, 0.9), HOLDS),
        ("slightly below", "delivery", (0.84, 0.84), (0.9, 0.9), FAILS),
        ("slightly below", "delivery", (0.91, 0.91), (0.9, 0.9), FAILS),
        ("slightly below", "delivery", (0.86, 0.89), (0.9, 0.9), OPEN),
        ("slightly above", "overhead", (2.2, 2.2), (2.0, 2.0), HOLDS),
        ("slightly above", "overhead", (2.4, 2.4), (2.0, 2.0), FAILS),
        ("slightly above", "overhead", (2.2, 2.3), (2.0, 2.0), OPEN),
        ("not below", "delivery", (0.86, 0.86), (0.9, 0.9), HOLDS),
        ("not below", "delivery", (0.99, 0.99), (0.9, 0.9), HOLDS),
        ("not below", "delivery", (0.84, 0.84), (0.9, 0.9), FAILS),
        ("not below", "delivery", (0.84, 0.9), (0.9, 0.9), OPEN),
        ("comparable with", "delivery", (0.44, 0.44), (0.5, 0.5), HOLDS),  # 12 % lower
        ("comparable with", "overhead", (2.4, 2.4), (2.0, 2.0), FAILS),
        ("comparable with", "overhead", (2.2, 2.3), (2.0, 2.0), OPEN),
        ("clearly below", "overhead", (4.4, 4.4), (5.0, 5.0), HOLDS),
        # 11.5 % ± 6.4 %: the mean is beyond 10 %, and the interval excludes 0.
        ("clearly below", "overhead", (4.4, 4.45), (5.0, 5.0), HOLDS),
        ("clearly below", "overhead", (4.6, 4.6), (5.0, 5.0), FAILS),
        ("clearly below", "overhead", (4.55, 4.6), (5.0, 5.0), OPEN),  # 8.5 % ± 6.4 %
        ("clearly below", "overhead", (4.2, 4.4), (5.0, 5.0), OPEN),  # 14 % ± 25 %
        ("clearly above", "delivery", (0.56, 0.56), (0.5, 0.5), HOLDS),
        ("clearly above", "delivery", (0.54, 0.54), (0.5, 0.5), FAILS),
        ("clearly above", "delivery", (0.54, 0.58), (0.5, 0.5), OPEN),
        ("far below", "overhead", (2.4, 2.4), (5.0, 5.0), HOLDS),
        ("far below", "overhead", (2.5, 2.5), (5.0, 5.0), FAILS),
        ("far below", "overhead", (2.4, 2.45), (5.0, 5.0), OPEN),  # 51.5 % ± 6.4 % less
    ],
)
def test_a_comparison(kind: str, measure: str, left: Seeds, right: Seeds, outcome: str) -> None:
    lines: dict[str, Line] = {f"a_{measure}": {0: left}, f"b_{measure}": {0: right}}
    values = table(**lines)
    assert result(kind, values, term(f"a_{measure}"), than=term(f"b_{measure}")).outcome == outcome


def test_points_are_compared_with_those_at_the_same_place_and_with_level_lines() -> None:
    values = table(
        a_overhead={1: (2.0, 2.0), 2: (3.0, 3.0), 3: (9.0, 9.0)},
        b_overhead={2: (7.0, 7.0), 1: (5.0, 5.0)},
        c_overhead=(10.0, 10.0),
    )
    found = result("far below", values, term("a_overhead"), than=term("b_overhead"))
    assert found.outcome == HOLDS
    assert found.measured == "at 2 of 2 places, the tightest x = 2: 3 against 7, −57.1 % (−57.1 to −57.1 %)"
    found = result("far below", values, term("a_overhead"), than=term("c_overhead"))
    assert (found.outcome, found.measured[:14]) == (FAILS, "at 2 of 3 plac")
    found = result("far below", values, term("a_overhead", at="first"), than=term("c_overhead"))
    assert found.outcome == HOLDS


def test_the_last_against_the_best() -> None:
    falling = table(a_delivery={1: (0.5, 0.5), 2: (0.9, 0.9), 3: (0.7, 0.7)})
    rising = table(a_delivery={1: (0.5, 0.5), 2: (0.7, 0.7), 3: (0.9, 0.9)})
    last, best = term("a_delivery", at="last"), term("a_delivery", at="best")
    assert result("lower than", falling, last, than=best).outcome == HOLDS
    assert result("lower than", rising, last, than=best).outcome == FAILS


def test_only_seeds_that_both_have_are_compared() -> None:
    values = table(a_delivery={0: (0.4, 0.6, 0.99)}, b_delivery={0: (0.5, 0.7)})
    assert result("lower than", values, term("a_delivery"), than=term("b_delivery")).outcome == HOLDS


GOSSIP: dict[str, Line] = {
    "g_delivery": {0.1: (0.2, 0.2), 0.2: (0.4, 0.4), 0.3: (0.8, 0.8), 0.4: (0.7, 0.7)},
    "g_overhead": {0.1: (2.0, 3.0), 0.2: (4.0, 5.0), 0.3: (6.0, 7.0), 0.4: (9.0, 9.0)},
}


@pytest.mark.parametrize(
    ("delivery", "place", "mean"),
    [
        (0.7, "where delivery = 0.7", 6.0),  # three quarters of the way from 4.5 to 6.5
        (0.2, "where delivery = 0.2", 2.5),
        (0.1, "where delivery = 0.1", 2.5),  # the first point has it already
    ],
)
def test_where_a_curve_reaches_a_value(delivery: float, place: str, mean: float) -> None:
    """The seeds agree on the place, and are 1 apart there: the mean ± 12.7 / 2, by draws."""
    of = term("g_overhead", reaching={"measure": "delivery", "value": delivery})
    measured = result("about", table(**GOSSIP), of, value=6.0).measured
    said, _, numbers = measured.partition(": ")
    found, low, high = map(float, re.findall(r"-?[0-9.]+", numbers.replace("−", "-")))
    assert (said, found) == (place, mean)
    assert (low, high) == pytest.approx((mean - 6.35, mean + 6.35), abs=0.7)


def test_the_place_that_a_curve_reaches_is_inside_the_interval() -> None:
    """Each seed costs 10 times what it delivers, so at a delivery of 0.5 the cost is about 5 with any seed.

    Where that is, the seeds disagree on, and at one place their costs are 1 apart: an interval of ± 1.2 at least that
    would leave out what is known.
    """
    levels = {p: tuple(p + shift for shift in (-0.05, -0.02, 0.0, 0.02, 0.05)) for p in (0.2, 0.4, 0.6, 0.8)}
    costs = {p: tuple(10 * level for level in line) for p, line in levels.items()}
    of = term("g_overhead", reaching={"measure": "delivery", "value": 0.5})
    found = result("about", table(g_delivery=levels, g_overhead=costs), of, value=5.0)
    assert (found.outcome, found.measured) == (HOLDS, "where delivery = 0.5: 5 (5 to 5)")


def test_a_curve_that_never_reaches_a_value() -> None:
    of = term("g_overhead", reaching={"measure": "delivery", "value": 0.81})
    found = result("about", table(**GOSSIP), of, value=6.0)
    assert (found.outcome, found.measured) == (MISSING, "g in e never comes up to a delivery of 0.81")


def test_cost_at_equal_delivery() -> None:
    """With 1 credit 0.6, as gossip at (4 + 6) / 2 and (5 + 7) / 2; with 2 more than gossip ever has: left out."""
    values = table(
        **GOSSIP,
        h_delivery={1: (0.6, 0.6), 2: (0.9, 0.9)},
        h_overhead={1: (2.5, 3.0), 2: (8.0, 8.0)},
    )
    than = term("g_overhead", reaching={"measure": "delivery"})
    found = result("clearly below", values, term("h_overhead"), than=than)
    assert (found.outcome, found.measured) == (HOLDS, "x = 1: 2.75 against 5.5, −50 % (−50 to −50 %)")
    found = result("clearly below", values, term("h_overhead", at={"x": 2}), than=than)
    assert (found.outcome, found.measured) == (MISSING, "no point to look at")


def test_equal_delivery_that_may_not_be_reached_decides_nothing() -> None:
    """0.79 ± 0.13 against a curve that ends at 0.8."""
    values = table(**GOSSIP, h_delivery={1: (0.78, 0.80)}, h_overhead={1: (2.5, 2.5)})
    than = term("g_overhead", reaching={"measure": "delivery"})
    found = result("clearly below", values, term("h_overhead"), than=than)
    assert (found.outcome, found.measured) == (OPEN, "x = 1: 2.5 against 6.45, −61 % (no interval)")


@pytest.mark.parametrize(("last", "outcome"), [((0.9, 0.9), HOLDS), ((0.99, 0.99), FAILS), ((0.9, 0.93), OPEN)])
def test_a_gap_that_shrinks(last: Seeds, outcome: str) -> None:
    """0.3 at first; then 0.1, 0.19 + 0.2 = 0.39, and 0.1 and 0.13 with an interval of ± 0.19 around 0.185 less."""
    below = (0.6, 0.6) if outcome == FAILS else (0.8, 0.8)
    values = table(a_delivery={1: (0.8, 0.8), 2: last}, b_delivery={1: (0.5, 0.5), 2: below})
    found = result("gap shrinks to", values, term("a_delivery"), than=term("b_delivery"))
    assert found.outcome == outcome
    assert found.measured.startswith("x = 1 to x = 2: from 0.3 to 0.")


@pytest.mark.parametrize(
    ("kind", "measure", "first", "last", "outcome"),
    [
        # Against 2 and 2, then 4 and 4: from +50 % to +100 %, and so on.
        ("rises against", "overhead", (3.0, 3.0), (8.0, 8.0), HOLDS),
        ("rises against", "overhead", (3.0, 3.0), (6.0, 6.0), FAILS),  # twice as far apart, but +50 % again
        ("rises against", "overhead", (3.0, 3.0), (7.9, 8.1), HOLDS),  # +50 points ± 31.8
        ("rises against", "overhead", (3.0, 3.0), (7.0, 8.0), OPEN),
        ("rises against", "overhead", (1.0, 1.0), (3.0, 3.0), HOLDS),  # from −50 % to −25 %: less of a gain
        ("falls against", "overhead", (1.0, 1.0), (1.0, 1.0), HOLDS),  # from −50 % to −75 %
        ("falls against", "overhead", (1.0, 1.0), (3.0, 3.0), FAILS),
        ("falls against", "overhead", (1.0, 1.0), (1.0, 1.5), OPEN),
        ("hardly moves against", "overhead", (3.0, 3.0), (6.4, 6.4), HOLDS),  # by 10 points
        ("hardly moves against", "overhead", (3.0, 3.0), (5.2, 5.2), FAILS),  # by 20, the other way
        ("hardly moves against", "overhead", (3.0, 3.0), (6.3, 6.5), OPEN),
        ("hardly moves against", "delivery", (3.0, 3.0), (6.4, 6.4), FAILS),  # a ratio: 5 points
    ],
)
def test_a_relative_difference_along_the_axis(kind: str, measure: str, first: Seeds, last: Seeds, outcome: str) -> None:
    lines: dict[str, Line] = {f"a_{measure}": {1: first, 2: last}, f"b_{measure}": {1: (2.0, 2.0), 2: (4.0, 4.0)}}
    assert result(kind, table(**lines), term(f"a_{measure}"), than=term(f"b_{measure}")).outcome == outcome


def test_a_relative_difference_in_words_and_by_seed() -> None:
    """Seeds far apart, with the same gain: +50 % at first, +75 % at last."""
    values = table(a_overhead={1: (3.0, 30.0), 2: (7.0, 70.0)}, b_overhead={1: (2.0, 20.0), 2: (4.0, 40.0)})
    found = result("rises against", values, term("a_overhead"), than=term("b_overhead"))
    assert (found.outcome, found.measured) == (HOLDS, "x = 1 to x = 2: from +50 % to +75 %, by +25 % (+25 to +25 %)")


def test_points_below_the_floor_have_no_relative_difference() -> None:
    values = table(
        a_tree_connected={1: (0.3, 0.3), 2: (0.2, 0.2), 3: (0.15, 0.15), 4: (0.5, 0.5)},
        b_tree_connected={1: (0.0, 0.0099), 2: (0.1, 0.0), 3: (0.1, 0.1), 4: (0.0, 0.0)},
    )
    of, than = term("a_tree_connected"), term("b_tree_connected")
    # Only x = 2, of which one seed is left, and x = 3 remain.
    found = result("falls against", values, of, than=than, exact=False)
    assert (found.outcome, found.measured[:44]) == (OPEN, "x = 2 to x = 3: from +100 % to +50 %, by −50")
    found = result("clearly above", values, term("a_tree_connected", at={"x": 1}), than=than, exact=False)
    assert (found.outcome, found.measured) == (MISSING, "x = 1: no seed has a value")
    found = result("clearly above", values, of, than=than)
    assert (found.outcome, found.measured) == (
        HOLDS,
        "at 2 of 2 places, the tightest x = 3: 0.15 against 0.1, +50 % (+50 to +50 %) "
        "(2 more not measured: x = 1: no seed has a value)",
    )
    found = result("rises against", values, term("a_tree_connected", at="last"), than=than, exact=False)
    assert (found.outcome, found.measured) == (MISSING, "fewer than two points to compare at")
    assert (
        result("higher than", values, of, than=than, exact=False).outcome == OPEN
    )  # by difference, every point counts


# --- No variance is no certainty ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("lower than", {"than": term("b_delivery")}),
        ("higher than", {"than": term("b_delivery")}),  # would not hold
        ("comparable with", {"than": term("b_delivery")}),
        ("falls", {}),
        ("rises", {}),
        ("steadily falls", {}),
        ("hardly moves", {}),
        ("gap shrinks to", {"than": term("b_delivery")}),
        ("above", {"value": 0.1}),
        ("below", {"value": 0.1}),
    ],
)
def test_seeds_that_all_say_the_same_decide_nothing(kind: str, more: dict[str, Any]) -> None:
    """But for rounding: 0.3 − 0.2 is not 0.2 − 0.1 in doubles."""
    values = table(
        a_delivery={0: (0.3, 0.3, 0.3), 1: (0.2, 0.2, 0.2), 2: (0.1, 0.1, 0.1)},
        b_delivery={0: (0.6, 0.6, 0.6), 1: (0.6, 0.6, 0.6), 2: (0.6, 0.6, 0.6)},
    )
    assert result(kind, values, term("a_delivery"), **more, exact=False).outcome == OPEN
    assert result(kind, values, term("a_delivery"), **more).outcome in (HOLDS, FAILS)
    shifted = table(a_delivery={0: (0.3, 0.7), 1: (0.2, 0.6)})
    assert result("falls", shifted, term("a_delivery"), exact=False).outcome == OPEN


def test_exact_numbers_that_vary_are_no_exception() -> None:
    values = table(a_delivery={0: (0.86, 0.87)})
    assert result("above", values, term("a_delivery"), value=0.85).outcome == OPEN


# --- Claims ---------------------------------------------------------------------------------------------------------

LINES: dict[str, Line] = {"a_delivery": {0: (0.6999, 0.7001), 1: (0.74, 0.78)}}
GOOD = {"says": "good", "kind": "about", "of": term("a_delivery", at={"x": 0}), "value": 0.7}
BAD = {"says": "bad", "kind": "below", "of": term("a_delivery", at={"x": 0}), "value": 0.5}
UNSURE = {"says": "unsure", "kind": "above", "of": term("a_delivery", at={"x": 1}), "value": 0.7}
ABSENT = {"says": "absent", "kind": "above", "of": term("b_delivery"), "value": 0.7}
ASIDE = {**BAD, "judged": False}


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ([], MISSING),
        ([GOOD, GOOD], HOLDS),
        ([GOOD, ASIDE], HOLDS),
        ([GOOD, ABSENT], MISSING),
        ([GOOD, UNSURE, ABSENT], OPEN),
        ([GOOD, UNSURE, BAD, ABSENT], FAILS),
    ],
)
def test_a_claim_is_as_good_as_its_worst_check(checks: list[dict[str, Any]], outcome: str) -> None:
    claim = msgspec.convert({"id": "T1", "paper": "p", "figure": "1", "text": "t", "checks": checks}, Claim)
    (verdict,) = judge([claim], table(**LINES), MEASURED)
    assert verdict.outcome == outcome


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (GOOD, "explained by the weather"),
        (BAD, "not explained by the weather"),
        (UNSURE, "perhaps explained by the weather"),
    ],
)
def test_a_cause_that_was_removed_explains_what_then_holds(check: dict[str, Any], words: str) -> None:
    without = check | {"judged": False, "cause": "the weather"}
    raw = {"id": "T1", "paper": "p", "figure": "1", "text": "t", "explanation": "Why.", "checks": [BAD, without]}
    (verdict,) = judge([msgspec.convert(raw, Claim)], table(**LINES), MEASURED)
    said = msgspec.to_builtins(verdict)
    assert (said["verdict"], said["held"], said["of"]) == ("does not hold", 0, 1), "it has no say"
    assert [one["explains"] for one in said["checks"]] == ["", words]
    assert said["tested"] is True
    assert said["measured"].endswith(f", {words}")


def test_an_explanation_stays_a_guess_while_its_cause_was_not_measured() -> None:
    without = ABSENT | {"judged": False, "cause": "the weather"}
    raw = {"id": "T1", "paper": "p", "figure": "1", "text": "t", "explanation": "Why.", "checks": [BAD, without]}
    (verdict,) = judge([msgspec.convert(raw, Claim)], table(**LINES), MEASURED)
    assert msgspec.to_builtins(verdict)["tested"] is False


def test_a_verdict_as_json() -> None:
    raw = {
        "id": "T1",
        "paper": "p",
        "figure": "1",
        "text": "It is so.",
        "explanation": "Chance.",
        "checks": [GOOD, BAD | {"main": True}, ASIDE, ABSENT | {"judged": False}],  # nothing to be said of the last
    }
    (verdict,) = judge([msgspec.convert(raw, Claim)], table(**LINES), MEASURED)
    shown = "x = 0: 0.7 (0.699 to 0.701)"
    said = msgspec.to_builtins(verdict)
    assert json.loads(json.dumps(said)) == {
        "id": "T1",
        "paper": "p",
        "figure": "1",
        "text": "It is so.",
        "verdict": "does not hold",
        "held": 1,
        "of": 2,
        "main": "does not hold",
        "measured": f"good: {shown}, holds; bad: {shown}, does not hold, misses by 0.2; "
        f"bad: {shown}, for comparison only",
        "reading": "",
        "explanation": "Chance.",
        "tested": False,
        "checks": [
            {
                "says": "good",
                "verdict": "holds",
                "measured": shown,
                "judged": True,
                "main": False,
                "misses": "",
                "explains": "",
            },
            {
                "says": "bad",
                "verdict": FAILS,
                "measured": shown,
                "judged": True,
                "main": True,
                "misses": "0.2",
                "explains": "",
            },
            {
                "says": "bad",
                "verdict": FAILS,
                "measured": shown,
                "judged": False,
                "main": False,
                "misses": "0.2",
                "explains": "",
            },
        ],
    }


def test_the_main_point_is_the_first_check_unless_another_is_named() -> None:
    raw: dict[str, Any] = {"id": "T1", "paper": "p", "figure": "1", "text": "t", "checks": [ASIDE, GOOD, UNSURE]}
    (verdict,) = judge([msgspec.convert(raw, Claim)], table(**LINES), MEASURED)
    assert (verdict.outcome, [check.says for check in verdict.checks if check.main]) == (OPEN, ["good"])
    raw["checks"] = [GOOD, UNSURE | {"main": True}]
    (verdict,) = judge([msgspec.convert(raw, Claim)], table(**LINES), MEASURED)
    assert (verdict.main, [check.says for check in verdict.checks if check.main]) == (OPEN, ["unsure"])


@pytest.mark.parametrize(
    ("kind", "measure", "seeds", "more", "misses"),
    [
        ("about", "overhead", (3.0, 3.0), {"value": 2.5}, "0.125"),  # beyond 2.875
        ("above", "delivery", (0.8, 0.8), {"value": 0.85}, "0.05"),
        ("far below", "overhead", (2.7, 2.7), {"than": term("b_overhead")}, "4 points"),  # −46 % of 5, not −50 %
        ("above", "delivery", (0.8, 0.88), {"value": 0.85}, "0.01"),  # inconclusive, and the mean is on the wrong side
        ("above", "delivery", (0.8, 0.92), {"value": 0.85}, ""),  # inconclusive, on the right side
    ],
)
def test_by_how_much_a_check_misses(kind: str, measure: str, seeds: Seeds, more: dict[str, Any], misses: str) -> None:
    lines: dict[str, Line] = {f"a_{measure}": {0: seeds}, "b_overhead": {0: (5.0, 5.0)}}
    assert result(kind, table(**lines), term(f"a_{measure}"), **more).misses == misses


def test_what_is_missing_is_named() -> None:
    values = table(**LINES)
    assert result("rises", values, term("b_delivery")).measured == "delivery of b in e was not measured"
    assert result("about", values, term("a_delivery", at={"x": 7}), value=1.0).measured == "a in e has no point x = 7"


def test_places_are_named_by_as_many_axes_as_it_takes() -> None:
    rows = [("e", "a", n, json.dumps({"x": n // 2, "y": n % 2, "z": 5}), 1, "delivery", 0.5) for n in range(4)]
    columns = dict(zip(VALUES.names, map(list, zip(*rows, strict=True)), strict=True))
    points = ClaimedCurves(pa.table(columns, schema=VALUES)).points(msgspec.convert(term("a_delivery"), Term))
    assert [point.place for point in points] == ["x = 0, y = 0", "x = 0, y = 1", "x = 1, y = 0", "x = 1, y = 1"]


def test_every_kind_has_a_meaning() -> None:
    assert set(KINDS) == set(WANTS)


# --- From a campaign's folder ---------------------------------------------------------------------------------------


def test_values_are_read_from_the_tables_of_runs_and_measures(tmp_path: Path) -> None:
    """Run r serves two experiments; the measure of run s is undefined."""
    runs = {
        "run": ["r", "r", "s"],
        "experiment": ["e", "f", "e"],
        "variant": ["a", "b", "a"],
        "point": pa.array([0, 3, 1], pa.int32()),
        "axes": ['{"x": 1}', "{}", '{"x": 2}'],
        "seed": [1, 1, 1],
        "scenario": ["{}", "{}", "{}"],
    }
    measures = {"run": ["r", "s"], "measure": ["delivery", "delivery"], "value": pa.array([0.5, None], pa.float64())}
    (tmp_path / "measures").mkdir()
    pq.write_table(pa.table(runs), tmp_path / "runs.parquet")
    pq.write_table(pa.table(measures), tmp_path / "measures" / "run.parquet")
    values = read_values(tmp_path)
    assert values.schema == VALUES
    assert sorted(tuple(row.values()) for row in values.to_pylist()) == [
        ("e", "a", 0, '{"x": 1}', 1, "delivery", 0.5),
        ("f", "b", 3, "{}", 1, "delivery", 0.5),
    ]


def test_a_folder_without_measures(tmp_path: Path) -> None:
    with pytest.raises(RoamcastError, match="has no measures yet"):
        read_values(tmp_path)
