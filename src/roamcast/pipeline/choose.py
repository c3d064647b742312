"""A race between protocols on somebody's own network, on Spark: look by look, and once more on fresh seeds.

Who is dropped when is the business of `campaign.race`. The rules this file owns:

* The race and what is measured on fresh seeds are two campaigns, in `OUT/race` and `OUT/fresh`, which can be gone on
  with, reported and verified like any other.
* Fresh seeds begin where those of the race can never come.
* Time is kept: no look is begun that would not leave room for the fresh seeds, and whatever runs when the time is up is
  stopped. What was done by then is measured all the same, and the result says that it is undecided.
* A candidate of which a run fails is out of the race, with the error as the reason.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from roamcast.campaign.experiment import Experiment
from roamcast.campaign.plan import Plan, plan
from roamcast.campaign.progress import OnProgress, State
from roamcast.campaign.race import Dropped, Race, Rules, Seen
from roamcast.campaign.statistics import Estimate, interval
from roamcast.pipeline import measures, simulate
from roamcast.pipeline.measures.deadlines import within

FRESH: Final = 1_000_000
"""The first of the fresh seeds."""
MOST_FRESH: Final = 10
LEAST_FRESH: Final = 2
RESERVED_FRESH: Final = 3
"""No look is begun that would not leave time for so many fresh seeds of those left now."""
_RESERVE: Final = 1.3
"""How much longer than the last look, by seed and candidate, the next one may take."""

COSTS: Final = {"airtime": "airtime_per_delivery", "packets": "overhead", "bits": "bits_per_delivery"}


@dataclass(frozen=True)
class Goal:
    """What has to be reached, and what it is paid in: names of measures."""

    measure: str
    at_least: float
    cost: str
    possible: str
    """What any protocol could have reached."""

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.measure, self.cost, self.possible)))


def goal(measure: str, at_least: float, deadline: float | None, cost: str) -> Goal:
    """`delivery` and `of-possible` are by the deadline, if there is one; other measures are taken as they are."""
    if deadline is not None:
        for one in within(deadline):
            measures.MEASURES.setdefault(one.name, one)
    by = "" if deadline is None else f"_{deadline:g}"
    named = {
        "delivery": f"satisfaction{by}" if by else "delivery",
        "of-possible": f"delivered_of_possible{by}",
    }
    return Goal(named.get(measure, measure), at_least, COSTS[cost], f"possible{by}")


@dataclass(frozen=True)
class Figures:
    """What a candidate came to over some seeds."""

    seeds: int
    goal: Estimate
    cost: Estimate
    """The geometric mean and its interval; infinite where some run delivered nothing."""
    possible: float | None


@dataclass
class Choice:
    """The result of a race."""

    left: list[str]
    """The winner, or those that are not separated: the cheapest first, of those whose mean meets the goal."""
    reachable: bool
    """Whether some candidate may meet the goal."""
    ended: str
    """Why it ended, in words."""
    dropped: list[Dropped]
    race: dict[str, Figures]
    fresh: dict[str, Figures] = field(default_factory=dict)
    """Of those left, on seeds that had no part in the choice."""

    @property
    def decided(self) -> bool:
        return len(self.left) == 1 and self.ended == ONE_LEFT


ONE_LEFT: Final = "one candidate is left"
THE_SAME: Final = "those left meet the goal at the same cost, within 5 %"
TIME_IS_UP: Final = "the time was up"
NO_MORE_SEEDS: Final = "the seeds were used up"

Tell = Callable[[str], None]


class _TimeUp(Exception):
    pass


class Chooser:
    """One race."""

    def __init__(
        self,
        spark: SparkSession,
        experiment: Experiment,
        wanted: Goal,
        out: Path,
        *,
        until: float,
        command: str = "",
        rules: Rules | None = None,
        on_progress: OnProgress | None = None,
        tell: Tell = lambda _: None,
    ) -> None:
        """`experiment` has the candidates as its variants; `until` is a time of `time.monotonic`."""
        self._spark = spark
        self._experiment = experiment
        self._wanted = wanted
        self._out = out
        self._until = until
        self._command = command
        self._rules = rules or Rules(wanted.at_least)
        self._on_progress = on_progress
        self._tell = tell

    def choose(self) -> Choice:
        race = Race([variant.name for variant in self._experiment.variants], self._rules)
        seeds: dict[str, int] = {}
        seen: dict[str, list[Seen]] = {}
        possible: dict[str, float | None] = {}
        failed: list[Dropped] = []
        ended, pace, before = TIME_IS_UP, 0.0, 0
        for n in self._rules.looks:
            cost_of_look = pace * (n - before + RESERVED_FRESH) * len(race.left) * _RESERVE
            if time.monotonic() + cost_of_look > self._until:
                break
            started = time.monotonic()
            for arm in race.left:
                seeds[arm] = n
            whole = self._simulate(self._experiment, "race", seeds)
            seen, possible, failures = self._seen("race", seeds)
            failed += [Dropped(arm, seeds[arm], why) for arm, why in failures.items() if arm in race.left]
            race.left = [arm for arm in race.left if arm not in failures]
            if not whole or not race.left:
                ended = TIME_IS_UP if race.left else "no candidate could be run"
                break
            pace = (time.monotonic() - started) / ((n - before) * max(1, len(race.left)))
            before = n
            for out in race.look({arm: seen[arm] for arm in race.left}):
                self._tell(f"{out.arm} dropped after {out.seeds} seeds: {out.reason}")
            self._tell(f"{n} seeds: {self._ranking(race.left, seen)}")
            if race.over:
                ended = _why_over(race, n)
                break
        figures = {arm: _figures(runs, possible.get(arm)) for arm, runs in seen.items() if runs}
        left = sorted(race.left, key=lambda arm: _rank(figures.get(arm), race.reachable, self._wanted.at_least))
        choice = Choice(left, race.reachable, ended, [*failed, *race.dropped], figures)
        if before:
            self._measure_afresh(choice, pace, min(before, MOST_FRESH))
        return choice

    def _measure_afresh(self, choice: Choice, pace: float, wanted: int) -> None:
        """Those left on new seeds, as many as there is time for."""
        room = self._until - time.monotonic()
        n = min(wanted, int(room / (pace * len(choice.left) * _RESERVE))) if choice.left else 0
        if n < LEAST_FRESH:
            return
        self._tell(f"measuring {', '.join(choice.left)} on {n} fresh seeds")
        variants = tuple(one for one in self._experiment.variants if one.name in choice.left)
        spec = msgspec.structs.replace(
            self._experiment.spec, seeds=tuple(range(FRESH, FRESH + MOST_FRESH)), variants=variants
        )
        seeds = dict.fromkeys(choice.left, n)
        afresh = dataclasses.replace(self._experiment, spec=spec)
        self._simulate(afresh, "fresh", seeds)
        seen, possible, _ = self._seen("fresh", seeds)
        choice.fresh = {
            arm: _figures(runs, possible.get(arm)) for arm, runs in seen.items() if len(runs) >= LEAST_FRESH
        }
        choice.left.sort(
            key=lambda arm: _rank(choice.fresh.get(arm, choice.race.get(arm)), choice.reachable, self._wanted.at_least)
        )

    # --- Runs -------------------------------------------------------------------------------------------------------

    def _simulate(self, experiment: Experiment, place: str, seeds: Mapping[str, int]) -> bool:
        """Runs and measures so many seeds of each candidate; False if the time was up before all were done."""
        planned = plan([experiment], max(seeds.values()))
        first = min(row["seed"] for row in planned.rows)
        planned = planned.only(lambda row: row["seed"] - first < seeds.get(row["variant"], 0))
        whole = True
        try:
            self._run(planned, place)
        except _TimeUp:
            whole = False
            survey = simulate.look(planned, self._out / place)
            planned = planned.only(lambda row: row["run"] in survey.ok or row["run"] in survey.failed)
            if planned.rows:
                self._run(planned, place)  # nothing is left to do: it writes the tables of what is done
        if planned.rows:
            measures.measure(self._spark, self._out / place, self._wanted.measures)
        return whole

    def _run(self, planned: Plan, place: str) -> None:
        simulate.simulate(self._spark, planned, self._out / place, self._watch, command=self._command)

    def _watch(self, state: State) -> None:
        if self._on_progress is not None:
            self._on_progress(state)
        if time.monotonic() > self._until and state.done + state.failed < state.total:
            raise _TimeUp

    # --- What came of them ------------------------------------------------------------------------------------------

    def _seen(
        self, place: str, seeds: Mapping[str, int]
    ) -> tuple[dict[str, list[Seen]], dict[str, float | None], dict[str, str]]:
        """By candidate: its runs in the order of their seeds, what was possible, and the error of one that failed."""
        folder = self._out / place
        if not (folder / "measures" / "run.parquet").is_file():
            return {}, {}, {}
        values: dict[str, dict[str, float | None]] = {}
        for row in pq.read_table(folder / "measures" / "run.parquet", partitioning=None).to_pylist():
            values.setdefault(row["run"], {})[row["measure"]] = row["value"]
        errors = dict(
            zip(
                *(pq.read_table(folder / "manifest.parquet")[name].to_pylist() for name in ("run", "error")),
                strict=True,
            )
        )
        rows = sorted(pq.read_table(folder / "runs.parquet").to_pylist(), key=lambda row: int(row["seed"]))
        seen: dict[str, list[Seen]] = {arm: [] for arm in seeds}
        possible: dict[str, list[float]] = {arm: [] for arm in seeds}
        failures: dict[str, str] = {}
        for row in rows:
            if errors.get(row["run"]):
                failures.setdefault(row["variant"], f"seed {row['seed']} failed: {errors[row['run']]}")
            elif row["run"] in values:
                of_run = values[row["run"]]
                reached, cost = of_run[self._wanted.measure], of_run[self._wanted.cost]
                seen[row["variant"]].append(Seen(reached or 0.0, math.inf if cost is None else cost))
                could = of_run[self._wanted.possible]
                possible[row["variant"]] += [] if could is None else [could]
        return seen, {arm: math.fsum(some) / len(some) if some else None for arm, some in possible.items()}, failures

    def _ranking(self, left: Sequence[str], seen: Mapping[str, Sequence[Seen]]) -> str:
        figures = {arm: _figures(seen[arm], None) for arm in left}
        ranked = sorted(left, key=lambda arm: _rank(figures[arm], True, self._wanted.at_least))
        return ", ".join(f"{arm} {figures[arm].goal.mean:.3f} at {figures[arm].cost.mean:.3g}" for arm in ranked)


def _why_over(race: Race, seeds: int) -> str:
    if len(race.left) == 1:
        return ONE_LEFT
    return NO_MORE_SEEDS if seeds >= max(race.rules.looks) else THE_SAME


def _figures(runs: Sequence[Seen], possible: float | None) -> Figures:
    if any(math.isinf(run.cost) for run in runs):
        cost = Estimate(math.inf, math.inf, math.inf)
    else:
        cost = Estimate(*map(_exp, interval([math.log(run.cost) for run in runs])))
    return Figures(len(runs), interval([run.goal for run in runs]), cost, possible)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


def _rank(figures: Figures | None, reachable: bool, at_least: float) -> tuple[bool, float]:
    """The cheapest of those whose mean meets the goal first; then, or if nothing meets it, the closest to it."""
    if figures is None:
        return True, math.inf
    meets = reachable and figures.goal.mean >= at_least
    return not meets, figures.cost.mean if meets else -figures.goal.mean
