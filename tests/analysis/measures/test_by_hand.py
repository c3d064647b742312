"""Every measure of small runs, against numbers worked out by hand."""

import pytest

from analysis.runs import BY_HAND, by_hand, nothing, slow, values_of
from roamcast.analysis.measures.catalogue import CATALOGUE, FAMILIES
from roamcast.analysis.measures.contexts import DELIVERY
from roamcast.analysis.measures.measure import Family


def test_every_measure_of_one_run_is_known_by_hand() -> None:
    assert {*BY_HAND, DELIVERY.measure.name} == set(CATALOGUE)
    assert set(BY_HAND) == {one.name for family in FAMILIES for one in family.measures}


@pytest.mark.parametrize("coded", [False, True], ids=["plain texts", "dictionaries"])
def test_every_measure_of_a_small_run(coded: bool) -> None:
    assert values_of(by_hand(), coded=coded) == pytest.approx(BY_HAND)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.measures[0].name)
def test_a_family_says_the_same_alone(family: Family) -> None:
    """Whatever others have read or computed before."""
    names = [one.name for one in family.measures]
    assert values_of(by_hand(), family) == pytest.approx({name: BY_HAND[name] for name in names})


def test_satisfaction_leaves_out_what_is_too_young() -> None:
    measured = values_of(slow())
    assert measured["satisfaction_1800"] == pytest.approx(2 / 6)  # one a nanosecond late, one an hour
    assert measured["satisfaction_3600"] == pytest.approx(3 / 4)  # 12 came at once, but is too young by a second
    assert measured["satisfaction_5400"] == pytest.approx(2 / 2)
    assert measured["satisfaction_7200"] is None


def test_a_run_in_which_nothing_happened_has_counts_and_no_means() -> None:
    counts = {"events": 0, "pairs_expected": 0, "pairs_delivered": 0}
    assert values_of(nothing()) == dict.fromkeys(BY_HAND) | counts
