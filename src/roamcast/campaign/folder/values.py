"""The values of measures in a campaign's folder: which are known, and need not be measured again.

The rules this file owns:

* A value belongs to a run, a measure and the code of that measure. A run's name covers all that its facts depend on, so
  a value of the same three never changes. An edited measure is a new one; so is each that imports edited code. What is
  pooled or computed over several runs is never kept: it changes with every run.
* Measures that are not asked for keep the values they have, whatever their code is now.
* `measures/made_from.json` is written last. If it says what would be measured now, the tables beside it are up to date.
"""

import hashlib
import inspect
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.measures.measure import Family, OverAllRuns, Pooled
from roamcast.campaign.define.experiment import Experiment, check_measures
from roamcast.campaign.define.identity import canonical_hash
from roamcast.campaign.define.plan import Plan
from roamcast.campaign.define.sources import digests_of, imported_by, imports
from roamcast.campaign.folder.layout import MANIFEST_FILE, RUN_MEASURES_FILE, read_commit
from roamcast.campaign.folder.schemas import OK, RUN_MEASURES_ARROW
from roamcast.errors import RoamcastError

MADE_FROM: Final = "measures/made_from.json"
_PLACE: Final = ("run", "experiment", "variant", "axes", "seed")
"""What makes a row of the table of runs the same in another plan."""


def with_measures(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The experiments with measures of files (`mine.py:busiest`) and groups of measures under the names that the
    catalogue has for them; refuses those that it does not have."""
    found = [
        one
        if one.spec.measures is None
        else replace(
            one,
            spec=msgspec.structs.replace(one.spec, measures=CATALOGUE.names(one.spec.measures, one.folder, one.source)),
        )
        for one in experiments
    ]
    check_measures(found, CATALOGUE)
    return found


def code_of(name: str) -> str:
    """A hash of the code that a measure executes, as far as it is roamcast's own or the measure's own file."""
    way = CATALOGUE.way(name)
    if isinstance(way, Pooled):
        return canonical_hash([code_of(way.part), code_of(way.whole)])
    function = inspect.unwrap(way.function)
    return _code_of(function.__module__, inspect.getsourcefile(function))


@cache
def _code_of(module: str, file: str | None) -> str:
    ours = imported_by([module])
    if ours:
        return canonical_hash(digests_of(ours))
    source = Path(file).read_bytes() if file else b""
    return canonical_hash([hashlib.sha256(source).hexdigest(), digests_of(imported_by(imports(source)))])


def made_from(out: Path, names: Sequence[str]) -> dict[str, Any]:
    """All that the tables of measures depend on, once these measures are up to date."""
    manifest = hashlib.sha256((out / MANIFEST_FILE).read_bytes()).hexdigest()
    return {"manifest": manifest, "measures": _codes(out) | {name: code_of(name) for name in names}}


def is_current(out: Path, names: Sequence[str]) -> bool:
    """Whether the tables have these measures of all runs and are up to date."""
    _, manifest = read_commit(out)  # refuses what is not a campaign's folder
    if _read(out) != made_from(out, names):
        return False
    ok = {row["run"] for row in manifest.to_pylist() if row["status"] == OK}
    asked = [name for name in names if kept(name)]
    return not asked or not lacking(known(out, asked, ok), asked, ok)


def has(out: Path, planned: Plan, names: Sequence[str]) -> bool:
    """Whether the folder has the results of all planned runs, and perhaps of others: in its tables, and measured if
    they did not fail."""
    if not (out / RUN_MEASURES_FILE).is_file():
        return False
    try:
        runs, manifest = (table.to_pylist() for table in read_commit(out))
    except RoamcastError:  # a damaged table is written again
        return False
    there = {tuple(row[name] for name in _PLACE) for row in runs}
    if not all(tuple(row[name] for name in _PLACE) in there for row in planned.rows):
        return False
    wanted = {run.run for run in planned.distinct}
    ok = {row["run"] for row in manifest if row["status"] == OK} & wanted
    if any(isinstance(CATALOGUE.way(name), OverAllRuns) for name in names):
        return False
    of_runs = with_parts(names)
    return not lacking(known(out, of_runs, ok), [name for name in of_runs if kept(name)], ok)


def with_parts(names: Iterable[str]) -> list[str]:
    """These names, each once, and those of the measures that pooled ones are made from."""
    found = []
    for name in names:
        way = CATALOGUE.way(name)
        found += [way.part, way.whole, name] if isinstance(way, Pooled) else [name]
    return list(dict.fromkeys(found))


def kept(name: str) -> bool:
    """Whether values of this measure are kept for later: those of one run, not those that depend on others too."""
    return isinstance(CATALOGUE.way(name), Family)


def known(out: Path, names: Sequence[str], runs: Collection[str]) -> pa.Table:
    """RUN_MEASURES: the values of these runs and measures that are known already."""
    before = _codes(out)
    return _stored(out, [name for name in names if kept(name) and before.get(name) == code_of(name)], runs)


def others(out: Path, names: Sequence[str], runs: Collection[str]) -> pa.Table:
    """RUN_MEASURES: the values of these runs by all other measures of the folder."""
    return _stored(out, [name for name in _codes(out) if name not in names], runs)


def _stored(out: Path, names: Sequence[str], runs: Collection[str]) -> pa.Table:
    if not names or not (out / RUN_MEASURES_FILE).is_file():
        return RUN_MEASURES_ARROW.empty_table()
    rows = pq.read_table(out / RUN_MEASURES_FILE, partitioning=None)
    by_name = pc.is_in(rows["measure"], pa.array(names, pa.string()))
    return rows.filter(pc.and_(by_name, pc.is_in(rows["run"], pa.array(sorted(runs), pa.string())))).cast(
        RUN_MEASURES_ARROW
    )


def lacking(found: pa.Table, names: Sequence[str], runs: Collection[str]) -> list[str]:
    """Those of the runs that have no value of one of these measures, in order."""
    ours = found.filter(pc.is_in(found["measure"], pa.array(names, pa.string())))
    counted = ours.group_by("run").aggregate([([], "count_all")])
    complete = counted.filter(pc.equal(counted["count_all"], len(names)))["run"]
    every = pa.array(sorted(runs), pa.string())
    missing: list[str] = every.filter(pc.invert(pc.is_in(every, complete))).to_pylist()
    return missing


def _codes(out: Path) -> dict[str, str]:
    codes: dict[str, str] = _read(out).get("measures", {})
    return codes


def _read(out: Path) -> dict[str, Any]:
    try:
        made: dict[str, Any] = json.loads((out / MADE_FROM).read_bytes())
    except (OSError, ValueError):
        return {}
    return made
