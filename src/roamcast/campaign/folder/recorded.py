"""A recorded run: its scenario and its facts, wherever they are stored.

The rule this file owns is how a person names a run: by the folder that `roamcast run` or `roamcast lab` made; or by the
folder of a campaign followed by the run's id, `out/demo/1f0c…`; its first characters are enough. A campaign
with a single run needs no id.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.analysis.run import Run
from roamcast.analysis.why.record import RunRecord, record
from roamcast.campaign.folder.layout import MANIFEST_FILE, RUNS_FILE, arrow_says, check_version, read_table
from roamcast.campaign.folder.schemas import OK
from roamcast.campaign.folder.stored import Stored
from roamcast.config.errors import decode
from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario.overrides import apply
from roamcast.sim.scenario.scenario import Scenario, read
from roamcast.storage import Store

RUN_FILE: Final = "run.json"
"""The file that marks the folder of a single run; written last."""
SCENARIO_FILE: Final = "scenario.toml"
_LISTED: Final = 8


@dataclass(frozen=True)
class RecordedRun:
    """Where a run's facts are, and the scenario that produced them."""

    place: Path
    """Its own folder, or that of its campaign."""
    id: str | None
    """The run's id in its campaign; None: the folder holds this run alone."""
    scenario: Scenario
    names: frozenset[str]
    """The names of the tables that have rows."""
    read: Callable[[str], pa.Table]
    """Reads the facts of one of those tables."""
    folder: Path | None = None
    """The folder that the scenario's file names are relative to, if the run is a campaign's."""

    def page(self, name: str) -> Path:
        """The path for a page about this run."""
        return self.place / f"{name}.html" if self.id is None else self.place / name / f"{self.id}.html"

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """Every table that has rows, and the tables that every run has even if they are empty."""
        return {name: self.table(name) for name in sorted({*TABLES, *self.names})}

    def table(self, name: str) -> pa.Table:
        """One table, without reading the others."""
        if name not in self.names:
            return TABLES[name].empty_table()
        try:
            table = self.read(name)
        except (OSError, pa.ArrowException) as problem:
            again = "roamcast run --force" if self.id is None else "the campaign's command, which repeats this run"
            damage = f"{self.place}: its table {name} is damaged ({arrow_says(problem)})"
            raise RoamcastError(f"{damage}: make it again with {again}") from None
        return table.drop_columns(["run"]) if self.id is not None else table

    @cached_property
    def record(self) -> RunRecord:
        """The facts, ready for questions of why."""
        return record(self.run)

    @cached_property
    def run(self) -> Run:
        """The run as measures see it."""
        name = self.id or str(self.place)
        return Run(name, self.scenario, self.names, lambda table, _columns, _dictionaries: self.table(table))


def is_campaign_run(place: Path) -> bool:
    """Whether a path names a run of a campaign: CAMPAIGN/RUN."""
    return not place.exists() and (place.parent / RUNS_FILE).is_file()


def differing(one: RecordedRun, other: RecordedRun) -> list[str]:
    """The tables of the first run that the second does not have, or not with the same rows."""
    return [name for name in sorted(one.names) if not _same(one.table(name), other.table(name))]


def _same(one: pa.Table, other: pa.Table) -> bool:
    if one.num_rows != other.num_rows or set(one.column_names) != set(other.column_names):
        return False
    return bool(one.equals(other.select(one.column_names).cast(one.schema)))


def open_run(place: Path, store: Store | None = None) -> RecordedRun:
    """The run that a person named; `store` has the facts of its campaign, if they are not in the folder."""
    if (place / RUN_FILE).is_file():
        return _own_folder(place)
    if (place / RUNS_FILE).is_file():
        return _of_campaign(place, "", store)
    if is_campaign_run(place):
        return _of_campaign(place.parent, place.name, store)
    raise RoamcastError(
        f"{place}: is not a run: name the folder that `roamcast run` or `roamcast lab` made, or CAMPAIGN/RUN"
    )


def _own_folder(place: Path) -> RecordedRun:
    raw = read(place / SCENARIO_FILE)
    try:
        about = json.loads((place / RUN_FILE).read_bytes())
        changes, tables = about.get("changes", []), about.get("tables", [])
    except (OSError, ValueError, AttributeError) as problem:
        raise RoamcastError(f"{place / RUN_FILE}: is damaged ({problem}): run it again with --force") from problem
    if gone := sorted(set(tables) - tables_in(place)):
        raise RoamcastError(f"{place}: its table {gone[0]} is missing: make it again with roamcast run --force")
    for change in changes:
        apply(change, raw)
    # Decoded without checks: files that the scenario names, such as a protocol's, may be gone and are not needed.
    scenario = decode(raw, Scenario, str(place / SCENARIO_FILE), ScenarioError, whole="the scenario")
    return run_in(place, scenario)


def run_in(folder: Path, scenario: Scenario) -> RecordedRun:
    """The run whose facts are the folder's files."""
    return RecordedRun(
        folder,
        None,
        scenario,
        tables_in(folder),
        lambda table: pq.read_table(folder / f"{table}.parquet", partitioning=None),
    )


def tables_in(folder: Path) -> frozenset[str]:
    """The names of the tables in the folder of a single run; one without rows has no file."""
    return frozenset(file.stem for file in folder.glob("*.parquet"))


def _of_campaign(out: Path, wanted: str, store: Store | None) -> RecordedRun:
    check_version(out)
    planned = {row["run"]: row for row in read_table(out / RUNS_FILE).to_pylist()}
    done = {row["run"]: row for row in read_table(out / MANIFEST_FILE).to_pylist() if row["status"] == OK}
    found = [run for run in done if run.startswith(wanted)]
    if len(found) != 1:
        some = f"{len(found)} of its runs begin" if found else "none of its runs begins"
        what = f"{some} with {wanted!r}" if wanted else f"it has {len(found)} runs"
        raise RoamcastError(f"{out}: {what}; name one of them:{_listing(out, found or list(done), planned)}")
    (run,) = found
    scenario = msgspec.json.decode(planned[run]["scenario"], type=Scenario)
    stored, names = Stored(store or Store.at(out)), frozenset(table for table, rows in done[run]["rows"] if rows)
    folder = planned[run].get("folder")
    return RecordedRun(
        out, run, scenario, names, lambda table: stored.read(table, run), None if folder is None else Path(folder)
    )


def _listing(out: Path, runs: list[str], planned: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [f"\n  {out / run}   {_what(planned[run])}" for run in runs[:_LISTED]]
    return "".join(lines) + (f"\n  and {len(runs) - _LISTED} more" if len(runs) > _LISTED else "")


def _what(row: Mapping[str, Any]) -> str:
    """Describes a run, such as: hint, range 80, seed 3."""
    axes = [f"{label} {value}" for label, value in json.loads(row["axes"]).items()]
    return ", ".join([row["variant"], *axes, f"seed {row['seed']}"])
