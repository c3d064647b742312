"""What a measure is: a number about one run, with a name, a title and a unit.

A measure is a plain function of a `Run`. Several that are computed together are a *family*, one function that gives a
value for each name:

```python
@measure(unit="ms", good="low")
def busiest(run: Run) -> float | None:
    "Time on the air of the busiest node."
    ...

@family(Measure("delay_mean", …), Measure("delay_p95", …))
def delays(run: Run) -> Values: ...
```

None means that the run has no such value. A campaign's folder has what is declared here in `measures/about.json`, so
that report, judge and terminal know it too of measures from outside the package.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from roamcast.analysis.run import Run
from roamcast.errors import RoamcastError
from roamcast.files import read_json, write_json

ABOUT_FILE: Final = "measures/about.json"
Values = Mapping[str, float | None]
"""By name; None, or a name that is missing: the run has no such value."""


class Measure(msgspec.Struct, frozen=True):
    """What is known about a measure besides its numbers."""

    name: str
    title: str = ""
    """The label of an axis, such as `mean delay (s)`."""
    description: str = ""
    unit: str = ""
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


def good_share(name: str, title: str, description: str, floor: float | None = None) -> Measure:
    """A share that should be high, and may be: delivery and the like."""
    return Measure(name, title, description, share=True, whole=True, good="high", floor=floor)


class Family(NamedTuple):
    """Measures that are computed together."""

    measures: tuple[Measure, ...]
    function: Callable[[Run], Values]

    def __call__(self, run: Run) -> Values:
        return self.function(run)


class Pooled(NamedTuple):
    """A ratio of two measures, each summed over all seeds of a point: for numbers that are small in one run.

    A run's value is its part in the pooled ratio R, R + (part − R · whole) / (mean of whole): the mean over seeds is R,
    and their spread gives the interval of a ratio of two sums. One value alone means nothing, and none is kept for
    later: with another seed they all change.
    """

    measure: Measure
    part: str
    whole: str


class OverAllRuns(NamedTuple):
    """A measure that looks at the facts of all runs at once, on Spark."""

    measure: Measure
    function: Callable[[Any], Any]
    """From the facts of the campaign (`roamcast.pipeline.facts.CampaignFacts`) to a DataFrame (run, value) with at most
    one row per run; a run without one has no value. Any: only the pipeline knows Spark."""


def family(*measures: Measure) -> Callable[[Callable[[Run], Values]], Family]:
    """Declares a function that gives a value for each of these names."""
    return lambda function: Family(measures, function)


def measure(
    *,
    title: str = "",
    unit: str = "",
    share: bool = False,
    whole: bool = False,
    signed: bool = False,
    floor: float | None = None,
    good: Literal["high", "low"] | None = None,
) -> Callable[[Callable[[Run], float | None]], Family]:
    """Declares a measure of one number, named after its function; its docstring is the description."""
    return lambda function: _alone(function, title, unit, share, whole, signed, floor, good)


def _alone(function: Callable[[Run], float | None], title: str = "", unit: str = "", *rest: Any) -> Family:  # noqa: ANN401
    name = function.__name__
    description = (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")
    declared = Measure(name, title, description, unit, *rest)

    def values(run: Run) -> Values:
        return {name: function(run)}

    values.__module__, values.__wrapped__ = function.__module__, function  # type: ignore[attr-defined]
    return Family((declared,), values)


def as_family(thing: object, where: str) -> "Family | OverAllRuns":
    """What somebody else's file or package gives as a measure."""
    if isinstance(thing, Family | OverAllRuns):
        return thing
    if inspect.isfunction(thing):
        return _of_function(thing)
    raise RoamcastError(f"{where} is {thing!r}, not a measure: a function of a run that gives a number")


# Once: several experiments may name the same function, and it is one measure.
_of_function: Final = cache(_alone)


_TO_THE_END: Final = ("delivery", "pairs_delivered", "delivered_of_possible", "mdr", "delivery_context", "delay_mean")
"""Measures that take what has not arrived at the end of a run as lost; those with a deadline leave out what is too
young."""


def counts_to_the_end(measures: Iterable[str] | None) -> bool:
    """Whether one of these measures depends on how much time the last events had; None: all measures."""
    return measures is None or any(name in _TO_THE_END for name in measures)


# --- In a campaign's folder -----------------------------------------------------------------------------------------


def write_about(out: Path, measures: Iterable[Measure]) -> None:
    write_json(out / ABOUT_FILE, list(measures))


class Measures(dict[str, Measure]):
    """What is known about the measures of a campaign, by name; for an undescribed one, only its name."""

    def __missing__(self, name: str) -> Measure:
        return Measure(name)


def read_about(out: Path) -> Measures:
    """Reads it from a campaign's folder; empty if there are no measures."""
    file = out / ABOUT_FILE
    known = read_json(file, list[Measure]) if file.exists() else []
    return Measures({one.name: one for one in known})
