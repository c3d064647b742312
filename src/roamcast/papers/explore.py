"""The campaigns by which a reading of a paper is chosen and confirmed, and how its main points come out in them.

Exploring is a preview of what the main points need, with the exploring seeds; confirming is everything that the judged
checks need, at full duration and points, with seeds that nothing was chosen by.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from roamcast import papers
from roamcast.analysis.measures.measure import Measures
from roamcast.campaign.define.experiment import Experiment
from roamcast.campaign.define.plan import Plan, plan
from roamcast.papers.claims import Claim
from roamcast.papers.judge import judge, places_of, told
from roamcast.papers.ranking import (
    MOST,
    MainPoint,
    different,
    distribution,
    left_out,
    mattered,
    ranked,
    scores,
    standardised,
)
from roamcast.papers.readings import (
    AS_IN_THE_LEDGER,
    Need,
    Reading,
    Readings,
    alone,
    claims_under,
    judged_checks,
    main_checks,
    needs,
    numbered,
    only_needed,
    together,
    under,
)
from roamcast.papers.terms import ClaimedCurves
from roamcast.papers.verdict import Verdict

MOST_HOURS: Final = 12.0
"""Of CPU, for all readings of a paper."""
MOST_TOGETHER: Final = 2 * (2**MOST - 1 - MOST)
"""Readings of several settings: of open ones, and of all."""


def with_main_points(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that runs can decide, each with its main point alone."""
    return [msgspec.structs.replace(claim, checks=tuple(main_checks(claim))) for claim in claims if claim.main]


class Campaigns:
    """The experiments of a paper under its readings. A reading's number is its place in the order of trying."""

    def __init__(self, found: Readings, claims: Sequence[Claim], quick: bool = False) -> None:
        self.readings = found
        self.claims = [claim for claim in claims if claim.main]
        self._whole = {one.name: one for one in papers.load([found.paper])}
        self._confirmed_in_full = not quick

    def exploring(self, tried: Sequence[tuple[int, Reading]], seeds: int | None = None) -> list[Experiment]:
        chosen = self.readings.exploring[:seeds]
        return self._under(tried, needs(self.claims, main_checks), chosen, papers.quick)

    def confirming(self, chosen: Sequence[tuple[int, Reading]], seeds: int | None = None) -> list[Experiment]:
        part = (lambda one: one) if self._confirmed_in_full else papers.quick
        return self._under(chosen, needs(self.claims, judged_checks), self.readings.confirming[:seeds], part)

    def _under(
        self,
        tried: Sequence[tuple[int, Reading]],
        needed: dict[str, Need],
        seeds: Sequence[int],
        part: Callable[[Experiment], Experiment],
    ) -> list[Experiment]:
        found = []
        for number, reading in tried:
            for name, need in needed.items():
                whole = self._whole[name]
                found.append(under(reading, only_needed(part(whole), need, seeds, whole), number, whole))
        return found

    def cost(self) -> "Cost":
        """An upper bound: the dearest readings may be the ones that are combined and confirmed.

        One seed is planned, and counted as often as there are seeds.
        """
        singles = list(enumerate(alone(self.readings.settings)))
        explored = [plan(self.exploring([one], seeds=1)) for one in singles]
        distinct = {run.run: run.estimate for planned in explored for run in planned.distinct}
        confirmed = max(_cpu(plan(self.confirming([one], seeds=1))) for one in singles)
        seeds = len(self.readings.exploring)
        return Cost(
            len(singles),
            len(distinct) * seeds,
            sum(distinct.values()) * seeds,
            MOST_TOGETHER,
            max(map(_cpu, explored)) * seeds,
            confirmed * len(self.readings.confirming),
        )


def _cpu(planned: Plan) -> float:
    return sum(run.estimate for run in planned.distinct)


class Cost(msgspec.Struct, frozen=True):
    """What all readings of a paper take, in seconds of CPU."""

    alone: int
    runs: int
    alone_s: float
    together: int
    """At most."""
    together_s: float
    """For each of them, at most."""
    confirmed_s: float
    """For each of two, at most."""

    @property
    def hours(self) -> float:
        return (self.alone_s + self.together * self.together_s + 2 * self.confirmed_s) / 3600


# --- Choosing -------------------------------------------------------------------------------------------------------


RunStage = Callable[[Sequence[Experiment], str], tuple[pa.Table, Measures]]
"""Runs experiments as the stage of that name; gives their values, and what is known about the measures."""


class TriedReading(NamedTuple):
    number: int
    reading: Reading
    points: dict[str, MainPoint]
    numbers: list[tuple[object, ...]]


def explore(campaigns: Campaigns, run: RunStage) -> Iterator[dict[str, Any]]:
    """Tries readings one at a time and together, chooses, and confirms: the content of `readings.json` after each."""
    settings = campaigns.readings.settings
    tried = _tried(campaigns, alone(settings), 0, run, "alone")
    yield _found(campaigns, tried)
    first = {one.reading.name: one.points for one in tried}
    several: dict[str, Reading] = {}
    for some in ([setting for setting in settings if setting.kind == "open"], settings):
        useful = mattered(first, AS_IN_THE_LEDGER, some, lambda setting: setting.name)
        several |= {reading.name: reading for reading in together(useful)}
    if several:
        tried += _tried(campaigns, several.values(), len(tried), run, "together")
        yield _found(campaigns, tried)
    found = _found(campaigns, tried)
    chosen = [one for one in tried if one.reading.name in found["best"].values()]
    values, about = run(campaigns.confirming([one[:2] for one in chosen]), "confirming")
    confirmed = {one.reading.name: verdicts(one.reading, one.number, campaigns.claims, values, about) for one in chosen}
    yield found | {"stage": "confirming", "confirmed": msgspec.to_builtins(confirmed)}


def _tried(
    campaigns: Campaigns, readings: Iterable[Reading], start: int, run: RunStage, stage: str
) -> list[TriedReading]:
    chosen, claims = list(enumerate(readings, start)), campaigns.claims
    values, about = run(campaigns.exploring(chosen), stage)
    return [
        TriedReading(number, one, main_points(one, number, claims, values, about), numbers(number, claims, values))
        for number, one in chosen
    ]


def _found(campaigns: Campaigns, every: Sequence[TriedReading]) -> dict[str, Any]:
    """The choice among the readings that were tried; readings with the same numbers are one."""
    same = different({one.reading.name: one.numbers for one in every})
    tried = {one.reading.name: one for one in every if same[one.reading.name] == one.reading.name}
    points = {name: one.points for name, one in tried.items()}
    open_ones = {name: points[name] for name, one in tried.items() if one.reading.is_open}
    order, score, misses = ranked(points), scores(points), standardised(points)
    return {
        "paper": campaigns.readings.paper,
        "stage": "alone" if len(every) == len(campaigns.readings.settings) + 1 else "together",
        "seeds": {"exploring": campaigns.readings.exploring, "confirming": campaigns.readings.confirming},
        "tried": [
            {
                "reading": name,
                "open": tried[name].reading.is_open,
                "met": score[name].met,
                "misses": -score[name].misses,
                "points": {
                    claim: point._asdict() | {"standardised": misses[name][claim]}
                    for claim, point in points[name].items()
                },
            }
            for name in order
        ],
        "same": {name: other for name, other in same.items() if name != other},
        "distribution": distribution(points),
        "left_out": {claim: one._asdict() for claim, one in left_out(points).items()},
        "left_out_open": {claim: one._asdict() for claim, one in left_out(open_ones).items()},
        "best": {"open": next(name for name in order if name in open_ones), "departure": order[0]},
        "confirmed": {},
    }


def main_points(
    reading: Reading, number: int, claims: Sequence[Claim], values: pa.Table, measured: Measures
) -> dict[str, MainPoint]:
    """How each main point comes out under a reading, by its means."""
    curves = ClaimedCurves(_of(values, number, claims))
    found = {}
    for claim in claims_under(reading, with_main_points(claims), number):
        numbers = places_of(claim.of_measures(measured).checks[0], curves).numbers
        if not numbers:
            found[claim.id] = MainPoint(False, None)
            continue
        slacks = [one.condition.mean.slack(one.found.mean) for one in numbers]
        met = all(one.condition.mean.has(one.found.mean) for one in numbers)
        tightest = numbers[slacks.index(min(slacks))]
        found[claim.id] = MainPoint(met, max(0.0, -min(slacks)), told(tightest))
    return found


def verdicts(
    reading: Reading, number: int, claims: Sequence[Claim], values: pa.Table, measured: Measures
) -> list[Verdict]:
    """The strict verdicts on claims under a reading, by their judged checks."""
    judged = [msgspec.structs.replace(claim, checks=tuple(judged_checks(claim))) for claim in claims]
    return judge(claims_under(reading, judged, number), _of(values, number, claims), measured)


def numbers(number: int, claims: Sequence[Claim], values: pa.Table) -> list[tuple[object, ...]]:
    """Everything that was measured under a reading: readings with the same numbers are one."""
    mine = _of(values, number, claims)
    tail = len(numbered("", number))
    rows = ((row["experiment"][:-tail], *list(row.values())[1:]) for row in mine.to_pylist())
    return sorted(rows, key=repr)


def _of(values: pa.Table, number: int, claims: Sequence[Claim]) -> pa.Table:
    names = [numbered(term.experiment, number) for claim in claims for check in claim.checks for term in check.terms]
    return values.filter(pc.is_in(values["experiment"], pa.array(dict.fromkeys(names), pa.string())))
