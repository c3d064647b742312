"""Ages at delivery, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.analysis.ages import BIN, age_curve, density, peak_age
from roamcast.units import SECOND

HOUR = 3600 * SECOND


def ns(*seconds: float) -> np.ndarray:
    return np.array([round(second * SECOND) if second >= 0 else -1 for second in seconds], np.int64)


def test_a_share_counts_only_what_could_reach_the_age() -> None:
    published = ns(0, 0, 0, 1800, 3500)  # the run ends after an hour
    delay = ns(600, 2000, -1, 1800, 10)
    curve = age_curve(published, delay, HOUR, np.array([600, 1800, 3600]))
    # By 10 min: five pairs but the last one, which is too young; one of four. By 30: two of four. By 60: two of three.
    assert curve.of_pairs.tolist() == pytest.approx([1 / 4, 2 / 4, 2 / 3])
    # Of the deliveries of those that could reach an hour, there are two: after 600 and after 2000 s.
    assert curve.of_deliveries.tolist() == pytest.approx([1 / 2, 1 / 2, 1])


def test_nothing_can_be_said_of_an_age_that_nobody_reached() -> None:
    curve = age_curve(ns(10), ns(5), 20 * SECOND, np.array([10, 20]))
    assert curve.of_pairs[0] == 1
    assert np.isnan(curve.of_pairs[1])
    assert np.isnan(curve.of_deliveries).all()


def test_the_peak_is_where_most_arrive() -> None:
    published = ns(*[0] * 9)
    delay = ns(100, 700, 1000, 1010, 1020, 1300, 2000, 3000, -1)
    middles, shares = density(published, delay, HOUR, 3600)
    assert middles[0] == BIN / 2
    # In five minutes each: 1 0 1 3 1 0 1 0 0 0 1 0; means of three.
    counts = [1, 0, 1, 3, 1, 0, 1, 0, 0, 0, 1, 0]
    means = [sum(counts[max(0, n - 1) : n + 2]) / len(counts[max(0, n - 1) : n + 2]) / 8 for n in range(12)]
    assert shares.tolist() == pytest.approx(means)
    assert peak_age(published, delay, HOUR, 3600) == 3 * BIN + BIN // 2
    assert peak_age(ns(0), ns(-1), HOUR, 3600) is None


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(-1, 120)), max_size=30), st.integers(1, 150))
def test_shares_against_counting_one_by_one(pairs: list[tuple[int, int]], end: int) -> None:
    ages = np.array([10, 40, 90])
    curve = age_curve(ns(*(p for p, _ in pairs)), ns(*(d for _, d in pairs)), end * SECOND, ages)
    for place, age in enumerate(ages):
        counted = [delay for published, delay in pairs if published + age <= end]
        if counted:
            assert curve.of_pairs[place] == pytest.approx(sum(0 <= delay <= age for delay in counted) / len(counted))
        else:
            assert np.isnan(curve.of_pairs[place])
