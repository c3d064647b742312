"""`roamcast run`: simulates a scenario; writes its facts and prints its summary."""

import contextlib
import json
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from roamcast.campaign.folder.recorded import RecordedRun, differing, is_campaign_run, open_run
from roamcast.cli.progress import progress_bar, say
from roamcast.cli.run_folder import RunOptions, run_into, run_options, versions
from roamcast.config.toml_file import bare, toml_file
from roamcast.errors import RoamcastError
from roamcast.facts.recorder import Sink
from roamcast.report.replay import write_replay
from roamcast.sim import run as simulation
from roamcast.sim.core import reference
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.raised import ProtocolRaised
from roamcast.sim.scenario.overrides import changed


@click.command()
@run_options("out/NAME-SEED")
@click.option(
    "--reference", "in_python", is_flag=True, help="Use the simulator core in plain Python instead of the compiled one."
)
@click.option(
    "--replay",
    "with_replay",
    is_flag=True,
    help="Record frames and decisions too, and write replay.html, a page that plays the run.",
)
@click.option("--traceback", "with_traceback", is_flag=True, help="If the protocol raises, print the full traceback.")
def run(options: RunOptions, with_replay: bool, in_python: bool, with_traceback: bool) -> None:
    """Simulate a scenario, and print a summary.

    Its facts are written as Parquet. The folder also gets scenario.toml, a copy of the file, and run.json with
    summary, overrides, versions and times.

    CAMPAIGN/RUN in place of a scenario repeats a run of a campaign, and checks that its facts are the same; the first
    characters of the run's id are enough. With --replay it is then recorded for `roamcast why` and `roamcast replay`.
    """
    again = open_run(options.file) if is_campaign_run(options.file) else None
    unchanged = not options.changes
    if with_replay:
        more = tuple(f"record.{what}=true" for what in ("frames", "movement", "decisions"))
        options = options._replace(changes=options.changes + more)
    if again is None:
        text, checked = options.read()
        out, folder = options.place(checked, str(checked.seed)), options.file.parent
    else:
        assert again.id is not None
        text = toml_file(bare(msgspec.to_builtins(again.scenario)))
        folder = again.folder or Path()
        checked = changed(text, folder / again.id, options.changes)
        out = options.out or again.place / "again" / again.id
    if not in_python:
        load_kernel(say)

    def simulate(sink: Sink) -> dict[str, Any]:
        core = reference.Core if in_python else None
        with progress_bar(checked, options.shows_progress) as report, _tracebacks(with_traceback):
            cost = simulation.run(checked, sink, folder=folder, make_core=core, progress=report)
        about = {"core": "reference" if in_python else "compiled", "versions": versions("numba")}
        return {**about, "cpu_s": cost.cpu, "simulated_s": cost.simulated}

    finished = run_into(out, options, text, checked, simulate)
    if again is not None and unchanged:
        _check_same(again, out)
    page = write_replay(open_run(out)) if with_replay else None
    if options.as_json:
        click.echo(json.dumps({"out": str(out), **({"replay": str(page)} if page else {}), **finished.record}))
        return
    finished.show()
    times = finished.record
    click.echo(f"{times['simulated_s']:g} s simulated in {times['cpu_s']:.2f} s of CPU; facts in {out}")
    if again is not None and unchanged:
        click.echo(f"its facts are those of {options.file}")
    if page is not None:
        click.echo(f"replay: {page}")
        if again is not None:
            click.echo(f"causes: roamcast why {out} --missed")


def _check_same(again: RecordedRun, out: Path) -> None:
    """Refuses to explain a run by one that went another way."""
    others = differing(again, open_run(out))
    if others:
        raise RoamcastError(
            f"{out}: is not the run of the campaign: {', '.join(others)} differ; roamcast, its protocol or a library "
            "has changed since: run the campaign's command again"
        )


@contextlib.contextmanager
def _tracebacks(shown: bool) -> Iterator[None]:
    try:
        yield
    except ProtocolRaised as problem:
        if shown:
            traceback.print_exception(problem.__cause__)
            raise
        raise ProtocolRaised(f"{problem}; --traceback prints the calls that led there") from problem
