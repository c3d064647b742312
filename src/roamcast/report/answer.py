"""The answer of a figure in words: how the variants compare, who leads where, and what the seeds do not decide.

The rule this file owns: a sentence claims only what `compare.py` found. It states an order only if that is decided;
otherwise it says that the seeds are too few.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from roamcast.report.compare import Compared, Difference, FigureComparison, Lead, Question, compare, ends
from roamcast.report.numbers import estimate, number, signed, value_text
from roamcast.report.titles import first_upper
from roamcast.statistics.curves import Curves

_MANY: Final = 6
"""Up to this many variants get a clause each."""
_FEW: Final = 4
"""Up to this many variants are named if none of them leads."""


def answer(question: Question, curves: Curves) -> str:
    """A few sentences; empty if nothing was measured."""
    measured = [name for name in question.variants if curves.along(question.experiment, name, question.about.name)]
    if not measured:
        return ""
    reference = question.reference if question.reference in measured else measured[0]
    asked = replace(question, variants=tuple(measured), reference=reference)
    return _alone(asked, ends(asked, curves)) if len(measured) == 1 else in_words(compare(asked, curves))


def in_words(found: FigureComparison) -> str:
    """A comparison of two or more variants, as sentences."""
    if found.seeds < 2:
        return f"One seed decides nothing about {measure_name(found.question)}; --seeds gives more."
    sentences = [*_overall(found), *_where(found)]
    for before, at in itertools.pairwise(range(len(sentences))):
        if _these(found) in sentences[before]:
            sentences[at] = sentences[at].replace(_these(found), "they")
    return " ".join(map(first_upper, sentences))


def measure_name(question: Question) -> str:
    return _short(question.about.title)


def quoted(name: str) -> str:
    """A variant's name in quotation marks where needed to show where it ends."""
    return name if name.replace("-", "").replace("_", "").isalnum() else f"“{name}”"


# --- Against the reference ------------------------------------------------------------------------------------------


def _overall(found: FigureComparison) -> Iterator[str]:
    """How each variant compares with the reference; the measure and the reference are named once."""
    question = found.question
    told = [one for one in found.compared if one.difference.order]
    same = [one for one in found.compared if one.difference.same]
    rest = [one for one in found.compared if not (one.difference.order or one.difference.same)]
    name, than = measure_name(question), quoted(question.reference)
    over = _over(found)
    if told:
        outermost = _outermost(told)
        named = next((index for index, one in enumerate(outermost) if _price(one)), 0)
        parts = [_against(one, question, index == 0, index <= named) for index, one in enumerate(outermost)]
        tail = f" ({len(told)} variants differ from it: these are the outermost)" if len(told) > _MANY else ""
        yield f"{over}{'; '.join(parts)}{tail}."
    if same:
        yield f"with {_listed(quoted(one.variant) for one in same)}, {name} is the same as with {than} in every seed."
    if rest:
        shown = [f"{quoted(one.variant)}{_aside(one.difference)}" for one in rest]
        if len(shown) > _MANY + 1:
            shown[_MANY:] = [f"{len(shown) - _MANY} more"]
        lead = "" if told else f"{over}in {name}, "
        yield f"{lead}{_these(found)} are too few to tell {_listed(shown)} from {than}."


def _outermost(told: Sequence[Compared]) -> list[Compared]:
    """All, if there are few; else the lowest and the highest."""
    if len(told) <= _MANY:
        return list(told)
    ordered = sorted(told, key=lambda one: one.difference.found.mean if one.difference.found else 0.0)
    return [ordered[0], ordered[-1]]


def _against(one: Compared, question: Question, first: bool, names_price: bool) -> str:
    """Such as: with hint, overhead is 0.66 ± 0.04 of that with gossip, at 0.12 ± 0.05 more delivery."""
    name, than = measure_name(question), quoted(question.reference)
    begin = (
        f"with {quoted(one.variant)}, {name}{',' if ',' in name else ''} is" if first else f"with {quoted(one.variant)}"
    )
    size = _size(one.difference)
    if one.difference.ratio:
        of = "times" if one.difference.order > 0 else "of"
        text = f"{begin} {size} {of} {f'that with {than}' if first else 'it'}"
    else:
        way = "higher" if one.difference.order > 0 else "lower"
        text = f"{begin} {size} {way}{f' than with {than}' if first else ''}"
    return text + _paid(one, question, names_price)


def _over(found: FigureComparison) -> str:
    """What the means are over, if all are over the same places."""
    question = found.question
    places = {one.places for one in found.compared if one.difference.found is not None}
    if len(places) > 1:
        return f"averaged over the values of {_listed((question.axis, *question.others))} that both have, "
    common = next(iter(places), ())
    if len(common) > 1:
        also = f" and over {_listed(question.others)}" if question.others else ""
        return f"averaged over {question.axis} {_places(common, question.places)}{also}, "
    at = f"at {question.axis} {_places(common, question.places)}, " if common and len(question.places) > 1 else ""
    return at + (f"averaged over {_listed(question.others)}, " if question.others else "")


def _price(one: Compared) -> Difference | None:
    """The difference in the companion measure, such as delivery beside a cost, if there is one to report."""
    return None if one.beside is None or one.beside.found is None or one.beside.same else one.beside


def _paid(one: Compared, question: Question, named: bool) -> str:
    """The price in words; the companion measure is named only the first time."""
    if (price := _price(one)) is None:
        return ""
    name = _short(question.beside.title) if question.beside is not None and named else ""
    if not price.order:
        return f" ({name}{': ' if name else ''}{_found(price)}, not decided)"
    return f", at {_size(price)} {'more' if price.order > 0 else 'less'} {name}".rstrip()


def _size(difference: Difference) -> str:
    """The size of a decided difference; the word beside it gives the direction."""
    assert difference.found is not None
    mean, low, high = difference.found
    if difference.ratio or mean >= 0:
        return estimate(mean, low, high)
    return estimate(-mean, -high, -low)


def _aside(difference: Difference) -> str:
    """The estimate of an undecided difference."""
    return " (too few common seeds)" if difference.found is None else f" ({_found(difference)})"


def _found(difference: Difference) -> str:
    assert difference.found is not None
    mean, low, high = difference.found
    text = estimate(mean, low, high) if math.isfinite(high - low) else f"{number(mean)} in every seed"
    return f"{text} times" if difference.ratio else signed(text)


# --- Who leads where ------------------------------------------------------------------------------------------------


def _where(found: FigureComparison) -> Iterator[str]:
    """First the places grouped by leader, then those without one."""
    question = found.question
    if len(found.leads) < 2 and len(question.variants) < 3:
        return  # the comparison with the reference has said it
    name = measure_name(question)
    best = "lowest" if question.low_is_good else "highest"
    by_leader: dict[str, list[Lead]] = {}
    undecided: dict[tuple[str, ...], list[Lead]] = {}
    shared: dict[tuple[str, ...], list[Lead]] = {}
    for lead in found.leads:
        if lead.leader is not None:
            by_leader.setdefault(lead.leader, []).append(lead)
        else:
            between = tuple(sorted(lead.between, key=question.variants.index))
            (shared if lead.same else undecided).setdefault(between, []).append(lead)
    if by_leader:
        parts = [f"with {quoted(who)}{_at(leads, found)}" for who, leads in by_leader.items()]
        yield f"{name}{',' if ',' in name else ''} is {best} {_listed(parts)}."
    for between, leads in shared.items():
        names = _listed(map(quoted, between))
        yield f"the {best} {name}{_at(leads, found)} is that of {names}, the same in every seed."
    if undecided:
        yield f"{_these(found)} are too few to say which is {best}{_open(undecided, found)}."


def _open(undecided: Mapping[tuple[str, ...], Sequence[Lead]], found: FigureComparison) -> str:
    """Where no variant leads, and which might: such as, at range 80 (flooding or hint) and at 120 (5 of 8 variants)."""
    count = len(found.question.variants)
    who = [
        f"probably {quoted(between[0])}"
        if len(between) == 1
        else _listed(map(quoted, between), "or")
        if len(between) <= _FEW
        else f"{len(between)} of {count} variants"
        for between in undecided
    ]
    if len(found.leads) < 2:
        return f": {who[0]}"
    axis, all_places = found.question.axis, found.question.places
    if len(undecided) == 1 and sum(map(len, undecided.values())) == len(found.leads) == len(all_places):
        return f" at any value of {axis} ({who[0]})"
    places = [_places([lead.place for lead in leads], all_places) for leads in undecided.values()]
    first, *others = (f"{at} ({names})" for at, names in zip(places, who, strict=True))
    return f" at {axis} {_listed([first, *(f'at {other}' for other in others)])}"


def _at(leads: Sequence[Lead], found: FigureComparison) -> str:
    """At which values of the axis; empty if there is only one."""
    axis = found.question.axis
    if len(found.leads) < 2:
        return ""
    if len(leads) == len(found.leads) == len(found.question.places):
        return f" at every value of {axis}"
    return f" at {axis} {_places([lead.place for lead in leads], found.question.places)}"


def _places(chosen: Sequence[Any], places: Sequence[Any]) -> str:
    """Values of the axis; three or more neighbours are written as a range."""
    order = {value_text(place): index for index, place in enumerate(places)}
    texts = [value_text(place) for place in chosen]
    runs = []
    for _, run in itertools.groupby(enumerate(texts), key=lambda at: order[at[1]] - at[0]):
        group = [text for _, text in run]
        runs += [f"{group[0]} to {group[-1]}"] if len(group) > 2 else group
    return _listed(runs)


# --- One variant ----------------------------------------------------------------------------------------------------


def _alone(question: Question, change: Difference | None) -> str:
    """How the measure changes from one end of the axis to the other."""
    if change is None:
        return ""
    name, (first, last) = measure_name(question), (value_text(question.places[at]) for at in (0, -1))
    between = f"between {question.axis} {first} and {last}"
    if change.found is None:
        return first_upper(f"{name}: too few seeds have a value at both ends of {question.axis} to compare them.")
    if change.same:
        return first_upper(f"{name} is the same at {question.axis} {first} and {last} in every seed.")
    if not change.order:
        return first_upper(f"the seeds are too few to say whether {name} changes {between}{_aside(change)}.")
    way, size = ("rises" if change.order > 0 else "falls"), _size(change)
    by = f"to {size} {'times' if change.order > 0 else 'of'} what it was" if change.ratio else f"by {size}"
    return first_upper(f"{name}{',' if ',' in name else ''} {way} {by} {between}.")


# --- Words ----------------------------------------------------------------------------------------------------------


def _short(title: str) -> str:
    """A measure's title without its unit."""
    return title.partition(" (")[0]


def _these(found: FigureComparison) -> str:
    return f"{found.seeds} seeds"


def _listed(words: Iterable[str], last: str = "and") -> str:
    found = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}"
