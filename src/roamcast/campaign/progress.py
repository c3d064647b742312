"""How far a campaign is, for whoever shows it, and how long the rest will take.

The rule this file owns: a forecast is the estimates, corrected for each protocol by the runs that are done. Before the
first is done it is the estimates as they are; with few done it lies between the two, so that one odd run does not
multiply everything.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from roamcast.campaign.plan import Run


@dataclass(frozen=True)
class State:
    """Of all runs of the plan, those done before included."""

    total: int
    done: int
    failed: int
    running: int
    share: float
    """Of the work that this start of the campaign has to do, by estimate: from 0 to 1."""
    elapsed: float
    """Seconds since it started."""
    left: float
    """Seconds until the last run is done, roughly."""


OnProgress = Callable[[State], None]


class Forecast:
    """What runs will take, in seconds, from what others took."""

    def __init__(self, runs: Iterable[Run], took: Mapping[str, float]) -> None:
        """`took` has the seconds of those runs that are done, by run; others it names are ignored."""
        done = [(run, took[run.run]) for run in runs if run.run in took]
        self._overall = _corrected(done, 1.0)
        self._by_protocol = {
            protocol: _corrected([one for one in done if one[0].protocol == protocol], self._overall)
            for protocol in {run.protocol for run, _ in done}
        }

    def of(self, run: Run) -> float:
        return run.estimate * self._by_protocol.get(run.protocol, self._overall)


def _corrected(done: list[tuple[Run, float]], before: float) -> float:
    """How many seconds a second of the estimates takes; the belief from before weighs as much as one run."""
    if not done:
        return before
    estimates = [run.estimate for run, _ in done]
    weight = sum(estimates) / len(estimates)
    return (sum(seconds for _, seconds in done) + weight * before) / (sum(estimates) + weight)


def time_left(todo: Iterable[Run], took: Mapping[str, float], elapsed: float, slots: int) -> float:
    """Seconds until all are done, with `slots` at a time; `took` has the seconds of each run that is done."""
    todo = list(todo)
    forecast = Forecast(todo, took)
    waiting = [forecast.of(run) for run in todo if run.run not in took]
    if not waiting:
        return 0.0
    at_once = max(1, min(slots, len(waiting)))
    # What has gone into runs that are not done yet; of each, a tenth at least is still to come.
    under_way = min(max(0.0, elapsed * slots - sum(took.values())), 0.9 * sum(sorted(waiting)[-at_once:]))
    return (sum(waiting) - under_way) / at_once
