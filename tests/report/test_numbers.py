import pytest

from roamcast.report.numbers import estimate, number, tick_texts, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (1, "1"),
        (0.7, "0.7"),
        (0.123456, "0.1235"),
        (12.3456, "12.35"),
        (-2.5, "−2.5"),
        (1234.56, "1 235"),
        (9876543.21, "9 876 543"),
        (12345678, "1.235e7"),
        (0.00001234, "1.234e−5"),
    ],
)
def test_a_number_has_four_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (0.81234, 0.79234, 0.83234, "0.812 ± 0.020"),
        (2.5, 2.25, 2.75, "2.50 ± 0.25"),
        (43210.9, 43010.9, 43410.9, "43 211 ± 200"),
        (-0.1, -0.2, 0, "−0.10 ± 0.10"),
        (0.98, 0.93, 1.0, "0.980 (0.93 to 1)"),
        (0.001, 0.0, 0.004, "0.0010 (0 to 0.004)"),
        (1, 1, 1, "1 ± 0"),
        (0.5, None, None, "0.5"),
        (None, None, None, "–"),
    ],
)
def test_an_estimate_has_the_digits_of_its_interval(
    mean: float | None, low: float | None, high: float | None, text: str
) -> None:
    assert estimate(mean, low, high) == text


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (5, "5"), ([10, 20], "10–20"), ("hot spots", "hot spots"), (0.5, "0.5")]
)
def test_values_of_axes(value: object, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0, 0.2, 0.4], ["0", "0.2", "0.4"]),
        ([0, 2500, 5000], ["0", "2 500", "5 000"]),
        ([0, 20000, 40000], ["0", "20k", "40k"]),
        ([-500000, 0, 500000, 1000000], ["−0.5M", "0", "0.5M", "1M"]),
        ([0, 2.5e9], ["0", "2.5G"]),
    ],
)
def test_ticks_share_a_unit(ticks: list[float], texts: list[str]) -> None:
    assert tick_texts(ticks) == texts
