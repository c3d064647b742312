"""`roamcast measure`: computes the measures of a finished campaign, without simulating anything."""

import click

from roamcast.analysis.compilation import compile_if_needed
from roamcast.cli.campaign_options import LOCAL, master_option, setting
from roamcast.cli.paths import Folder
from roamcast.cli.progress import say
from roamcast.storage import Store


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.argument("measures", nargs=-1, metavar="[MEASURE]...")
@master_option
@click.option("--conf", "settings", multiple=True, metavar="K=V", help="A Spark setting. May be repeated.")
def measure(out: Store, measures: tuple[str, ...], master: str | None, settings: tuple[str, ...]) -> None:
    """Compute measures of a campaign.

    OUT is the campaign's folder or s3://BUCKET/NAME; without a MEASURE, all are computed. Writes OUT/measures, and
    nothing else. What was measured before is not measured again, and values of other measures stay.
    """
    from roamcast.pipeline import session  # Spark takes a second to import
    from roamcast.pipeline.measure import is_current
    from roamcast.pipeline.measure import measure as by

    names = measures or None
    if out.local is None or not is_current(out.local, names):
        compile_if_needed(say)
        with session.session(master or LOCAL, dict(map(setting, settings)), name="roamcast measure") as spark:
            by(spark, out, names)
    click.echo(f"{out}/measures")
