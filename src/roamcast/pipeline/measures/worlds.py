"""Runs that share a world: what follows from the world alone is worked out once for all of them.

The rule this file owns: runs that differ in their protocol alone should have one world, and are worked out one after
the other (`together` of `by_run.of_runs`); whether they have, their facts tell.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec
import pyarrow as pa

from roamcast.pipeline.measures.facts import Facts

Found = TypeVar("Found")
Work = Callable[[dict[str, pa.Table], int, int, int, str], Found]
"""From tables of a run, its warm-up and its end (ns), its number of nodes and its scenario (JSON)."""

_NO_MATTER: Final = ("name", "protocol", "mac", "record")
"""Of a scenario: what does not change its world."""


def worlds(facts: Facts) -> dict[str, str]:
    """By run: the part of its scenario that makes its world."""
    scenarios = zip(facts.planned["run"].to_pylist(), facts.planned["scenario"].to_pylist(), strict=True)
    return {run: _world(scenario) for run, scenario in scenarios}


class LastWorld(Generic[Found]):
    """Keeps what was found of the last world, for the next run that has the same."""

    def __init__(self, work: Work[Found]) -> None:
        self._work = work
        self._found: tuple[bytes, Found] | None = None

    def of(self, tables: dict[str, pa.Table], start: int, end: int, nodes: int, scenario: str) -> Found:
        key = _digest(tables, start, end, nodes, _world(scenario))
        if self._found is None or self._found[0] != key:
            self._found = key, self._work(tables, start, end, nodes, scenario)
        return self._found[1]


def _world(scenario: str) -> str:
    whole = msgspec.json.decode(scenario, type=dict[str, Any])
    return msgspec.json.encode({name: whole[name] for name in sorted(whole) if name not in _NO_MATTER}).decode()


def _digest(tables: dict[str, pa.Table], *rest: object) -> bytes:
    digest = hashlib.blake2b(repr(rest).encode())
    for name in sorted(tables):
        table = tables[name].drop_columns(["run"]) if "run" in tables[name].column_names else tables[name]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        digest.update(sink.getvalue())
    return digest.digest()
