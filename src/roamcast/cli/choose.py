"""`roamcast choose`: which protocol for this network?"""

import json
import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from roamcast.campaign.around import around_trace, in_words
from roamcast.campaign.candidates import (
    able,
    as_node,
    as_scenario,
    candidate,
    distinct,
    own,
    race_experiment,
    usual,
    with_candidates,
)
from roamcast.campaign.experiment import CampaignError, Experiment, Variant
from roamcast.cli.campaign_options import LOCAL, setting
from roamcast.cli.choice import FIGURE_FILE, RESULT_FILE, WINNER_FILE, looked, show
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import say, shown
from roamcast.sim.compilation import compile_if_needed
from roamcast.sim.scenario import read

COST_UNITS: Final = {"airtime": "ms on the air", "packets": "packets", "bits": "bits"}


@click.command()
@click.argument("network", type=click.Path(path_type=Path), metavar="SCENARIO.toml|TRACE")
@click.option(
    "--at-least",
    default="delivery=0.95",
    show_default=True,
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
    "--cost",
    type=click.Choice(list(COST_UNITS)),
    default="airtime",
    show_default=True,
    help="What to count as the cost of a delivery.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=10,
    show_default=True,
    help="Time limit for everything.",
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
@click.option("--master", metavar="URL", help=f"URL of the Spark master.  [default: {LOCAL}, this machine]")
@click.option("--conf", "settings", multiple=True, metavar="K=V", help="A Spark setting. May be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: a table]")
def choose(
    network: Path,
    at_least: str,
    within: float | None,
    cost: str,
    minutes: float,
    candidates: tuple[str, ...],
    out: Path | None,
    master: str | None,
    settings: tuple[str, ...],
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
    measure, share = _goal(at_least)
    made = race_experiment(_scenario(network), str(network), network.parent)
    wanted: list[Variant | None] = [candidate(text) for text in candidates] or [own(made), *usual()]
    fit, refused = able(made, distinct(wanted))
    if not fit:
        reasons = "; ".join(dict.fromkeys(refused.values()))
        raise CampaignError(f"{network}: none of the candidates can run it: {reasons}")
    out = out or Path("out") / f"choose-{network.stem}"
    if (master or LOCAL).startswith("local"):
        compile_if_needed(say)
    until = time.monotonic() + 60 * minutes
    asked = Request(measure, share, within, cost, until, out, master or LOCAL, dict(map(setting, settings)))
    result = _race(with_candidates(made, fit), asked, refused)
    _write(result, made, {variant.name: variant for variant in fit}, out)
    if as_json:
        click.echo(json.dumps(result))
    else:
        show(result, COST_UNITS[cost], out)


def _scenario(network: Path) -> dict[str, Any]:
    """As it stands in the file, or made around the trace."""
    if not network.is_dir():
        return read(network)
    scenario = around_trace(network)
    say(in_words(scenario, network))
    return scenario


@dataclass(frozen=True)
class Request:
    """The request."""

    measure: str
    share: float
    within: float | None
    cost: str
    until: float
    """The deadline, by `time.monotonic`."""
    out: Path
    master: str
    settings: dict[str, str]

    @property
    def words(self) -> str:
        """The measure, as a person says it."""
        named = {"of-possible": "delivery of what was possible"}.get(self.measure, self.measure)
        return named if self.within is None else f"{named} within {self.within:g} s"


def _write(result: dict[str, Any], made: Experiment, variants: Mapping[str, Variant], out: Path) -> None:
    """The result, a figure, and the winner as a scenario; of several that are not separated, the first."""
    from roamcast.report.choice import drawing

    out.mkdir(parents=True, exist_ok=True)
    (out / RESULT_FILE).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if result["race"]:
        (out / FIGURE_FILE).write_text(drawing(result), encoding="utf-8")
    for name in result["left"][:1] if looked(result) else ():
        (out / WINNER_FILE).write_text(as_scenario(made, variants[name], out), encoding="utf-8")


def _goal(text: str) -> tuple[str, float]:
    measure, equals, share = text.partition("=")
    try:
        value = float(share)
    except ValueError:
        value = math.nan
    if not (measure and equals and 0 <= value <= 1):
        raise click.BadParameter(f"{text!r}: expected MEASURE=SHARE, such as delivery=0.95", param_hint="--at-least")
    return measure, value


def _race(experiment: Experiment, asked: Request, refused: dict[str, str]) -> dict[str, Any]:
    """Runs the race, with progress on the screen; gives its result as JSON has it."""
    from roamcast.pipeline.choose import TIME_IS_UP, Chooser, goal  # they import Spark
    from roamcast.pipeline.measures import MEASURES
    from roamcast.pipeline.session import session

    measure, share = asked.measure, asked.share
    wanted = goal(measure, share, asked.within, asked.cost)
    about = MEASURES[wanted.measure].about if wanted.measure in MEASURES else None
    if about is None or not about.share or about.good != "high":
        raise CampaignError(f"--at-least {measure}={share:g}: {measure} is not a measure that is a share to be high")
    console = Console(stderr=True)
    names = [variant.name for variant in experiment.variants]
    console.print(f"{len(names)} candidates: {', '.join(names)}", markup=False, highlight=False, soft_wrap=True)
    for name, why in refused.items():
        console.print(f"left out: {name}: {why}", markup=False, highlight=False, soft_wrap=True)
    with shown(console) as report, session(asked.master, asked.settings) as spark:
        choice = Chooser(
            spark,
            experiment,
            wanted,
            asked.out,
            until=asked.until,
            on_progress=report,
            tell=lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True),
        ).choose()
    by_name = {variant.name: variant for variant in experiment.variants}
    return {
        "scenario": experiment.source,
        "goal": {"measure": wanted.measure, "at_least": share, "words": asked.words},
        "cost": wanted.cost,
        "left": choice.left,
        "decided": choice.decided,
        "goal_reachable": choice.reachable,
        "ended": choice.ended,
        "time_was_up": choice.ended == TIME_IS_UP,
        "dropped": [one._asdict() for one in choice.dropped],
        "refused": refused,
        "race": {name: _finite(asdict(figures)) for name, figures in choice.race.items()},
        "fresh": {name: _finite(asdict(figures)) for name, figures in choice.fresh.items()},
        "run": {name: f"roamcast run {shlex.quote(str(asked.out / WINNER_FILE))}" for name in choice.left[:1]},
        "node": {name: as_node(by_name[name]) for name in choice.left},
    }


def _finite(value: Any) -> Any:  # noqa: ANN401  # any value of JSON
    """JSON has no infinity: null stands for it."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
