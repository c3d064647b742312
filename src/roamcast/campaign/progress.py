"""How far a campaign has got, and how long the rest will take.

The rule this file owns: a forecast is the estimates, corrected per protocol by the finished runs. Before the first run
is finished, it is the plain estimates; with few finished, it lies between the two, so that one odd run does not distort
everything.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from roamcast.campaign.define.plan import PlannedRun


@dataclass(frozen=True)
class State:
    """The progress of all runs of the plan, including those done before."""

    total: int
    done: int
    failed: int
    running: int
    share: float
    """How much of this start's work is done, by estimate: from 0 to 1."""
    elapsed: float
    """Seconds since it started."""
    left: float
    """Estimated seconds until the last run is done."""


OnProgress = Callable[[State], None]


class Forecast:
    """Predicts how many seconds runs will take, from what finished runs took."""

    def __init__(self, runs: Iterable[PlannedRun], took: Mapping[str, float]) -> None:
        """`took` has the seconds of the finished runs, by run; runs that are not in `runs` are ignored."""
        done = [(run, took[run.run]) for run in runs if run.run in took]
        self._overall = _corrected(done, 1.0)
        self._by_protocol = {
            protocol: _corrected([one for one in done if one[0].protocol == protocol], self._overall)
            for protocol in {run.protocol for run, _ in done}
        }

    def of(self, run: PlannedRun) -> float:
        return run.estimate * self._by_protocol.get(run.protocol, self._overall)


def _corrected(done: list[tuple[PlannedRun, float]], before: float) -> float:
    """Real seconds per estimated second; the prior value `before` weighs as much as one run."""
    if not done:
        return before
    estimates = [run.estimate for run, _ in done]
    weight = sum(estimates) / len(estimates)
    return (sum(seconds for _, seconds in done) + weight * before) / (sum(estimates) + weight)


def time_left(todo: Iterable[PlannedRun], took: Mapping[str, float], elapsed: float, slots: int) -> float:
    """Seconds until all are done, running `slots` at a time; `took` has the seconds of each finished run."""
    todo = list(todo)
    forecast = Forecast(todo, took)
    waiting = [forecast.of(run) for run in todo if run.run not in took]
    if not waiting:
        return 0.0
    at_once = max(1, min(slots, len(waiting)))
    # Time already spent on unfinished runs; at least a tenth of each is still to come.
    under_way = min(max(0.0, elapsed * slots - sum(took.values())), 0.9 * sum(sorted(waiting)[-at_once:]))
    return (sum(waiting) - under_way) / at_once
