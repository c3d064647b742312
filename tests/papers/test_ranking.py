"""Which reading is chosen, by numbers worked out by hand."""

import math

import pytest

from roamcast.papers.ranking import (
    LeftOut,
    MainPoint,
    Score,
    different,
    distribution,
    left_out,
    mattered,
    ranked,
    scores,
    standardised,
)

MET = MainPoint(True, 0.0)
UNMEASURED = MainPoint(False, None)


def missed(by: float) -> MainPoint:
    return MainPoint(False, by)


def test_more_main_points_come_first_however_small_the_misses() -> None:
    tried = {"base": {"A": missed(0.1), "B": missed(0.1)}, "a": {"A": MET, "B": missed(100.0)}}
    assert ranked(tried) == ["a", "base"]


def test_of_equals_the_smaller_misses_come_first_and_each_point_weighs_alike_whatever_its_unit() -> None:
    """A's usual miss is sqrt((3² + 1²) / 2) = 2.236, B's 100 times that: the first misses 1.342 + 0.447, the second
    0.447 + 1.342. A third that misses both by the lesser is better."""
    tried = {
        "one": {"A": missed(3.0), "B": missed(100.0)},
        "two": {"A": missed(1.0), "B": missed(300.0)},
    }
    found = standardised(tried)
    assert found["one"]["A"] == pytest.approx(3 / math.sqrt(5))
    assert found["one"]["B"] == pytest.approx(1 / math.sqrt(5))
    assert ranked(tried) == ["one", "two"], "equal: the one tried first"
    assert ranked(tried | {"three": {"A": missed(1.0), "B": missed(100.0)}}) == ["three", "one", "two"]


def test_a_point_that_was_not_measured_counts_as_its_greatest_miss() -> None:
    tried = {"base": {"A": UNMEASURED}, "a": {"A": missed(4.0)}, "b": {"A": missed(3.0)}}
    usual = math.sqrt((16 + 9) / 2)
    found = standardised(tried)
    assert found["base"]["A"] == found["a"]["A"] == pytest.approx(4 / usual)
    assert ranked(tried) == ["b", "base", "a"]
    assert standardised({"base": {"A": UNMEASURED}, "a": {"A": MET}})["base"]["A"] == 1


def test_scores_without_a_claim() -> None:
    tried = {"base": {"A": MET, "B": missed(2.0)}}
    assert scores(tried) == {"base": Score(1, -1.0)}
    assert scores(tried, without="B") == {"base": Score(1, 0.0)}
    assert scores(tried, without="A") == {"base": Score(0, -1.0)}


def test_leaving_a_claim_out_of_the_choice() -> None:
    """`fitted` is best by A alone; chosen without A, `base` is, which does not meet A."""
    tried = {
        "base": {"A": missed(1.0), "B": MET, "C": MET},
        "fitted": {"A": MET, "B": MET, "C": missed(0.1)},
    }
    assert ranked(tried)[0] == "base", "equal numbers of points; base misses A by sqrt 2, fitted C by sqrt 2"
    found = left_out(tried)
    assert found["A"] == LeftOut("base", False)
    assert found["C"] == LeftOut("fitted", False)
    assert found["B"] == LeftOut("base", True)


def test_what_mattered_is_a_new_point_or_clearly_smaller_misses() -> None:
    base = {"A": missed(1.0), "B": MET}
    tried = {
        "base": base,
        "gains A, loses B": {"A": MET, "B": missed(1.0)},
        "nearer": {"A": missed(0.5), "B": MET},
        "hardly nearer": {"A": missed(0.99), "B": MET},
        "the same": base,
    }
    others = [name for name in tried if name != "base"]
    assert mattered(tried, "base", others, str) == ["nearer", "gains A, loses B"]


def test_no_more_than_four_are_combined() -> None:
    tried = {"base": {"A": missed(1.0)}} | {str(number): {"A": missed(0.1 * number)} for number in range(1, 8)}
    assert mattered(tried, "base", [str(number) for number in range(7, 0, -1)], str) == ["1", "2", "3", "4"]


def test_readings_with_the_same_numbers_are_one() -> None:
    assert different({"base": [1], "a": [2], "b": [1], "c": [2]}) == {"base": "base", "a": "a", "b": "base", "c": "a"}


def test_how_many_readings_meet_how_many_points() -> None:
    tried = {"base": {"A": MET, "B": MET}, "a": {"A": MET, "B": missed(1.0)}, "b": {"A": missed(1.0), "B": MET}}
    assert distribution(tried) == {1: 2, 2: 1}
