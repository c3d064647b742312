"""What a campaign's folder has of a plan already, and whether it is that campaign's folder at all.

The rules this file owns:

* A folder belongs to one campaign. The same experiments may have more or fewer seeds, points, axes and variants than
  before; other experiments are refused, and so is a folder of anything else.
* Finished runs are kept. Started again, a campaign does the missing runs; failed runs are repeated only on request.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.campaign.define.described import ReportedExperiment
from roamcast.campaign.define.plan import CampaignError, Plan
from roamcast.campaign.folder.layout import (
    CAMPAIGN_FILE,
    COMMIT,
    MANIFEST_FILE,
    check_version,
    commit,
    done_file,
    read_campaign,
)
from roamcast.campaign.folder.packs import read_packs
from roamcast.campaign.folder.run_file import read_record
from roamcast.campaign.folder.schemas import FAILED, RUNS_ARROW
from roamcast.campaign.folder.stored import INDEX
from roamcast.campaign.progress import Forecast
from roamcast.errors import RoamcastError

_AT_ONCE: Final = 16
"""Files that are read at a time: on a shared file system, looking for one takes a millisecond of waiting."""


@dataclass(frozen=True)
class Survey:
    """What a folder already contains. `ok` and `failed` have the runs' records, by run."""

    ok: Mapping[str, dict[str, Any]]
    failed: Mapping[str, dict[str, Any]]
    waiting: Sequence[str]
    """The runs that are ok and not yet packed."""
    added: Sequence[str]
    """What the plan adds to an earlier plan of the same campaign, as text."""

    def forecast(self, plan: Plan) -> Forecast:
        """Predicts the CPU seconds of runs from the finished ones."""
        return Forecast(plan.distinct, {run: done["cpu"] for run, done in self.ok.items()})


def look(plan: Plan, out: Path) -> Survey:
    """Which of the plan's runs a folder has; it may not exist yet. Refuses a folder that is not this campaign's."""
    out = out.resolve()
    added = check_same_campaign(plan, out)
    packed = {run: done for one in read_packs(out).values() for run, done in one.runs.items()}
    alone = [run.run for run in plan.distinct if run.run not in packed]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        records = threads.map(read_record, (done_file(out, run) for run in alone))
        there = packed | {run: done for run, done in zip(alone, records, strict=True) if done}
    found = {run.run: there[run.run] for run in plan.distinct if run.run in there}
    failed = {run: done for run, done in found.items() if done["row"]["status"] == FAILED}
    ok = {run: done for run, done in found.items() if run not in failed}
    return Survey(ok, failed, [run for run in ok if run not in packed], added)


def check_same_campaign(plan: Plan, out: Path) -> list[str]:
    """What the plan adds to the folder's campaign."""
    if out.exists() and not out.is_dir():
        raise CampaignError(f"{out}: is a file, not a folder for a campaign")
    file = out / CAMPAIGN_FILE
    if not file.is_file():
        # A campaign that was killed at its start may have left its lock or a draft: both are hidden files.
        if out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()):
            raise CampaignError(f"{out}: is not empty and is not a campaign's folder: {CAMPAIGN_FILE} is missing")
        return []
    check_version(out)
    if (out / INDEX).is_file() and not (out / "done").is_dir():
        raise CampaignError(f"{out}: is a packed copy of a campaign, to be read: only the original can be added to")
    try:
        former = {one.name: one for one in read_campaign(out).experiments}
    except RoamcastError as problem:
        raise CampaignError(f"{problem}: it is not a campaign's file, or was cut short") from None
    _check_same(plan, former, out)
    return [addition for one in plan.experiments for addition in _additions(former[one.name], one)]


def _check_same(plan: Plan, former: Mapping[str, ReportedExperiment], out: Path) -> None:
    names = {one.name for one in plan.experiments}
    if names != set(former):
        raise CampaignError(
            f"{out}: holds another campaign, of {_listed(former)}, not of {_listed(names)}: choose another folder"
        )
    for one in plan.experiments:
        before = former[one.name].hashes
        for part, value in one.hashes.items():
            # Variants, axes and their values may be added or removed; those that stay must not change.
            changed = (
                [
                    f"{part[:-1]} {name!r}"
                    for name in value
                    if before.get(part, {}).get(name, value[name]) != value[name]
                ]
                if isinstance(value, dict)
                else [part] * (before.get(part) != value)
            )
            for what in changed:
                raise CampaignError(
                    f"{out}: holds another campaign: its experiment {one.name!r} had another {what} than "
                    f"{one.source} has now: choose another folder"
                )


def _additions(former: ReportedExperiment, now: ReportedExperiment) -> Iterator[str]:
    gains = [("seeds", _new(former.seeds, now.seeds))]
    gains.append(("variants", _new([one.name for one in former.variants], [one.name for one in now.variants])))
    before = {axis.label: axis.values for axis in former.axes}
    gains += [(axis.label, _new(before.get(axis.label, []), axis.values)) for axis in now.axes]
    for what, values in gains:
        if values:
            yield f"{now.name}: {what} {', '.join(map(str, values))}"


def _new(before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    return [value for value in now if value not in before]


def _listed(names: Any) -> str:  # noqa: ANN401  # any collection of names
    return ", ".join(map(repr, sorted(names)))


def settled(plan: Plan, out: Path) -> pa.Table | None:
    """The manifest, if it is this plan's and every run is done or has failed; else None."""
    out = out.resolve()
    survey = look(plan, out)
    missing = len(survey.ok) + len(survey.failed) < len(plan.distinct)
    if missing or survey.waiting or not (out / MANIFEST_FILE).is_file():
        return None
    manifest = pq.read_table(out / MANIFEST_FILE, partitioning=None)
    fits = (manifest.schema.metadata or {}).get(COMMIT) == commit(pa.Table.from_pylist(plan.rows, RUNS_ARROW)).encode()
    return manifest if fits else None
