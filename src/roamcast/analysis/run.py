"""One run, as everything that looks at its facts sees it: its scenario, its times, its tables.

The rules this file owns:

* A table is read when it is first asked for, only the columns that are asked for, and each of them once.
* What several functions need of a run is computed once: `once` makes such a function. What depends only on the world,
  and not on the protocol, is computed once for all runs in that world: `once_per_world`. The scenario says which runs
  should share a world; the rows of the tables say whether they really do.
"""

import functools
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES
from roamcast.sim.scenario.scenario import Scenario
from roamcast.units import SECOND

T = TypeVar("T")

ReadColumns = Callable[[str, Sequence[str] | None, Sequence[str]], pa.Table]
"""Reads columns (None: all) of a table that has rows, or more than these; the last argument names columns to read as
dictionaries, if that saves something."""

CODED: Final = {"event_attribute": ("attribute", "kind", "text"), "deliver": ("via",)}
"""Columns that repeat few texts in many rows: they are read as dictionaries."""
_NO_MATTER: Final = ("name", "protocol", "mac", "record")
"""The parts of a scenario that do not change its world."""


class Worlds:
    """What was computed for the last world, for the next run in the same one."""

    def __init__(self) -> None:
        self._known: dict[Callable[[Any], Any], tuple[bytes, Any]] = {}

    def of(self, key: bytes, function: "Callable[[Run], T]", run: "Run") -> T:
        former = self._known.get(function)
        if former is None or former[0] != key:
            self._known[function] = former = key, function(run)
        found: T = former[1]
        return found


class Run:
    """A run whose facts are recorded. A measure is a function of it."""

    def __init__(
        self, name: str, scenario: Scenario, tables: Collection[str], read: ReadColumns, worlds: Worlds | None = None
    ) -> None:
        """`tables` are those that have rows. Runs that share `worlds` share what one world computes once."""
        self.name: Final = name
        self.scenario: Final = scenario
        self.tables: Final = frozenset(tables)
        self._read = read
        self._columns: dict[str, dict[str, pa.ChunkedArray]] = {}
        self._names: dict[str, tuple[str, ...]] = {table: tuple(schema.names) for table, schema in TABLES.items()}
        self._known: dict[Callable[[Run], Any], Any] = {}
        self._digests: dict[str, bytes] = {}
        self._worlds = Worlds() if worlds is None else worlds

    @classmethod
    def over(cls, tables: Mapping[str, pa.Table], scenario: Scenario, name: str = "run") -> Self:
        """A run whose tables are in memory."""
        there = [table for table, rows in tables.items() if rows.num_rows]
        return cls(name, scenario, there, lambda table, _columns, _dictionaries: tables[table])

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {self.protocol}, {self.nodes} nodes, {self.scenario.duration:g} s)"

    @property
    def protocol(self) -> str:
        return self.scenario.protocol.name

    @property
    def nodes(self) -> int:
        return self.scenario.nodes

    @cached_property
    def start(self) -> int:
        """The end of the warm-up, ns: measuring starts there."""
        return round(self.scenario.warmup * SECOND)

    @property
    def stop(self) -> int:
        """The start of the cooldown, ns: nothing is published from then on."""
        return self.scenario.stop

    @property
    def end(self) -> int:
        """The end of the run, ns."""
        return self.scenario.end

    # --- Facts ------------------------------------------------------------------------------------------------------

    def has(self, *tables: str) -> bool:
        """Whether each of these tables has rows."""
        return self.tables.issuperset(tables)

    def table(self, name: str, *columns: str) -> pa.Table:
        """These columns of a table, or all; no rows if the run has none."""
        if name not in self.tables:
            if name not in TABLES:
                raise RoamcastError(f"run {self.name}: has no table {name!r}; ask `run.has({name!r})` first")
            empty = TABLES[name].empty_table()
            return empty.select(list(columns)) if columns else empty
        known = self._columns.setdefault(name, {})
        columns = columns or self._names.get(name, ())
        missing = [column for column in columns if column not in known]
        if missing or not columns:
            read = self._read(name, missing or None, CODED.get(name, ()))
            known |= {column: read[column] for column in read.column_names if column != "run"}
        if not columns:  # a protocol's own table
            columns = self._names[name] = tuple(column for column in read.column_names if column != "run")
        if unknown := [column for column in columns if column not in known]:
            raise RoamcastError(f"run {self.name}: the table {name} has no column {unknown[0]!r}")
        return pa.table({column: known[column] for column in columns})

    def column(self, table: str, name: str) -> NDArray[Any]:
        """One column of a table as a numpy array."""
        values: NDArray[Any] = self.table(table, name)[name].to_numpy()
        return values

    # --- What is computed once --------------------------------------------------------------------------------------

    def remember(self, function: "Callable[[Run], T]") -> T:
        if function not in self._known:
            self._known[function] = function(self)
        found: T = self._known[function]
        return found

    def of_world(self, function: "Callable[[Run], T]", tables: Sequence[str]) -> T:
        digest = hashlib.blake2b(self._world)
        for table in tables:
            digest.update(self._digest(table))
        return self._worlds.of(digest.digest(), function, self)

    @cached_property
    def _world(self) -> bytes:
        return world_of(msgspec.to_builtins(self.scenario))

    def _digest(self, table: str) -> bytes:
        if table not in self._digests:
            self._digests[table] = _digest(self.table(table))
        return self._digests[table]


def once(function: Callable[[Run], T]) -> Callable[[Run], T]:
    """Makes a function of a run that computes its result once per run, however often it is called."""

    @functools.wraps(function)
    def remembered(run: Run) -> T:
        return run.remember(function)

    return remembered


def once_per_world(*tables: str) -> Callable[[Callable[[Run], T]], Callable[[Run], T]]:
    """The same for what depends only on the world: runs with the same rows in these tables, and the same scenario but
    for the protocol, share the result."""

    def decorate(function: Callable[[Run], T]) -> Callable[[Run], T]:
        @functools.wraps(function)
        def remembered(run: Run) -> T:
            return run.of_world(function, tables)

        return remembered

    return decorate


def world_of(scenario: dict[str, Any]) -> bytes:
    """The part of a scenario that determines its world."""
    return msgspec.json.encode({name: scenario[name] for name in sorted(scenario) if name not in _NO_MATTER})


def _digest(table: pa.Table) -> bytes:
    """Of the rows, however they are stored: in chunks, as a part of a file, or with dictionaries."""
    types = ((one.name, one.type.value_type if pa.types.is_dictionary(one.type) else one.type) for one in table.schema)
    rows = table.cast(pa.schema(types)).take(np.arange(table.num_rows)).combine_chunks()  # taken: no offsets
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return hashlib.blake2b(sink.getvalue()).digest()


def mean(values: NDArray[Any]) -> float | None:
    """The mean; None if there are no values."""
    return float(np.mean(values)) if len(values) else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """A part of a whole; None if either is unknown or there is no whole."""
    return part / whole if part is not None and whole else None
