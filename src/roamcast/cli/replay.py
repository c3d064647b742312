"""`roamcast replay`: writes a page that plays a run."""

import webbrowser
from pathlib import Path

import click

from roamcast.campaign.folder.recorded import open_run
from roamcast.report.replay import write_replay


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("beside", type=click.Path(path_type=Path), metavar="[RUN2]", required=False)
@click.option("--open", "show", is_flag=True, help="Show the page in the browser.  [default: only print its path]")
def replay(run: Path, beside: Path | None, show: bool) -> None:
    """Write a page that plays a run, or two side by side.

    The page, replay.html, goes into the run's folder, and its path is printed. RUN is the folder that `roamcast
    run` or `roamcast lab` made, or CAMPAIGN/RUN. The page opens from disk without a network. It shows transmissions
    and the way of each event if the run recorded frames and decisions:

    \b
      roamcast run first.toml --replay            records them, and writes the page

    With RUN2, the page plays both in step: two protocols, say, on the same movement.
    """
    runs = [open_run(place) for place in (run, beside) if place is not None]
    page = write_replay(*runs)
    click.echo(page)
    tell_missing(list(dict.fromkeys(field for recorded in runs for field in recorded.record.missing)))
    if show:
        webbrowser.open(page.resolve().as_uri())


def tell_missing(fields: list[str]) -> None:
    """Says what the page cannot show, and how to record it."""
    if fields:
        again = " ".join(f"--set {field}=true" for field in fields)
        click.echo(f"the run did not record all that the page can show: run it again with {again}", err=True)
