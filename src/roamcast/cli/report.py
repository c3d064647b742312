"""`roamcast report`: writes a campaign's report again, from its tables."""

import webbrowser

import click

from roamcast.cli.paths import Folder
from roamcast.report import write_report
from roamcast.storage import Store, fetched


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def report(out: Store, show: bool) -> None:
    """Write the report of a campaign.

    Replaces OUT/report: index.html, which opens with the answer in words and works offline; figures/ with SVG and PNG;
    data/ with CSV. Nothing is simulated or measured again, and Spark is not started. One figure for a paper: roamcast
    figure.
    """
    with fetched(out, returning=["report"]) as folder:
        page = write_report(folder, out)
        if show:
            webbrowser.open(page.resolve().as_uri())
    click.echo(f"{out}/report/{page.name}" if out.local is None else page)
