"""The winners' table: a row for each point, a column for each goal, and first which variant is best in all."""

from dataclasses import dataclass

from roamcast.report.answer import ComparedGoals, either, meaning_of_best, measure_name, quoted
from roamcast.report.compare import MeasureComparison, Standing, best, compare
from roamcast.report.numbers import ABSENT, two_digits, value_text
from roamcast.report.places import listed
from roamcast.report.titles import first_upper
from roamcast.statistics.curves import Curves

_FEW = 3


@dataclass(frozen=True)
class Winners:
    head: list[str]
    rows: list[list[str]]
    caption: str


def winners(asked: ComparedGoals, curves: Curves) -> Winners | None:
    """None if there is nothing to win: one variant, or one seed."""
    goals = [compare(question, curves) for question in asked.goals]
    goals = [one for one in goals if one.standings]
    if not goals or goals[0].seeds < 2:
        return None
    priced = None if asked.cost is None else asked.goals[asked.cost].about
    first, cost = goals[0], next((one for one in goals if one.question.about == priced), None)
    axes = first.question.axes
    head = [*axes, *(["best"] if cost else []), *map(_title, goals)]
    rows = []
    for found in best(first, cost):
        chosen = [_named([found.variant] if found.variant else found.candidates, False)] if cost else []
        cells = [_cell(one.at(found.place)) for one in goals]
        rows.append([*map(value_text, found.place), *chosen, *cells])
    caption = "Who wins where; “?”: not decided by these seeds."
    if cost:
        caption += f" Best: {meaning_of_best(first.question, cost.question)}."
    return Winners([first_upper(name) for name in head], rows, caption)


def _title(found: MeasureComparison) -> str:
    return f"{'lowest' if found.question.low_is_good else 'highest'} {measure_name(found.question.about)}"


def _cell(standing: Standing | None) -> str:
    """The leader with its mean, or those that may lead, with the mean of the one that is ahead."""
    if standing is None:
        return ABSENT
    value = f"{two_digits(standing.mean(standing.ranking[0]))}\N{NO-BREAK SPACE}{standing.about.unit}".rstrip()
    named = _named(standing.candidates, standing.tied)
    return f"{named} ({quoted(standing.ranking[0])} {value})" if named.endswith("?") else f"{named}, {value}"


def _named(names: list[str], tied: bool) -> str:
    if len(names) > _FEW:
        return f"{len(names)} alike" if tied else f"{either(names)}?"
    return listed([quoted(name) for name in names], "=" if tied else "or") + "?" * (len(names) > 1 and not tied)
