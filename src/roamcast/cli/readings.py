"""`roamcast papers NAME --readings`: which reading of a paper its results come out under."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa

from roamcast.analysis.measures.measure import Measures, read_about
from roamcast.campaign.define.experiment import Experiment
from roamcast.campaign.define.plan import plan
from roamcast.campaign.folder.results import read_values
from roamcast.cli.campaign_options import CampaignOptions, tell_failures
from roamcast.cli.screen import plain_console, table
from roamcast.errors import RoamcastError
from roamcast.papers.claims import Claim
from roamcast.papers.explore import MOST_HOURS, Campaigns, Cost, explore
from roamcast.papers.readings import load_readings

FILE: Final = "readings.json"
MET, MISSED, UNMEASURED = "✓", "✗", "–"


def explore_papers(
    names: Sequence[str], claims: Sequence[Claim], options: CampaignOptions, quick: bool, planning: bool, as_json: bool
) -> bool:
    """Plans, or explores and confirms, the readings of papers; returns whether every run succeeded."""
    succeeded = True
    for name in names:
        campaigns = Campaigns(load_readings(name), [claim for claim in claims if claim.paper == name], quick)
        cost = campaigns.cost()
        if cost.hours > MOST_HOURS:
            raise RoamcastError(
                f"the readings of {name} would take {cost.hours:.1f} CPU hours; at most {MOST_HOURS:g} are allowed: "
                "name fewer seeds or settings in its file"
            )
        if planning:
            _print_plan(campaigns, cost, as_json)
            continue
        folder = f"{name}-readings" + ("-quick" if quick else "")
        out = options.out if options.out and len(names) == 1 else (options.out or Path("out")) / folder
        stages = _Stages(options, out, ["papers", name, "--readings", *(["--quick"] if quick else [])])
        for found in explore(campaigns, stages.run):  # kept after each stage: the last one takes longest
            (out / FILE).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        succeeded = succeeded and not stages.failed
        if as_json:
            click.echo(json.dumps(found, ensure_ascii=False))
        else:
            _show(found)
            click.echo(f"all of it: {out / FILE}")
    return succeeded


def _print_plan(campaigns: Campaigns, cost: Cost, as_json: bool) -> None:
    name = campaigns.readings.paper
    if as_json:
        known = {"readings": cost.alone, "runs": cost.runs, "together": cost.together, "cpu_hours": cost.hours}
        click.echo(json.dumps({"paper": name, **known}))
        return
    for setting in campaigns.readings.settings:
        click.echo(f"{setting.kind:<9}  {setting.name}")
    hours = [cost.alone_s / 3600, cost.together * cost.together_s / 3600, 2 * cost.confirmed_s / 3600]
    click.echo(
        f"{name}: {cost.alone} readings, one setting each, {cost.runs} runs: {hours[0]:.1f} CPU hours; at most"
        f" {cost.together} of several settings: {hours[1]:.1f}; two confirmed: {hours[2]:.1f}; in all at most"
        f" {cost.hours:.1f} CPU hours"
    )


class _Stages:
    """Runs each stage of an exploration as a campaign in its own folder."""

    def __init__(self, options: CampaignOptions, out: Path, words: Sequence[str]) -> None:
        self._options = options
        self._out = out
        self._command = options.command(words, out)
        self.failed = False

    def run(self, experiments: Sequence[Experiment], stage: str) -> tuple[pa.Table, Measures]:
        out, planned = self._out / stage, plan(experiments)
        failures = self._options.run(experiments, planned, out, self._command)
        tell_failures(planned, failures, self._command)
        self.failed = self.failed or bool(failures)
        return read_values(out), read_about(out)


# --- Output ---------------------------------------------------------------------------------------------------------


def _show(found: dict[str, Any]) -> None:
    claims = list(found["tried"][0]["points"])
    rows = []
    for place, one in enumerate(found["tried"], 1):
        kind = "open" if one["open"] else "departure"
        marks = [_mark(one["points"][claim]) for claim in claims]
        rows.append([str(place), one["reading"], kind, str(one["met"]), f"{one['misses']:.2f}", *marks])
    head = ("", "reading", "", "met", "misses", *claims)
    plain_console().print(table(head, rows, ("met", "misses")))
    for line in _lines(found, len(claims)):
        click.echo(line)


def _mark(point: dict[str, Any]) -> str:
    return UNMEASURED if point["miss"] is None else MET if point["met"] else MISSED


def _lines(found: dict[str, Any], of: int) -> Iterator[str]:
    spread = ", ".join(f"{count} meet {met}" for met, count in found["distribution"].items())
    yield f"{len(found['tried'])} readings tried, of {of} main points: {spread}"
    yield from filter(None, (_under_none(found["tried"], claim) for claim in found["tried"][0]["points"]))
    for name, other in found["same"].items():
        yield f"{name}: every number as under {other!r}"
    for key, words in (("open", "open settings only"), ("departure", "with departures")):
        best = found["best"][key]
        fitted = next(one["met"] for one in found["tried"] if one["reading"] == best)
        left = found["left_out_open" if key == "open" else "left_out"]
        without = sum(one["met"] for one in left.values())
        verdicts = {one["id"]: one["main"] for one in found["confirmed"][best]}
        holding = [name for name, verdict in verdicts.items() if verdict == "holds"]
        yield f"best, {words}: {best}"
        yield f"    {fitted} of {of} met by the exploring seeds; {without} if each is left out of the choice"
        yield f"    confirmed by the judge on fresh seeds: {len(holding)} of {of} hold ({', '.join(holding) or 'none'})"


def _under_none(tried: Sequence[dict[str, Any]], claim: str) -> str:
    """What is said of a main point that no reading meets; empty for any other."""
    points = {one["reading"]: one["points"][claim] for one in tried}
    misses = {name: point["miss"] for name, point in points.items() if point["miss"] is not None}
    if any(point["met"] for point in points.values()):
        return ""
    if not misses:
        return f"{claim} was measured under no reading"
    nearest = min(misses, key=misses.__getitem__)
    at = points[nearest]["measured"]
    return f"{claim} under no reading; misses by {misses[nearest]:.3g} under {nearest!r}: {at}"
