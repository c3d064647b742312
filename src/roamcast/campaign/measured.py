"""What is known about a measure besides its numbers: its title, unit, range, and which way is better.

A measure declares it (`roamcast.pipeline.measures`); a campaign's folder has it in `measures/about.json`, so that
report, judge and terminal can read it without Spark, also for measures from outside the package.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from roamcast.config.errors import decode_bytes
from roamcast.errors import RoamcastError

ABOUT_FILE: Final = "measures/about.json"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """One measure."""

    name: str
    title: str = ""
    """The label of an axis, such as `mean delay (s)`."""
    unit: str = ""
    description: str = ""
    share: bool = False
    """Whether it lies between 0 and 1: shares are compared by difference, others in per cent."""
    whole: bool = False
    """Whether its axis should reach up to 1. Shares that stay close to 0, such as losses, would be a line at the
    bottom of such an axis."""
    signed: bool = False
    """Whether it can be below 0."""
    floor: float | None = None
    """The smallest baseline for differences in per cent: a percentage of next to nothing says nothing."""
    good: Literal["high", "low"] | None = None
    """Which way is better, if either is."""

    def __post_init__(self) -> None:
        if not self.title:
            msgspec.structs.force_setattr(self, "title", self.name.replace("_", " "))

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of its possible values."""
        return (-math.inf if self.signed else 0.0), (1.0 if self.share else math.inf)

    def clipped(self, value: float) -> float:
        """The end of an interval, clipped to the possible values."""
        low, high = self.bounds
        return min(max(value, low), high)


def write_about(out: Path, measures: Iterable[About]) -> None:
    draft = out / f"{ABOUT_FILE}.draft"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(list(measures)), indent=2))
    draft.replace(out / ABOUT_FILE)


class Measured(dict[str, About]):
    """What is known about the measures of a campaign, by name; for an undescribed one, only its name."""

    def __missing__(self, name: str) -> About:
        return About(name=name)


def read_about(out: Path) -> Measured:
    """Reads it from a campaign's folder; empty if there are no measures."""
    file = out / ABOUT_FILE
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return Measured()
    except OSError as problem:
        raise RoamcastError(f"{file}: cannot be read: {problem.strerror}") from problem
    known = decode_bytes(content, list[About], f"{file}: cannot be read", RoamcastError, "JSON")
    return Measured({about.name: about for about in known})
