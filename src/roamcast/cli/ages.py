"""`roamcast ages`: how much arrived by each age, beside how much could have."""

import json
import math
from pathlib import Path

import click
import numpy as np

from roamcast.analysis.arrivals import Arrivals, arrivals
from roamcast.analysis.context_truth import has_contexts
from roamcast.analysis.network import network
from roamcast.campaign.folder.recorded import open_run
from roamcast.cli.screen import plain_console, table
from roamcast.errors import RoamcastError
from roamcast.files import write_file
from roamcast.report.numbers import ABSENT
from roamcast.units import seconds


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--by", "wanted", metavar="S,S,…", help="The ages, s.  [default: up to half of the measured time]")
@click.option(
    "--transfer",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="S",
    help="What was possible: how long a transfer takes, during which a contact must last.",
)
@click.option(
    "--hops",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="What was possible: hops that a transfer may take at one instant, through nodes that carry nothing.",
)
@click.option("--figure", type=click.Path(path_type=Path), metavar="FILE.svg", help="Also draw the curves.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: a table]")
def ages(run: Path, wanted: str | None, transfer: float, hops: int, figure: Path | None, as_json: bool) -> None:
    """Show how much arrived by each age, and how much could have.

    The age of an event is the time since its publication. Of the pairs of an event and a subscription elsewhere that
    wants it, the table has the share delivered by each age; the share that any protocol which stores, carries and
    forwards could have delivered; and, "by the interested", that share if only the nodes that want the event carry it.
    Pairs whose event could not reach an age before the end of the run do not count for it.

    RUN is the folder of a run, or CAMPAIGN/RUN.

    \b
    Examples:
      roamcast ages out/opportunistic-1
      roamcast ages out/opportunistic-1 --by 60,600,3600 --hops 3 --transfer 0.2
      roamcast ages out/opportunistic-1 --figure ages.svg
    """
    if figure is not None and figure.suffix != ".svg":
        raise RoamcastError(f"--figure {figure}: the figure is an SVG file, whose name ends in .svg")
    if not math.isfinite(transfer):
        raise RoamcastError(f"--transfer {transfer}: expected a number of seconds")
    recorded = open_run(run)
    scenario = recorded.scenario
    steps = None if wanted is None else np.array(_ages(wanted, scenario.duration), np.int64)
    contacts = network(recorded.run, directed=True, drawn="possible")
    if contacts is None:
        raise RoamcastError(f"{run}: its movement was not recorded; run it again without record.movement = false")
    found = arrivals(recorded.run, contacts, steps, transfer=seconds(transfer), hops=hops)
    if not found.pairs:
        raise RoamcastError(f"{run}: nobody else wanted any event that was published after the warm-up")
    contexts = has_contexts({name: recorded.table(name) for name in ("publish", "subscribe")})
    if figure is not None:
        _draw(found, scenario.name, figure)
    if as_json:
        click.echo(json.dumps(_as_dict(found) | {"by_filters_alone": contexts}))
        return
    _show(found, scenario.name)
    if contexts:
        click.echo("By filters alone: the contexts of this run are left out of the table.")


def _ages(text: str, duration: float) -> list[int]:
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        found = []
    if not found or not 1 <= found[0] <= found[-1] <= duration:
        raise RoamcastError(f"--by {text}: expected whole seconds from 1 to {duration:g}, such as 60,600")
    return found


def _columns(found: Arrivals) -> dict[str, list[float | None]]:
    """The shares by the names that JSON has."""
    return {name: [None if math.isnan(one) else float(one) for one in shares] for name, shares in found.shares.items()}


def _as_dict(found: Arrivals) -> dict[str, object]:
    middles, shares = found.density
    return {
        "pairs": found.pairs,
        "ages": found.ages.tolist(),
        **_columns(found),
        "peak": found.peak,
        "density": {"width": found.width, "ages": middles.tolist(), "shares": shares.tolist()},
    }


def _show(found: Arrivals, name: str) -> None:
    console = plain_console()
    console.print(f"{name}: {found.pairs} pairs of an event and a subscription elsewhere that wants it", soft_wrap=True)
    head = ("by age (s)", "delivered", "of the deliveries", "possible", "by the interested")
    columns = ([ABSENT if share is None else f"{share:.3f}" for share in shares] for shares in _columns(found).values())
    console.print(table(head, zip(map(str, found.ages.tolist()), *columns, strict=True), head))
    if found.peak is None:
        console.print(f"Nothing arrived within {found.ages[-1]} s.", soft_wrap=True)
        return
    low, high = found.peak - found.width / 2, found.peak + found.width / 2
    console.print(f"Most arrive at an age of {low:g} to {high:g} s.", soft_wrap=True)


def _draw(found: Arrivals, name: str, file: Path) -> None:
    from roamcast.report.distribution import distribution

    titles = "delivered", "of the deliveries", "possible", "possible if only the interested carry"
    curves = {
        title: [(age, share) for age, share in zip(found.ages.tolist(), shares, strict=True) if share is not None]
        for title, shares in zip(titles, _columns(found).values(), strict=True)
    }
    write_file(file, distribution(f"{name}: what arrived by when", curves, x="age (s)", y="share"))
