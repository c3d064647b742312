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
from typing import Final, NamedTuple

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
    def read(self) -> tuple[str, str, str]:
        """What is read of every run."""
        return self.measure, self.cost, self.possible


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
        found = _Found({}, {}, {})
        failed: list[Dropped] = []
        ended, pace, before = TIME_IS_UP, 0.0, 0
        for n in self._rules.looks:
            if time.monotonic() + pace * (n - before + RESERVED_FRESH) * len(race.left) * _RESERVE > self._until:
                break
            started = time.monotonic()
            seeds |= dict.fromkeys(race.left, n)
            whole = self._simulate(self._experiment, "race", seeds)
            found = self._found("race", seeds)
            failed += [Dropped(arm, seeds[arm], why) for arm, why in found.failures.items() if arm in race.left]
            race.left = [arm for arm in race.left if arm not in found.failures]
            if not whole or not race.left:
                ended = TIME_IS_UP if race.left else "no candidate could be run"
                break
            pace = (time.monotonic() - started) / ((n - before) * len(race.left))
            before = n
            for out in race.look({arm: found.runs[arm] for arm in race.left}):
                self._tell(f"{out.arm} dropped after {out.seeds} seeds: {out.reason}")
            self._tell(f"{n} seeds: {self._ranking(race.left, found)}")
            if race.over:
                ended = _why_over(race, n)
                break
        choice = Choice(race.left, race.reachable, ended, [*failed, *race.dropped], found.figures())
        self._sort(choice)
        if before:
            self._measure_afresh(choice, pace, min(before, MOST_FRESH))
        return choice

    def _sort(self, choice: Choice) -> None:
        """The best of those left first, by fresh seeds if there are any."""
        figures = choice.race | choice.fresh
        choice.left.sort(key=lambda arm: _rank(figures.get(arm), choice.reachable, self._wanted.at_least))

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
        fresh = self._found("fresh", seeds).figures()
        choice.fresh = {arm: figures for arm, figures in fresh.items() if figures.seeds >= LEAST_FRESH}
        self._sort(choice)

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
            measures.measure(self._spark, self._out / place, tuple(dict.fromkeys(self._wanted.read)))
        return whole

    def _run(self, planned: Plan, place: str) -> None:
        simulate.simulate(self._spark, planned, self._out / place, self._watch, command=self._command)

    def _watch(self, state: State) -> None:
        if self._on_progress is not None:
            self._on_progress(state)
        if time.monotonic() > self._until and state.done + state.failed < state.total:
            raise _TimeUp

    # --- What came of them ------------------------------------------------------------------------------------------

    def _found(self, place: str, seeds: Mapping[str, int]) -> "_Found":
        """Of the runs in a folder of results."""
        folder = self._out / place
        found = _Found({arm: [] for arm in seeds}, {arm: [] for arm in seeds}, {})
        if not (folder / "measures" / "run.parquet").is_file():
            return found
        values: dict[str, dict[str, float | None]] = {}
        for row in pq.read_table(folder / "measures" / "run.parquet", partitioning=None).to_pylist():
            values.setdefault(row["run"], {})[row["measure"]] = row["value"]
        errors = {row["run"]: row["error"] for row in pq.read_table(folder / "manifest.parquet").to_pylist()}
        for row in sorted(pq.read_table(folder / "runs.parquet").to_pylist(), key=lambda row: int(row["seed"])):
            arm, run = row["variant"], row["run"]
            if errors.get(run):
                found.failures.setdefault(arm, f"seed {row['seed']} failed: {errors[run]}")
            elif run in values:
                reached, cost, possible = (values[run][name] for name in self._wanted.read)
                found.runs[arm].append(Seen(reached or 0.0, math.inf if cost is None else cost))
                found.possible[arm] += [] if possible is None else [possible]
        return found

    def _ranking(self, left: Sequence[str], found: "_Found") -> str:
        figures = found.figures()
        ranked = sorted(left, key=lambda arm: _rank(figures[arm], True, self._wanted.at_least))
        return ", ".join(f"{arm} {figures[arm].goal.mean:.3f} at {figures[arm].cost.mean:.3g}" for arm in ranked)


class _Found(NamedTuple):
    """What came of the runs so far, by candidate."""

    runs: dict[str, list[Seen]]
    """In the order of their seeds."""
    possible: dict[str, list[float]]
    failures: dict[str, str]
    """The error of one run that failed."""

    def figures(self) -> dict[str, Figures]:
        """Of those that ran at all."""
        return {arm: _figures(runs, self.possible[arm]) for arm, runs in self.runs.items() if runs}


def _why_over(race: Race, seeds: int) -> str:
    if len(race.left) == 1:
        return ONE_LEFT
    return NO_MORE_SEEDS if seeds >= max(race.rules.looks) else THE_SAME


def _figures(runs: Sequence[Seen], possible: Sequence[float]) -> Figures:
    if any(math.isinf(run.cost) for run in runs):
        cost = Estimate(math.inf, math.inf, math.inf)
    else:
        cost = Estimate(*map(_exp, interval([math.log(run.cost) for run in runs])))
    could = math.fsum(possible) / len(possible) if possible else None
    return Figures(len(runs), interval([run.goal for run in runs]), cost, could)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


def _rank(figures: Figures | None, reachable: bool, at_least: float) -> tuple[bool, float]:
    """The cheapest of those whose mean meets the goal first; then, or if nothing meets it, the closest to it."""
    if figures is None:
        return True, math.inf
    meets = reachable and figures.goal.mean >= at_least
    return not meets, figures.cost.mean if meets else -figures.goal.mean
