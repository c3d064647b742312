"""The answer of an experiment in words: one sentence that a person can repeat, then at most five lines.

The rules this file owns:

* The sentence says what is best, where, by how much and how sure, in at most `MOST_WORDS` words. The lines say where
  another variant is best, who leads in each goal, what has no value, and how many seeds would decide what is open.
* Words claim only what `compare.py` is sure of, and their numbers come from the same intervals.
* Sizes have two digits: nobody acts on a third.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from roamcast.analysis.measures.measure import Measure
from roamcast.campaign.decide.until import LAST_LOOK
from roamcast.report.compare import CLOSE, Best, MeasureComparison, Place, Question, Standing, best, compare
from roamcast.report.numbers import brief, value_text, within
from roamcast.report.places import listed, where
from roamcast.report.titles import first_upper
from roamcast.statistics.contrast import Contrast
from roamcast.statistics.curves import Curves
from roamcast.statistics.intervals import LEVEL, Estimate

T = TypeVar("T")
_Pair = tuple[int, str, str]
"""The number of a goal, and two variants."""

MOST_WORDS: Final = 30
MOST_LINES: Final = 5
_FEW: Final = 3
"""Up to this many candidates are named."""
_SMALL: Final = 0.1
"""Ratios below it are turned round: 40 times less, not 0.025 times."""
_SOME_SEEDS: Final = 5
"""What is suggested where one seed was run."""
_MOST_SEEDS: Final = 500
"""What takes more seeds is as good as equal."""


@dataclass(frozen=True)
class ComparedGoals:
    """What an answer is about: the goals of an experiment, the first of which counts most."""

    goals: tuple[Question, ...]
    cost: int | None = None
    """Which goal is the cost, if there is one."""
    baseline: str | None = None
    command: str = ""
    """The command that runs the campaign."""


class WrittenAnswer(NamedTuple):
    """The sentence, and the lines below it."""

    sentence: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.sentence, *self.lines))


def answer(asked: ComparedGoals, curves: Curves) -> WrittenAnswer | None:
    """None if nothing was measured."""
    goals = [compare(question, curves) for question in asked.goals]
    if goals and goals[0].standings:
        return _Words(asked, goals).answer()
    changes = [text for question in asked.goals if (text := alone(question, curves))]
    return WrittenAnswer(changes[0], tuple(changes[1 : 1 + MOST_LINES])) if changes else None


def meaning_of_best(first: Question, cost: Question) -> str:
    name, price = measure_name(first.about), measure_name(cost.about)
    close = f"{CLOSE:g}" if first.about.share else f"{100 * CLOSE:g} %"
    return f"the lowest {price} of those whose {name} is within {close} of the {_extreme(first)}"


def measure_name(about: Measure) -> str:
    """A measure's title without its unit."""
    return about.title.partition(" (")[0]


def quoted(name: str) -> str:
    """A variant's name in quotation marks where needed to show where it ends."""
    return name if all(part.isalnum() for part in name.replace("_", "-").split("-")) else f"“{name}”"


def lead(found: MeasureComparison) -> str:
    """Who leads in a measure, and where: `Highest delivery: hint at every range, 0.12 ± 0.03 above gossip`."""
    question = found.question
    head = first_upper(f"{_extreme(question)} {measure_name(question.about)}")
    led = _grouped((one.leader, one) for one in found.standings if one.leader is not None)
    parts = [f"{quoted(who)}{_where(at, found)}, {_gap(at)}" for who, at in led.items()]
    tied = _grouped((_names(one.candidates), one) for one in found.standings if one.tied)
    parts += [f"{who} tie{_where(at, found)}" for who, at in tied.items()]
    open_ = _grouped((either(one.candidates), one) for one in found.standings if one.leader is None and not one.tied)
    parts += _not_decided(open_, found)
    return f"{head}: {'; '.join(parts)}."


def alone(question: Question, curves: Curves) -> str:
    """For a single variant: how the measure changes from one end of its first axis to the other."""
    points = [
        point for name in question.variants for point in curves.along(question.experiment, name, question.about.name)
    ]
    if not question.axes or len(points) < 2:
        return ""
    axis, name = question.axes[0], measure_name(question.about)
    first, last = points[0], points[-1]
    ends = [value_text(point.axes.get(axis)) for point in (first, last)]
    common = sorted(set(first.values) & set(last.values))
    found = Contrast.of([(last.values[seed], first.values[seed]) for seed in common], question.about)
    between = f"between {axis} {ends[0]} and {ends[1]}"
    if found is None:
        return first_upper(
            f"{name} is {brief(first.mean)} at {axis} {ends[0]} and {brief(last.mean)} at {ends[1]}; one seed "
            "shows nothing."
        )
    if found.same:
        return first_upper(f"{name} is the same at {axis} {ends[0]} and {ends[1]} in every seed.")
    order = found.order(LEVEL)
    if not order:
        return first_upper(
            f"{len(common)} seeds do not decide whether {name} changes {between} ({_size(found, LEVEL)})."
        )
    size = _size(found, LEVEL)
    by = f"to {size} times what it was" if found.ratio else f"by {size.lstrip('+−')}"
    return first_upper(f"{name} {'rises' if order > 0 else 'falls'} {by} {between} (95 % sure, {len(common)} seeds).")


# --- One experiment -------------------------------------------------------------------------------------------------


class _Words:
    """The words about one experiment with two variants or more."""

    def __init__(self, asked: ComparedGoals, goals: Sequence[MeasureComparison]) -> None:
        self.asked, self.first = asked, goals[0]
        self.goals = [one for one in goals if one.standings]
        cost = None if asked.cost is None else goals[asked.cost]
        self.cost = cost if cost is not None and cost.standings else None
        self.best = best(self.first, self.cost)
        self.seeds = self.first.seeds
        self.name = measure_name(self.first.question.about)
        self.extreme = _extreme(self.first.question)

    def answer(self) -> WrittenAnswer:
        if self.seeds < 2:
            more = f"More seeds compare the variants: {_command(self.asked.command, _SOME_SEEDS)}"
            return WrittenAnswer(self._one_seed(), (*self._missing(), more))
        groups = _grouped((one.variant, one) for one in self.best if one.variant is not None)
        # Of two that are best at as many points, the one that is not the baseline is news.
        main = max(groups, key=lambda name: (len(groups[name]), name != self.asked.baseline), default=None)
        sentence = self._open() if main is None else self._sentence(main, groups[main])
        lines = [*self._elsewhere(groups, main), *map(lead, self.goals), *self._missing()]
        if self._said(main):
            lines.remove(lead(self.first))
        wanted = self._more_seeds()
        return WrittenAnswer(sentence, (*lines[: MOST_LINES - len(wanted)], *wanted))

    def _said(self, main: str | None) -> bool:
        """Whether the sentence, and the line after it, tell all about the first goal."""
        standings = self.first.standings
        if main is None:
            return (len(standings) == 1 and standings[0].leader is None) or all(one.tied for one in standings)
        return self.cost is None or all(one.leader == main for one in standings)

    # --- The sentence

    def _sentence(self, name: str, at: Sequence[Best]) -> str:
        standings = self._standings(at)
        where = self._where(standings)
        sure = f" (95 % sure, {self.seeds} seeds)."
        if self.cost is None:
            begin = f"{quoted(name)} has the {self.extreme} {self.name}"
            return _fitting(f"{begin}{where}, {_gap(standings)}{sure}", f"{begin}{where}{sure}", f"{begin}{sure}")
        begin = f"{quoted(name)} is best{where}"
        price = self._price(name, standings)
        reached = self._reached(name, standings)
        shorter = reached.partition(", ")[0]
        plain = re.sub(r" ± [\d.]+| \([\d.]+ to [\d.]+\)", "", price)
        return _fitting(
            f"{begin}:{reached}{price}{sure}",
            f"{begin}:{reached}{plain}{sure}",
            f"{begin}:{shorter}{plain}{sure}",
            f"{begin}:{shorter}{sure}",
            f"{begin}{sure}",
        )

    def _standings(self, at: Sequence[Best]) -> list[Standing]:
        return [standing for one in at if (standing := self.first.at(one.place)) is not None]

    def _reached(self, name: str, standings: Sequence[Standing]) -> str:
        """What the best reaches in the first goal."""
        if all(standing.leader == name for standing in standings):
            return f" {self.extreme} {self.name}, {_gap(standings)}"
        way = "above" if self.first.question.low_is_good else "below"
        return f" {self.name} at most {_bound(name, standings)} {way} the {self.extreme}"

    def _price(self, name: str, standings: Sequence[Standing]) -> str:
        """Such as: at 0.15 to 0.20 times the overhead of flooding."""
        assert self.cost is not None
        reference = self._reference(name, standings)
        costs = [found for one in standings if (found := self.cost.at(one.place)) is not None]
        contrasts = [contrast for one in costs if (contrast := one.contrast(name, reference)) is not None]
        if not contrasts or not all(one.ratio for one in contrasts):
            return ""
        level = costs[0].level
        shown = [one.shown(level) for one in contrasts]
        size = within(*shown[0]) if len(shown) == 1 else _range([one.mean for one in shown])
        undecided = "" if all(one.order(level) for one in contrasts) else " (not decided)"
        return f", at {size} times the {measure_name(self.cost.question.about)} of {quoted(reference)}{undecided}"

    def _reference(self, name: str, standings: Sequence[Standing]) -> str:
        """The variant that the cost is compared with: the baseline, or the one that is next in the first goal."""
        baseline = self.asked.baseline
        if baseline is not None and baseline != name and all(baseline in one.values for one in standings):
            return baseline
        ranked = Counter(next(other for other in one.ranking if other != name) for one in standings)
        return ranked.most_common(1)[0][0]

    def _open(self) -> str:
        """Nothing is decided anywhere."""
        where = self._where(self.first.standings)
        first = self.first.standings[0]
        if all(one.tied for one in self.first.standings) and self.cost is None:
            return f"{_names(first.candidates)} tie{where}: the same {self.name} in each of {self.seeds} seeds."
        may_be = {name for one in self.best for name in one.candidates}
        candidates = [name for name in first.ranking if name in may_be]
        begin = f"{first_upper(where.lstrip())}, {self.seeds} seeds do not decide which is best (at 95 %)"
        contrast = first.contrast(*candidates[:2]) if len(candidates) == 2 and len(self.best) == 1 else None
        sizes = either(candidates)
        if contrast is not None:
            way = "times that of" if contrast.ratio else "above" if contrast.sample.mean >= 0 else "below"
            size = _size(contrast, first.level).lstrip("+−")
            chance = "" if contrast.order(first.level) else ", perhaps by chance"
            sizes = f"{quoted(candidates[0])} is ahead, {self.name} {size} {way} {quoted(candidates[1])}{chance}"
        return _fitting(f"{begin}: {sizes}.", f"{begin}: {either(candidates)}.", f"{begin}.")

    def _one_seed(self) -> str:
        groups = _grouped((one.ranking[0], one) for one in self.first.standings)
        name = max(groups, key=lambda who: len(groups[who]))
        values = _range([one.mean(name) for one in groups[name]])
        where = self._where(groups[name])
        begin = f"One seed shows nothing; in it {quoted(name)} has the {self.extreme} {self.name}"
        told = f"{'values' if ' to ' in values else 'a value'} of {values}"
        return _fitting(f"{begin}{where}, with {told}.", f"{begin}{where}.", f"{begin}.")

    def _where(self, at: Sequence[Standing]) -> str:
        return _where(at, self.first) or " in this scenario"

    # --- The lines

    def _elsewhere(self, groups: Mapping[str, Sequence[Best]], main: str | None) -> Iterator[str]:
        """Where another variant than that of the sentence is best, and where none is for sure."""
        parts = [
            f"{quoted(name)}{_where(at, self.first)}:{self._reached(name, self._standings(at))}"
            for name, at in groups.items()
            if name != main
        ]
        open_ = _grouped((either(one.candidates), one) for one in self.best if one.variant is None)
        undecided = _not_decided(open_, self.first)
        if main is not None and (parts or undecided):
            best_ = "" if self.cost is None else f" (best: {meaning_of_best(self.first.question, self.cost.question)})"
            yield (
                f"Best elsewhere{best_}: {'; '.join([*parts, *undecided])}."
                if parts
                else f"Which is best{best_} is {undecided[0]}."
            )

    def _missing(self) -> Iterator[str]:
        names = self.first.question.variants
        without = {name: [one for one in self.first.standings if name not in one.values] for name in names}
        parts = [f"{quoted(name)}{_where(at, self.first)}" for name, at in without.items() if at]
        if parts:
            yield f"No value of {self.name}: {', '.join(parts)} (runs that failed, or had nothing to count)."

    def _more_seeds(self) -> list[str]:
        """What is open, and the command that would decide it."""
        open_ = self._open_costs()
        if not open_ and (margin := self._open_margin()):
            return [margin]
        costs, open_ = bool(open_), open_ or self._open_leads()
        if not open_:
            return []
        (number, one, other), found_at = max(open_.items(), key=lambda item: len(item[1]))
        found = self.first if number == 0 or self.cost is None else self.cost
        about, level = found.question.about, 1 - (1 - found.standings[0].level) * LAST_LOOK
        places, seeds = self._enough([(place, contrast.seeds_to_decide(level)) for place, contrast in found_at])
        at, name = where(places, self.first.places, self.first.question.axes), measure_name(about)
        pair, it = f"{quoted(one)} or {quoted(other)}", "it"
        if seeds is None:
            words = (
                f"no more seeds for the {name} of {pair}: {_MOST_SEEDS} would not tell them apart, so take it as equal"
            )
            return [f"{_next(at)}{words}."]
        if costs and all(self._are_close(place, one, other) for place in places):
            what = f"{_next(at)}find out whether {pair} has less {name}, and so which is best"
        elif costs:
            it = f"the {name}"
            what = f"{_next(at)}find out whether {pair} has less {name}, and whether their {self.name} is close"
        elif self.cost is not None and all(one.variant is not None for one in self.best):
            what = f"Nothing is open in what is best, but{at} {pair} in {name} is"
        else:
            what = f"{_next(at)}find out whether {pair} is ahead in {name}"
        command = _command(self.asked.command, seeds, f"{one} differs from {other} in {about.name}")
        return [f"{what}; about {seeds} seeds would decide {it}: {command}"]

    def _are_close(self, place: Place, *names: str) -> bool:
        """Whether variants are surely close to the best in the first goal, so that the cost decides between them."""
        standing = self.first.at(place)
        return standing is not None and all(name in standing.values and standing.close(name) for name in names)

    def _open_margin(self) -> str | None:
        """Where the best is open although the costs are decided: whether the cheapest comes close enough."""
        found: dict[tuple[str, str], list[tuple[Place, int | None]]] = {}
        for open_ in self.best:
            cost, standing = None if self.cost is None else self.cost.at(open_.place), self.first.at(open_.place)
            names = [name for name in open_.candidates if cost is not None and name in cost.values]
            if open_.variant is not None or cost is None or standing is None or not names:
                continue
            cheapest = min(names, key=cost.mean)
            for other in standing.others(cheapest):
                contrast, margin = standing.contrast(cheapest, other), standing.margin(cheapest, other)
                if contrast is not None and standing.ahead(cheapest, other).low < -margin:
                    border = margin if standing.about.good == "low" else -margin
                    need = contrast.seeds_to_decide(standing.level, border)
                    found.setdefault((cheapest, other), []).append((open_.place, need))
        if not found:
            return None
        (one, other), found_at = max(found.items(), key=lambda item: len(item[1]))
        share = f"{CLOSE:g}" if self.first.question.about.share else f"{100 * CLOSE:g} %"
        places, seeds = self._enough(found_at)
        at = where(places, self.first.places, self.first.question.axes)
        what = f"{_next(at)}find out whether {quoted(one)} is within {share} of {quoted(other)} in {self.name}"
        if seeds is None:
            return f"{what}; {_MOST_SEEDS} seeds would not decide it: it is on the border."
        return f"{what}; about {seeds} seeds would decide it: {_command(self.asked.command, seeds)}"

    def _enough(self, needs: Sequence[tuple[Place, int | None]]) -> tuple[list[Place], int | None]:
        """The places that few enough seeds would decide, and how many, more than there are. If there are none: all."""
        few = {place: need for place, need in needs if need is not None and need <= _MOST_SEEDS}
        return (list(few), max(*few.values(), self.seeds + 1)) if few else ([place for place, _ in needs], None)

    def _open_costs(self) -> dict[_Pair, list[tuple[Place, Contrast]]]:
        """Where the best is open: the cheapest that may be best, against the one hardest to tell from it in cost."""
        found: dict[_Pair, list[tuple[Place, Contrast]]] = {}
        for one in self.best:
            cost = None if self.cost is None or one.variant is not None else self.cost.at(one.place)
            names = [name for name in one.candidates if cost is not None and name in cost.values]
            if cost is None or len(names) < 2:
                continue
            cheapest, *others = sorted(names, key=cost.mean)
            known = {name: contrast for name in others if (contrast := cost.contrast(cheapest, name)) is not None}
            open_ = {name: abs(one.sample.mean) for name, one in known.items() if not one.order(cost.level)}
            if open_:
                closest = min(open_, key=open_.__getitem__)
                pair = min((cheapest, closest), (closest, cheapest))
                found.setdefault((1, *pair), []).append((one.place, known[closest]))
        return found

    def _open_leads(self) -> dict[_Pair, list[tuple[Place, Contrast]]]:
        """Where nobody leads in the first goal or the cost: the first two."""
        found: dict[_Pair, list[tuple[Place, Contrast]]] = {}
        for number, goal in enumerate([self.first] if self.cost is None else [self.first, self.cost]):
            for standing in goal.standings:
                one, other = sorted(standing.candidates[:2]) if len(standing.candidates) > 1 else ("", "")
                contrast = standing.contrast(one, other)
                if contrast is not None and not contrast.sample.same:
                    found.setdefault((number, one, other), []).append((standing.place, contrast))
        return found


def _command(command: str, seeds: int, goal: str | None = None) -> str:
    """The campaign's command with this many seeds, or with seeds added until a goal is decided."""
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in ("--seeds", "--until"):
            next(words, None)
        else:
            kept.append(word)
    until = ["--until", goal] if goal is not None and kept[1:2] == ["campaign"] else []
    return shlex.join([*kept, *until, "--seeds", str(seeds)])


# --- Sizes ----------------------------------------------------------------------------------------------------------


def _gap(standings: Sequence[Standing]) -> str:
    """How far the leader is from the next: with its interval at one place, as a range over several."""
    pairs = [(found, one) for one in standings if (found := one.contrast(one.ranking[0], one.runner_up)) is not None]
    shown = [found.shown(one.level) for found, one in pairs]
    ratio = all(found.ratio for found, _ in pairs)
    if not ratio:  # the word beside it gives the direction
        shown = [one if one.mean >= 0 else Estimate(-one.mean, -one.high, -one.low) for one in shown]
    size = within(*shown[0]) if len(shown) == 1 else _range([one.mean for one in shown])
    next_ = {one.runner_up for one in standings}
    than = quoted(next_.pop()) if len(next_) == 1 else "the next"
    if ratio and max(one.mean for one in shown) < _SMALL:
        return f"{_range([1 / one.mean for one in shown])} times less than {than}"
    return f"{size} {'times that of' if ratio else 'below' if standings[0].about.good == 'low' else 'above'} {than}"


def _size(found: Contrast, level: float) -> str:
    mean, low, high = found.shown(level)
    if found.ratio:
        return within(mean, low, high)
    text = within(abs(mean), -high if mean < 0 else low, -low if mean < 0 else high)
    return f"{'−' if mean < 0 else '+'}{text}"


def _bound(name: str, standings: Sequence[Standing]) -> str:
    """The most by which a variant may be worse than any other, rounded up to two decimals."""
    worst = max(-one.ahead(name, other).low for one in standings for other in one.others(name))
    return f"{max(math.ceil(100 * worst - 1e-9), 1) / 100:g}"


def _range(values: Sequence[float]) -> str:
    low, high = brief(min(values)), brief(max(values))
    return low if low == high else f"{low} to {high}"


# --- Words ----------------------------------------------------------------------------------------------------------


def _fitting(*texts: str) -> str:
    """The first of these, from the longest to the shortest, that is short enough to be repeated."""
    return next((text for text in texts if len(text.split()) <= MOST_WORDS), texts[-1])


def _extreme(question: Question) -> str:
    return "lowest" if question.low_is_good else "highest"


def _where(at: Sequence[Standing | Best], found: MeasureComparison) -> str:
    return where([one.place for one in at], found.places, found.question.axes)


def _not_decided(open_: Mapping[str, Sequence[Standing | Best]], found: MeasureComparison) -> list[str]:
    """Where nobody wins for sure, and who may: at most one part."""
    parts = [f"{_where(at, found)} ({who})" for who, at in open_.items()]
    return [f"not decided{','.join(parts)}"] if parts else []


def _next(at: str) -> str:
    return f"Next,{at}: " if at else "Next: "


def _names(names: Sequence[str]) -> str:
    return listed(list(map(quoted, names)))


def either(names: Sequence[str]) -> str:
    """Those that may win, the one that is ahead first; of many only that one."""
    first, *others = map(quoted, names)
    return f"{first} or {len(others)} others" if len(others) >= _FEW else listed([first, *others], "or")


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for name, thing in pairs:
        groups.setdefault(name, []).append(thing)
    return groups
