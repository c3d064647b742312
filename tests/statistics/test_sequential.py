"""Looking repeatedly: what is spent, and how often it goes wrong."""

import numpy as np
import pytest

from roamcast.statistics.intervals import interval, t_quantile
from roamcast.statistics.sequential import Looks


def test_the_budget_is_spent_by_the_square_of_the_share_of_seeds() -> None:
    """Of 5 %: a quarter at half of the seeds, the rest at the end."""
    assert Looks(10).levels([5, 10]) == pytest.approx([1 - 0.0125, 1 - 0.0375])
    assert Looks(10).levels([10]) == pytest.approx([0.95])
    assert Looks(20, level=0.9).level_at(20, before=10) == pytest.approx(1 - 0.075)


def test_or_by_the_share_itself() -> None:
    assert Looks(10, power=1).levels([5, 10]) == pytest.approx([1 - 0.025, 1 - 0.025])


def test_looks_that_were_not_planned_spend_no_more() -> None:
    for looks in ([3, 4, 20], [2, 5, 6, 7, 19, 20], list(range(2, 21))):
        assert sum(1 - level for level in Looks(20).levels(looks)) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("seeds", "before", "words"),
    [(1, 0, "2 to 10 seeds, not 1"), (11, 0, "2 to 10 seeds, not 11"), (5, 5, "fewer"), (5, -1, "fewer")],
)
def test_a_look_that_cannot_be(seeds: int, before: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Looks(10).level_at(seeds, before)


@pytest.mark.parametrize(("most", "level"), [(1, 0.95), (10, 0.0), (10, 1.0)])
def test_a_plan_that_cannot_be(most: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"2 seeds or more|between 0 and 1"):
        Looks(most, level)


# --- By simulation --------------------------------------------------------------------------------------------------

RUNS = 4000
LOOKS = [3, 5, 8, 10, 15, 20, 25, 30]


def wrong(levels: list[float], effect: float = 0.0) -> tuple[float, float]:
    """How often an interval excludes 0 at one of the looks, and how many seeds are taken on average until then."""
    rng = np.random.Generator(np.random.PCG64(12))
    values = rng.standard_normal((RUNS, LOOKS[-1])) + effect
    decided = np.zeros(RUNS, bool)
    seeds = np.full(RUNS, LOOKS[-1])
    for n, level in zip(LOOKS, levels, strict=True):
        some = values[:, :n]
        half = t_quantile(level, n - 1) * some.std(axis=1, ddof=1) / n**0.5
        now = (np.abs(some.mean(axis=1)) > half) & ~decided
        seeds[now] = n
        decided |= now
    return float(decided.mean()), float(seeds.mean())


def test_the_simulation_decides_as_the_interval_does() -> None:
    values = [0.3, 0.9, 0.2, 0.7]
    found = interval(values, Looks(8).level_at(4))
    half = t_quantile(1 - 0.05 / 4, 3) * np.std(values, ddof=1) / 2
    assert (found.low, found.high) == pytest.approx((0.525 - half, 0.525 + half))


def test_looking_repeatedly_is_wrong_often_and_with_the_correction_no_more_than_once() -> None:
    """No difference: 4,000 times, eight looks. The deviation of a share of 5 % is 0.0034."""
    assert wrong([0.95] * len(LOOKS))[0] > 0.15
    assert wrong(Looks(LOOKS[-1]).levels(LOOKS))[0] < 0.05 + 2 * 0.0034


def test_what_is_there_is_found_with_fewer_seeds() -> None:
    """A difference of one standard deviation."""
    found, seeds = wrong(Looks(LOOKS[-1]).levels(LOOKS), effect=1.0)
    assert found > 0.99
    assert seeds < 20
