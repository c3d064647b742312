"""`roamcast report`: a campaign's page, made again from its tables."""

import webbrowser
from pathlib import Path

import click

from roamcast.report import write_report


@click.command()
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.option("--open", "show", is_flag=True, help="Show the page in the browser.  [default: only print its path]")
def report(out: Path, show: bool) -> None:
    """Write the report of the campaign in OUT, and print the path of its page.

    OUT/report is replaced: index.html opens from disk without a network; figures/ has SVG (and PNG where Chromium is
    installed), data/ has CSV. Nothing is simulated or measured again, and Spark is not started.
    """
    page = write_report(out)
    click.echo(page)
    if show:
        webbrowser.open(page.resolve().as_uri())
