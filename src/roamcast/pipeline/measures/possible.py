"""What was possible, and how much of it a protocol achieved.

The limit is that of `roamcast.facts.possible`: contacts alone, instantaneous transfers, channels that never fill up.
The rules this file owns:

* The pairs and their limit are those of `roamcast.facts.limits`.
* Links may be one-way, and a range drawn for every frame counts with its upper bound: some frame may reach that far.
* Two kinds of carriers: all nodes; or, as in the opportunistic protocol with a scope of one hop, only the nodes whose
  subscriptions the event matches.
* The limit depends on the world, not on the protocol: it is computed once per world (`worlds.py`).
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.limits import READ, Limit, limit_over
from roamcast.facts.pairs import AGES
from roamcast.facts.possible import NEVER
from roamcast.pipeline.measures.by_run import Files, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.worlds import LastWorld, worlds
from roamcast.sim.network import network_of
from roamcast.units import SECOND

_FIGURES: Final = (
    *("possible", "at_once", "interested", "achieved"),
    *(f"possible_{age}" for age in AGES),
    *(f"interested_{age}" for age in AGES),
)

Figures = Callable[[Limit, pa.Table, int], dict[str, float | None]]
"""From the limit of a run's world, its deliveries and its end (ns) to figures by name."""


def limits(facts: Facts) -> DataFrame:
    """(run, figures) of the runs with positions or links and something published. For `Facts.once`."""
    return of_worlds(facts, _FIGURES, figures)


def of_worlds(facts: Facts, named: tuple[str, ...], work: Figures) -> DataFrame:
    """(run, figures) of the runs with positions or links and something published; all null where movement was not
    recorded."""
    runs = (facts.having("leg") | facts.having("link")) & facts.having("publish") & facts.having("subscribe")
    of_each = OfWorlds(Files.of(facts, *READ, "deliver"), named, work)
    return of_runs(facts, runs, of_each, named, together=worlds(facts))


class OfWorlds:
    """Figures of one run after the other; the limit of the last world is kept."""

    def __init__(self, files: Files, named: tuple[str, ...], work: Figures) -> None:
        self._files = files
        self._named = named
        self._work = work
        self._limits = LastWorld(limit_of)

    def __call__(self, run: str, start: int, end: int, nodes: int, scenario: str) -> dict[str, float | None]:
        tables = self._files.read(run)
        deliver = tables.pop("deliver")
        limit = self._limits.of(tables, start, end, nodes, scenario)
        return dict.fromkeys(self._named) if limit is None else self._work(limit, deliver, end)


def limit_of(tables: dict[str, pa.Table], start: int, end: int, nodes: int, scenario: str) -> Limit | None:
    """The limit of a run's world; None where its movement was not recorded."""
    contacts = network_of(tables, nodes, end, scenario, directed=True, drawn="possible")
    return None if contacts is None else limit_over(contacts, tables, start)


def figures(limit: Limit, deliver: pa.Table, end: int) -> dict[str, float | None]:
    """The figures by name."""
    could = limit.possible != NEVER
    achieved = limit.delays(deliver) != NEVER
    found = {
        "possible": _mean(could),
        "at_once": _mean(limit.possible == 0),
        "interested": _mean(limit.interested != NEVER),
        "achieved": _mean(achieved[could]),
    }
    for age in AGES:
        old_enough = limit.published <= end - age * SECOND
        found[f"possible_{age}"] = _mean(limit.possible[old_enough] <= age * SECOND)
        found[f"interested_{age}"] = _mean(limit.interested[old_enough] <= age * SECOND)
    return found


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


def _of(column: str, name: str, title: str, description: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(limits).select("run", F.col(column).alias("value"))

    about = About(name=name, title=title, description=description, share=True, whole=True, good="high")
    return Measure(about, function)


def _within(age: int) -> tuple[Measure, Measure]:
    minutes = age // 60
    return (
        _of(
            f"possible_{age}",
            f"possible_{age}",
            f"possible within {minutes} min (share of pairs)",
            f"Share of the pairs that any protocol could have delivered within {minutes} min",
        ),
        _of(
            f"interested_{age}",
            f"possible_interested_{age}",
            f"possible within {minutes} min, carried by the interested (share of pairs)",
            f"Share of the pairs that could have been delivered within {minutes} min if only the interested carry",
        ),
    )


MEASURES: Final = (
    _of(
        "possible",
        "possible",
        "possible at all (share of pairs)",
        "Share of the pairs that any protocol could have delivered before the run ended",
    ),
    _of(
        "interested",
        "possible_interested",
        "possible, carried by the interested (share of pairs)",
        "Share of the pairs that could have been delivered if only interested nodes carry, over one hop",
    ),
    _of(
        "at_once",
        "possible_at_once",
        "possible at once (share of pairs)",
        "Share of the pairs between which there was a path at the instant of publication",
    ),
    _of(
        "achieved",
        "delivered_of_possible",
        "delivered of what was possible (share of pairs)",
        "Share of the pairs that could have been delivered which were",
    ),
    *(measure for age in AGES for measure in _within(age)),
)
