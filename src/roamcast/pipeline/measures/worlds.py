"""Runs that share a world: what depends only on the world is computed once for all of them.

The rule this file owns: runs that differ only in their protocol should share a world, and are processed one after the
other (`together` of `by_run.of_runs`); their facts tell whether they really do.
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
"""The parts of a scenario that do not change its world."""


def worlds(facts: Facts) -> dict[str, str]:
    """By run: the part of its scenario that determines its world."""
    scenarios = zip(facts.planned["run"].to_pylist(), facts.planned["scenario"].to_pylist(), strict=True)
    return {run: _world(scenario) for run, scenario in scenarios}


class LastWorld(Generic[Found]):
    """Keeps what was computed for the last world, for the next run in the same world."""

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
