"""`roamcast report`: a campaign's page, made again from its tables."""

import webbrowser
from pathlib import Path

import click

from roamcast.report import write_report


@click.command()
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def report(out: Path, show: bool) -> None:
    """Write the report of the campaign in the folder OUT, and print the path of its page.

    Replaces OUT/report: index.html, which opens with the answer in words and works offline; figures/ with SVG and PNG;
    data/ with CSV. Nothing is simulated or measured again, and Spark is not started. One figure for a paper: roamcast
    figure.
    """
    page = write_report(out)
    click.echo(page)
    if show:
        webbrowser.open(page.resolve().as_uri())
