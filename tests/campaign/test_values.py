"""Which values of measures a folder has, and which have to be measured: without Spark."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.measured import Run, write_campaign
from roamcast.analysis.measures.catalogue import MeasureCatalogue
from roamcast.campaign.folder import values
from roamcast.campaign.folder.schemas import RUN_MEASURES_ARROW
from roamcast.files import write_json

Values = Mapping[tuple[str, str], float | None]
"""By run and measure."""


@pytest.fixture(autouse=True)
def known_measures(monkeypatch: pytest.MonkeyPatch) -> MeasureCatalogue:
    fresh = MeasureCatalogue()
    monkeypatch.setattr(values, "CATALOGUE", fresh)
    return fresh


def measured(out: Path, runs: list[str], found: Values) -> Path:
    """A campaign's folder as `measure` leaves it."""
    write_campaign(out, [Run(name, {}, seed=seed) for seed, name in enumerate(runs, 1)])
    (out / "measures").mkdir(exist_ok=True)
    rows = [{"run": run, "measure": name, "value": value} for (run, name), value in found.items()]
    pq.write_table(pa.Table.from_pylist(rows, RUN_MEASURES_ARROW), out / "measures" / "run.parquet")
    write_json(out / values.MADE_FROM, values.made_from(out, list(dict.fromkeys(name for _, name in found))))
    return out


def rows_of(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_known_are_the_values_of_these_runs_and_measures(tmp_path: Path) -> None:
    out = measured(tmp_path, ["a", "b"], {("a", "events"): 3.0, ("a", "delivery"): None, ("b", "events"): 4.0})
    assert rows_of(values.others(out, ["events"], ["a", "b"])) == [("a", "delivery", None)]
    assert rows_of(values.known(out, ["events", "delivery"], ["a"])) == [("a", "delivery", None), ("a", "events", 3.0)]
    found = values.known(out, ["events", "delivery", "overhead"], ["a", "b", "c"])
    assert values.lacking(found, ["events"], ["a", "b", "c"]) == ["c"]
    # Undefined is a value too: it need not be found again.
    assert values.lacking(found, ["events", "delivery"], ["a", "b", "c"]) == ["b", "c"]
    assert values.lacking(found, ["overhead"], ["b", "a"]) == ["a", "b"]


def test_nothing_is_known_of_a_folder_without_measures(tmp_path: Path) -> None:
    write_campaign(tmp_path, [Run("a", {})])
    assert values.others(tmp_path, [], ["a"]).num_rows == 0
    assert values.known(tmp_path, ["events"], ["a"]).num_rows == 0
    assert not values.is_current(tmp_path, [])


def test_a_value_of_other_code_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = measured(tmp_path, ["a"], {("a", "events"): 3.0, ("a", "overhead"): 2.0})
    assert values.is_current(out, ["events", "overhead"])
    original = values.code_of
    monkeypatch.setattr(values, "code_of", lambda name: "edited" if name == "overhead" else original(name))
    assert not values.is_current(out, ["events", "overhead"])
    assert values.is_current(out, ["events"])
    assert rows_of(values.known(out, ["events", "overhead"], ["a"])) == [("a", "events", 3.0)]


def test_what_is_pooled_is_never_known(tmp_path: Path) -> None:
    out = measured(tmp_path, ["a"], {("a", "delivery_context"): 0.5, ("a", "context_pairs"): 2.0})
    found = values.known(out, ["delivery_context", "context_pairs"], ["a"])
    assert rows_of(found) == [("a", "context_pairs", 2.0)]
    assert not values.kept("delivery_context")
    assert values.kept("context_pairs")


def test_a_folder_is_current_as_long_as_its_runs_are_the_same(tmp_path: Path) -> None:
    out = measured(tmp_path, ["a"], {("a", "events"): 3.0})
    assert values.is_current(out, ["events"])
    write_campaign(out, [Run("a", {}), Run("b", {}, seed=2)])
    assert not values.is_current(out, ["events"])
    assert rows_of(values.known(out, ["events"], ["a", "b"])) == [("a", "events", 3.0)]


def test_a_damaged_note_means_that_nothing_is_known(tmp_path: Path) -> None:
    out = measured(tmp_path, ["a"], {("a", "events"): 3.0})
    (out / "measures" / "made_from.json").write_text('{"manifest": ')
    assert values.others(out, [], ["a"]).num_rows == 0
    assert values.known(out, ["events"], ["a"]).num_rows == 0


def test_the_code_of_a_measure_is_all_that_it_imports() -> None:
    """Measures of one file share it; those of other files do not, nor does it depend on the process."""
    same = {values.code_of(name) for name in ("delivery", "events", "delay_p95")}
    others = {values.code_of(name) for name in ("overhead", "tree_connected", "delivery_context", "context_pairs")}
    assert (len(same), len(others), len(same & others)) == (1, 4, 0)
    values._code_of.cache_clear()
    assert values.code_of("delivery") in same


def test_an_edited_file_is_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[str] = []
    for source in ("return 1.0", "return 2.0", "return 1.0"):
        fresh = MeasureCatalogue()
        monkeypatch.setattr(values, "CATALOGUE", fresh)
        file = tmp_path / f"{len(codes)}" / "mine.py"
        file.parent.mkdir()
        file.write_text(f"def mine(run):\n    {source}\n")
        assert fresh.names(["mine.py:mine"], file.parent, "e.toml") == ("mine",)
        codes.append(values.code_of("mine"))
    assert codes[0] == codes[2] != codes[1]


def test_the_note_is_json_with_a_line_for_each_measure(tmp_path: Path) -> None:
    out = measured(tmp_path, ["a"], {("a", "events"): 3.0, ("a", "overhead"): 2.0})
    made = json.loads((out / "measures" / "made_from.json").read_text())
    assert sorted(made) == ["manifest", "measures"]
    assert list(made["measures"]) == ["events", "overhead"]
