"""Quantiles of Student's t against published values."""

import math

import pytest

from roamcast.statistics.intervals import large_t_quantile, t_quantile


@pytest.mark.parametrize(
    ("freedom", "published"),
    # The column "95 %, two-sided" of the usual table.
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (6, 2.447),
        (7, 2.365),
        (8, 2.306),
        (9, 2.262),
        (10, 2.228),
        (19, 2.093),
        (29, 2.045),
        (30, 2.042),
        (40, 2.021),
        (60, 2.000),
        (120, 1.980),
        (100_000, 1.960),
    ],
)
def test_t_has_its_published_values(freedom: int, published: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(published, abs=5.1e-4)


def test_t_of_other_levels() -> None:
    assert t_quantile(0.5, 1) == pytest.approx(1.0, rel=1e-14)  # Cauchy: a quarter lies above 1
    assert t_quantile(0.99, 9) == pytest.approx(3.250, abs=5e-4)
    assert t_quantile(0.90, 30) == pytest.approx(1.697, abs=5e-4)
    # With two degrees of freedom there is a closed form.
    assert t_quantile(0.95, 2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("freedom", [500, 501, 2000])
def test_t_of_many_is_that_of_the_finite_sums(level: float, freedom: int) -> None:
    assert large_t_quantile(level, freedom) == pytest.approx(t_quantile(level, freedom), rel=2e-10)


@pytest.mark.parametrize(("level", "freedom"), [(0.0, 3), (1.0, 3), (0.95, 0)])
def test_t_is_refused_where_it_has_no_value(level: float, freedom: int) -> None:
    with pytest.raises(ValueError, match=f"not {level} and {freedom}"):
        t_quantile(level, freedom)
