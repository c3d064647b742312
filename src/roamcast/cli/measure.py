"""`roamcast measure`: computes the measures of a finished campaign, without simulating anything."""

import click

from roamcast.analysis.compilation import compile_if_needed
from roamcast.cli.completion import complete_measures
from roamcast.cli.options import SparkOptions, spark_options
from roamcast.cli.paths import Folder
from roamcast.cli.progress import say
from roamcast.storage import Store


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.argument("measures", nargs=-1, metavar="[MEASURE]...", shell_complete=complete_measures)
@spark_options
def measure(out: Store, measures: tuple[str, ...], spark: SparkOptions) -> None:
    """Compute measures of a campaign.

    OUT is the campaign's folder or s3://BUCKET/NAME; without a MEASURE, all are computed. Writes OUT/measures, and
    nothing else. What was measured before is not measured again, and values of other measures stay.
    """
    from roamcast.pipeline.measure import is_current  # Spark takes a second to import
    from roamcast.pipeline.measure import measure as by

    names = measures or None
    if out.local is None or not is_current(out.local, names):
        compile_if_needed(say)
        with spark.session("roamcast measure") as session:
            by(session, out, names)
    click.echo(f"{out}/measures")
