"""Shows the progress of a campaign or a run: a bar on a terminal; of a campaign, otherwise a line now and then."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from roamcast.campaign.progress import OnProgress, State
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.world import OnTime
from roamcast.units import SECOND

QUIET_FOR: Final = 30.0
"""Seconds between two lines while nothing notable happens."""
STEPS: Final = 10
"""Lines per campaign, however short it is."""


def say(line: str) -> None:
    click.echo(line, err=True)


@contextlib.contextmanager
def shown(console: Console) -> Iterator[OnProgress]:
    """Gives a function that shows states, in the way the console, a plain one, allows."""
    if not console.is_terminal:
        yield ProgressLines(partial(console.print, soft_wrap=True))
        return
    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)
        yield lambda state: bar.update(
            task, total=state.total, completed=state.done + state.failed, description=in_words(state, time.time())
        )


class ProgressLines:
    """Prints the first state of every start, the last, every tenth of the work, each failure, and a sign of life."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._printed: State | None = None

    def __call__(self, state: State) -> None:
        printed = self._printed
        if (
            printed is None
            or state.elapsed < printed.elapsed  # a campaign that adds seeds starts again
            or int(state.share * STEPS) > int(printed.share * STEPS)
            or state.failed > printed.failed
            or state.elapsed - printed.elapsed >= QUIET_FOR
        ):
            self._tell(in_words(state, time.time()))
            self._printed = state


def in_words(state: State, now: float) -> str:
    """`now` is in seconds since the epoch."""
    words = [f"{state.done} of {state.total} runs done"]
    if state.failed:
        words.append(f"{state.failed} failed")
    if state.running:
        words.append(f"{state.running} running")
    if state.share < 1:
        end = time.strftime("%H:%M:%S", time.localtime(now + state.left))
        words.append(f"{duration(state.left)} left, until about {end}")
    return ", ".join(words)


def duration(seconds: float) -> str:
    """A duration in two units at most."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


@contextlib.contextmanager
def progress_bar(checked: Scenario, shown: bool) -> Iterator[OnTime | None]:
    """A bar in simulated time on stderr, if that is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:g} s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(checked.name, total=checked.duration)
        yield lambda now: bar.update(task, completed=now / SECOND)
