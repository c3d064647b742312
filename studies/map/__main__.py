"""`python -m studies.map`: all protocols on the same networks. Which one, when?"""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from roamcast.campaign.define.plan import Experiment, plan
from roamcast.cli.campaign_options import (
    CampaignOptions,
    campaign_options,
    explain_experiments,
    print_plan,
    tell_failures,
)
from roamcast.errors import RoamcastError
from roamcast.report import write_report
from studies.map import PARTS, Level, causes, load_part, tables, with_only
from studies.map.cells import Cell, read_cells
from studies.map.drawings import drawings
from studies.map.tuning import TUNED, is_shown, picks, tuned
from studies.map.words import sentences

PROGRAM: Final = ("python", "-m", "studies.map")
RESULTS: Final = "map"
"""The folder for tables and figures, inside the campaign's folder."""
TUNED_SEEDS: Final = 5


@click.command("map")
@click.argument("part", type=click.Choice(list(PARTS)), default="core", metavar="[PART]")
@click.option("--quick", "level", flag_value="quick", help="A preview: fewer cells and seeds, shorter runs.")
@click.option("--full", "level", flag_value="full", help="All cells, ten seeds, 600 s measured: hours.")
@campaign_options
@click.option(
    "--only", multiple=True, metavar="PROTOCOL", help="Run only this protocol. May be repeated. [default: all]"
)
@click.option("--plan", "task", flag_value="plan", help="List the runs and estimate their time, without running them.")
@click.option("--explain", "task", flag_value="explain", help="Print the complete scenarios of the experiments.")
def map_networks(
    part: str,
    level: Level | None,
    options: CampaignOptions,
    only: tuple[str, ...],
    task: str | None,
) -> None:
    """Compare all protocols on the same networks.

    \b
    PART is one of
      core     over speed and density (the default)
      slices   over the rate and the number of subscribers, in four cells of the core
      tuned    with the best of six settings of each protocol, in the same four cells
      streets  among vehicles in streets, and at random waypoint of the same degree and speed
      worlds   in worlds that nothing was tuned on: few and many subscribers, filters, loss, streets, 1,000 nodes, …
      causes   what surprised us, with its supposed causes taken away one by one

    With --only, the rest can be run later into the same folder: a protocol that is new on the map costs its own runs
    alone.

    Prints who wins each cell, and writes tables, figures and a report. Run the same command again to continue an
    interrupted campaign. The exit code is 1 if a run failed.
    """
    level = level or "usual"
    try:
        experiments = with_only(load_part(part, level), only)
    except RoamcastError as problem:
        raise click.BadParameter(str(problem), param_hint="--only") from None
    if task == "explain":
        explain_experiments(experiments)
        return
    out = options.out or Path("out") / ("map" if level == "usual" else f"map-{level}") / part
    if task == "plan":
        print_plan(plan(experiments, options.seeds), out, as_json=False)
        return
    chosen = [word for name in only for word in ("--only", name)]
    run = Run(options, options.command([part, *([] if level == "usual" else [f"--{level}"]), *chosen], out, PROGRAM))
    failed = _tuned(experiments, out, run) if part == "tuned" else _plain(part, experiments, out, run)
    if failed:
        sys.exit(1)


@dataclasses.dataclass(frozen=True)
class Run:
    """How campaigns are run."""

    options: CampaignOptions
    command: str

    def __call__(
        self,
        experiments: Sequence[Experiment],
        out: Path,
        seeds: int | None,
        is_wanted: Callable[[dict[str, Any]], bool] = lambda _row: True,
    ) -> list[dict[str, Any]]:
        """Runs the wanted rows of a campaign; reports the runs that failed, and returns their rows."""
        planned = plan(experiments, seeds).only(is_wanted)
        failures = self.options.run(experiments, planned, out, self.command)
        self.options.tell_account()
        tell_failures(planned, failures, self.command)
        return failures


def _plain(part: str, experiments: Sequence[Experiment], out: Path, run: Run) -> bool:
    failures = run(experiments, out, run.options.seeds)
    if (out / "measures").is_dir() and part == "causes":
        _tell_causes(experiments, out)
    elif (out / "measures").is_dir():
        tell([one.name for one in experiments], out)
    return bool(failures)


def _tuned(experiments: Sequence[Experiment], out: Path, run: Run) -> bool:
    """Tries all settings on separate seeds, in a folder beside `out`, and shows the best on the map's seeds."""

    (tuning,) = experiments
    tried = out.with_name(f"{out.name}-tuning")
    failures = run(experiments, tried, None)
    if failures or not (tried / "measures").is_dir():
        return True
    picked = picks(read_cells(tried, tuning.name))
    shown = tuned(tuning, picked, run.options.seeds or TUNED_SEEDS)
    failures = run([shown], out, None, partial(is_shown, picked))
    if not failures:
        _tell_cells(read_cells(out, TUNED), out / RESULTS / TUNED)
        click.echo(f"report: {write_report(out)}")
    return bool(failures)


def tell(names: Sequence[str], out: Path) -> None:
    """Prints who wins; writes tables, figures and sentences as files, and the campaign's report."""

    for name in names:
        _tell_cells(read_cells(out, name), out / RESULTS / name)
    click.echo(f"report: {write_report(out)}")


def _tell_causes(experiments: Sequence[Experiment], out: Path) -> None:

    for one in experiments:
        table = causes.rows(read_cells(out, one.name), one.spec.measures or ())
        causes.write(table, out / RESULTS / one.name)
        click.echo("\n".join((f"### {one.spec.title}", "", *causes.lines(table), "")))
    click.echo(f"tables: {out / RESULTS}")
    click.echo(f"report: {write_report(out)}")


def _tell_cells(cells: Sequence[Cell], folder: Path) -> None:

    found = tables.atlas(cells)
    tables.write(found, folder)
    for figure, drawing in drawings(found).items():
        (folder / f"{figure}.svg").write_text(drawing, encoding="utf-8")
    words = "\n".join(sentences(found))
    (folder / "sentences.md").write_text(f"{words}\n", encoding="utf-8")
    click.echo(words)
    click.echo(f"tables and figures: {folder}")


if __name__ == "__main__":
    map_networks(prog_name=" ".join(PROGRAM))
