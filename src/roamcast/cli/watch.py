"""`roamcast watch`: shows a campaign at work, or a network of live nodes, from their facts as they come."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roamcast.analysis.compilation import compile_if_needed
from roamcast.campaign.folder.layout import CAMPAIGN_FILE
from roamcast.cli.options import SparkOptions, spark_options
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import say
from roamcast.cli.screen import plain_console, table
from roamcast.errors import RoamcastError
from roamcast.files import write_file
from roamcast.report.watched import page, shown

if TYPE_CHECKING:
    from roamcast.pipeline.watch import Watched


@click.command()
@click.argument("folders", nargs=-1, required=True, type=LocalPath(), metavar="OUT|FOLDER...")
@click.option("--once", is_flag=True, help="Read what is there, print one table, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per refresh instead of tables.")
@click.option(
    "--page", "page_file", type=LocalPath(), metavar="FILE.html", help="Also write a page that renews itself."
)
@click.option("--every", type=click.FloatRange(0.5), default=5.0, metavar="SECONDS", help="Time between refreshes.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=60.0,
    metavar="SECONDS",
    help="Of live nodes: when an event without a lifetime counts as missed.",
)
@click.option(
    "--window",
    type=click.FloatRange(1),
    default=3600.0,
    metavar="SECONDS",
    help="Of live nodes: how old an event may be to count.",
)
@click.option(
    "--state", type=LocalPath(), metavar="DIR", help="Folder for what was read so far.  [default: FOLDER/.watch]"
)
@spark_options
def watch(
    folders: tuple[Path, ...],
    once: bool,
    as_json: bool,
    page_file: Path | None,
    every: float,
    wait: float,
    window: float,
    state: Path | None,
    spark: SparkOptions,
) -> None:
    """Show a campaign at work, or a network of live nodes.

    OUT is a campaign's folder: runs done, failed and to do, and delivery, cost and delay so far. FOLDER is what a node
    writes with --facts, or holds such folders: silent nodes, and delivery and delay of the events whose time is over.
    Runs until interrupted. Started again, it goes on from what it has read, and counts nothing twice.
    """
    from roamcast.pipeline.watch import STATE  # Spark takes a second to import
    from roamcast.pipeline.watch import watch as snapshots

    watched = _watched(folders, wait, window)
    compile_if_needed(say)
    with spark.session("roamcast watch") as session:
        for snapshot in snapshots(session, watched, state or folders[0] / STATE, every, once=once):
            _show(snapshot, as_json, redraw=not once and sys.stdout.isatty())
            if page_file is not None:
                write_file(page_file, page(snapshot, every))


def _watched(folders: tuple[Path, ...], wait: float, window: float) -> "Watched":
    from roamcast.pipeline.watch_campaign import CampaignWatched
    from roamcast.pipeline.watch_live import LiveWatched

    campaigns = [folder for folder in folders if (folder / CAMPAIGN_FILE).is_file()]
    if campaigns and len(folders) > 1:
        raise RoamcastError(f"{campaigns[0]}: is a campaign's folder: watch it alone")
    return CampaignWatched(folders[0]) if campaigns else LiveWatched(folders, wait, window)


def _show(snapshot: Mapping[str, Any], as_json: bool, *, redraw: bool) -> None:
    if as_json:
        click.echo(json.dumps(snapshot))
        return
    made, console = shown(snapshot), plain_console()
    if redraw:
        click.clear()
    about = (f"{name.lower()} {text}" for name, text in made.key.items())
    console.print(", ".join([made.title, *about]), soft_wrap=True)
    for caption, head, rows in made.tables:
        console.print(table(head, rows, head[1:], title=caption))
    console.print(made.note, soft_wrap=True)
