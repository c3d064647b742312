"""`roamcast papers NAME --readings`: which reading of a paper its results come out under."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec

from roamcast.campaign.define.plan import plan
from roamcast.cli.campaign_options import CampaignOptions, tell_failures
from roamcast.cli.screen import plain_console, table
from roamcast.errors import RoamcastError
from roamcast.papers.claims import Claim

if TYPE_CHECKING:  # imports Arrow and numpy
    from roamcast.campaign.define.experiment import Experiment
    from roamcast.papers.explore import Campaigns
    from roamcast.papers.ranking import MainPoint
    from roamcast.papers.readings import Reading
    from roamcast.papers.verdict import Verdict

FILE: Final = "readings.json"
MET, MISSED, UNMEASURED = "✓", "✗", "–"


def explore_papers(
    names: Sequence[str], claims: Sequence[Claim], options: CampaignOptions, quick: bool, planning: bool, as_json: bool
) -> bool:
    """Plans, or explores and confirms, the readings of papers; returns whether every run succeeded."""
    from roamcast.papers.explore import Campaigns
    from roamcast.papers.readings import load_readings

    succeeded = True
    for name in names:
        campaigns = Campaigns(load_readings(name), [claim for claim in claims if claim.paper == name], quick)
        if planning:
            _print_plan(campaigns, as_json)
            continue
        cost = campaigns.cost()
        _check_cost(name, cost.hours)
        folder = f"{name}-readings" + ("-quick" if quick else "")
        out = options.out if options.out and len(names) == 1 else (options.out or Path("out")) / folder
        words = ["papers", name, "--readings", *(["--quick"] if quick else [])]
        explored = _Explored(campaigns, options, out, words)
        found = explored.run()
        succeeded = succeeded and not explored.failed
        (out / FILE).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if as_json:
            click.echo(json.dumps(found, ensure_ascii=False))
        else:
            _show(found)
            click.echo(f"all of it: {out / FILE}")
    return succeeded


def _check_cost(name: str, hours: float) -> None:
    from roamcast.papers.explore import MOST_HOURS

    if hours > MOST_HOURS:
        raise RoamcastError(
            f"the readings of {name} would take {hours:.1f} CPU hours; at most {MOST_HOURS:g} are allowed: name fewer"
            " seeds or settings in its file"
        )


def _print_plan(campaigns: "Campaigns", as_json: bool) -> None:
    cost, name = campaigns.cost(), campaigns.readings.paper
    _check_cost(name, cost.hours)
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


class _Tried(NamedTuple):
    """A reading that was tried."""

    number: int
    reading: "Reading"
    points: "dict[str, MainPoint]"
    numbers: list[tuple[object, ...]]


class _Explored:
    """Tries readings one at a time and together, chooses, and confirms."""

    def __init__(self, campaigns: "Campaigns", options: CampaignOptions, out: Path, words: Sequence[str]) -> None:
        self._campaigns = campaigns
        self._options = options
        self._out = out
        self._words = words
        self.failed = False

    def run(self) -> dict[str, Any]:
        from roamcast.papers.ranking import different, mattered
        from roamcast.papers.readings import Reading, alone, together

        settings = self._campaigns.readings.settings
        tried = self._try(list(enumerate(alone(settings))), "alone")
        first = {one.reading.name: one.points for one in tried}
        ways = ([setting for setting in settings if setting.kind == "open"], settings)
        several: dict[str, Reading] = {}
        for some in ways:
            useful = mattered(first, Reading().name, some, lambda setting: setting.name)
            several |= {reading.name: reading for reading in together(useful)}
        if several:
            tried += self._try(list(enumerate(several.values(), len(tried))), "together")
        same = different({one.reading.name: one.numbers for one in tried})
        counted = [one for one in tried if same[one.reading.name] == one.reading.name]
        return self._found(counted, {name: other for name, other in same.items() if name != other})

    def _try(self, readings: "list[tuple[int, Reading]]", stage: str) -> list[_Tried]:
        from roamcast.papers.explore import main_points, numbers

        values, about = self._campaign(self._campaigns.exploring(readings), stage)
        claims = self._campaigns.claims
        return [
            _Tried(number, one, main_points(one, number, claims, values, about), numbers(number, claims, values))
            for number, one in readings
        ]

    def _campaign(self, experiments: "Sequence[Experiment]", stage: str) -> Any:  # noqa: ANN401  # a table, and measures
        from roamcast.analysis.measures.measure import read_about
        from roamcast.campaign.folder.results import read_values

        out, planned = self._out / stage, plan(experiments)
        command = self._options.command(self._words, self._out)
        failures = self._options.run(experiments, planned, out, command)
        tell_failures(planned, failures, command)
        self.failed = self.failed or bool(failures)
        return read_values(out), read_about(out)

    def _found(self, tried: Sequence[_Tried], same: Mapping[str, str]) -> dict[str, Any]:
        from roamcast.papers.ranking import distribution, left_out, ranked, scores, standardised

        points = {one.reading.name: one.points for one in tried}
        by_name = {one.reading.name: one for one in tried}
        open_ones = {name: points[name] for name in points if by_name[name].reading.is_open}
        order, score, misses = ranked(points), scores(points), standardised(points)
        best = {"open": next(name for name in order if name in open_ones), "departure": order[0]}
        verdicts = self._confirm({name: by_name[name] for name in dict.fromkeys(best.values())})
        return {
            "paper": self._campaigns.readings.paper,
            "seeds": {
                "exploring": self._campaigns.readings.exploring,
                "confirming": self._campaigns.readings.confirming,
            },
            "tried": [
                {
                    "reading": name,
                    "open": by_name[name].reading.is_open,
                    "met": score[name].met,
                    "misses": -score[name].misses,
                    "points": {
                        claim: {"met": point.met, "miss": point.miss, "standardised": misses[name][claim]}
                        for claim, point in points[name].items()
                    },
                }
                for name in order
            ],
            "same": dict(same),
            "distribution": distribution(points),
            "left_out": {claim: one._asdict() for claim, one in left_out(points).items()},
            "left_out_open": {claim: one._asdict() for claim, one in left_out(open_ones).items()},
            "best": best,
            "confirmed": {name: msgspec.to_builtins(found) for name, found in verdicts.items()},
        }

    def _confirm(self, chosen: Mapping[str, _Tried]) -> "dict[str, list[Verdict]]":
        from roamcast.papers.explore import verdicts

        readings = [(one.number, one.reading) for one in chosen.values()]
        values, about = self._campaign(self._campaigns.confirming(readings), "confirming")
        claims = self._campaigns.claims
        return {name: verdicts(one.reading, one.number, claims, values, about) for name, one in chosen.items()}


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
    return f"{claim} under no reading; misses by {misses[nearest]:.3g} under {nearest!r}"
