"""`roamcast verify`: checks whether a campaign's folder is as it was written."""

import json
import sys

import click

from roamcast.campaign.folder.verify import orphans, remove
from roamcast.campaign.folder.verify import verify as check
from roamcast.cli.paths import Folder
from roamcast.storage import Store


@click.command()
@click.argument("out", type=Folder(), metavar="OUT")
@click.option(
    "--remove-orphans",
    is_flag=True,
    help="Remove files that belong to no run of the campaign any more.  [default: only count them]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: text]")
def verify(out: Store, remove_orphans: bool, as_json: bool) -> None:
    """Check the facts of a campaign for damage.

    Compares version, columns, rows and digests, run by run. Nothing is simulated or measured, and Spark is not
    started. Exits with 1 if something is wrong.
    """
    runs, problems = check(out)
    folder = out.local
    spare = [] if folder is None else orphans(folder)
    freed = remove(spare) if remove_orphans else None
    if as_json:
        names = [str(path.relative_to(folder)) for path in spare if folder is not None]
        click.echo(json.dumps({"out": str(out), "runs": runs, "problems": problems, "orphans": names, "freed": freed}))
    else:
        for problem in problems:
            click.echo(problem, err=True)
        click.echo(f"{out}: {runs} runs, {len(problems)} problems" if problems else f"{out}: {runs} runs, all right")
        if spare and freed is None:
            click.echo(f"{len(spare)} files belong to no run of it; remove them with --remove-orphans")
        elif spare:
            click.echo(f"{len(spare)} files that belonged to no run are removed ({(freed or 0) / 1e6:.1f} MB)")
    if problems:
        sys.exit(1)
