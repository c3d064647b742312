"""What was possible, and what of it was delivered, by age and by deadline: small runs worked out by hand."""

import dataclasses

import pytest

from analysis.runs import MINUTE, ferry, values_of
from pipeline.measured import S
from roamcast.analysis.measures.deadlines import deadlines, within
from roamcast.analysis.measures.possible import possible

DELIVER = [(41 * MINUTE, 2, 10, 2, 0, 2, "data"), (1, 2, 12, 2, 0, 1, "data")]


def test_a_carrier_nobody_would_think_of() -> None:
    """1 is not interested: if only the interested carry, nothing of 0 ever arrives."""
    published = [(0, 0, 10, None), (0, 0, 11, 39 * MINUTE), (0, 3, 12, None), (20 * MINUTE, 0, 13, None)]
    assert values_of(ferry(*published, deliver=DELIVER), possible) == pytest.approx(
        {
            # Of eight pairs: 10 at 2 and 3 after 40 minutes, 12 at 2 at once; and only that last one by the interested.
            "possible": 3 / 8,
            "possible_at_once": 1 / 8,
            "possible_interested": 1 / 8,
            "delivered_of_possible": 2 / 3,
            # 4000 s are the end: what was published at 20 min is too young for an hour.
            "possible_1800": 1 / 8,
            "possible_3600": 3 / 6,
            "possible_interested_1800": 1 / 8,
            "possible_interested_3600": 1 / 6,
            **dict.fromkeys(f"possible{who}_{age}" for who in ("", "_interested") for age in (5400, 7200)),
        }
    )


def test_deadlines() -> None:
    """10 could be at 2 and 3 after 40 minutes, and was at 2 after 41; 12 could be, and was, at 2 at once."""
    run = ferry((0, 0, 10, None), (0, 3, 12, None), deliver=DELIVER)
    assert values_of(run, within(1, 2430, 3000, 4001)) == pytest.approx(
        {
            # 10 at 2 and 3; 12 at 0 and 2.
            "satisfaction_1": 1 / 4,
            "possible_1": 1 / 4,
            "delivered_of_possible_1": 1,
            "delay_restricted_1": (1 + 1 + 1 + 1e-9) / 4,
            "satisfaction_2430": 1 / 4,  # 41 minutes are 2460 s
            "possible_2430": 3 / 4,
            "delivered_of_possible_2430": 1 / 3,
            "delay_restricted_2430": (2430 * 3 + 1e-9) / 4,
            "satisfaction_3000": 2 / 4,
            "possible_3000": 3 / 4,
            "delivered_of_possible_3000": 2 / 3,
            "delay_restricted_3000": (2460 + 2 * 3000 + 1e-9) / 4,
            # No event is that old at the end.
            **{one.name: None for one in within(4001).measures},
        }
    )


def test_where_nothing_was_wanted_nothing_is_told() -> None:
    unwanted = ferry((0, 3, 12, None), warmup=1.0)
    assert set(values_of(unwanted, possible, deadlines).values()) == {None}
    wanted = ferry((0, 0, 1, None))
    unmoved = {name: rows for name, rows in wanted.facts.items() if name != "link"}
    assert set(values_of(dataclasses.replace(wanted, facts=unmoved), possible, deadlines).values()) == {None}


def test_a_pair_delivered_after_its_lifetime_was_not_possible() -> None:
    """A protocol that forgets lifetimes does not get more than all."""
    run = ferry((0, 3, 12, S), deliver=[(2 * S, 2, 12, 2, 0, 1, "data"), (41 * MINUTE, 0, 12, 0, 0, 1, "data")])
    found = values_of(run, possible)
    assert (found["possible"], found["delivered_of_possible"]) == (1 / 2, 1)
