"""`roamcast choose`: which protocol for this network?"""

import json
import math
import shlex
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from roamcast.analysis import compilation
from roamcast.campaign.decide.choice import COST_UNITS, TIME_IS_UP, Choice
from roamcast.campaign.define.around_trace import around_trace, in_words
from roamcast.campaign.define.candidates import (
    able,
    as_node,
    as_scenario,
    candidate,
    distinct,
    own,
    race_experiment,
    refuse_nothing_to_deliver,
    usual,
    with_candidates,
)
from roamcast.campaign.define.experiment import CampaignError, Experiment, Variant
from roamcast.cli.choice import FIGURE_FILE, RESULT_FILE, WINNER_FILE, show
from roamcast.cli.options import SparkOptions, spark_options
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import say, shown
from roamcast.cli.screen import plain_console
from roamcast.sim.core.compilation import compile_if_needed
from roamcast.sim.scenario.scenario import read

if TYPE_CHECKING:  # it imports Spark
    from roamcast.pipeline.goal import Goal


@click.command()
@click.argument("network", type=click.Path(path_type=Path), metavar="SCENARIO.toml|TRACE")
@click.option(
    "--at-least",
    default="delivery=0.95",
    metavar="MEASURE=SHARE",
    help="The goal: delivery, a share of all pairs of an event and a subscriber; of-possible, a share of the pairs "
    "that any protocol could have delivered; or another measure that is a share.",
)
@click.option(
    "--within",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Count only what arrives within so many seconds.  [default: no limit]",
)
@click.option(
    "--cost", type=click.Choice(list(COST_UNITS)), default="airtime", help="What to count as the cost of a delivery."
)
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), default=10, help="Time limit for everything, in minutes."
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="'NAME PARAMETER=VALUE'",
    help="A protocol to try, with parameters. May be repeated.  [default: the scenario's own, and all of 'roamcast "
    "protocols']",
)
@click.option("--out", type=LocalPath(), help="Folder for the results.  [default: out/choose-NAME]")
@spark_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: a table]")
def choose(
    network: Path,
    at_least: str,
    within: float | None,
    cost: str,
    minutes: float,
    candidates: tuple[str, ...],
    out: Path | None,
    spark: SparkOptions,
    as_json: bool,
) -> None:
    """Find the cheapest protocol that reaches a goal on a network.

    The network is a scenario, or a TRACE from 'roamcast traces import', around which a scenario is made: a fifth of the
    nodes want everything, a twentieth publish.

    All candidates run the scenario on the same seeds. Those that surely miss the goal, or surely cost more than another
    that meets it, are dropped, until one is left, those left cost the same, or the time is up. Those left are then
    measured on seeds that had no part in the choice. Exits with 0 even if nothing is decided or nothing meets the goal:
    the answer says so.
    """
    from roamcast.pipeline.choose import Chooser  # they import Spark
    from roamcast.pipeline.goal import goal

    wanted = goal(*_measure_and_share(at_least), within, cost)
    made = race_experiment(_scenario(network), str(network), network.parent)
    fit, refused = able(made, distinct([candidate(text) for text in candidates] or [own(made), *usual()]))
    if refused and (candidates or not fit):
        reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise CampaignError(f"{network}: cannot be run by {reasons}")
    refuse_nothing_to_deliver(made, fit[0], within)
    out = out or Path("out") / f"choose-{network.stem}"
    if spark.master.startswith("local"):
        compile_if_needed(say)
        compilation.compile_if_needed(say)
    say(f"{len(fit)} candidates: {', '.join(variant.name for variant in fit)}")
    for name, why in refused.items():
        say(f"left out: {name}: {why}")
    until = time.monotonic() + 60 * minutes
    console, racing = plain_console(stderr=True), with_candidates(made, fit)
    tell = partial(console.print, soft_wrap=True)
    with shown(console) as report, spark.session() as session:
        choice = Chooser(session, racing, wanted, out, until=until, on_progress=report, tell=tell).choose()
    result = _result(choice, wanted, COST_UNITS[cost], out, fit) | {"scenario": made.source, "refused": refused}
    _write(result, made, fit, out)
    if as_json:
        click.echo(json.dumps(result))
    else:
        show(result, out)


def _measure_and_share(text: str) -> tuple[str, float]:
    measure, equals, share = text.partition("=")
    try:
        value = float(share)
    except ValueError:
        value = math.nan
    if not (measure and equals and 0 <= value <= 1):
        raise click.BadParameter(f"{text!r}: expected MEASURE=SHARE, such as delivery=0.95", param_hint="--at-least")
    return measure, value


def _scenario(network: Path) -> dict[str, Any]:
    """As it stands in the file, or made around the trace."""
    if not network.is_dir():
        return read(network)
    scenario = around_trace(network)
    say(in_words(scenario, network))
    return scenario


def _result(choice: Choice, wanted: "Goal", unit: str, out: Path, candidates: Sequence[Variant]) -> dict[str, Any]:
    """What `choice.json` has of the choice."""
    left = choice.left if choice.looked else []
    return {
        "goal": {"measure": wanted.measure, "at_least": wanted.at_least, "words": wanted.words},
        "cost": {"measure": wanted.cost, "words": f"{unit} per delivery"},
        "left": choice.left,
        "decided": choice.decided,
        "goal_reachable": choice.reachable,
        "ended": choice.ended,
        "time_was_up": choice.ended == TIME_IS_UP,
        "settled": choice.settled,
        "looked": choice.looked,
        "dropped": [one._asdict() for one in choice.dropped],
        "ranking": choice.ranking(wanted.at_least),
        "race": _finite(choice.race),
        "fresh": _finite(choice.fresh),
        "run": {name: f"roamcast run {shlex.quote(str(out / WINNER_FILE))}" for name in left[:1]},
        "node": {one.name: as_node(one) for one in candidates if one.name in left},
    }


def _write(result: dict[str, Any], made: Experiment, candidates: Sequence[Variant], out: Path) -> None:
    """The result, a figure, and the winner as a scenario; of several that are not separated, the first."""
    from roamcast.report.choice import race_figure  # it imports matplotlib
    from roamcast.report.distribution import as_svg

    out.mkdir(parents=True, exist_ok=True)
    for name in (FIGURE_FILE, WINNER_FILE):
        (out / name).unlink(missing_ok=True)  # of an earlier race, with another goal
    (out / RESULT_FILE).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if result["race"]:
        (out / FIGURE_FILE).write_text(as_svg(race_figure(result)), encoding="utf-8")
    for one in candidates:
        if one.name in result["run"]:
            (out / WINNER_FILE).write_text(as_scenario(made, one, out), encoding="utf-8")


def _finite(figures: Mapping[str, object]) -> Any:  # noqa: ANN401  # any value of JSON
    """The figures as JSON has them: msgspec writes null for infinity."""
    return msgspec.json.decode(msgspec.json.encode(figures))
