"""Checks file by file that a campaign's folder holds what its manifest says, and lists what else is in it.

The rules this file owns:

* A run is right if each of its tables has the columns and the number of rows in the manifest, and if the digests of
  its packs show that they are the files that were written.
* An *orphan* belongs to no run of the manifest: facts of seeds or points that were left out since, of code that was
  edited since, or of a campaign that was killed. Nothing reads it; it goes on request, never by itself. A pack is one
  when all of its runs are.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.define.inputs import FILES
from roamcast.campaign.folder.layout import (
    CAMPAIGN_FILE,
    MANIFEST_FILE,
    check_version,
    done_file,
    read_commit,
    read_table,
)
from roamcast.campaign.folder.packs import read_packs
from roamcast.campaign.folder.run_file import read_record
from roamcast.campaign.folder.schemas import FACTS_ARROW, MANIFEST_ARROW
from roamcast.campaign.folder.stored import INDEX, FactsPlace, Stored, groups_of
from roamcast.errors import RoamcastError
from roamcast.storage import Store, fetched


def check_facts(out: Path, runs: Collection[str], store: Store) -> None:
    """Refuses facts of these runs, in `store`, that are not what was written; names the first few and the remedy."""
    among = frozenset(runs)
    wanted = [row for row in _manifest(out) if row["run"] in among]
    problems = list(_problems(store, wanted))
    if problems:
        more = f"\nand {len(problems) - 3} more" if len(problems) > 3 else ""
        remedy = (
            "remove the files and start the campaign again, which does those runs again"
            if store.local is not None
            else "upload the campaign again"
        )
        raise RoamcastError("\n".join(problems[:3]) + f"{more}\n`roamcast verify {store}` lists all problems; {remedy}")


def verify(place: Path | Store) -> tuple[int, list[str]]:
    """How many runs were checked, and the problems of the folder, one line each."""
    store = Store.at(place)
    with fetched(store) as out:
        return _verify(out, store)


def _verify(out: Path, store: Store) -> tuple[int, list[str]]:
    if not (out / CAMPAIGN_FILE).is_file():
        raise RoamcastError(
            f"{store}: is not a campaign's folder ({CAMPAIGN_FILE} is missing): name the one that `roamcast campaign` "
            "wrote"
        )
    check_version(out)
    manifest = _manifest(out)
    problems = []
    try:
        read_commit(out)
    except RoamcastError as problem:
        problems.append(str(problem))
    return len(manifest), [*problems, *_problems(store, manifest)]


def _problems(store: Store, manifest: list[dict[str, Any]]) -> Iterator[str]:
    stored = Stored(store)
    expected: dict[str, list[tuple[str, str, FactsPlace, int]]] = {}  # by file: table, run, place, rows
    for row in manifest:
        for table, rows in row["rows"] or ():
            try:
                place = stored.place(table, row["run"])
            except RoamcastError as problem:
                yield str(problem)
            else:
                expected.setdefault(place.file, []).append((table, row["run"], place, rows))
    for name, runs in sorted(expected.items()):
        try:
            with store.open(name) as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            if digest != runs[0][2].digest:
                yield f"{store}/{name}: is not the file that was written: its digest differs"
            with store.open(name) as content, pq.ParquetFile(content) as file:
                schema, metadata = file.schema_arrow, file.metadata
            yield from _of_columns(f"{store}/{name}", runs[0][0], schema)
            for table, run, place, rows in runs:
                if place.rows != rows or not _has(metadata, place):
                    yield f"{store}/{name}: run {run} does not have the {rows} rows of {table} that were written"
        except (OSError, pa.ArrowException, RoamcastError) as problem:
            yield f"{store}/{name}: {problem}"


def _has(metadata: pq.FileMetaData, place: FactsPlace) -> bool:
    there: int = sum(metadata.row_group(group).num_rows for group in groups_of(place, metadata))
    return there >= place.offset + place.rows


def _of_columns(path: str, table: str, schema: pa.Schema) -> Iterator[str]:
    expected = FACTS_ARROW.get(table)
    if expected is not None and not schema.equals(expected):
        differing = sorted(set(schema.names) ^ set(expected.names)) or "types"
        yield f"{path}: its columns are not those of {table}: {differing}"


def orphans(out: Path) -> list[Path]:
    """The files that belong to no run of the manifest. The file that makes a pack count comes before its others."""
    manifest = _manifest(out)
    if not (out / "done").is_dir():  # a copy, which has no orphans
        return []
    runs, packs, stored = {row["run"] for row in manifest}, read_packs(out), Stored(Store.at(out))
    packed = {name: one for name, one in packs.items() if one.runs.keys() & runs}
    ours = {out / "done" / f"{name}.json" for name in packed}
    ours |= {done_file(out, run) for run in runs.difference(*(one.runs for one in packed.values()))}
    ours |= {out / stored.place(table, row["run"]).file for row in manifest for table, _ in row["rows"] or ()}
    ours |= {out / INDEX}
    records = [done for one in packed.values() for done in one.runs.values()]
    records += [done for run in runs if (done := read_record(done_file(out, run)))]
    inputs = {(out / FILES / place).parent for done in records for place in done.get("inputs", ())}
    found = [*sorted(out.glob("done/*")), *sorted(out.glob("facts/*/*")), *sorted(out.glob("facts/*.*"))]
    return [path for path in found if path not in ours] + sorted(
        path for path in out.glob(f"{FILES}/*") if path not in inputs
    )


def remove(paths: list[Path]) -> int:
    """Removes orphans; returns the number of bytes freed."""
    freed = 0
    for path in paths:
        files = [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]
        freed += sum(file.stat().st_size for file in files)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return freed


def _manifest(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(out / MANIFEST_FILE, schema=MANIFEST_ARROW).to_pylist()
    return rows
