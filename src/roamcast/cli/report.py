"""`roamcast report`: writes a campaign's report again, from its tables."""

import webbrowser

import click

from roamcast.cli.paths import Folder
from roamcast.cli.progress import say
from roamcast.report import write_report
from roamcast.report.sampled import with_causes
from roamcast.report.source import read_report_data
from roamcast.sim.core.compilation import load_kernel
from roamcast.storage import Store, fetched


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.option(
    "--causes",
    "sample_causes",
    is_flag=True,
    help="Show why events were missed, from one run of each variant and point, which is simulated again.",
)
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def report(out: Store, sample_causes: bool, show: bool) -> None:
    """Write the report of a campaign.

    Replaces OUT/report: index.html, which opens with the answer in words and works offline; figures/ with SVG and PNG;
    data/ with CSV. Nothing is measured again, and Spark is not started. One figure for a paper: roamcast
    figure.
    """
    with fetched(out, returning=["report"]) as folder:
        results = read_report_data(folder)
        if sample_causes:
            load_kernel(say)
            results = with_causes(results, say)
        page = write_report(folder, out, results)
        if show:
            webbrowser.open(page.resolve().as_uri())
    click.echo(f"{out}/report/{page.name}" if out.local is None else page)
