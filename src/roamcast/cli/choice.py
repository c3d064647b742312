"""Shows the result of a race: a table, which candidates were dropped and why, one sentence, and what to do next."""

import shlex
from pathlib import Path
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table

from roamcast.cli.campaign_options import ABSENT

RESULT_FILE: Final = "choice.json"
FIGURE_FILE: Final = "choice.svg"
WINNER_FILE: Final = "winner.toml"
_NAME: Final = 30
"""Columns that a name may take before others are folded."""


def show(result: dict[str, Any], unit: str, out: Path) -> None:
    """`result` is the content of `choice.json`; `unit` is the unit of the cost."""
    Console(markup=False, highlight=False).print(_table(result, unit))
    for one in result["dropped"]:
        click.echo(f"{one['arm']} dropped after {one['seeds']} seeds: {one['reason']}")
    click.echo(answer(result, unit))
    for name in result["left"][:1] if looked(result) else ():
        click.echo(f"simulate it:      {result['run'][name]}")
        click.echo(f"run it on a node: {result['node'][name]}")
        click.echo(
            "                  (each with an --id of its own; 'roamcast key new network.key' makes the key of all)"
        )
        click.echo(f"figure:           {shlex.quote(str(out / FIGURE_FILE))}")
    click.echo(f"all of it:        {shlex.quote(str(out / RESULT_FILE))}")


def _table(result: dict[str, Any], unit: str) -> Table:
    """The candidates left come first, by rank. The table fits a screen of 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=f"cost: {unit} per delivery", caption_justify="left")
    table.add_column("candidate", overflow="fold", min_width=min(_NAME, max(map(len, result["race"]), default=0)))
    for name in (result["goal"]["words"], "cost", "seeds", ""):
        table.add_column(name, justify="left" if not name else "right", overflow="fold")
    for name in [*result["left"], *(name for name in result["race"] if name not in result["left"])]:
        figures = result["fresh"].get(name) or result["race"].get(name)
        if figures is None:
            continue
        state = "dropped" if name not in result["left"] else "fresh seeds" if name in result["fresh"] else ""
        table.add_row(name, _interval(figures["goal"]), _interval(figures["cost"]), str(figures["seeds"]), state)
    return table


def looked(result: dict[str, Any]) -> bool:
    """Whether all candidates ran: before that there is no best one."""
    return all(name in result["race"] for name in result["left"])


def answer(result: dict[str, Any], unit: str) -> str:
    """The result in a sentence or two."""
    left, goal, ended = result["left"], result["goal"], result["ended"]
    wanted = f"{goal['words']} of at least {goal['at_least']:g}"
    if not left:
        return f"No answer: {ended}."
    if not looked(result):
        return f"No answer: {ended} before a single look at all candidates. Give it more --minutes."
    if not result["goal_reachable"]:
        could = [one["possible"] for one in (result["fresh"] or result["race"]).values() if one["possible"] is not None]
        limit = f" Any protocol could have delivered {sum(could) / len(could):.3f} at most." if could else ""
        return f"Nothing meets the goal, {wanted}. Closest to it: {', '.join(left)}.{limit}"
    figures = result["fresh"].get(left[0]) or result["race"][left[0]]
    reached = f"{_interval(figures['goal'])} at {_interval(figures['cost'])} {unit}"
    if result["decided"] and figures["goal"][0] >= goal["at_least"]:
        return f"Use {left[0]}, the cheapest that reaches {wanted}: {reached}."
    if result["decided"]:
        return f"{left[0]} comes closest to {wanted}, and may just miss it: {reached}. All others were dropped."
    line = f"Not decided for {wanted}: {ended}. Best so far: {left[0]}, {reached}."
    if left[1:]:
        line += f" Not separated from it: {', '.join(left[1:])}."
    if result["time_was_up"]:
        line += " The same command with more --minutes goes on from here."
    return line


def _interval(estimate: list[float | None]) -> str:
    mean, low, high = estimate
    if mean is None:
        return "∞"
    if low is None or high is None:
        return f"{mean:.3g} ± {ABSENT}"
    return f"{mean:.3g} ± {(high - low) / 2:.2g}"
