"""`roamcast publish`: a finished campaign, copied into an object store."""

from pathlib import Path

import click

from roamcast.campaign.publish import publish as copy
from roamcast.cli.paths import Folder, LocalPath
from roamcast.storage import Store


@click.command()
@click.argument("out", type=LocalPath(), metavar="OUT")
@click.argument("place", type=Folder(), metavar="PLACE")
@click.option(
    "--pack", is_flag=True, help="Pack the facts of many runs into a file.  [default: a file for each run and table]"
)
def publish(out: Path, place: Store, pack: bool) -> None:
    """Copy the campaign in OUT to PLACE: s3://BUCKET/NAME, or another folder.

    Facts that belong to no run stay behind, and what is there already is not copied again. measure, report, sql and
    verify take PLACE for OUT. An object store is found as by other tools: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    AWS_REGION and AWS_ENDPOINT_URL in the environment, or ~/.aws. A packed copy is for many runs: a thousand are a few
    files, not ten thousand. It is read like the others; only the original can be added to.
    """
    click.echo(f"{place}: {copy(out, place, packed=pack)} files written")
