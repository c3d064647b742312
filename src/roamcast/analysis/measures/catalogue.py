"""Measures: numbers about one run. The catalogue of all that are known.

A measure from outside the package is named by an entry point of the group `roamcast.measures`, or by an experiment as
`file.py:name`; see docs/measures.md.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from roamcast.analysis.measures import (
    ages,
    caches,
    causes,
    contexts,
    cost,
    deadlines,
    delivery,
    energy,
    fairness,
    incoming,
    possible,
    repairs,
    stable_core,
    topology,
    traffic,
    tree,
)
from roamcast.analysis.measures.measure import Family, Measure, OverAllRuns, Pooled, as_family
from roamcast.analysis.run import Run
from roamcast.config.errors import suggestion
from roamcast.errors import RoamcastError
from roamcast.outside import from_file, is_file_name

GROUP: Final = "roamcast.measures"
FAMILIES: Final = (
    delivery.delivery,
    cost.cost,
    traffic.losses,
    topology.graph,
    topology.widths,
    topology.paths,
    ages.ages,
    caches.caches,
    possible.possible,
    deadlines.deadlines,
    fairness.fairness,
    energy.energy,
    causes.causes,
    tree.tree,
    repairs.repairs,
    stable_core.stable_core,
    incoming.incoming,
    incoming.throughput,
    contexts.pairs_with_contexts,
    contexts.traffic,
)
"""Our own, in the order in which they are listed."""
GROUPS: Final = {"causes": tuple(one.name for one in causes.causes.measures)}
"""Names under which an experiment may ask for several measures at once."""

Way = Family | Pooled | OverAllRuns
"""How a measure gets its values."""


class MeasureCatalogue:
    """The measures that are known: what each is, and how it gets its values."""

    def __init__(self, outside: Iterable[EntryPoint] = ()) -> None:
        self._ways: dict[str, Way] = {}
        self._declared: dict[str, Measure] = {}
        for family in FAMILIES:
            self._add(family, "")
        self._add(contexts.DELIVERY, "")
        for point in outside:
            where = f"the entry point {point.value} of {GROUP}"
            self._add(as_family(point.load(), where), where)

    def _add(self, way: Way, where: str) -> tuple[str, ...]:
        declared = way.measures if isinstance(way, Family) else (way.measure,)
        for one in declared:
            if self._ways.setdefault(one.name, way) is not way:
                raise RoamcastError(f"{where}: {one.name!r} is the name of another measure")
            self._declared[one.name] = one
        return tuple(one.name for one in declared)

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def __getitem__(self, name: str) -> Measure:
        return self._declared[name]

    def way(self, name: str) -> Way:
        return self._ways[name]

    def families(self, names: Iterable[str]) -> list[Family]:
        """The families that give values for these names, each once."""
        return list(dict.fromkeys(way for name in names if isinstance(way := self.way(name), Family)))

    def values(self, run: Run, names: Collection[str]) -> dict[str, float | None]:
        """The values of a run by these names."""
        given = (family(run) for family in self.families(names))
        return {name: value for values in given for name, value in values.items() if name in names}

    def names(self, wanted: Sequence[str], folder: Path, source: str) -> tuple[str, ...]:
        """The names of measures that `source` asks for: groups are replaced by their members, and measures in files
        (`mine.py:busiest`, relative to `folder`) become known under their own names."""
        found: list[str] = []
        for name in wanted:
            if is_file_name(name):
                where = f"{source}: measure {name!r}"
                found += self._add(as_family(from_file(name, folder, f"{source}: measure"), where), where)
            else:
                found += GROUPS.get(name, (name,))
        return tuple(found)

    def within(self, deadline: float) -> None:
        """Makes the measures of a deadline (s) known."""
        if f"satisfaction_{deadline:g}" not in self:
            self._add(deadlines.within(deadline), f"a deadline of {deadline:g} s")

    def check(self, names: Iterable[str]) -> list[str]:
        """These names, each once; refuses one that is not known."""
        chosen = list(dict.fromkeys(names))
        for name in chosen:
            if name not in self:
                raise RoamcastError(f"there is no measure {name!r}; {suggestion(name, list(self))}")
        return chosen


CATALOGUE: Final = MeasureCatalogue(entry_points(group=GROUP))
