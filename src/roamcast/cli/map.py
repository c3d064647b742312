"""`roamcast map`: all protocols on the same networks. Which one, when?"""

import sys
from pathlib import Path
from typing import Final

import click

from roamcast.campaign.plan import plan
from roamcast.cli.campaign_options import (
    campaign_options,
    command_line,
    explain_experiments,
    limits_from,
    print_plan,
    run_here,
    setting,
    tell_failures,
)
from roamcast.papers.atlas import PARTS, Level, load_part

RESULTS: Final = "map"
"""The folder, beside the campaign's own, for what follows from it."""


@click.command()
@click.argument("part", type=click.Choice(list(PARTS)), default="core", metavar="[PART]")
@click.option("--quick", "level", flag_value="quick", help="A preview in minutes: fewer cells and seeds, shorter runs.")
@click.option("--full", "level", flag_value="full", help="All cells, ten seeds, 600 s measured: hours.")
@campaign_options
@click.option("--plan", "task", flag_value="plan", help="List the runs and estimate their time, without running them.")
@click.option("--explain", "task", flag_value="explain", help="Print the complete scenarios of the experiments.")
def map(  # a verb is a function of its name
    part: str,
    level: Level | None,
    out: Path | None,
    seeds: int | None,
    master: str | None,
    settings: tuple[str, ...],
    retry_failed: bool,
    run_time: str | None,
    run_memory: str | None,
    task: str | None,
) -> None:
    """Compare all protocols on the same networks, over speed and density.

    PART is core (the default), or what stands beside it. Run the same command again to continue an interrupted
    campaign. The exit code is 1 if a run failed.
    """
    level = level or "usual"
    experiments = load_part(part, level)
    if task == "explain":
        explain_experiments(experiments)
        return
    planned = plan(experiments, seeds)
    out = out or Path("out") / ("map" if level == "usual" else f"map-{level}") / part
    if task == "plan":
        print_plan(planned, out, as_json=False)
        return
    conf, most = dict(setting(text) for text in settings), limits_from(run_time, run_memory)
    words = ["map", part, *([] if level == "usual" else [f"--{level}"])]
    command = command_line(words, out, seeds, master, settings)
    failures = run_here(experiments, planned, out, master, conf, retry_failed, command, most)
    if (out / "measures").is_dir():
        tell(part, out)
    tell_failures(planned, failures, command)
    if failures:
        sys.exit(1)


def tell(part: str, out: Path) -> None:
    """The winners on the screen; tables, figures and sentences as files."""
    from roamcast.papers.atlas import tables  # they import Arrow and numpy
    from roamcast.papers.atlas.cells import read_cells
    from roamcast.papers.atlas.words import sentences
    from roamcast.report import write_report
    from roamcast.report.atlas import drawings

    for name in PARTS[part]:
        found = tables.atlas(read_cells(out, name))
        folder = out / RESULTS / name
        tables.write(found, folder)
        for figure, drawing in drawings(found).items():
            (folder / f"{figure}.svg").write_text(drawing, encoding="utf-8")
        words = "\n".join(sentences(found))
        (folder / "choosing.md").write_text(f"{words}\n", encoding="utf-8")
        click.echo(words)
        click.echo(f"tables and figures: {folder}")
    click.echo(f"report: {write_report(out)}")
