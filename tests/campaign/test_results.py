"""The one reader of a campaign's results, from small tables."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roamcast.campaign.folder.results import axes_as_columns, measures_in, read_results, values_of
from roamcast.campaign.folder.schemas import RUN_MEASURES_ARROW, RUNS_ARROW
from roamcast.statistics.curves import VALUES
from roamcast.statistics.over_seeds import PLAN_COLUMNS

PLANNED = [
    dict(zip(PLAN_COLUMNS, row, strict=True))
    for row in (
        ("r", "e", "a", 0, '{"range": 80, "seed": "low"}', 1),
        ("s", "e", "a", 0, '{"range": 80, "seed": "low"}', 2),
        ("t", "e", "a", 1, '{"range": 100, "seed": [1]}', 1),
        ("r", "f", "b", 0, "{}", 1),
    )
]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Run s has failed, `delay` is undefined in t, and a former run is still in the table of measures."""
    (tmp_path / "measures").mkdir()
    pq.write_table(pa.Table.from_pylist(PLANNED, RUNS_ARROW), tmp_path / "runs.parquet")
    done = [{"run": "r", "error": None}, {"run": "s", "error": "ValueError: so"}, {"run": "t", "error": None}]
    pq.write_table(pa.Table.from_pylist(done), tmp_path / "manifest.parquet")
    rows = [
        ("former", "delay", 9.0),
        ("r", "delay", 1.0),
        ("r", "share", 0.5),
        ("t", "delay", None),
        ("t", "share", 0.6),
    ]
    named = [dict(zip(RUN_MEASURES_ARROW.names, row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(named, RUN_MEASURES_ARROW), tmp_path / "measures" / "run.parquet")
    return tmp_path


def test_a_row_for_each_planned_run_and_a_column_for_each_measure(out: Path) -> None:
    found = read_results(out)
    assert found.column_names == [*PLAN_COLUMNS, "error", "delay", "share"]
    assert found.select(PLAN_COLUMNS).to_pylist() == PLANNED
    assert found["error"].to_pylist() == [None, "ValueError: so", None, None]
    assert found["delay"].to_pylist() == [1.0, None, None, 1.0]
    assert found["share"].to_pylist() == [0.5, None, 0.6, 0.5]


def test_only_some_measures_of_another_plan(out: Path) -> None:
    found = read_results(out, ["share", "unheard_of"], planned=PLANNED[2:])
    assert measures_in(found) == ["share", "unheard_of"]
    assert found["share"].to_pylist() == [0.6, 0.5]
    assert found["unheard_of"].to_pylist() == [None, None]


def test_values_are_those_that_are_defined(out: Path) -> None:
    found = values_of(read_results(out))
    assert found.schema == VALUES
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert sorted(row[:3] + row[4:] for row in rows) == [
        ("e", "a", 0, 1, "delay", 1.0),
        ("e", "a", 0, 1, "share", 0.5),
        ("e", "a", 1, 1, "share", 0.6),
        ("f", "b", 0, 1, "delay", 1.0),
        ("f", "b", 0, 1, "share", 0.5),
    ]


def test_axes_are_columns_numeric_if_all_their_values_are(out: Path) -> None:
    found = axes_as_columns(read_results(out))
    own = ["run", "experiment", "variant", "point", "seed"]
    assert found.column_names == [*own, "range", "seed_axis", "delay", "share"]
    assert found["range"].to_pylist() == [80.0, 80.0, 100.0, None]
    assert found["seed_axis"].to_pylist() == ["low", "low", "[1]", None]
