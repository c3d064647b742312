"""`roamcast run`: simulates a scenario; writes its facts and prints its summary."""

import contextlib
import json
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from roamcast.cli.progress import progress_bar, say
from roamcast.cli.run_folder import RunOptions, run_into, run_options, versions
from roamcast.facts.recorder import Sink
from roamcast.sim import run as simulation
from roamcast.sim.core import reference
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.raised import ProtocolRaised


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
    """
    if with_replay:
        more = tuple(f"record.{what}=true" for what in ("frames", "movement", "decisions"))
        options = options._replace(changes=options.changes + more)
    text, checked = options.read()
    out = options.place(checked, str(checked.seed))
    if not in_python:
        load_kernel(say)

    def simulate(sink: Sink) -> dict[str, Any]:
        core = reference.Core if in_python else None
        with progress_bar(checked, options.shows_progress) as report, _tracebacks(with_traceback):
            cost = simulation.run(checked, sink, folder=options.file.parent, make_core=core, progress=report)
        core_name = "reference" if in_python else "compiled"
        times = {"cpu_s": cost.cpu, "simulated_s": cost.simulated}
        return {"core": core_name, "versions": versions("numba"), **times}

    finished = run_into(out, options, text, checked, simulate)
    page = _write_replay(out) if with_replay else None
    if options.as_json:
        click.echo(json.dumps({"out": str(out), **({"replay": str(page)} if page else {}), **finished.record}))
        return
    finished.show()
    times = finished.record
    click.echo(f"{times['simulated_s']:g} s simulated in {times['cpu_s']:.2f} s of CPU; facts in {out}")
    if page is not None:
        click.echo(f"replay: {page}")


@contextlib.contextmanager
def _tracebacks(shown: bool) -> Iterator[None]:
    try:
        yield
    except ProtocolRaised as problem:
        if shown:
            traceback.print_exception(problem.__cause__)
            raise
        raise ProtocolRaised(f"{problem}; --traceback prints the calls that led there") from problem


def _write_replay(out: Path) -> Path:
    from roamcast.campaign.folder.recorded import open_run
    from roamcast.report.replay import write_replay

    return write_replay(open_run(out))
