"""The answer in words: ten golden ones, and that what it says is true of the data by another calculation."""

import functools
import itertools
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from report.golden import CASES, DELAY, DELIVERY, OVERHEAD
from roamcast.analysis.measures.measure import Measure
from roamcast.report.answer import MOST_LINES, MOST_WORDS, ComparedGoals, WrittenAnswer, answer, lead
from roamcast.report.compare import Question, best, compare
from roamcast.report.places import where
from roamcast.report.winners import winners
from roamcast.statistics.curves import VALUES, Curves

GOLDEN = Path(__file__).parent / "answers"
Table = dict[tuple[str, Any], list[float]]
"""(variant, place) -> a value for each seed."""


def rows_of(values: Table, measure: str) -> list[dict[str, Any]]:
    places = list(dict.fromkeys(place for _, place in values))
    return [
        {
            "experiment": "e",
            "variant": variant,
            "point": places.index(place),
            "axes": "{}" if place is None else f'{{"rate": {place}}}',
            "seed": seed,
            "measure": measure,
            "value": value,
        }
        for (variant, place), by_seed in values.items()
        for seed, value in enumerate(by_seed, 1)
    ]


def curves_of(**values: Table) -> Curves:
    rows = [row for measure, table in values.items() for row in rows_of(table, measure)]
    return Curves(pa.Table.from_pylist(rows, VALUES))


def asked(values: Table, about: Measure = DELIVERY, cost: Measure | None = None) -> ComparedGoals:
    variants = tuple(dict.fromkeys(variant for variant, _ in values))
    axes = ("rate",) if any(place is not None for _, place in values) else ()
    goals = [Question("e", one, variants, axes, 2 if cost else 1) for one in (about, cost) if one]
    return ComparedGoals(tuple(goals), 1 if cost else None, None, "roamcast campaign e.toml")


def said(values: Table, about: Measure = DELIVERY) -> WrittenAnswer:
    found = answer(asked(values, about), curves_of(**{about.name: values}))
    assert found is not None
    return found


# --- Golden answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_golden_answers(name: str) -> None:
    """Winner, place, size and certainty can be named from each. A changed one is written anew by hand, and read."""
    case = CASES[name]
    found = answer(case.asked(), case.curves())
    assert f"{found}\n" == (GOLDEN / f"{name}.txt").read_text()


# --- Single rules ---------------------------------------------------------------------------------------------------


def test_seeds_are_told_of_the_places_that_they_would_decide() -> None:
    """At rate 2 the means are equal: no number of seeds decides there."""
    values: Table = {
        ("a", 1): [10.5, 9.5, 10.5, 9.5, 10.5, 9.5],
        ("b", 1): [10.1, 11.1, 10.1, 11.1, 10.1, 11.1],
        ("a", 2): [10.0, 11.0, 12.0, 10.0, 11.0, 12.0],
        ("b", 2): [12.0, 10.0, 11.0, 12.0, 10.0, 11.0],
    }
    assert (
        said(values, OVERHEAD)
        .lines[-1]
        .startswith("Next, at rate 1: find out whether a or b is ahead in overhead; about ")
    )


def test_what_is_open_is_whether_the_cheapest_comes_close_enough() -> None:
    # Differences of −0.015 and −0.045, four seeds, two comparisons: −0.03 ± 4.18 · 0.0173 / 2 = 0.036, so the end is
    # below −0.05. The mean is 0.02 / 0.0173 = 1.155 deviations above; with ten seeds (2.69 + 0.84) / √10 = 1.115 is
    # less, with nine (2.75 + 0.84) / √9 = 1.198 is not.
    delivery: Table = {
        ("flooding", None): [0.9, 0.8, 0.9, 0.8],
        ("hint", None): [0.885, 0.755, 0.885, 0.755],
    }
    cost: Table = {("flooding", None): [10.0, 10.5, 9.5, 10.0], ("hint", None): [1.0, 1.1, 0.9, 1.05]}
    found = answer(asked(delivery, DELIVERY, OVERHEAD), curves_of(delivery=delivery, overhead=cost))
    assert found is not None
    assert found.lines[-1] == (
        "Next: find out whether hint is within 0.05 of flooding in delivery; about 10 seeds would decide it: "
        "roamcast campaign e.toml --seeds 10"
    )


def test_a_decided_difference_has_its_interval() -> None:
    # Differences 0.19, 0.20 and 0.21, one comparison: 0.2 ± 4.303 · 0.01 / √3 = 0.025.
    values: Table = {("gossip", None): [0.50, 0.51, 0.52], ("hint", None): [0.69, 0.71, 0.73]}
    assert said(values).sentence == (
        "hint has the highest delivery in this scenario, 0.20 ± 0.02 above gossip (95 % sure, 3 seeds)."
    )


def test_the_correction_is_for_all_variants_and_places() -> None:
    """One comparison of p = 0.025 is an order by itself, and none among four places; the interval says the same."""
    differ = [0.010, 0.015, 0.002, 0.012, 0.004]
    one: Table = {("a", 1): [0.5] * 5, ("b", 1): [0.5 + by for by in differ]}
    assert said(one).sentence.startswith("b has the highest delivery in this scenario, 0.009 ± 0.007 above a")
    many = {(name, place): one[name, 1] for place in range(4) for name in "ab"}
    assert said(many).sentence == "At every rate, 5 seeds do not decide which is best (at 95 %): b or a."


def test_a_companion_measure_halves_the_risk() -> None:
    """Delivery is decided (p = 0.024; each measure has 0.025), and so is not by chance; what is best is open, since the
    cost is."""
    differ = [0.010, 0.015, 0.002, 0.012, 0.004]
    delivery: Table = {("a", None): [0.5] * 5, ("b", None): [0.5 + by for by in differ]}
    cost: Table = {("a", None): [1.0] * 5, ("b", None): [1.1, 0.9, 1.0, 1.02, 0.99]}
    found = answer(asked(delivery, DELIVERY, OVERHEAD), curves_of(delivery=delivery, overhead=cost))
    assert found is not None
    assert found.sentence == (
        "In this scenario, 5 seeds do not decide which is best (at 95 %): b is ahead, delivery 0.009 ± 0.009 above a."
    )


def test_equal_in_every_seed_is_a_tie() -> None:
    values: Table = {("a", None): [1.0, 1.0], ("b", None): [1.0, 1.0]}
    assert said(values).sentence == "a and b tie in this scenario: the same delivery in each of 2 seeds."


def test_seeds_that_all_differ_by_the_same_are_no_evidence() -> None:
    values: Table = {("a", None): [5.0, 5.0], ("b", None): [7.5, 7.5]}
    assert str(said(values, OVERHEAD)) == (
        "In this scenario, 2 seeds do not decide which is best (at 95 %): a is ahead, overhead 0.67 times that of b, "
        "perhaps by chance."
    )


def test_two_significant_digits_are_enough() -> None:
    values: Table = {("a", None): [1.0, 1.01, 0.99], ("b", None): [1162.0, 1180.0, 1150.0]}
    assert said(values, DELAY).sentence == (
        "a has the lowest delay, 95th percentile in this scenario, 1\N{NARROW NO-BREAK SPACE}200 times less than b "
        "(95 % sure, 3 seeds)."
    )


def test_one_variant_is_compared_with_itself_along_the_axis() -> None:
    rising: Table = {("a", 1): [0.10, 0.11, 0.12], ("a", 5): [0.30, 0.32, 0.31]}
    assert said(rising).sentence == "Delivery rises by 0.20 ± 0.02 between rate 1 and 5 (95 % sure, 3 seeds)."
    unclear: Table = {("a", 1): [0.1, 0.3], ("a", 5): [0.2, 0.2]}
    assert said(unclear).sentence.startswith("2 seeds do not decide whether delivery changes between rate 1 and 5")


def test_only_common_seeds_count() -> None:
    """The third seed of a is missing: with it b would not lead."""
    values: Table = {("a", 1): [0.50, 0.51], ("b", 1): [0.60, 0.62, 0.1]}
    (found,) = compare(asked(values).goals[0], curves_of(delivery=values)).standings
    assert found.contrast("b", "a").sample.mean == pytest.approx(0.105)  # type: ignore[union-attr]


def test_a_level_line_meets_every_place() -> None:
    values: Table = {
        ("hint", 1): [0.70, 0.71, 0.73],
        ("hint", 2): [0.80, 0.81, 0.83],
        ("gossip", None): [0.50, 0.51, 0.52],
    }
    assert "hint has the highest delivery at every rate" in said(values).sentence


def test_nothing_measured_is_nothing_to_say() -> None:
    assert answer(asked({("a", 1): [0.5]}), curves_of(delivery={("b", 1): [0.5]})) is None


def test_points_of_two_axes_in_words() -> None:
    places = [(rate, speed) for rate in (1, 2, 3) for speed in (5, 10)]
    axes = ("rate", "speed")
    assert where(places, places, axes) == " at every rate and speed"
    assert where(places, places, ("rate", "nodes")) == " at every value of rate and nodes"
    assert where([(1, 5), (2, 5), (3, 5)], places, axes) == " at speed 5"
    assert where([(1, 5), (1, 10)], places, axes) == " at rate 1"
    assert where(places[:-1], places, axes) == " everywhere but at rate 3 with speed 10"
    assert where([(1, 5), (2, 10)], places, axes) == " at 2 of 6 points"


# --- The sentence is true -------------------------------------------------------------------------------------------


@functools.cache
def chance(t: float, freedom: int) -> float:
    """P(T > t), by Simpson's rule over Student's density, with T = √ν tan θ to make the range finite."""
    start, end, steps = math.atan(t / math.sqrt(freedom)), math.pi / 2, 400
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(math.pi) * math.gamma(freedom / 2))
    wide = (end - start) / steps
    heights = [max(math.cos(start + wide * at), 0.0) ** (freedom - 1) for at in range(steps + 1)]
    weights = [1, *([4, 2] * (steps // 2))[:-1], 1]
    return scale * wide / 3 * sum(weight * height for weight, height in zip(weights, heights, strict=True))


def shows(differences: Sequence[float], above: float, alpha: float) -> bool:
    """Whether a one-sided test shows that the mean is above a value; nothing is tried too close to call."""
    n, mean = len(differences), sum(differences) / len(differences)
    error = math.sqrt(sum((one - mean) ** 2 for one in differences) / (n - 1) / n)
    assume(error > 1e-6)
    p_value = chance(round((mean - above) / error, 9), n - 1)
    assume(abs(p_value / alpha - 1) > 1e-3)
    return p_value < alpha


class Oracle:
    """The winner at a place from the raw values: one-sided tests at 2.5 %, divided by the number of comparisons."""

    def __init__(self, delivery: Table, cost: Table | None) -> None:
        self.delivery, self.cost = delivery, cost
        self.variants = list(dict.fromkeys(name for name, _ in delivery))
        self.places = list(dict.fromkeys(place for _, place in delivery))
        self.alpha = 0.025 / (len(self.places) * (len(self.variants) - 1) * (2 if cost else 1))

    def gains(self, one: str, other: str, place: Any) -> list[float]:  # noqa: ANN401
        return [a - b for a, b in zip(self.delivery[one, place], self.delivery[other, place], strict=True)]

    def cheaper(self, one: str, other: str, place: Any) -> bool:  # noqa: ANN401
        assert self.cost is not None
        pairs = zip(self.cost[one, place], self.cost[other, place], strict=True)
        return shows([math.log(b / a) for a, b in pairs], 0.0, self.alpha)

    def leads(self, one: str, place: Any) -> bool:  # noqa: ANN401
        return all(shows(self.gains(one, other, place), 0.0, self.alpha) for other in self.variants if other != one)

    def best(self, place: Any) -> str | None:  # noqa: ANN401
        if self.cost is None:
            return next((one for one in self.variants if self.leads(one, place)), None)
        pairs = list(itertools.permutations(self.variants, 2))
        close = {(a, b): shows(self.gains(a, b, place), -0.05, self.alpha) for a, b in pairs}
        far = {(a, b): shows([-gain for gain in self.gains(a, b, place)], 0.05, self.alpha) for a, b in pairs}
        others = {one: [other for other in self.variants if other != one] for one in self.variants}
        possible = [one for one in self.variants if not any(far[one, other] for other in others[one])]
        for one in possible:
            if all(close[one, other] for other in others[one]) and all(
                self.cheaper(one, other, place) for other in possible if other != one
            ):
                return one
        return None


@st.composite
def campaigns(draw: st.DrawFn) -> tuple[Table, Table | None]:
    """Two to four variants at up to four places; some alike, some far apart."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    seeds, places = draw(st.integers(2, 9)), range(1, 1 + draw(st.integers(1, 4)))
    noise = draw(st.sampled_from([0.0005, 0.005, 0.05]))
    delivery: Table = {}
    cost: Table = {}
    for variant in "abcd"[: draw(st.integers(2, 4))]:
        base, price = draw(st.sampled_from([0.3, 0.55, 0.58, 0.6])), draw(st.sampled_from([1.0, 1.05, 4.0]))
        for place in places:
            level = base + draw(st.sampled_from([0.0, 0.0, 0.15]))
            delivery[variant, place] = [level + noise * rng.gauss(0, 1) for _ in range(seeds)]
            cost[variant, place] = [price * math.exp(noise * rng.gauss(0, 1)) for _ in range(seeds)]
    return delivery, cost if draw(st.booleans()) else None


def told_places(text: str, places: Sequence[Any]) -> list[Any]:
    """The places that a sentence names."""
    found = re.search(r"(at every rate|everywhere but at rate|at rate) ?((?:\d+(?![.\d])(?:, | and | to )?)*)", text)
    if found is None or found[1] == "at every rate":
        return list(places)
    named: list[int] = []
    for part in re.split(r", | and ", found[2].strip(", ")):
        ends = [int(end) for end in part.split(" to ")]
        named += range(ends[0], ends[-1] + 1)
    return named if found[1] == "at rate" else [place for place in places if place not in named]


@given(campaigns())
def test_the_sentence_is_true_of_the_data(campaign: tuple[Table, Table | None]) -> None:
    delivery, cost = campaign
    tables = {"delivery": delivery} | ({"overhead": cost} if cost else {})
    found = answer(asked(delivery, DELIVERY, OVERHEAD if cost else None), curves_of(**tables))
    assert found is not None
    assert len(found.sentence.split()) <= MOST_WORDS
    assert len(found.lines) <= MOST_LINES
    oracle = Oracle(delivery, cost)
    winners = {place: oracle.best(place) for place in oracle.places}
    named = re.match(r"(\w) (?:is best|has the highest delivery)", found.sentence)
    if named is None:
        assert "do not decide which is best" in found.sentence
        assert set(winners.values()) == {None}
        return
    at = told_places(found.sentence, oracle.places)
    assert [place for place, who in winners.items() if who == named[1]] == at
    if "highest delivery" in found.sentence:
        assert all(oracle.leads(named[1], place) for place in at)
    if size := re.search(r"([\d.]+)(?: to ([\d.]+)| ± [\d.]+)? above", found.sentence):
        ahead = [
            min(sum(oracle.gains(named[1], other, place)) for other in oracle.variants if other != named[1])
            / len(delivery[named[1], place])
            for place in at
        ]
        for shown, true in ((size[1], min(ahead)), (size[2] or size[1], max(ahead))):
            last_digit = 10.0 ** -len(shown.partition(".")[2])  # as many as the interval leaves sense in
            assert float(shown) == pytest.approx(true, rel=0.1, abs=max(0.006, 0.51 * last_digit))
    for line in found.lines:
        if line.startswith("Best elsewhere") and "not decided" not in line:
            told = line.rpartition("): ")[2] if cost else line.partition(": ")[2]
            assert {who for who in winners.values() if who} - {named[1]} == set(re.findall(r"\b(\w) at ", told))


def test_equal_variants_are_told_apart_at_most_one_time_in_twenty() -> None:
    """With five seeds, four variants and five places; 300 campaigns, none of which has a leader."""
    rng = random.Random(5)
    wrong = 0
    for _ in range(300):
        values = {(name, place): [rng.gauss(0.5, 0.1) for _ in range(5)] for name in "abcd" for place in range(5)}
        found = compare(asked(values).goals[0], curves_of(delivery=values))
        wrong += any(one.leader or len(one.candidates) < 4 for one in found.standings)
    assert wrong <= 300 * 0.1


def test_the_best_is_wrong_at_most_one_time_in_twenty() -> None:
    """Delivery differs by exactly what still counts as close, and cost not at all: whoever is called best is wrong."""
    rng, wrong = random.Random(7), 0
    for _ in range(300):
        delivery = {
            (name, place): [0.5 + 0.05 * (name == "a") + rng.gauss(0, 0.02) for _ in range(6)]
            for name in "ab"
            for place in range(3)
        }
        cost = {(name, place): [math.exp(rng.gauss(0, 0.1)) for _ in range(6)] for name in "ab" for place in range(3)}
        question = asked(delivery, DELIVERY, OVERHEAD)
        curves = curves_of(delivery=delivery, overhead=cost)
        first, price = (compare(goal, curves) for goal in question.goals)
        wrong += any(one.variant == "b" for one in best(first, price))
    assert wrong <= 300 * 0.05


def test_a_lead_names_the_interval_at_one_place() -> None:
    values: Table = {("a", None): [10.0, 10.2, 9.9, 10.1], ("b", None): [5.0, 5.2, 4.9, 5.0]}
    found = compare(asked(values, OVERHEAD).goals[0], curves_of(overhead=values))
    assert lead(found) == "Lowest overhead: b, 0.500 ± 0.011 times that of a."  # exp(−0.6933 ± 3.182 · 0.01389 / √4)


# --- The winners' table ---------------------------------------------------------------------------------------------


def test_the_winners_table_has_units_and_says_what_close_means() -> None:
    """Delay as the first goal: lower is better, close is a ratio, and a number needs its unit."""
    delay: Table = {("a", None): [1.0, 1.1, 0.9], ("b", None): [9.0, 9.3, 8.8]}
    cost: Table = {("a", None): [2.0, 2.1, 1.9], ("b", None): [4.0, 4.3, 4.1]}
    found = winners(asked(delay, DELAY, OVERHEAD), curves_of(delay_p95=delay, overhead=cost))
    assert found is not None
    assert found.head == ["Best", "Lowest delay, 95th percentile", "Lowest overhead"]
    assert found.rows == [["a", "a, 1.0\N{NO-BREAK SPACE}s", "a, 2.0"]]
    assert found.caption.endswith("of those whose delay, 95th percentile is within 5 % of the lowest.")
