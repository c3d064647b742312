"""Tables follow from declarations: ours, and those of a protocol from outside."""

from typing import ClassVar, Literal

import pyarrow as pa
import pytest

from roamcast.errors import RoamcastError
from roamcast.facts.schema import LASTING, TABLES, table_of, tables_of
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.facts import Decision, Fact
from roamcast.protocols.tree.facts import TreeChanged


class Stored(Fact, frozen=True):
    """Everything that a column can be."""

    table: ClassVar[str] = "stored"

    number: int
    maybe: int | None
    share: float
    name: str
    why: Literal["new", "old"]
    kept: bool
    nodes: tuple[int, ...]


def test_a_declared_fact_is_a_table() -> None:
    assert table_of(Stored) == pa.schema(
        [
            ("time", pa.int64()),
            ("node", pa.int64()),
            ("number", pa.int64()),
            ("maybe", pa.int64()),
            ("share", pa.float64()),
            ("name", pa.string()),
            ("why", pa.string()),
            ("kept", pa.bool_()),
            ("nodes", pa.list_(pa.int64())),
        ]
    )
    assert not table_of(Stored).metadata
    assert table_of(TreeChanged).metadata == {LASTING: b"true"}


def test_a_run_has_the_tables_of_its_protocol_and_decisions() -> None:
    assert list(tables_of([Stored])) == [*TABLES, "decision", "stored"]
    assert table_of(Decision).names == ["time", "node", "event", "decision", "to"]
    for entry in CATALOGUE.values():
        assert set(tables_of(entry.facts)) >= set(TABLES)


def test_what_cannot_be_a_column_is_refused_by_name() -> None:
    class Odd(Fact, frozen=True):
        table: ClassVar[str] = "odd"
        pairs: dict[int, int]

    with pytest.raises(RoamcastError, match=r"the fact Odd: pairs: dict\[int, int\] cannot be a column"):
        table_of(Odd)


def test_a_table_of_every_run_cannot_be_declared_again() -> None:
    class Mine(Fact, frozen=True):
        table: ClassVar[str] = "deliver"
        number: int

    with pytest.raises(RoamcastError, match="'deliver', as one that every run has"):
        tables_of([Mine])
