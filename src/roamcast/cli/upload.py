"""`roamcast upload`: a finished campaign, copied into an object store."""

from pathlib import Path

import click

from roamcast.campaign.folder.upload import upload as copy
from roamcast.cli.paths import Folder, LocalPath
from roamcast.storage import Store


@click.command()
@click.argument("out", type=LocalPath(), metavar="OUT")
@click.argument("place", type=Folder(), metavar="PLACE")
@click.option(
    "--pack", is_flag=True, help="Pack the facts anew, into as few files as possible.  [default: as they are]"
)
def upload(out: Path, place: Store, pack: bool) -> None:
    """Copy a campaign to an object store or another folder.

    OUT is the campaign's folder, PLACE is s3://BUCKET/NAME or a folder. Files that belong to no run are left out, and
    what PLACE has already is not copied again. measure, report, sql and verify take PLACE for OUT. Access to an object
    store is configured as for other tools: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL in
    the environment, or ~/.aws. A copy is read like the original, but no runs can be added to it. With --pack, runs that
    the campaign no longer has are left out, even where they share a file with others.
    """
    click.echo(f"{place}: {copy(out, place, packed=pack)} files written")
