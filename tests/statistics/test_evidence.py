"""Evidence, draws and the correction, on numbers that can be done by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.statistics.bootstrap import crossing, equal_weights, weights
from roamcast.statistics.correction import holm
from roamcast.statistics.evidence import BootstrapDraws, Chosen, Evidence, Sample, ShareOfRise
from roamcast.statistics.intervals import interval, t_quantile, t_tail

# --- Student's t ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "freedom", "tail"), [(0.0, 3, 0.5), (1.0, 1, 0.25), (-1.0, 1, 0.75), (2.776445, 4, 0.025)]
)
def test_the_tail_of_t(t: float, freedom: int, tail: float) -> None:
    assert t_tail(t, freedom) == pytest.approx(tail, abs=1e-7)


@given(st.floats(0.5, 0.9999), st.integers(1, 40))
def test_the_tail_is_what_the_quantile_leaves(level: float, freedom: int) -> None:
    assert t_tail(t_quantile(level, freedom), freedom) == pytest.approx((1 - level) / 2, abs=1e-9)


# --- Holm -----------------------------------------------------------------------------------------------------------


def test_holm_by_hand() -> None:
    """0.01 counts four times, 0.02 three, 0.03 two (0.06, as the one before), 0.9 once."""
    assert holm([0.02, 0.01, 0.9, 0.03]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_nothing_and_bonferroni(p_values: list[float]) -> None:
    corrected = holm(p_values)
    for one, other in zip(p_values, corrected, strict=True):
        assert one <= other <= min(1.0, len(p_values) * one)
    assert min(corrected) == min(1.0, len(p_values) * min(p_values))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert all(corrected[a] <= corrected[b] for a, b in itertools.pairwise(order))


# --- Evidence -------------------------------------------------------------------------------------------------------

SAMPLE = Sample([1.0, 2.0, 3.0, 4.0])
GREATEST = Chosen([[SAMPLE], [Sample([2.0, 2.5, 2.2, 2.9])], [Sample([0.0, 0.3, 0.1, 0.2])]])
LEAST = Chosen([[SAMPLE, Sample([2.0, 2.5, 2.2, 2.9])]])
SHARE = ShareOfRise([[0.1, 0.2, 0.1, 0.2], [0.6, 0.7, 0.5, 0.6]], [1.0, 1.1, 0.9, 1.0])
DRAWN = BootstrapDraws(2.5, weights(4) @ np.array(SAMPLE.values))


@pytest.mark.parametrize("found", [SAMPLE, GREATEST, LEAST, SHARE, DRAWN])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_what_lies_outside_an_interval_is_shown(found: Evidence, level: float) -> None:
    """The two ways to say it agree, at either end."""
    mean, low, high = found.interval(level)
    assert low < mean < high
    alpha, step = (1 - level) / 2, (high - low) / 100
    assert found.above(low - step) <= alpha < found.above(low + step)
    assert found.below(high + step) <= alpha < found.below(high - step)


def test_the_greatest_of_several() -> None:
    """That it is above takes one of three at a third of the chance, that it is below all of them."""
    low = [[4.0, 5.0], [1.0, 2.0], [0.0, 3.0]]
    found = Chosen([[Sample(values)] for values in low])
    assert (found.mean, found.place) == (4.5, (0, 0))
    assert found.above(0.0) == pytest.approx(3 * Sample(low[0]).above(0.0))
    assert found.below(9.0) == pytest.approx(Sample(low[2]).below(9.0))


def test_the_least_of_several() -> None:
    found = Chosen([[Sample([4.0, 5.0]), Sample([1.0, 2.0]), Sample([0.0, 3.0])]])
    assert (found.mean, found.place) == (1.5, (0, 1))
    assert found.above(0.0) == pytest.approx(Sample([0.0, 3.0]).above(0.0))
    assert found.below(9.0) == pytest.approx(3 * min(Sample([0.0, 3.0]).below(9.0), Sample([1.0, 2.0]).below(9.0)))


def test_one_of_one_is_a_sample() -> None:
    assert Chosen([[SAMPLE]]).interval(0.95) == pytest.approx(SAMPLE.interval(0.95))
    assert Chosen([[SAMPLE]]).above(1.7) == SAMPLE.above(1.7)


def test_a_share_of_a_rise_that_may_not_be_there_says_nothing() -> None:
    found = ShareOfRise([[0.5, 0.6, 0.5]], [1.0, 3.0, -1.0])
    assert found.mean == pytest.approx(1.6 / 3)
    assert min(found.above(-50.0), found.below(50.0)) > 0.1
    assert found.interval(0.95)[1:] == (-math.inf, math.inf)


def test_seeds_that_say_the_same_say_nothing_unless_exact() -> None:
    for values in ([0.7], [0.7, 0.7], [0.3 - 0.2, 0.7 - 0.6]):
        found = Sample(values)
        assert (found.above(-9.0), found.below(9.0)) == (1.0, 1.0)
        assert found.interval(0.95)[1:] == (-math.inf, math.inf)
    exact = Sample([0.7, 0.7], exact=True)
    assert (exact.above(0.6), exact.above(0.7), exact.above(0.7, strict=False), exact.below(0.6)) == (0, 1, 0, 1)
    assert exact.interval(0.95) == (0.7, 0.7, 0.7)
    assert BootstrapDraws(0.7, np.full(100, 0.7)).above(0.0) == 1.0
    assert BootstrapDraws(0.7, np.full(100, 0.7), exact=True).above(0.0) == 0.0


def test_equal_shares_are_evidence_since_they_are_bounded() -> None:
    """0.8^20 is 0.0115; the 20th root of 0.025 is 0.8316, its fifth root 0.4782."""
    ones = Sample([1.0] * 20, bounds=(0.0, 1.0))
    assert ones.above(0.8) == pytest.approx(0.0115, abs=1e-4)
    assert (ones.above(1.0), ones.above(-0.1), ones.below(1.0), ones.below(0.5), ones.below(1.1)) == (1, 0, 1, 1, 0)
    assert ones.interval(0.95) == pytest.approx((1.0, 0.8316, 1.0), abs=1e-4)
    zeros = Sample([0.0] * 5, bounds=(-1.0, 1.0))
    assert zeros.interval(0.95) == pytest.approx((0.0, -0.5218, 0.5218), abs=1e-4)
    assert (zeros.above(-0.5), zeros.below(0.5)) == (0.5**5, 0.5**5)


def test_the_interval_of_a_share_ends_where_shares_do() -> None:
    """0.9 ± 12.706 · 0.1 without bounds."""
    share = Sample([0.8, 1.0], bounds=(0.0, 1.0))
    assert share.interval(0.95) == pytest.approx((0.9, 0.0, 1.0))
    assert (share.above(-0.1), share.below(1.1)) == (0, 0)
    assert Sample([0.8, 1.0]).interval(0.95) == pytest.approx((0.9, 0.9 - 1.2706, 0.9 + 1.2706), abs=1e-4)


@given(st.integers(1, 30), st.floats(0.05, 1.0), st.floats(0.0, 1.0))
def test_equal_shares_mislead_as_seldom_as_they_say(seeds: int, value: float, chance: float) -> None:
    """The worst case: a share that has this value with a chance, and is 0 otherwise. Its mean is `chance * value`, and
    all seeds have the value with a chance of `chance ** seeds`."""
    mean = chance * value
    assert Sample([value] * seeds, bounds=(0.0, 1.0)).above(mean) == pytest.approx(chance**seeds, abs=1e-9)
    mirrored = Sample([1 - value] * seeds, bounds=(0.0, 1.0))
    assert mirrored.below(1 - mean) == pytest.approx(chance**seeds, abs=1e-9)


def test_draws_without_the_number_speak_against_everything() -> None:
    draws = np.append(np.linspace(1.0, 2.0, 960), np.full(40, np.nan))
    found = BootstrapDraws(1.5, draws)
    assert found.interval(0.95)[1:] == (-math.inf, math.inf)
    assert found.above(0.0) == pytest.approx(0.04, abs=0.002)
    assert found.below(3.0) == pytest.approx(0.04, abs=0.002)


# --- Draws ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [2, 5, 10])
def test_draws_of_a_mean_spread_as_its_t_interval_says(seeds: int) -> None:
    values = [float(n**2 % 11) for n in range(seeds)]
    found = BootstrapDraws(sum(values) / seeds, weights(seeds) @ np.array(values))
    for level in (0.5, 0.8, 0.95):
        wanted = interval(values, level)
        assert found.interval(level).half == pytest.approx(wanted.half, rel=0.1 if seeds == 2 else 0.04)


def test_weights_add_up_and_are_the_same_everywhere() -> None:
    drawn = weights(3)
    assert drawn.sum(axis=1) == pytest.approx(np.ones(len(drawn)))
    assert drawn.mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.05)
    assert drawn[0].tolist() == pytest.approx(FIRST, abs=1e-6)
    assert weights(3) is drawn


FIRST = [0.366575, 0.223873, 0.409551]
"""Of three seeds, as first drawn; another value means that verdicts may change."""


def test_a_crossing_by_hand() -> None:
    """Levels 1, 3, 2 on average; 2 is reached half way between the first two points, where the values are 15 and 25."""
    levels, values = np.array([[0.5, 2.5, 2.0], [1.5, 3.5, 2.0]]), np.array([[10.0, 20.0, 0.0], [20.0, 30.0, 0.0]])
    for target, found in [([2.0, 2.0], [15.0, 25.0]), ([1.0, 1.0], [10.0, 20.0]), ([2.0, 4.0], [20.0, 30.0])]:
        assert crossing(equal_weights(2), levels, values, np.array(target)).tolist() == [found]
    assert np.isnan(crossing(equal_weights(2), levels, values, np.array([3.1, 3.1]))).all()


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0, 1))
def test_a_crossing_is_where_a_plain_walk_finds_it(line: list[float], target: float) -> None:
    """A curve that costs what it delivers costs the target where it reaches it, unless it starts above."""
    levels = np.array([line])
    found = crossing(np.ones((1, 1)), levels, levels, np.array([target]))[0, 0]
    if max(line) < target:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(max(line[0], target), abs=1e-9)
