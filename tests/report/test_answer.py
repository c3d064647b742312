"""The answer in words, and that it claims no order which the seeds do not show."""

import math
import random
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.analysis.measures.measure import Measure
from roamcast.report.answer import answer, in_words
from roamcast.report.compare import Question, compare
from roamcast.statistics.curves import VALUES, Curves

DELIVERY = Measure(name="delivery", title="delivery (share of subscribers)", share=True, good="high")
OVERHEAD = Measure(name="overhead", title="overhead (packets per delivery)", good="low")
DELAY = Measure(name="delay_p95", title="delay, 95th percentile (s)", unit="s", good="low")
NODES = Measure(name="nodes", title="nodes", signed=True)
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571}
"""Student's t, 97.5 %, from a printed table."""

Table = Mapping[tuple[str, Any], Sequence[float | None]]
"""(variant, place) -> a value for each seed; a place None is a level line's."""


def curves_of(values: Table, measure: str = "delivery", axis: str = "rate") -> Curves:
    return Curves(pa.Table.from_pylist(rows_of(values, measure, axis), VALUES))


def rows_of(values: Table, measure: str, axis: str = "rate") -> list[dict[str, Any]]:
    places = list(dict.fromkeys(place for _, place in values))
    return [
        {
            "experiment": "e",
            "variant": variant,
            "point": places.index(place),
            "axes": "{}" if place is None else f'{{"{axis}": {place}}}',
            "seed": seed,
            "measure": measure,
            "value": value,
        }
        for (variant, place), by_seed in values.items()
        for seed, value in enumerate(by_seed, 1)
    ]


def asked(values: Table, about: Measure = DELIVERY, reference: str | None = None, **more: Any) -> Question:  # noqa: ANN401
    variants = tuple(dict.fromkeys(variant for variant, _ in values))
    places = tuple(dict.fromkeys(place for _, place in values if place is not None))
    return Question("e", about, variants, reference or variants[0], "rate" if places else "", places, **more)


def said(values: Table, about: Measure = DELIVERY, reference: str | None = None) -> str:
    return answer(asked(values, about, reference), curves_of(values, about.name))


# --- Sentences ------------------------------------------------------------------------------------------------------


def test_a_decided_difference_has_its_number_and_its_leader() -> None:
    # Differences 0.19, 0.20 and 0.21 at both places: 0.2 ± 4.303 · 0.01 / √3.
    low, high = [0.50, 0.51, 0.52], [0.69, 0.71, 0.73]
    values = {("gossip", 1): low, ("gossip", 2): low, ("hint", 1): high, ("hint", 2): high}
    assert said(values) == (
        "Averaged over rate 1 and 2, with hint, delivery is 0.200 ± 0.025 higher than with gossip. "
        "Delivery is highest with hint at every value of rate."
    )


def test_a_cost_is_told_in_parts_and_with_what_it_is_paid() -> None:
    cost = {("gossip, p = 1", None): [10.0, 20.0, 30.0], ("hint", None): [6.5, 13.2, 20.1]}
    share = {("gossip, p = 1", None): [0.5, 0.6, 0.7], ("hint", None): [0.39, 0.50, 0.61]}
    rows = [*rows_of(cost, "overhead"), *rows_of(share, "delivery")]
    question = asked(cost, OVERHEAD, beside=DELIVERY)
    # 0.65, 0.66, 0.67: 0.66 ± 4.303 · 0.01 / √3; −0.11, −0.10, −0.09 likewise.
    assert answer(question, Curves(pa.Table.from_pylist(rows, VALUES))) == (
        "With hint, overhead is 0.660 ± 0.025 of that with “gossip, p = 1”, at 0.100 ± 0.025 less delivery."
    )


def test_what_is_not_decided_is_said_with_what_was_found() -> None:
    values = {
        ("gossip", 1): [0.5, 0.6, 0.7],
        ("gossip", 2): [0.5, 0.6, 0.7],
        ("hint", 1): [0.6, 0.5, 0.9],
        ("hint", 2): [0.6, 0.5, 0.9],
    }
    # 0.1, −0.1, 0.2: mean 0.0667, deviation 0.1528, ± 4.303 · 0.1528 / √3 = 0.3795.
    assert said(values) == (
        "Averaged over rate 1 and 2, in delivery, 3 seeds are too few to tell hint (+0.07 ± 0.38) from gossip. "
        "They are too few to say which is highest at any value of rate (gossip or hint)."
    )


def test_leaders_change_along_the_axis() -> None:
    low, middle, high = [0.10, 0.11, 0.12], [0.50, 0.51, 0.53], [0.90, 0.92, 0.93]
    values = {("a", place): low if place < 4 else high for place in range(1, 5)}
    values |= {("b", place): middle for place in range(1, 5)}
    text = said(values)
    assert "Delivery is highest with b at rate 1 to 3 and with a at rate 4." in text


def test_the_correction_is_for_all_variants_and_places() -> None:
    """One comparison of p = 0.03 is an order by itself, and none among four places."""
    differ = [0.010, 0.015, 0.002, 0.012, 0.004]  # t = 3.49, p = 0.025 two-sided
    one = {("a", 1): [0.5] * 5, ("b", 1): [0.5 + by for by in differ]}
    assert "higher than with a" in said(one)
    many = {("a", place): [0.5] * 5 for place in range(4)}
    many |= {("b", place): [0.5 + by for by in differ] for place in range(4)}
    assert "are too few to say which is highest at any value of rate (probably b)." in said(many)


def test_equal_in_every_seed_is_neither_an_order_nor_undecided() -> None:
    values = {("a", None): [1.0, 1.0], ("b", None): [1.0, 1.0]}
    assert said(values) == "With b, delivery is the same as with a in every seed."


def test_seeds_that_all_differ_by_the_same_are_no_evidence() -> None:
    values = {("a", None): [0.5, 0.5], ("b", None): [0.75, 0.75]}
    assert said(values) == "In delivery, 2 seeds are too few to tell b (+0.25 in every seed) from a."


def test_one_seed_decides_nothing() -> None:
    assert said({("a", None): [0.1], ("b", None): [0.9]}) == (
        "One seed decides nothing about delivery; --seeds gives more."
    )


def test_only_common_seeds_and_common_places_count() -> None:
    """The third seed of a is missing at rate 2, where b would be far better with it; rate 3 has b alone."""
    values: dict[tuple[str, Any], list[float | None]] = {
        ("a", 1): [0.50, 0.51, 0.52],
        ("a", 2): [0.50, 0.51, None],
        ("b", 1): [0.60, 0.62, 0.61],
        ("b", 2): [0.60, 0.62, 0.99],
        ("b", 3): [0.9, 0.9, 0.9],
    }
    found = compare(asked(values), curves_of(values))
    (one,) = found.compared
    assert one.places == (1, 2)
    assert one.difference.found is not None
    assert one.difference.found.mean == pytest.approx(0.105)  # of 0.10 and 0.11
    assert [lead.place for lead in found.leads] == [1, 2]


def test_a_level_line_meets_every_place() -> None:
    values = {("hint", 1): [0.70, 0.71, 0.73], ("hint", 2): [0.80, 0.81, 0.83], ("gossip", None): [0.50, 0.51, 0.52]}
    assert said(values, reference="gossip").endswith("Delivery is highest with hint at every value of rate.")


def test_what_is_averaged_over_is_told() -> None:
    values = {("a", 1): [0.50, 0.51, 0.52], ("b", 1): [0.69, 0.71, 0.73]}
    rows = [
        {**row, "point": 2 * row["point"] + speed, "axes": f'{{"rate": {rate}, "speed": {speed}}}'}
        for row in rows_of(values, "delivery")
        for rate in (1, 2)
        for speed in (0, 1)
    ]
    for number, row in enumerate(rows):
        row["point"] = number % 4
    question = Question("e", DELIVERY, ("a", "b"), "a", "rate", (1, 2), others=("speed",))
    assert answer(question, Curves(pa.Table.from_pylist(rows, VALUES))).startswith(
        "Averaged over rate 1 and 2 and over speed, with b, delivery is 0.200 ± 0.025 higher than with a."
    )


def test_of_many_variants_the_outermost_are_told() -> None:
    values = {(f"v{n}", None): [n + 1.0, n + 1.0 + 0.001 * n, n + 1.0 - 0.001 * n] for n in range(9)}
    text = said(values, NODES)
    assert text.startswith("With v1, nodes is 1.0000 ± 0.0025 higher than with v0; with v8 8.000 ± 0.020 higher (8 ")


def test_one_variant_is_compared_with_itself_along_the_axis() -> None:
    rising = {("a", 1): [0.10, 0.11, 0.12], ("a", 5): [0.30, 0.32, 0.31]}
    assert said(rising) == "Delivery rises by 0.200 ± 0.025 between rate 1 and 5."
    falling = {("a", 1): [10.0, 20.0, 30.0], ("a", 5): [6.5, 13.2, 20.1]}
    assert said(falling, DELAY) == "Delay, 95th percentile, falls to 0.660 ± 0.025 of what it was between rate 1 and 5."
    unclear = {("a", 1): [0.1, 0.3], ("a", 5): [0.2, 0.2]}
    assert said(unclear).startswith(
        "The seeds are too few to say whether delivery changes between rate 1 and 5 (+0.0 ± 1.0)"
    )


def test_of_many_that_could_lead_only_their_number_is_told() -> None:
    """At rate 1 two of six share the lead; at rate 2 all six draw from the same five values."""
    values: dict[tuple[str, Any], list[float]] = {
        (name, 1): [0.1 + 0.001 * seed + 0.0001 * n for seed in range(3)] for n, name in enumerate("abcd")
    }
    values |= {("e", 1): [0.90, 0.80, 0.85], ("f", 1): [0.80, 0.90, 0.85]}
    values |= {(name, 2): [0.5, 0.6, 0.7][n % 3 :] + [0.5, 0.6, 0.7][: n % 3] for n, name in enumerate("abcdef")}
    assert said(values).endswith("which is highest at rate 1 (e or f) and at 2 (6 of 6 variants).")


def test_three_places_are_a_list_with_one_and() -> None:
    """Nothing is decided anywhere, and other variants may lead at each place."""
    close = [0.5, 0.6, 0.7], [0.6, 0.5, 0.7], [0.1, 0.1001, 0.1002]
    values = {(name, at): close[(n + at) % 3] for n, name in enumerate("abc") for at in (1, 2, 3)}
    assert said(values).endswith("which is highest at rate 1 (a or c), at 2 (b or c) and at 3 (a or b).")


def test_a_companion_is_judged_as_in_its_own_figure() -> None:
    """Its p-value is a little above 0.025: an order by itself, and none if the cost counted among its comparisons."""
    cost = {("a", None): [1.0, 1.0, 1.0, 1.0, 1.0], ("b", None): [0.9, 1.1, 1.0, 0.95, 1.02]}
    share = {("a", None): [0.5] * 5, ("b", None): [0.510, 0.515, 0.502, 0.512, 0.504]}
    rows = [*rows_of(cost, "overhead"), *rows_of(share, "delivery")]
    found = compare(asked(cost, OVERHEAD, beside=DELIVERY), Curves(pa.Table.from_pylist(rows, VALUES)))
    alone = compare(asked(share, DELIVERY), Curves(pa.Table.from_pylist(rows, VALUES)))
    assert [one.beside for one in found.compared] == [one.difference for one in alone.compared]
    assert alone.compared[0].difference.order == 1


def test_nothing_measured_is_nothing_to_say() -> None:
    assert answer(asked({("a", 1): [0.5]}), curves_of({("b", 1): [0.5]})) == ""


# --- No order without its interval ----------------------------------------------------------------------------------

SEEDS = st.integers(2, 6)
VALUE = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.05, 1.0).map(lambda value: round(value, 3)))


@st.composite
def tables(draw: st.DrawFn) -> dict[tuple[str, Any], list[float | None]]:
    """Two to four variants at up to three places: some alike, some far apart, some without a value."""
    seeds, places = draw(SEEDS), range(draw(st.integers(1, 3)))
    found: dict[tuple[str, Any], list[float | None]] = {}
    for variant in "abcd"[: draw(st.integers(2, 4))]:
        base = draw(VALUE)
        for place in places:
            noise = draw(st.sampled_from([0.0, 0.001, 0.05, 0.5]))
            values = [min(1.0, max(0.0, base + noise * draw(st.floats(-1, 1)))) for _ in range(seeds)]
            found[variant, place] = [None if draw(st.integers(0, 19)) == 0 else value for value in values]
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """By the textbook."""
    mean, half = statistics.mean(values), T[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def differences(values: Table, one: str, other: str, place: int) -> list[float]:
    pairs = zip(values[one, place], values[other, place], strict=True)
    return [left - right for left, right in pairs if left is not None and right is not None]


def told_order(text: str, variant: str, name: str) -> int:
    """What the words say of a variant against the reference: 1 higher, −1 lower, 0 nothing."""
    found = re.search(rf"[Ww]ith {variant}(?:, {name} is)? \d.*?\b(higher|lower|times|of)\b", text)
    return 0 if found is None else {"higher": 1, "times": 1, "lower": -1, "of": -1}[found[1]]


@given(tables(), st.sampled_from([DELIVERY, OVERHEAD, NODES]))
def test_no_order_is_claimed_that_its_interval_does_not_show(values: Table, about: Measure) -> None:
    question = asked(values, about)
    found = compare(question, curves_of(values, about.name))
    text = in_words(found)
    for one in found.compared:
        order, difference = told_order(text, one.variant, about.title.split(" (")[0]), one.difference
        assert order == difference.order, text
        if order:
            assert difference.found is not None
            null = 1.0 if difference.ratio else 0.0
            assert difference.found.low > null if order > 0 else difference.found.high < null
    for lead in found.leads:
        for other in question.variants:
            if lead.leader is None or other == lead.leader:
                continue
            if all(value is None for value in values[other, lead.place]):
                continue  # nothing to be better than
            low, high = interval(differences(values, lead.leader, other, lead.place))
            assert high < 0 if question.low_is_good else low > 0
    leaders = set(re.findall(r"is (?:lowest|highest) with (\w)", text))
    assert leaders <= {lead.leader for lead in found.leads}
    undecided = [one for one in found.compared if not (one.difference.order or one.difference.same)]
    assert found.seeds < 2 or ("too few to tell" in text) == bool(undecided)


def test_equal_variants_are_told_apart_at_most_one_time_in_twenty() -> None:
    """Both statements, with five seeds, four variants and five places; 300 campaigns, none of which has an order."""
    rng = random.Random(5)
    wrong = 0
    for _ in range(300):
        values = {(name, place): [rng.gauss(0.5, 0.1) for _ in range(5)] for name in "abcd" for place in range(5)}
        found = compare(asked(values), curves_of(values))
        wrong += any(one.difference.order for one in found.compared) or any(lead.leader for lead in found.leads)
    assert wrong <= 300 * 0.1  # two statements of 5 % each
