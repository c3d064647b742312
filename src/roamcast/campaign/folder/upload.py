"""Copies a finished campaign to a place where others can read it.

The rules this file owns:

* It copies the files with the facts that the manifest lists, and what was computed from them; no orphans, no attempts.
* `campaign.json` is copied last, the manifest before it: a reader that finds them finds everything they refer to. A
  reader that arrives between the tables of two commits gets an error (`folder.read_commit`).
* A file of facts that is there already is not copied again: its name says which runs are in it. A pack is copied as
  it is, with runs that the campaign no longer has; packed anew (`packed=True`), only what the manifest lists is there.
"""

from pathlib import Path
from typing import Final

from roamcast.campaign.folder.layout import CAMPAIGN_FILE, MANIFEST_FILE, RUNS_FILE, check_version
from roamcast.campaign.folder.packs import repack
from roamcast.campaign.folder.schemas import MANIFEST_ARROW
from roamcast.campaign.folder.stored import INDEX, Stored
from roamcast.errors import RoamcastError
from roamcast.storage import Store

_LAST: Final = (RUNS_FILE, MANIFEST_FILE, CAMPAIGN_FILE)
_LEFT: Final = (".", "facts/", "done/", "tmp/")
"""Prefixes of the names that are not copied, or not as they are."""


def upload(out: Path, target: Store, *, packed: bool = False) -> int:
    """Publishes the campaign; returns the number of files written."""
    source = Store.at(out)
    missing = [name for name in _LAST if not (out / name).is_file()]
    if missing:
        raise RoamcastError(f"{out}: is not a finished campaign: {missing[0]} is missing")
    if target.absolute() == source.absolute():
        raise RoamcastError(f"{out}: cannot be copied to itself")
    check_version(out)
    stored = Stored(source)
    there = target.sizes(recursive=True)
    if there and CAMPAIGN_FILE not in there and target.local is not None:
        raise RoamcastError(f"{target}: is not empty and is not a campaign's folder: {CAMPAIGN_FILE} is missing")
    manifest = source.read_table(MANIFEST_FILE, schema=MANIFEST_ARROW).to_pylist()
    tables: dict[str, list[str]] = {}
    for row in manifest:
        for table, _ in row["rows"] or ():
            tables.setdefault(table, []).append(row["run"])
    if packed:
        count = repack(stored, tables, target)
    else:
        here = source.sizes("facts", recursive=True)
        names = [name for table, runs in tables.items() for name in stored.files(table, runs)]
        new = [name for name in names if there.get(name) != here[name]]
        for name in new:
            target.write(name, source.read(name))
        target.write(INDEX, stored.index_of([row["run"] for row in manifest]))
        count = len(new) + 1
    small = [name for name in sorted(source.sizes(recursive=True)) if not name.startswith(_LEFT) and name not in _LAST]
    for name in [*small, *_LAST]:
        target.write(name, source.read(name))
    return count + len(small) + len(_LAST)
