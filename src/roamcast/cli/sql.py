"""`roamcast sql`: queries a campaign's folder."""

import json
import logging

import click
from rich import box
from rich.console import Console
from rich.table import Table

from roamcast.cli.campaign_options import LOCAL, master_option, setting
from roamcast.cli.paths import Folder
from roamcast.storage import Store


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.argument("query")
@master_option
@click.option("--conf", "settings", multiple=True, metavar="K=V", help="A Spark setting. May be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each row.  [default: a table]")
def sql(out: Store, query: str, master: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Query a campaign with Spark's SQL.

    OUT is the campaign's folder, QUERY a select. There are these views: results has a row for each run, with
    experiment, variant, seed, a column for each axis and one for each measure; runs is the same without measures; every
    table of facts is a view, its rows with the columns of runs.

    \b
    Examples:
      roamcast sql out/ranges "select variant, range, avg(delivery) from results group by all order by all"
      roamcast sql out/ranges "select * from deliver limit 5"
    """
    from roamcast.pipeline.session import session  # Spark takes a second to import
    from roamcast.pipeline.tables import load

    logging.disable(logging.ERROR)  # Spark logs a wrong query as JSON, and raises; we print what it raises
    load(out)  # reports problems with the folder before Spark starts
    with session(master or LOCAL, dict(map(setting, settings)), name="roamcast sql") as spark:
        campaign = load(out, spark)
        with campaign.explained():
            answer = campaign.sql(query).toArrow()
    if as_json:
        for row in answer.to_pylist():
            click.echo(json.dumps(row, default=str))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in answer.column_names:
        table.add_column(name)
    for row in answer.to_pylist():
        table.add_row(
            *(
                "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
                for value in row.values()
            )
        )
    Console(markup=False, highlight=False).print(table)
