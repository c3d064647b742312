"""How often the judge is wrong, by simulation: claims on their borders, where it is hardest.

Rates are given with their own uncertainty: of n claims, a share of 2.5 % has a deviation of √(0.025 · 0.975 / n), and
a test allows three of them. All chance is seeded.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from papers.known import MEASURED
from roamcast.papers.claims import Claim
from roamcast.papers.judge import judge
from roamcast.statistics.curves import VALUES
from roamcast.statistics.evidence import ShareOfRise
from roamcast.statistics.intervals import t_quantile

Values = npt.NDArray[np.float64]
SEEDS = 5
ONE_SIDE = 0.025


def noise(claims: int, points: int, seed: int) -> Values:
    """By claim, point and seed."""
    return np.random.Generator(np.random.PCG64(seed)).standard_normal((claims, points, SEEDS))


def most(claims: int) -> float:
    return ONE_SIDE + 3 * math.sqrt(ONE_SIDE * (1 - ONE_SIDE) / claims)


def table(curves: dict[str, Values]) -> pa.Table:
    """One experiment a claim; a name is variant_measure."""
    columns: dict[str, list[Any]] = {name: [] for name in VALUES.names}
    for name, values in curves.items():
        variant, _, measure = name.partition("_")
        claims, points, seeds = values.shape
        claim, point, seed = (index.ravel() for index in np.indices(values.shape))
        columns["experiment"] += claim.astype(str).tolist()
        columns["variant"] += [variant] * values.size
        columns["point"] += point.tolist()
        columns["axes"] += [json.dumps({"x": float(x)}) for x in range(points) for _ in range(seeds)] * claims
        columns["seed"] += seed.tolist()
        columns["measure"] += [measure] * values.size
        columns["value"] += values.ravel().tolist()
    return pa.table(columns, schema=VALUES)


def verdicts(curves: dict[str, Values], *checks: Callable[[str], dict[str, Any]]) -> dict[str, float]:
    """The shares of the verdicts."""
    claims = len(next(iter(curves.values())))
    ledger = [
        {
            "id": str(number),
            "paper": "p",
            "figure": "1",
            "text": "t",
            "checks": [{"says": str(n), **check(str(number))} for n, check in enumerate(checks)],
        }
        for number in range(claims)
    ]
    counts = Counter(
        str(found.outcome) for found in judge(msgspec.convert(ledger, list[Claim]), table(curves), MEASURED)
    )
    return {outcome: count / claims for outcome, count in counts.items()}


def term(experiment: str, name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # as in TOML
    variant, _, measure = name.partition("_")
    return {"experiment": experiment, "variant": variant, "measure": measure, **more}


def positive(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda claim: {"kind": "above", "value": 0.0, "of": term(claim, name)}


# --- Points and checks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("points", "claims", "uncorrected"), [(5, 2000, 0.12), (30, 800, 0.53)])
def test_a_true_claim_on_its_border_is_refuted_no_more_often_with_more_points(
    points: int, claims: int, uncorrected: float
) -> None:
    values = noise(claims, points, seed=1)
    half = t_quantile(0.95, SEEDS - 1) * values.std(axis=2, ddof=1) / SEEDS**0.5
    assert ((values.mean(axis=2) + half) < 0).any(axis=1).mean() == pytest.approx(uncorrected, abs=0.03)
    found = verdicts({"a_cost": values}, positive("a_cost"))
    assert 0.01 < found["does not hold"] < most(claims)
    assert "holds" not in found


def test_nor_with_more_checks() -> None:
    """Six checks at five points each."""
    names = [f"v{n}_cost" for n in range(6)]
    found = verdicts({name: noise(400, 5, seed=n) for n, name in enumerate(names)}, *map(positive, names))
    assert found["does not hold"] < most(400)


@pytest.mark.parametrize("points", [1, 5, 30])
def test_a_false_claim_just_beyond_its_border_is_rarely_accepted(points: int) -> None:
    """One point is on the border, which is not above it; the others are far above."""
    claims = 2000 if points < 30 else 500
    values = noise(claims, points, seed=2)
    values[:, 1:] += 100
    found = verdicts({"a_cost": values}, positive("a_cost"))
    assert 0.01 < found["holds"] < most(claims)


def test_a_claim_far_beyond_its_border_is_refuted_and_one_far_inside_accepted() -> None:
    """Also with the correction: one of 30 points is wrong by ten deviations."""
    values = noise(60, 30, seed=3) + 20
    assert verdicts({"a_cost": values}, positive("a_cost")) == {"holds": 1.0}
    values[:, 7] -= 30
    assert verdicts({"a_cost": values}, positive("a_cost"))["does not hold"] > 0.9


# --- What the data chooses ------------------------------------------------------------------------------------------


def test_the_last_point_is_rarely_lower_than_the_best_of_equals() -> None:
    """Eight points without a difference: by its own interval alone, the best of the others would often be higher."""
    values = noise(1000, 8, seed=4)
    last, best = {"at": "last"}, {"at": "best"}
    found = verdicts(
        {"a_cost": values},
        lambda claim: {
            "kind": "lower than",
            "of": term(claim, "a_cost", **last),
            "than": term(claim, "a_cost", **best),
        },
    )
    assert found.get("holds", 0.0) < most(1000)
    others = values[:, :-1]
    chosen = others[np.arange(1000), others.mean(axis=2).argmax(axis=1)] - values[:, -1]
    half = t_quantile(0.95, SEEDS - 1) * chosen.std(axis=1, ddof=1) / SEEDS**0.5
    assert (chosen.mean(axis=1) > half).mean() > 0.1


@pytest.mark.parametrize(("flat", "verdict"), [(1, "holds"), (7, "does not hold")])
def test_a_flat_step_is_rarely_a_rise_and_flat_steps_are_rarely_falls(flat: int, verdict: str) -> None:
    """Of seven steps; the others rise by far."""
    values = noise(1000, 8, seed=5)
    values += 100 * np.maximum(np.arange(8) - flat, 0)[np.newaxis, :, np.newaxis]
    found = verdicts({"a_cost": values}, lambda claim: {"kind": "steadily rises", "of": term(claim, "a_cost")})
    assert found.get(verdict, 0.0) < most(1000)


def test_a_range_on_its_border_is_rarely_refuted_or_accepted() -> None:
    """The first of six points is 0.05 below the others."""
    values = 0.5 + 0.02 * noise(600, 6, seed=6)
    values[:, 0] -= 0.05
    found = verdicts({"a_delivery": values}, lambda claim: {"kind": "hardly moves", "of": term(claim, "a_delivery")})
    assert found.get("holds", 0.0) < most(600)
    assert found.get("does not hold", 0.0) < most(600)


def test_a_rise_that_is_as_steep_as_asked_for_is_rarely_called_either() -> None:
    """From 0 to 1 over ten points, half of it from the fourth to the seventh: a third of the axis."""
    steps = np.array([0, 1, 1, 1, 2, 2, 2, 1, 1, 1]) / 12
    values = steps.cumsum()[np.newaxis, :, np.newaxis] + 0.02 * noise(600, 10, seed=7)
    pairs = [(low, high) for low in range(10) for high in range(low + 1, min(low + 4, 10))]
    shares = [
        ShareOfRise([(line[high] - line[low]).tolist() for low, high in pairs], (line[9] - line[0]).tolist())
        for line in values
    ]
    assert np.mean([share.above(0.5) <= ONE_SIDE for share in shares]) < most(600)
    assert np.mean([share.below(0.5) <= ONE_SIDE for share in shares]) < most(600)
    assert np.mean([share.above(0.3) <= ONE_SIDE for share in shares]) > 0.9


def test_what_a_curve_costs_where_it_reaches_a_value_is_rarely_on_one_side_of_the_truth() -> None:
    """Delivery and cost rise with x, with a common part of their noise; at 0.5 the cost is 4.5."""
    claims = 120
    both, own = noise(claims, 1, seed=8), noise(claims, 6, seed=9)
    x = np.arange(6.0)[np.newaxis, :, np.newaxis]
    delivery = 0.15 + 0.1 * x + 0.03 * both + 0.02 * own
    cost = 1 + x + 0.5 * both + 0.2 * noise(claims, 6, seed=10)
    found = verdicts(
        {"a_delivery": delivery, "a_cost": cost},
        lambda claim: {
            "kind": "at most",
            "value": 4.5,
            "of": term(claim, "a_cost", reaching={"measure": "delivery", "value": 0.5}),
        },
    )
    assert found.get("holds", 0.0) < most(claims)
    assert found.get("does not hold", 0.0) < most(claims)
