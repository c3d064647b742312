"""Titles of axes: fields in words, with their units. Measures bring their own titles."""

import re
from typing import Final

from roamcast.analysis.measures.measure import Measure

_UNITS: Final = (
    (r"(movement\.)?speed(\[\d\])?", "m/s"),
    (r"movement\.(pause|stay).*", "s"),
    (r"area\.(width|height)(\[\d\])?", "m"),
    (r"radio\.(indoor_)?range(\[\d\])?", "m"),
    (r"radio\.threshold", "dB"),
    (r"(.*\.)?publishers\[\d+\]\.rate|background\.rate", "msg/s"),
    (r"mac\.(basic_)?rate", "Mb/s"),
    (r"(.*\.)?(size|mtu|header|cache_bytes)", "bytes"),
    (r"(.*\.)?(interval|lifetime|jitter|duration|warmup|cooldown|timeout|spread|refresh)", "s"),
)
"""Units of a scenario's fields, by path."""


def difference_title(measure: Measure, baseline: str) -> str:
    """The title of relative differences, for which the measure's unit does not matter."""
    name, _, _ = measure.title.partition(" (")
    return f"{name}: difference from {baseline} (%)"


def first_upper(text: str) -> str:
    """The text with an upper-case first letter, unless that is a word, such as the probability p."""
    return text if len(text.partition(" ")[0]) == 1 else text[:1].upper() + text[1:]


def axis_title(label: str, field: str) -> str:
    """The label, with the field's unit unless the author has put one there."""
    if "(" in label:
        return label
    unit = next((unit for pattern, unit in _UNITS if re.fullmatch(pattern, field)), None)
    return f"{label} ({unit})" if unit else label
