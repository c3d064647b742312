"""Shows the result of a race: a table, which candidates were dropped and why, one sentence, and what to do next."""

import shlex
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from roamcast.campaign.decide.choice import THE_SAME
from roamcast.cli.screen import plain_console, table
from roamcast.report.numbers import plus_minus

RESULT_FILE: Final = "choice.json"
FIGURE_FILE: Final = "choice.svg"
WINNER_FILE: Final = "winner.toml"
_UNBROKEN: Final = "\N{NO-BREAK SPACE}"
_NAME: Final = 30
"""Columns that a name may take without being folded."""


def show(result: dict[str, Any], out: Path) -> None:
    """`result` is the content of `choice.json`."""
    plain_console().print(_table(result))
    for one in result["dropped"]:
        click.echo(f"{one['arm']} dropped after {one['seeds']} seeds: {one['reason']}")
    click.echo(answer(result))
    for name, command in result["run"].items():
        click.echo(f"simulate it:      {command}")
        click.echo(f"run it on a node: {result['node'][name]}")
        click.echo(f"{'':18}(each with an --id of its own; 'roamcast key new network.key' makes the key of all)")
        click.echo(f"figure:           {shlex.quote(str(out / FIGURE_FILE))}")
    click.echo(f"all of it:        {shlex.quote(str(out / RESULT_FILE))}")


def _table(result: dict[str, Any]) -> Table:
    """The candidates left come first, then the others, both by rank. The table fits a screen of 80 columns: the column
    of the goal is folded where there is little room."""
    goal = result["goal"]["words"]
    unbroken = ["cost", "seeds", ""]
    if max(map(len, result["race"]), default=0) <= _NAME:
        unbroken.append("candidate")
    return table(
        ("candidate", goal, "cost", "seeds", ""),
        [_row(name, result) for name in result["ranking"]],
        [goal, "cost", "seeds"],
        unbroken=unbroken,
        caption=f"cost: {result['cost']['words']}",
    )


def _row(name: str, result: dict[str, Any]) -> tuple[str, ...]:
    figures = result["fresh"].get(name) or result["race"][name]
    seeds = f"{figures['seeds']} fresh" if name in result["fresh"] else str(figures["seeds"])
    state = "" if name in result["left"] else "dropped"
    return name, _interval(figures["goal"]).replace(" ", _UNBROKEN), _interval(figures["cost"]), seeds, state


def answer(result: dict[str, Any]) -> str:
    """The result in a sentence or two."""
    left, ended = result["left"], result["ended"]
    if not left:
        return f"No answer: {ended}."
    if not result["looked"]:
        return f"No answer: {ended} before a single look at all candidates. Give it more --minutes."
    others = f" Not separated from it: {', '.join(left[1:])}." if left[1:] else ""
    more = " The same command with more --minutes continues from here." if result["time_was_up"] else ""
    return f"{_verdict(result)}{others}{more}"


def _verdict(result: dict[str, Any]) -> str:
    best, goal = result["left"][0], result["goal"]
    wanted = f"{goal['words']} of at least {goal['at_least']:g}"
    figures = result["fresh"].get(best) or result["race"][best]
    reached = f"{_interval(figures['goal'])} at {_interval(figures['cost'])} {result['cost']['words']}"
    if not result["goal_reachable"]:
        return f"Nothing meets the goal, {wanted}. Closest to it: {best}, {reached}.{_limit(result)}"
    if result["ended"] == THE_SAME:
        return f"Use {best}, or another that is left: all reach {wanted} at the same cost within 5 %, {reached}."
    if not result["decided"]:
        return f"Not decided for {wanted}: {result['ended']}. Best so far: {best}, {reached}."
    if result["settled"] and figures["goal"][0] >= goal["at_least"]:
        return f"Use {best}, the cheapest that reaches {wanted}: {reached}."
    return f"Use {best}, all others were dropped; but it may miss {wanted}: {reached}.{_limit(result)}"


def _limit(result: dict[str, Any]) -> str:
    """What was possible at all."""
    could = [one["possible"] for one in (result["fresh"] or result["race"]).values() if one["possible"] is not None]
    return f" Any protocol could have delivered {sum(could) / len(could):.3f} of all pairs at most." if could else ""


def _interval(estimate: list[float | None]) -> str:
    return "∞" if estimate[0] is None else plus_minus(*estimate)
