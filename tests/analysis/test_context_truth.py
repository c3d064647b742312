"""The ideal system: the paper's freeway by hand, and small worlds against a brute force that looks at many instants."""

import itertools
import random
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from content.conditions import ContextualEvent, ContextualSubscription, Lifetime, matches
from facts.rows import complete
from roamcast.analysis.context_truth import Configuration, ContextCounts, ContextPair, count_delivered, ideal
from roamcast.content.context.host import HostView, Situation
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.rows import typed
from roamcast.facts.schema import TABLES
from roamcast.units import SECOND as S

Rows = list[tuple[Any, ...]]
REACH = 40.0
END = 10 * S


def tables(**rows: Rows) -> dict[str, pa.Table]:
    return {
        table: pa.Table.from_pylist(
            [dict(zip(TABLES[table].names, complete(table, row), strict=True)) for row in some], TABLES[table]
        )
        for table, some in rows.items()
    }


def leg(node: int, start: int, end: int, *places: float) -> tuple[Any, ...]:
    return (node, start, end, *places, False)


def published(event: int, time: int, node: int, life: int | None, *contexts: str | None) -> tuple[Any, ...]:
    return (time, node, event, "t", 20, life, *contexts)


def subscribed(number: int, time: int, node: int, life: int | None, *contexts: str | None) -> tuple[Any, ...]:
    return (time, node, number, True, "true", life, *contexts)


def described(*events: int) -> Rows:
    return [(event, "", *typed("t")) for event in events]


def told(node: int, name: str, value: Any, time: int = 0) -> tuple[Any, ...]:  # noqa: ANN401  # a scalar
    return (time, node, name, *typed(value))


ROAD = 'within(rect(20, 0, 32, 1)) and heading = "east"'


def freeway(**more: Rows) -> dict[str, pa.Table]:
    """The paper's Figure 1a, in miles: 1 has an accident at mile 32; 2 waits at mile 24, off the road; 30 and 25 are
    stations; 3 goes east and is the only one on the road, from mile 20 to 30."""
    return tables(
        leg=[
            leg(1, 0, END, 32, 0.5, 32, 0.5),
            leg(2, 0, END, 24, 5, 24, 5),
            leg(30, 0, END, 30, 2, 30, 2),
            leg(25, 0, END, 25, 2, 25, 2),
            leg(3, 0, END, 20, 0.5, 30, 0.5),
        ],
        attribute=[
            told(1, "heading", "none"),
            told(3, "heading", "east"),
            told(2, "occupants", 1),
            told(30, "occupants", 2),
        ],
        publish=[published(7, 2 * S, 1, 5 * S, ROAD, None)],
        event_attribute=described(7),
        **more,
    )


def found(facts: dict[str, pa.Table]) -> dict[tuple[int, int], float]:
    """The ideal pairs, with the instant in s."""
    return {(pair.event, pair.node): time / S for pair, time in ideal(facts, reach=REACH, end=END).items()}


def test_the_accident_concerns_who_asks_about_the_road_while_a_car_going_east_is_on_it() -> None:
    wide, narrow, far = ("within(rect(22, -1, 26, 9))", "within(rect(26.5, -1, 29, 9))", "within(rect(28, -1, 29, 9))")
    for interest, times in ((wide, (2, 6)), (narrow, (6.5, 7)), (far, None)):
        got = found(freeway(subscribe=[subscribed(1, S, 2, 20 * S, interest, None)]))
        assert set(got) == (set() if times is None else {(7, 2)})
        if times is not None:
            assert times[0] <= got[7, 2] <= times[1]


def test_of_two_stations_the_one_in_whose_section_the_publisher_is_gets_it() -> None:
    got = found(
        freeway(
            subscribe=[
                subscribed(1, S, 30, None, "within(rect(20, -1, 40, 9))", "within(rect(28, -1, 33, 9))"),
                subscribed(1, S, 25, None, "within(rect(20, -1, 40, 9))", "within(rect(23, -1, 28, 9))"),
            ]
        )
    )
    assert set(got) == {(7, 30)}


def test_the_subscription_domain_is_about_the_subscriber() -> None:
    facts = freeway(subscribe=[subscribed(1, S, node, None, "within(rect(20, -1, 40, 9))", None) for node in (2, 30)])
    facts |= tables(publish=[published(7, 2 * S, 1, 5 * S, ROAD, "occupants = 1")])
    assert set(found(facts)) == {(7, 2)}


def test_lifetimes_must_overlap_and_their_ends_belong_to_them() -> None:
    everywhere: list[str | None] = [None, None]
    for time, life, expected in (
        (7 * S, None, True),
        (7 * S + 1, None, False),
        (0, 2 * S, True),
        (0, 2 * S - 1, False),
    ):
        facts = freeway(subscribe=[subscribed(1, time, 2, life, *everywhere)])
        assert bool(found(facts)) is expected
    ended = [subscribed(1, 0, 2, None, None, None), (S, 2, 1, False, None, None, None, None)]
    assert found(freeway(subscribe=ended)) == {}


def test_an_event_without_a_lifetime_is_instantaneous() -> None:
    facts = freeway(subscribe=[subscribed(1, 3 * S, 2, None, None, None)])
    assert found(facts)
    assert not found(facts | tables(publish=[published(7, 2 * S, 1, None, ROAD, None)]))


def test_relations_are_sampled() -> None:
    """Host 3 passes host 2, who stands still beside the road: it is alone, then not, then alone again."""
    facts = tables(
        leg=[leg(1, 0, END, 500, 0, 500, 0), leg(2, 0, END, 100, 5, 100, 5), leg(3, 0, END, 0, 0, 200, 0)],
        publish=[
            published(7, 0, 1, END, "within(rect(90, -1, 200, 1)) and count(neighbours) = 1", None),
            published(8, 0, 1, END, "within(rect(0, -1, 50, 1)) and count(neighbours) = 1", None),
        ],
        event_attribute=described(7, 8),
        subscribe=[subscribed(1, 0, 2, END, None, None)],
    )
    assert set(found(facts)) == {(7, 2)}


def test_outcome_counts_what_was_delivered_of_the_ideal_pairs_and_beyond() -> None:
    delivered: Rows = [
        (3 * S, 2, 7, 1, 2 * S, 1, "matched-event"),
        (3 * S, 2, 7, 1, 2 * S, 1, "matched-event"),
        (3 * S, 30, 7, 9, 2 * S, 1, "matched-event"),
    ]
    subscribe = [subscribed(1, 0, 2, None, None, None), subscribed(2, 0, 2, None, None, None)]
    facts = freeway(subscribe=subscribe, deliver=delivered)
    assert count_delivered(facts, reach=REACH, end=END) == ContextCounts(2, 1, 1)
    assert count_delivered(facts, reach=REACH, end=END, start=2 * S + 1) == ContextCounts(0, 0, 0)


# --- Small worlds -----------------------------------------------------------------------------------------------------

PLACES = [
    None,
    "within(rect(20, 20, 60, 60))",
    "within(circle(50, 50, 25)) and v < 5",
    "within(polygon(0 0, 80 10, 40 70)) and not x > 45.5",
    "within(rect(0, 0, 50, 100)) or within(circle(80, 80, 15))",
]
DOMAINS = [None, "v < 5", "v >= 5 and y < 60", "within(circle(30, 70, 40))", "speed > 9"]


def world(seed: int) -> tuple[dict[str, pa.Table], list[ContextualEvent], list[ContextualSubscription], Rows]:
    """Five hosts that walk and change their minds, three events and three subscriptions."""
    rng = random.Random(seed)
    legs: Rows = []
    attributes: Rows = []
    for node in range(5):
        time, place = 0, (rng.uniform(0, 100), rng.uniform(0, 100))
        while time < END:
            until, goal = time + rng.randrange(S, 4 * S), (rng.uniform(0, 100), rng.uniform(0, 100))
            legs.append(leg(node, time, until, *place, *goal))
            time, place = until, goal
        attributes += [told(node, "v", rng.randrange(10), when) for when in (0, rng.randrange(1, END))]
    events, subscriptions, publish, subscribe = [], [], [], []
    for number in range(1, 4):
        time, life = rng.randrange(END), rng.choice((0, 2 * S))
        texts = rng.choice(PLACES), rng.choice(DOMAINS)
        contexts = [None if text is None else parse_context(text) for text in texts]
        publish.append(published(number, time, 0, life, *texts))
        events.append(ContextualEvent(Event("t", id=number), Lifetime(time, life), *contexts))
        time, life = rng.randrange(END), rng.choice((0, 4 * S))
        texts = rng.choice(PLACES), rng.choice(DOMAINS)
        contexts = [None if text is None else parse_context(text) for text in texts]
        subscribe.append(subscribed(number, time, 1, life, *texts))
        subscriptions.append(ContextualSubscription(EVERYTHING, Lifetime(time, life), *contexts))
    facts = tables(
        leg=legs, attribute=attributes, publish=publish, event_attribute=described(1, 2, 3), subscribe=subscribe
    )
    return facts, events, subscriptions, [*legs, *attributes]


def views(rows: Rows, time: float) -> dict[int, HostView]:
    """Every host, worked out from the rows one by one."""
    made = {}
    for node in range(5):
        known = [row for row in rows if len(row) == 8 and row[1] == node and row[2] == "v" and row[0] <= time]
        value = max(known, key=lambda row: row[0])[4]
        legs = [row for row in rows if row[0] == node and isinstance(row[3], float) and row[1] <= time <= row[2]]
        _, start, end, x0, y0, x1, y1, _ = legs[-1]  # where one ends and the next begins, that
        part = (time - start) / (end - start)
        speed = ((x1 - x0) / (end - start) * S, (y1 - y0) / (end - start) * S)
        made[node] = HostView((x0 + part * (x1 - x0), y0 + part * (y1 - y0)), speed, {"v": value})
    return made


def all_hold(
    event: ContextualEvent, subscription: ContextualSubscription, time: float, hosts: dict[int, HostView]
) -> bool:
    situations = {node: Situation(host) for node, host in hosts.items()}
    return matches(event, subscription, time, situations[0], situations[1], situations.values())  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
@example(215)
def test_the_ideal_pairs_are_those_that_a_brute_force_finds_and_each_has_its_instant(seed: int) -> None:
    facts, events, subscriptions, rows = world(seed)
    pairs = ideal(facts, reach=REACH, end=END)
    for (number, event), (other, subscription) in itertools.product(enumerate(events, 1), enumerate(subscriptions, 1)):
        pair = ContextPair(number, 1, other)
        if pair in pairs:
            assert all_hold(event, subscription, pairs[pair], views(rows, pairs[pair]))
            continue
        low = max(event.lifetime.since, subscription.lifetime.since)
        ends = (life.since + (life.length or 0) for life in (event.lifetime, subscription.lifetime))
        high = min(*ends, END)
        for time in range(low, high + 1, S // 20):
            assert not all_hold(event, subscription, time, views(rows, time))


def test_a_configuration_knows_where_hosts_are_between_the_ends_of_their_legs() -> None:
    facts = tables(leg=[leg(3, 0, S, 0, 0, 10, 0), leg(3, S, 3 * S, 10, 0, 10, 20)], attribute=[told(3, "v", 1, S)])
    configuration = Configuration(facts, REACH)
    assert configuration.view(3, S // 2) == HostView((5, 0), (10, 0), {})
    assert configuration.view(3, 2 * S) == HostView((10, 10), (0, 10), {"v": 1})
    assert configuration.view(4, 0) == HostView()
    assert list(configuration.changed(3, 0, 2 * S)) == [S]
