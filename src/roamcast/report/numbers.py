"""Numbers for people: no more digits than the measurement supports."""

import math
from typing import Any, Final

ABSENT: Final = "–"
MINUS: Final = "\N{MINUS SIGN}"
THIN: Final = "\N{NARROW NO-BREAK SPACE}"
_ROUNDING: Final = 1e-12
_PLAIN: Final = (1e-4, 1e7)
"""Numbers between these are written without an exponent."""
_LEAST: Final = 1e-4
"""Sizes below it do not matter to anybody."""
_UNITS: Final = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"), (0.0, 1.0, ""))
"""For an axis: from which size on, the divisor, and its letter."""


def number(value: float | None) -> str:
    """Four significant digits, or all digits before the point."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    if not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        digits, exponent = f"{value:.3e}".split("e")
        return _signed(f"{_trimmed(digits)}e{int(exponent)}")
    return _trimmed(_fixed(value, max(0, 3 - math.floor(math.log10(abs(value))))))


def estimate(mean: float | None, low: float | None, high: float | None) -> str:
    """A mean and its interval, to the second digit of half the interval; an interval that was clipped to the measure's
    range is written with both ends."""
    return " ".join(filter(None, estimate_parts(mean, low, high)))


def estimate_parts(mean: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """The mean, and the text beside or below it; empty without an interval."""
    if mean is None or low is None or high is None:
        return number(mean), ""
    half = max(mean - low, high - mean)
    if half <= _ROUNDING * max(1.0, abs(mean)):
        return number(mean), "± 0"
    if not _PLAIN[0] <= half < _PLAIN[1]:
        return number(mean), f"± {number(half)}"
    decimals = max(0, 1 - math.floor(math.log10(half)))
    if math.isclose(mean - low, high - mean, rel_tol=1e-6):
        return _fixed(mean, decimals), f"± {_fixed(half, decimals)}"
    return _fixed(mean, decimals), f"({_trimmed(_fixed(low, decimals))} to {_trimmed(_fixed(high, decimals))})"


def plus_minus(mean: float | None, low: float | None, high: float | None) -> str:
    """A mean ± half its interval on the wider side: shorter than both ends, for the columns of a terminal."""
    if mean is None or low is None or high is None:
        return number(mean)
    half = max(mean - low, high - mean)
    return estimate(mean, mean - half, mean + half)


def brief(value: float) -> str:
    """Two significant digits, for sentences."""
    return _trimmed(two_digits(value))


def two_digits(value: float) -> str:
    """Two significant digits, for tables: a zero at the end is one of them."""
    if 0 < abs(value) < _LEAST:
        return f"less than {_LEAST:g}"
    if not value or not math.isfinite(value):
        return number(value)
    rounded = _rounded(value, 2)
    return _fixed(rounded, max(0, 1 - math.floor(math.log10(abs(rounded)))))


def within(mean: float, low: float, high: float) -> str:
    """A mean and its interval for sentences, to the first digit of half the interval; both ends if it is lopsided."""
    half = max(mean - low, high - mean)
    if not _LEAST <= half < math.inf:
        return brief(mean)
    decimals = max(0, -math.floor(math.log10(half) - 0.3))  # two digits if the first is 1
    if abs((high - mean) - (mean - low)) <= 0.2 * half:
        return f"{_fixed(mean, decimals)} ± {_fixed(half, decimals)}"
    return f"{brief(mean)} ({brief(low)} to {brief(high)})"


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def tick_texts(ticks: list[float]) -> list[str]:
    """Labels of one axis, all in the same unit, short enough for its margin: 20k for 20 000."""
    largest = max(map(abs, ticks))
    unit, suffix = next((unit, suffix) for least, unit, suffix in _UNITS if largest >= least)
    return [number(round(tick / unit, 9)) + (suffix if tick else "") for tick in ticks]


def value_text(value: Any) -> str:  # noqa: ANN401  # any value of JSON
    """A value of an axis: a number, a name, or bounds such as 10–20."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):
        return "–".join(map(value_text, value))
    return str(value)


def _fixed(value: float, decimals: int) -> str:
    return _signed(f"{value:,.{decimals}f}".replace(",", THIN))


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(text: str) -> str:
    return text.replace("-", MINUS)
