"""Limits on a run's time and memory, as people write them."""

import re
from dataclasses import dataclass
from typing import Final

from roamcast.errors import ConfigError

_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")
_SECONDS: Final = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}
_BYTES: Final = {"": 1, "MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class RunLimits:
    """The limits of a run. One that exceeds a limit is killed and counts as failed."""

    seconds: float = 6 * 3600
    """Wall-clock time from start to end."""
    memory: int | None = None
    """Bytes resident in memory, the program's own 200 MB included; None: no limit."""


def seconds(text: str) -> float:
    """The seconds in a text such as `90`, `90s`, `15min`, `6h`."""
    return _quantity(text, _SECONDS, "a time such as 90s, 15min or 6h")


def size(text: str) -> int:
    """The bytes in a text such as `500MB`, `4GB`."""
    return round(_quantity(text, _BYTES, "a size such as 500MB or 4GB"))


def _quantity(text: str, units: dict[str, int], expected: str) -> float:
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or found[2] not in units or float(found[1]) <= 0:
        raise ConfigError(f"{text!r}: expected {expected}")
    return float(found[1]) * units[found[2]]
