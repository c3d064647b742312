"""Goals: what is understood, when a point has reached one, and how many seeds come next."""

import pyarrow as pa
import pytest

from roamcast.analysis.measures.measure import Measures
from roamcast.campaign.decide.until import Differs, Precision, ResultsSoFar, first_look, next_look, parse_goal
from roamcast.errors import ConfigError


def test_goals_are_understood() -> None:
    assert parse_goal("delivery within 0.02") == Precision("delivery", 0.02)
    assert parse_goal(" delay_mean within 5 % ") == Precision("delay_mean", 0.05, relative=True)
    for wrong in ("delivery", "delivery within", "delivery within -1", "delivery within 0", "within 5%"):
        with pytest.raises(ConfigError, match="expected 'MEASURE within WIDTH'"):
            parse_goal(wrong)


def test_looks_grow_by_half_up_to_the_most() -> None:
    assert (first_look(50), first_look(3), next_look(5, 50), next_look(8, 50), next_look(40, 50)) == (5, 3, 8, 12, 50)


def results(values: dict[tuple[str, str], list[float | None]]) -> pa.Table:
    """By axes and variant."""
    return pa.Table.from_pylist(
        [
            {"experiment": "e", "axes": axes, "variant": variant, "seed": seed, "delivery": value}
            for (axes, variant), known in values.items()
            for seed, value in enumerate(known)
        ]
    )


def test_a_point_is_open_until_all_its_variants_are_known_well_enough() -> None:
    narrow: list[float | None] = [0.5, 0.501, 0.499, 0.5, 0.5]
    wide: list[float | None] = [0.1, 0.9, 0.5, 0.3, 0.7]
    found = results({("a", "v"): narrow, ("a", "w"): narrow, ("b", "v"): narrow, ("b", "w"): wide})
    seeds = {("e", "a"): 5, ("e", "b"): 5}
    none = dict.fromkeys(seeds, 0)
    assert Precision("delivery", 0.02).waiting(ResultsSoFar(found, Measures(), seeds, none, 50)) == [("e", "b")]
    assert Precision("delivery", 5.0).waiting(ResultsSoFar(found, Measures(), seeds, none, 50)) == []
    # A point that was decided at an earlier look is not looked at again.
    assert Precision("delivery", 1e-9).waiting(
        ResultsSoFar(found, Measures(), seeds, {("e", "a"): 5, ("e", "b"): 0}, 50)
    ) == [("e", "b")]
    # A variant of which no run has a value is not known well enough.
    nothing = results({("a", "v"): narrow, ("a", "w"): [None] * 5})
    assert Precision("delivery", 5.0).waiting(ResultsSoFar(nothing, Measures(), seeds, none, 50)) == [("e", "a")]


def test_two_variants_differ_where_their_interval_excludes_none() -> None:
    goal = parse_goal("hint credits=2 differs from gossip in delivery")
    assert goal == Differs("hint credits=2", "gossip", "delivery")
    low: list[float | None] = [0.50, 0.51, 0.49, 0.52, 0.48]
    high: list[float | None] = [0.70, 0.72, 0.69, 0.71, 0.68]
    alike: list[float | None] = [0.51, 0.50, 0.50, 0.50, 0.49]
    found = results(
        {("a", "gossip"): low, ("a", "hint credits=2"): high, ("b", "gossip"): low, ("b", "hint credits=2"): alike}
    )
    seeds = {("e", "a"): 5, ("e", "b"): 5}
    none = dict.fromkeys(seeds, 0)
    assert goal.waiting(ResultsSoFar(found, Measures(), seeds, none, 50)) == [("e", "b")]
    # The difference is 63 times its error; a look at 5 of 5 000 seeds may spend next to nothing.
    assert goal.waiting(ResultsSoFar(found, Measures(), seeds, none, 5_000)) == [("e", "a"), ("e", "b")]
    # A seed that only one of them has does not count.
    assert goal.waiting(
        ResultsSoFar(results({("a", "gossip"): low, ("a", "hint credits=2"): [0.7]}), Measures(), seeds, none, 50)
    ) == [("e", "a")]
    with pytest.raises(ConfigError, match="until gosip differs: no such variant; did you mean 'gossip'"):
        Differs("gosip", "hint", "delivery").check(["delivery"], ["gossip", "hint"])
    with pytest.raises(ConfigError, match="until delay: the campaign does not measure it"):
        Differs("gossip", "hint", "delay").check(["delivery"], ["gossip", "hint"])


def test_the_level_of_a_look_is_stricter_than_a_single_one() -> None:
    # 5 of 50 seeds may spend (5/50)² of 5 %: t for 99.95 % and 4 degrees of freedom is 10.3 where 95 % has 2.78.
    values: list[float | None] = [0.50, 0.51, 0.49, 0.52, 0.48]  # sd 0.0158, so half the 95 % interval is 0.0196
    found = results({("a", "v"): values})
    seeds, none = {("e", "a"): 5}, {("e", "a"): 0}
    assert Precision("delivery", 0.02).waiting(ResultsSoFar(found, Measures(), seeds, none, 50)) == [("e", "a")]
    assert Precision("delivery", 0.02).waiting(ResultsSoFar(found, Measures(), seeds, none, 5)) == []
