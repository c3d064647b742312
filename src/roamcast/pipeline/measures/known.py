"""Values that were measured before and need not be measured again.

The rules this file owns:

* A value belongs to a run, a measure and the code of that measure. A run's name covers all that its facts depend on, so
  a value of the same three never changes. An edited measure is a new one; so is each that imports edited code.
* `measures/made_from.json` is written last. If it says what would be measured now, the tables beside it are up to date.
"""

import hashlib
import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.folder import MANIFEST_FILE, RUN_MEASURES_FILE, read_commit
from roamcast.campaign.identity import canonical_hash
from roamcast.campaign.plan import Plan
from roamcast.campaign.schemas import OK, RUN_MEASURES_ARROW
from roamcast.campaign.sources import digests_of, imported_by, imports
from roamcast.errors import RoamcastError
from roamcast.pipeline.measures.facts import Measure

MADE_FROM: Final = "measures/made_from.json"
_PLACE: Final = ("run", "experiment", "variant", "axes", "seed")
"""What makes a row of the table of runs the same in another plan."""


def code_of(measure: Measure) -> str:
    """A hash of the code that a measure executes, as far as it is roamcast's own or the measure's own file."""
    return _code_of(measure.function.__module__, inspect.getsourcefile(measure.function))


@cache
def _code_of(module: str, file: str | None) -> str:
    ours = imported_by([module])
    if ours:
        return canonical_hash(digests_of(ours))
    source = Path(file).read_bytes() if file else b""
    return canonical_hash([hashlib.sha256(source).hexdigest(), digests_of(imported_by(imports(source)))])


def made_from(out: Path, chosen: Sequence[Measure]) -> dict[str, Any]:
    """All that the tables of measures depend on."""
    manifest = hashlib.sha256((out / MANIFEST_FILE).read_bytes()).hexdigest()
    return {"manifest": manifest, "measures": {one.name: code_of(one) for one in chosen}}


def is_current(out: Path, chosen: Sequence[Measure]) -> bool:
    """Whether the tables are up to date."""
    made = _read(out)
    return bool(made) and made == made_from(out, chosen)


def has(out: Path, planned: Plan, chosen: Sequence[Measure]) -> bool:
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
    return not missing(known(out, chosen, ok), chosen, ok)


def write(out: Path, made: Mapping[str, Any]) -> None:
    draft = out / f"{MADE_FROM}.draft"
    draft.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    draft.replace(out / MADE_FROM)


def known(out: Path, chosen: Sequence[Measure], runs: Collection[str]) -> pa.Table:
    """RUN_MEASURES: the values of these runs and measures that are known already."""
    before = _read(out).get("measures", {})
    same = {one.name for one in chosen if before.get(one.name) == code_of(one)}
    if not same or not (out / RUN_MEASURES_FILE).is_file():
        return RUN_MEASURES_ARROW.empty_table()
    rows = pq.read_table(out / RUN_MEASURES_FILE, partitioning=None).to_pylist()
    return pa.Table.from_pylist(
        [row for row in rows if row["measure"] in same and row["run"] in runs], RUN_MEASURES_ARROW
    )


def missing(found: pa.Table, chosen: Sequence[Measure], runs: Collection[str]) -> dict[tuple[str, ...], list[str]]:
    """The runs that lack measures, grouped by the measures they lack: usually one group, or two."""
    there: dict[str, set[str]] = {run: set() for run in runs}
    for run, measure in zip(found["run"].to_pylist(), found["measure"].to_pylist(), strict=True):
        there[run].add(measure)
    groups: dict[tuple[str, ...], list[str]] = {}
    for run, measured in there.items():
        lacking = tuple(one.name for one in chosen if one.name not in measured)
        if lacking:
            groups.setdefault(lacking, []).append(run)
    return groups


def _read(out: Path) -> dict[str, Any]:
    try:
        made: dict[str, Any] = json.loads((out / MADE_FROM).read_bytes())
    except (OSError, ValueError):
        return {}
    return made
