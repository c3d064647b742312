"""`roamcast choose`: which protocol for this network?"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table

from roamcast.campaign.around import around_trace
from roamcast.campaign.candidates import (
    able,
    as_node,
    as_run,
    as_scenario,
    candidate,
    distinct,
    own,
    race_experiment,
    usual,
    with_candidates,
)
from roamcast.campaign.experiment import CampaignError, Experiment, Variant
from roamcast.cli.campaign_options import ABSENT, LOCAL, setting
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import say, shown
from roamcast.sim.compilation import compile_if_needed
from roamcast.sim.scenario import read

RESULT_FILE: Final = "choice.json"
FIGURE_FILE: Final = "choice.svg"
WINNER_FILE: Final = "winner.toml"
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
    read_from = around_trace if network.is_dir() else read
    made = race_experiment(read_from(network), str(network), network.parent)
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
        _show(result, COST_UNITS[cost], out)


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


def _write(result: dict[str, Any], made: Experiment, variants: Mapping[str, Variant], out: Path) -> None:
    """The result, a figure, and the winner as a scenario; of several that are not separated, the first."""
    from roamcast.report.choice import drawing

    out.mkdir(parents=True, exist_ok=True)
    (out / RESULT_FILE).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if result["race"]:
        (out / FIGURE_FILE).write_text(drawing(result), encoding="utf-8")
        winner = as_scenario(made, variants[result["left"][0]], out) if result["left"] else ""
        (out / WINNER_FILE).write_text(winner, encoding="utf-8")


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
    from roamcast.pipeline.choose import Chooser, goal  # they import Spark
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
        "goal": {"measure": wanted.measure, "at_least": share},
        "cost": wanted.cost,
        "left": choice.left,
        "decided": choice.decided,
        "goal_reachable": choice.reachable,
        "ended": choice.ended,
        "dropped": [one._asdict() for one in choice.dropped],
        "refused": refused,
        "race": {name: _finite(asdict(figures)) for name, figures in choice.race.items()},
        "fresh": {name: _finite(asdict(figures)) for name, figures in choice.fresh.items()},
        "run": {name: as_run(by_name[name], experiment.source) for name in choice.left},
        "node": {name: as_node(by_name[name]) for name in choice.left},
    }


def _finite(value: Any) -> Any:  # noqa: ANN401  # any value of JSON
    """JSON has no infinity: null stands for it."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- What is shown --------------------------------------------------------------------------------------------------


def _show(result: dict[str, Any], unit: str, out: Path) -> None:
    console = Console(markup=False, highlight=False)
    goal = result["goal"]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("candidate", "seeds", goal["measure"], f"cost ({unit} per delivery)", "what became of it"):
        table.add_column(name, justify="left" if name in ("candidate", "what became of it") else "right")
    reasons = {one["arm"]: f"dropped after {one['seeds']} seeds: {one['reason']}" for one in result["dropped"]}
    ordered = [*result["left"], *(name for name in result["race"] if name not in result["left"])]
    for name in ordered:
        figures = result["fresh"].get(name) or result["race"].get(name)
        if figures is None:
            continue
        where = "fresh seeds" if name in result["fresh"] else "seeds of the race"
        state = reasons.get(name) or f"left; figures of {where}"
        table.add_row(name, str(figures["seeds"]), _interval(figures["goal"]), _interval(figures["cost"]), state)
    console.print(table)
    click.echo(_answer(result))
    for name in [name for name in result["left"] if name in result["race"]][:1]:
        click.echo(f"simulate it:      {result['run'][name]}")
        click.echo(f"run it on a node: {result['node'][name]}")
        click.echo(f"as a scenario:    {out / WINNER_FILE}")
        click.echo(f"figure:           {out / FIGURE_FILE}")
    click.echo(f"all of it:        {out / RESULT_FILE}")


def _answer(result: dict[str, Any]) -> str:
    """One sentence."""
    left, goal = result["left"], result["goal"]
    wanted = f"{goal['measure']} of at least {goal['at_least']:g}"
    if not left or not result["race"]:
        return f"No answer: {result['ended']} before a single look at all candidates. Give it more --minutes."
    if not result["goal_reachable"]:
        could = [one["possible"] for one in (result["fresh"] or result["race"]).values() if one["possible"] is not None]
        limit = f" Any protocol could have delivered {sum(could) / len(could):.3f} at most." if could else ""
        return f"Nothing meets the goal, {wanted}. Closest to it: {', '.join(left)}.{limit}"
    if result["decided"]:
        return f"Use {left[0]}: the cheapest that reaches {wanted}."
    return f"Not decided between {', '.join(left)} for {wanted}: {result['ended']}."


def _interval(estimate: list[float | None]) -> str:
    mean, low, high = estimate
    if mean is None:
        return "∞"
    if low is None or high is None:
        return f"{mean:.3g} ± {ABSENT}"
    return f"{mean:.3g} ± {(high - low) / 2:.2g}"
