"""What arrived by a deadline, what could have, and the delay with the deadline in place of never.

The definitions this file owns, all over the expected pairs without a publisher's own interest, and only of events that
are old enough at the end of the run to have reached the deadline:

* **satisfaction**: the share delivered within the deadline;
* **possible**: the share that any protocol could have delivered by then (`roamcast.facts.possible`);
* **delivered of possible**: the share of the possible pairs that was delivered;
* **restricted delay**: the mean delay, where a pair that came later or never counts with the deadline. The mean delay
  of delivered pairs is not a fair comparison: a protocol that gives up early on the difficult pairs looks fast.

`DEADLINES` are in the catalogue; `within` makes the measures of any other.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.limits import Limit
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.possible import of_worlds
from roamcast.units import SECOND

DEADLINES: Final = (1, 10, 60, 600)
"""Seconds: a warning, a message, a report, a newspaper."""


def figures(deadlines: tuple[float, ...], limit: Limit, deliver: pa.Table, end: int) -> dict[str, float | None]:
    """The figures by name, for every deadline."""
    delay = limit.delays(deliver)
    found: dict[str, float | None] = {}
    for deadline in deadlines:
        at_most = round(deadline * SECOND)
        counted = limit.published <= end - at_most
        in_time, could = delay[counted] <= at_most, limit.possible[counted] <= at_most
        restricted = np.minimum(delay[counted], at_most) / SECOND
        for name, values in (
            (_satisfaction(deadline), in_time),
            (_possible(deadline), could),
            (_achieved(deadline), in_time[could]),
            (_delay(deadline), restricted),
        ):
            found[name] = float(values.mean()) if len(values) else None
    return found


def _satisfaction(deadline: float) -> str:
    return f"satisfaction_{deadline:g}"


def _possible(deadline: float) -> str:
    return f"possible_{deadline:g}"


def _achieved(deadline: float) -> str:
    return f"delivered_of_possible_{deadline:g}"


def _delay(deadline: float) -> str:
    return f"delay_restricted_{deadline:g}"


def within(*deadlines: float) -> tuple[Measure, ...]:
    """The measures for these deadlines (s), four per deadline."""
    named = tuple(name(one) for one in deadlines for name in (_satisfaction, _possible, _achieved, _delay))

    def settled(facts: Facts) -> DataFrame:
        return of_worlds(facts, named, partial(figures, deadlines))

    def share(name: str, title: str, description: str) -> Measure:
        about = About(name=name, title=title, description=description, share=True, whole=True, good="high")
        return Measure(about, figure(name))

    def figure(name: str) -> Callable[[Facts], DataFrame]:
        return lambda facts: facts.once(settled).select("run", F.col(f"`{name}`").alias("value"))

    made: list[Measure] = []
    for one in deadlines:
        seconds = f"{one:g} s"
        delay = About(
            name=_delay(one),
            title=f"mean delay, at most {seconds} (s)",
            unit="s",
            description=f"Mean delay of the pairs, {seconds} for what came later or never",
            good="low",
        )
        made += [
            share(
                _satisfaction(one),
                f"satisfaction within {seconds} (share of pairs)",
                f"Share of the expected pairs delivered within {seconds}",
            ),
            share(
                _possible(one),
                f"possible within {seconds} (share of pairs)",
                f"Share of the pairs that any protocol could have delivered within {seconds}",
            ),
            share(
                _achieved(one),
                f"delivered of what was possible within {seconds} (share of pairs)",
                f"Of the pairs that could have been delivered within {seconds}, the share that was",
            ),
            Measure(delay, figure(_delay(one))),
        ]
    return tuple(made)


MEASURES: Final = within(*DEADLINES)
