"""A campaign's folder: what is where, and the record of a finished run.

```
campaign.json              the experiments, the command, the version of the facts
runs.parquet               a row for each planned run        manifest.parquet   a row for each run that was done
plan.parquet               the same as runs.parquet, while the campaign is at work
facts/<table>/<pack>.parquet, facts/packed.parquet           done/<run>.run, done/<pack>.json
files/<hash>/<name>        what the runs read beside their scenarios
measures/                  run, summary and paired .parquet, about.json
claims.json                what became of the claims, if a paper's
```
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.define.described import Campaign
from roamcast.campaign.folder.schemas import FAILED, MANIFEST_ARROW, OK, RUNS_ARROW
from roamcast.errors import RoamcastError
from roamcast.facts.schema import FACTS_VERSION
from roamcast.files import read_json
from roamcast.sim.scenario.scenario import Scenario

CAMPAIGN_FILE: Final = "campaign.json"
MANIFEST_FILE: Final = "manifest.parquet"
RUNS_FILE: Final = "runs.parquet"
PLAN_FILE: Final = "plan.parquet"
RUN_MEASURES_FILE: Final = "measures/run.parquet"
SUMMARY_FILE: Final = "measures/summary.parquet"
PAIRED_FILE: Final = "measures/paired.parquet"
CLAIMS_FILE: Final = "claims.json"
COMMIT: Final = b"roamcast.runs"
"""The key, in the metadata of the manifest, for the `commit` of the runs that it was written with."""


def done_file(out: Path, run: str) -> Path:
    """The path of a run's file (`run_file`), until it is packed (`packs`)."""
    return out / "done" / f"{run}.run"


def check_version(out: Path) -> None:
    """Refuses a folder with facts of another version; does not check that the folder is a campaign's."""
    try:
        version = json.loads((out / CAMPAIGN_FILE).read_bytes()).get("version")
    except (OSError, ValueError, AttributeError):
        return
    if version is None:
        raise RoamcastError(
            f"{out}: its {CAMPAIGN_FILE} is damaged or is not a campaign's: run the campaign again elsewhere"
        )
    if version != FACTS_VERSION:
        raise RoamcastError(
            f"{out}: holds facts of version {version}, and this roamcast reads and writes version {FACTS_VERSION}: "
            "run the campaign again into another folder"
        )


def read_campaign(out: Path) -> Campaign:
    """The campaign of a folder, as it was requested."""
    if not (out / CAMPAIGN_FILE).is_file():
        raise _not_a_campaign(out)
    check_version(out)
    return read_json(out / CAMPAIGN_FILE, Campaign)


def _not_a_campaign(out: Path) -> RoamcastError:
    return RoamcastError(
        f"{out}: is not a campaign's folder ({CAMPAIGN_FILE} is missing): name the one that `roamcast campaign` or "
        "`roamcast papers` wrote"
    )


def commit(runs: pa.Table) -> str:
    """A hash of the planned runs and their places, which links `runs` to the manifest written with it."""
    columns = runs.select(["run", "experiment", "variant", "point", "axes", "seed"])
    return hashlib.sha256(json.dumps(columns.to_pydict()).encode()).hexdigest()


def write_commit(out: Path, runs: pa.Table, manifest: pa.Table) -> pa.Table:
    """Writes both tables atomically: the rename of the runs is the commit. Returns the manifest.

    A writer that is killed right after it leaves the manifest as a draft, and the next reader moves it into place.
    """
    manifest = manifest.replace_schema_metadata({COMMIT: commit(runs)})
    for name, table in ((RUNS_FILE, runs), (MANIFEST_FILE, manifest)):
        pq.write_table(table, _draft(out, name), compression="zstd")
    for name in (RUNS_FILE, MANIFEST_FILE):
        with contextlib.suppress(FileNotFoundError):  # a reader was faster
            _draft(out, name).replace(out / name)
    return manifest


def write_plan(out: Path, runs: pa.Table) -> None:
    """Writes what is about to be run, for those who watch: `runs.parquet` comes only when all of it is done."""
    write_table(out / PLAN_FILE, runs)


def write_table(file: Path, table: pa.Table) -> None:
    """Writes a table whole or not at all."""
    draft = _draft(file.parent, file.name)
    pq.write_table(table, draft, compression="zstd")
    draft.replace(file)


def read_plan(out: Path) -> pa.Table:
    """What is being run, or was planned last; no rows if nothing was planned yet."""
    for name in (PLAN_FILE, RUNS_FILE):
        if (out / name).is_file():
            with contextlib.suppress(RoamcastError):  # it was removed at this moment, and the other is there now
                return read_table(out / name).cast(RUNS_ARROW)
    return RUNS_ARROW.empty_table()


def read_commit(out: Path) -> tuple[pa.Table, pa.Table]:
    """The runs and the manifest that was written with them."""
    if not any((out / name).is_file() for name in (CAMPAIGN_FILE, RUNS_FILE)):
        raise _not_a_campaign(out)
    runs, manifest = read_table(out / RUNS_FILE), read_table(out / MANIFEST_FILE)
    draft = _draft(out, MANIFEST_FILE)
    if not _belong(runs, manifest) and draft.is_file():
        with contextlib.suppress(FileNotFoundError, RoamcastError):  # the writer was faster
            if _belong(runs, read_table(draft)):
                draft.replace(out / MANIFEST_FILE)
        runs, manifest = read_table(out / RUNS_FILE), read_table(out / MANIFEST_FILE)
    if not _belong(runs, manifest):
        raise RoamcastError(
            f"{out}: {RUNS_FILE} and {MANIFEST_FILE} do not belong together: one of them was replaced. Start the "
            "campaign again, which takes seconds"
        )
    return runs.cast(RUNS_ARROW), manifest.cast(MANIFEST_ARROW)


def _belong(runs: pa.Table, manifest: pa.Table) -> bool:
    metadata = manifest.schema.metadata or {}
    return metadata.get(COMMIT, b"").decode() in ("", commit(runs))


def _draft(out: Path, name: str) -> Path:
    return out / f".{name}.new"


def read_table(path: Path, **options: Any) -> pa.Table:  # noqa: ANN401  # those of pyarrow
    """A table of the folder; refuses one that is damaged or missing."""
    try:
        return pq.read_table(path, partitioning=None, **options)
    except (OSError, pa.ArrowException) as problem:
        why = "it is missing" if isinstance(problem, FileNotFoundError) else arrow_says(problem)
        raise RoamcastError(f"{path}: cannot be read: {why}: repeat the campaign's command") from None


def manifest_row(
    run: str, scenario: Scenario, error: str | None, rows: Mapping[str, int], digest: str
) -> dict[str, Any]:
    """A run's row of the manifest; `rows` counts by table, `digest` is of all its facts."""
    return {
        "run": run,
        "status": FAILED if error else OK,
        "error": error,
        "simulated": None if error else scenario.duration,
        "warmup": scenario.warmup,
        "nodes": scenario.nodes,
        "protocol": scenario.protocol.name,
        "rows": dict(rows),
        "digest": digest,
    }


def arrow_says(problem: Exception) -> str:
    """Arrow's message, without the file's name and its advice."""
    return str(problem).splitlines()[0].rpartition("': ")[2].partition(". ")[0]
