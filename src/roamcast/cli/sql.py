"""`roamcast sql`: queries a campaign's folder."""

import json
import logging

import click

from roamcast.cli.options import SparkOptions, spark_options
from roamcast.cli.paths import Folder
from roamcast.cli.screen import plain_console, table
from roamcast.report.numbers import ABSENT
from roamcast.storage import Store


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.argument("query")
@spark_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.  [default: a table]")
def sql(out: Store, query: str, spark: SparkOptions, as_json: bool) -> None:
    """Query a campaign with Spark's SQL.

    OUT is the campaign's folder, QUERY a select. There are these views: results has a row for each run, with
    experiment, variant, seed, a column for each axis and one for each measure; runs is the same without measures; every
    table of facts is a view, its rows with the columns of runs.

    \b
    Examples:
      roamcast sql out/ranges "select variant, range, avg(delivery) from results group by all order by all"
      roamcast sql out/ranges "select * from deliver limit 5"
    """
    from roamcast.pipeline.tables import load  # Spark takes a second to import

    logging.disable(logging.ERROR)  # Spark logs a wrong query as JSON, and raises; we print what it raises
    load(out)  # reports problems with the folder before Spark starts
    with spark.session("roamcast sql") as session:
        campaign = load(out, session)
        with campaign.explained():
            answer = campaign.sql(query).toArrow()
    if as_json:
        for row in answer.to_pylist():
            click.echo(json.dumps(row, default=str))
        return
    rows = [[_shown(value) for value in row.values()] for row in answer.to_pylist()]
    plain_console().print(table(answer.column_names, rows))


def _shown(value: object) -> str:
    return ABSENT if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
