"""A process's claim on a campaign's folder, and what it writes there.

The rules this file owns:

* One process at a time works on a folder: it holds the lock.
* The manifest is written when every run of the plan is done or has failed, and says nothing that depends on when,
  where or how often they were tried. With it goes the table of runs, so that the two always fit each other. All facts
  of its runs are packed by then, and in the index.
"""

import contextlib
import errno
import fcntl
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from roamcast.campaign.define.described import Campaign
from roamcast.campaign.define.plan import CampaignError, Plan
from roamcast.campaign.define.provenance import provenance
from roamcast.campaign.folder.layout import CAMPAIGN_FILE, PLAN_FILE, write_commit
from roamcast.campaign.folder.packs import read_packs, write_index
from roamcast.campaign.folder.schemas import MANIFEST_ARROW, RUNS_ARROW
from roamcast.campaign.folder.survey import Survey, check_same_campaign
from roamcast.facts.schema import FACTS_VERSION
from roamcast.files import write_json

TEMPORARY: Final = "tmp"
"""The folder for what is being written."""
_LOCK_FILE: Final = ".lock"


@contextlib.contextmanager
def claimed(plan: Plan, out: Path, command: str) -> Iterator[None]:
    """Claims the folder for this campaign, and locks it for this process."""
    check_same_campaign(plan, out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / _LOCK_FILE).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignError(f"{out}: another process is at work on this campaign") from None
        except OSError as problem:
            if problem.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # storage without locks
                raise
        check_same_campaign(plan, out)  # again: another process may have been faster
        campaign = Campaign(FACTS_VERSION, command, list(plan.experiments), **provenance())
        write_json(out / CAMPAIGN_FILE, campaign)
        for folder in ("done", "facts"):
            (out / folder).mkdir(exist_ok=True)
        yield


@contextlib.contextmanager
def token_in(out: Path) -> Iterator[str]:
    """A file that tells executors to go on, and an empty folder for their attempts, removed afterwards."""
    temporary = out / TEMPORARY
    clear(temporary)
    temporary.mkdir(exist_ok=True)
    token = f"token-{uuid.uuid4().hex}"
    (temporary / token).touch()
    try:
        yield token
    finally:
        clear(temporary)


def clear(folder: Path) -> None:
    # What a running attempt writes here at this instant may stay until the next start.
    shutil.rmtree(folder, ignore_errors=True)


def write_tables(plan: Plan, out: Path, survey: Survey) -> pa.Table:
    write_index(out, read_packs(out).values())
    found = {**survey.ok, **survey.failed}
    rows = []
    for name in sorted(run.run for run in plan.distinct):
        if name not in found:
            raise CampaignError(f"{out}: the file of run {name}, which was done, is gone: start the campaign again")
        row = found[name]["row"]
        rows.append({**row, "rows": list(row["rows"].items())})
    runs = pa.Table.from_pylist(plan.rows, RUNS_ARROW)
    manifest = write_commit(out, runs, pa.Table.from_pylist(rows, MANIFEST_ARROW))
    (out / PLAN_FILE).unlink(missing_ok=True)
    return manifest
