"""`roamcast table`: the numbers of a campaign as a table for a paper."""

from pathlib import Path

import click

from roamcast.cli.completion import complete_measures

KINDS = ("latex", "markdown", "csv")


@click.command()
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.argument("measures", nargs=-1, metavar="[MEASURE]...", shell_complete=complete_measures)
@click.option(
    "--format",
    "kind",
    type=click.Choice(KINDS),
    default="markdown",
    help="Format of the table; latex needs the packages booktabs and siunitx, csv has every digit.",
)
@click.option("--experiment", metavar="NAME", help="The experiment, if the campaign has several.")
def table(out: Path, measures: tuple[str, ...], kind: str, experiment: str | None) -> None:
    """Print a campaign's numbers as a table for a paper.

    OUT is the campaign's folder. There is a row for each point and variant, and a column for each MEASURE, or for the
    goals of the campaign's answer. The best of a point is bold, and those not separated from it have a star.
    """
    from roamcast.report.paper_table import paper_table
    from roamcast.report.source import read_report_data

    click.echo(paper_table(read_report_data(out), kind, measures, experiment), nl=False)
