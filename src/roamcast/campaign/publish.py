"""A finished campaign, copied to where others read it.

The rules this file owns:

* What is copied is what the manifest lists, and what was made of it; no orphans, no attempts.
* `campaign.json` goes last, the manifest before it: whoever finds them finds all that they speak of. A reader who comes
  between the tables of two commits is told (`folder.read_commit`).
* A file of facts that is there already is not copied again: a run's name says what is in its files.
"""

from pathlib import Path
from typing import Final

from roamcast.campaign.folder import CAMPAIGN_FILE, MANIFEST_FILE, RUNS_FILE, check_version, facts_name
from roamcast.campaign.schemas import MANIFEST_ARROW
from roamcast.errors import RoamcastError
from roamcast.storage import Store

_LAST: Final = (RUNS_FILE, MANIFEST_FILE, CAMPAIGN_FILE)
_LEFT: Final = (".", "facts/", "done/", "tmp/")
"""How names begin that are not copied, or not as they are found."""


def publish(out: Path, target: Store) -> int:
    """Gives the number of files that were copied."""
    source = Store.at(out)
    missing = [name for name in _LAST if not (out / name).is_file()]
    if missing:
        raise RoamcastError(f"{out}: is no finished campaign: {missing[0]} is missing")
    if target == source:
        raise RoamcastError(f"{out}: cannot be copied to itself")
    check_version(out)
    manifest = source.read_table(MANIFEST_FILE, schema=MANIFEST_ARROW).to_pylist()
    facts = [facts_name(table, row["run"]) for row in manifest for table, _ in row["rows"] or ()]
    there = target.sizes("facts", recursive=True)
    new = [name for name in facts if there.get(name) != (out / name).stat().st_size]
    small = [name for name in sorted(source.sizes(recursive=True)) if not name.startswith(_LEFT) and name not in _LAST]
    for name in [*new, *small, *_LAST]:
        target.write(name, source.read(name))
    return len(new) + len(small) + len(_LAST)
