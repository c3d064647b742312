"""Runs a race between protocols on a user's own network, on Spark: look by look, and once more on fresh seeds.

`campaign.race` decides which candidates are dropped and when. The rules this file owns:

* The race and the runs on fresh seeds are two campaigns, in `OUT/race` and `OUT/fresh`, which can be continued,
  reported and verified like any other.
* Fresh seeds start above any seed that the race can use.
* The time limit is kept: no look starts that would leave no time for the fresh seeds, and whatever runs when the time
  is up is stopped. An unfinished look does not count, since its candidates have not run the same seeds; if not even
  the first is finished, the result has whatever ran.
* A seed in which nothing was expected, or nothing was possible, says nothing about the goal and is left out for all
  candidates: it depends on the world, not on the protocol.
* A candidate with a failed run is out of the race, with the error as the reason.
* A continued race reads the looks that it had finished: nothing is simulated or measured again.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from roamcast.campaign.decide.choice import (
    NO_MORE_SEEDS,
    NONE_RAN,
    NOTHING_TO_DELIVER,
    TIME_IS_UP,
    Choice,
    Figures,
    ranked,
    why_over,
)
from roamcast.campaign.decide.race import ArmResult, Dropped, Race, RaceRules
from roamcast.campaign.define.experiment import Experiment
from roamcast.campaign.define.plan import Plan, plan
from roamcast.campaign.folder.layout import RUN_MEASURES_FILE
from roamcast.campaign.folder.results import read_results
from roamcast.campaign.folder.survey import Survey, look
from roamcast.campaign.folder.values import has
from roamcast.campaign.progress import OnProgress, State
from roamcast.pipeline import simulate
from roamcast.pipeline.goal import Goal
from roamcast.pipeline.measure import measure
from roamcast.pipeline.spread import slots

RACE: Final = "race"
FRESH: Final = "fresh"
"""Folders of the two campaigns."""
FRESH_SEED: Final = 1_000_000
"""The first of the fresh seeds."""
MOST_FRESH: Final = 10
LEAST_FRESH: Final = 2
RESERVED_FRESH: Final = 3
"""Every look leaves time to run the candidates left on this many fresh seeds."""
_RESERVE: Final = 1.3
"""A run may take this many times as long as earlier ones."""

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
        rules: RaceRules | None = None,
        on_progress: OnProgress = lambda _: None,
        tell: Tell = lambda _: None,
    ) -> None:
        """`experiment` has the candidates as its variants; `until` is a time of `time.monotonic`."""
        self._spark = spark
        self._experiment = experiment
        self._wanted = wanted
        self._out = out
        self._until = self._stop = until
        self._race = Race(
            [variant.name for variant in experiment.variants], rules or RaceRules(wanted.at_least, wanted.words)
        )
        self._on_progress = on_progress
        self._tell = tell
        self._pace = 0.0
        """Recent seconds per run."""
        self._seeds: dict[str, int] = {}
        """How many seeds each candidate has run."""
        self._found = _Found({}, {}, {})
        self._failed: list[Dropped] = []

    def choose(self) -> Choice:
        race, ended = self._race, self._hold()
        choice = Choice(
            race.left,
            race.reachable,
            ended,
            race.settled,
            race.seeds,
            [*self._failed, *race.dropped],
            self._found.figures(),
        )
        choice.sort(self._wanted.at_least)
        if choice.looked:
            self._measure_afresh(choice)
        return choice

    def _hold(self) -> str:
        """Runs the race, look after look; returns why it ended."""
        race = self._race
        for n in race.rules.looks:
            seeds = self._seeds | dict.fromkeys(race.left, n)
            planned = _planned(self._experiment, seeds)
            self._stop = self._until - self._seconds(RESERVED_FRESH * len(race.left))
            if not self._time_for(planned, RACE):
                return TIME_IS_UP
            whole = self._run(planned, seeds)
            if not race.left:
                return NONE_RAN
            if not whole:
                return TIME_IS_UP
            if not self._found.runs[race.left[0]]:
                return NOTHING_TO_DELIVER
            self._look()
            if race.over:
                return why_over(race)
        return NO_MORE_SEEDS

    def _time_for(self, planned: Plan, place: str) -> bool:
        """Whether there is time for the rest of the plan."""
        survey = look(planned, self._out / place)
        missing = len(planned.distinct) - len(survey.ok) - len(survey.failed)
        return time.monotonic() + self._seconds(missing) <= self._stop

    def _seconds(self, runs: int) -> float:
        """How many seconds `runs` runs take, with some reserve."""
        return runs * self._pace * _RESERVE

    def _run(self, planned: Plan, seeds: dict[str, int]) -> bool:
        """Runs the candidates up to these seeds; False if the time was up before all were done."""
        race = self._race
        whole = self._simulate(planned, RACE)
        found = self._read(RACE, seeds)
        self._failed += [Dropped(arm, seeds[arm], why) for arm, why in found.failures.items() if arm in race.left]
        race.withdraw(found.failures)
        if whole or not race.seeds:
            self._seeds, self._found = seeds, found
        return whole

    def _look(self) -> None:
        race, reachable = self._race, self._race.reachable
        for out in race.look(self._found.runs):
            self._tell(f"{out.arm} dropped after {out.seeds} seeds: {out.reason}")
        if reachable and not race.reachable:
            self._tell("nothing meets the goal: all that were dropped for it race again, for the closest to it")
        figures = self._found.figures()
        ranking = ", ".join(
            f"{arm} {figures[arm].goal.mean:.3f} at {figures[arm].cost.mean:.3g}"
            for arm in ranked(race.left, figures, race.reachable, self._wanted.at_least)
        )
        self._tell(f"{race.seeds} seeds: {ranking}")

    def _measure_afresh(self, choice: Choice) -> None:
        """Runs the candidates left on new seeds, as many as there is time for."""
        variants = tuple(one for one in self._experiment.variants if one.name in choice.left)
        spec = msgspec.structs.replace(
            self._experiment.spec, seeds=tuple(range(FRESH_SEED, FRESH_SEED + MOST_FRESH)), variants=variants
        )
        afresh = dataclasses.replace(self._experiment, spec=spec)
        self._stop = self._until
        for n in range(min(choice.looked, MOST_FRESH), LEAST_FRESH - 1, -1):
            seeds = dict.fromkeys(choice.left, n)
            planned = _planned(afresh, seeds)
            if self._time_for(planned, FRESH):
                self._tell(f"measuring {', '.join(choice.left)} on {n} fresh seeds")
                self._simulate(planned, FRESH)
                fresh = self._read(FRESH, seeds).figures()
                choice.fresh = {arm: figures for arm, figures in fresh.items() if figures.seeds >= LEAST_FRESH}
                choice.sort(self._wanted.at_least)
                return

    # --- Runs -------------------------------------------------------------------------------------------------------

    def _simulate(self, planned: Plan, place: str) -> bool:
        """Runs and measures; False if the time was up before all were done."""
        folder, started, read = self._out / place, time.monotonic(), tuple(dict.fromkeys(self._wanted.read))
        before = look(planned, folder)
        if has(folder, planned, read):
            self._keep_pace(planned, before, 0.0)
            return True
        whole = True
        try:
            simulate.simulate(self._spark, planned, folder, self._watch)
        except _TimeUp:
            whole = False
            survey = look(planned, folder)
            planned = planned.only(lambda row: row["run"] in survey.ok or row["run"] in survey.failed)
            if planned.rows:
                simulate.simulate(self._spark, planned, folder)  # only writes the tables of the finished runs
        if planned.rows:
            measure(self._spark, folder, read)
        self._keep_pace(planned, before, time.monotonic() - started)
        return whole

    def _watch(self, state: State) -> None:
        self._on_progress(state)
        if time.monotonic() > self._stop and state.done + state.failed < state.total:
            raise _TimeUp

    def _keep_pace(self, planned: Plan, before: Survey, elapsed: float) -> None:
        """Updates the pace. In a continued race the first looks take no time: their runs' recorded times are used."""
        runs = len(planned.distinct) - len(before.ok) - len(before.failed)
        if runs > 0:
            self._pace = elapsed / runs
        elif before.ok and not self._pace:
            took = math.fsum(done["cpu"] for done in before.ok.values()) / len(before.ok)
            self._pace = took / slots(self._spark)

    # --- Results ----------------------------------------------------------------------------------------------------

    def _read(self, place: str, seeds: Mapping[str, int]) -> "_Found":
        """Reads the results of these seeds from a folder: that of a continued race may have more."""
        folder = self._out / place
        found = _Found({arm: [] for arm in seeds}, {arm: [] for arm in seeds}, {})
        if not (folder / RUN_MEASURES_FILE).is_file():
            return found
        results = read_results(folder, self._wanted.read).sort_by("seed").to_pylist()
        first = min(row["seed"] for row in results)
        for row in results:
            arm = row["variant"]
            if row["seed"] - first >= seeds.get(arm, 0):
                continue
            if row["error"]:
                found.failures.setdefault(arm, f"seed {row['seed']} failed: {row['error']}")
                continue
            reached, cost, possible = (row[name] for name in self._wanted.read)
            if reached is not None:
                found.runs[arm].append(ArmResult(reached, math.inf if cost is None else cost))
                found.possible[arm] += [] if possible is None else [possible]
        return found


def _planned(experiment: Experiment, seeds: Mapping[str, int]) -> Plan:
    """A plan with the given number of seeds for each candidate."""
    whole = plan([experiment], max(seeds.values()))
    first = min(row["seed"] for row in whole.rows)
    return whole.only(lambda row: row["seed"] - first < seeds.get(row["variant"], 0))


class _Found(NamedTuple):
    """The results of the runs so far, by candidate."""

    runs: dict[str, list[ArmResult]]
    """In the order of their seeds."""
    possible: dict[str, list[float]]
    failures: dict[str, str]
    """The error of one failed run of each candidate that has any."""

    def figures(self) -> dict[str, Figures]:
        """The figures of the candidates that ran at all."""
        return {arm: Figures.of(runs, self.possible[arm]) for arm, runs in self.runs.items() if runs}
