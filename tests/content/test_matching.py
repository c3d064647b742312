"""The five conditions of context-aware matching, first in the paper's own scenario (Frey and Roman 2007, Fig. 1a)."""

from itertools import product
from typing import Final

import pytest

from content.conditions import ContextualEvent, ContextualSubscription, Lifetime, matches
from roamcast.content.context.expression import Context
from roamcast.content.context.host import HostView, Situation
from roamcast.content.context.rules import (
    PUBLICATION_DOMAIN,
    SUBSCRIPTION_DOMAIN,
    check_domain,
    check_interest,
    check_relevance,
)
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event
from roamcast.content.text import parse_filter

# The freeway runs east along y = 0; x is in metres, the paper gives miles.

MILE: Final = 1609.344
MINUTE: Final = 60


def on_freeway(first_mile: float, last_mile: float) -> str:
    return f"within(rect({first_mile * MILE}, -50, {last_mile * MILE}, 50))"


def car(mile: float, heading: str = "east", occupants: int = 2, off_road: float = 0) -> Situation:
    speed = 30.0 if heading == "east" else -30.0
    return Situation(HostView((mile * MILE, off_road), (speed, 0), {"heading": heading, "occupants": occupants}))


def station(mile: float) -> Situation:
    return Situation(HostView((mile * MILE, 30), (0, 0), {"kind": "patrol"}))


CRASHED: Final = car(32)
APPROACHING: Final = car(24, occupants=1)
PAST_IT: Final = car(35)
OPPOSITE: Final = car(28, heading="west", occupants=1)
PARKED: Final = car(18, off_road=4000)  # car X, about to take the freeway
STATION_25: Final = station(25)
STATION_30: Final = station(30)
EVERYBODY: Final = (CRASHED, APPROACHING, PAST_IT, OPPOSITE, PARKED, STATION_25, STATION_30)

RELEVANCE: Final = parse_context(f'{on_freeway(20, 32)} and heading = "east"')
ACCIDENT: Final = ContextualEvent(
    Event.of("accident", {"road": "freeway", "mile": 32}), Lifetime(0, 30 * MINUTE), RELEVANCE
)
ABOUT_THE_FREEWAY: Final = parse_filter('road = "freeway"')


def wanted(interest: str | None, publication_domain: str | None = None, since: int = 0) -> ContextualSubscription:
    return ContextualSubscription(
        ABOUT_THE_FREEWAY,
        Lifetime(since, None),
        None if interest is None else parse_context(interest),
        None if publication_domain is None else parse_context(publication_domain),
    )


def reaches(
    event: ContextualEvent,
    subscription: ContextualSubscription,
    subscriber: Situation,
    now: int = 0,
    publisher: Situation = CRASHED,
    hosts: tuple[Situation, ...] = EVERYBODY,
) -> bool:
    return matches(event, subscription, now, publisher, subscriber, hosts)


def here(mile: float) -> str:
    return on_freeway(mile - 0.01, mile + 0.01)


def test_the_accident_reaches_who_approaches_it_and_not_who_is_past_it_or_goes_west() -> None:
    assert reaches(ACCIDENT, wanted(here(24)), APPROACHING)
    assert not reaches(ACCIDENT, wanted(here(35)), PAST_IT)
    assert not reaches(ACCIDENT, wanted(here(28)), OPPOSITE)


def test_the_accident_is_still_there_for_who_comes_later() -> None:
    late = car(21)
    subscription = wanted(here(21), since=20 * MINUTE)
    assert not reaches(ACCIDENT, subscription, late, 19 * MINUTE, hosts=(*EVERYBODY, late)), "not subscribed yet"
    assert reaches(ACCIDENT, subscription, late, 20 * MINUTE, hosts=(*EVERYBODY, late))
    assert reaches(ACCIDENT, subscription, late, 30 * MINUTE, hosts=(*EVERYBODY, late)), "the last instant"
    assert not reaches(ACCIDENT, subscription, late, 30 * MINUTE + 1, hosts=(*EVERYBODY, late)), "expired"


def test_car_x_learns_about_the_road_it_intends_to_take() -> None:
    # It is outside of the context of relevance; hosts on its road are in both contexts.
    assert reaches(ACCIDENT, wanted(on_freeway(18, 40)), PARKED)
    assert not reaches(ACCIDENT, wanted(on_freeway(33, 40)), PARKED), "another stretch of the road"
    empty = (PAST_IT, OPPOSITE, PARKED)
    assert not reaches(ACCIDENT, wanted(on_freeway(18, 40)), PARKED, hosts=empty), "no host is in both contexts"


def test_the_accident_reaches_the_station_at_mile_30_and_not_the_one_at_mile_25() -> None:
    # Each station wants events about the whole freeway, from publishers in its own section.
    everywhere = on_freeway(0, 60)
    assert reaches(ACCIDENT, wanted(everywhere, on_freeway(28, 33)), STATION_30)
    assert not reaches(ACCIDENT, wanted(everywhere, on_freeway(23, 28)), STATION_25)
    assert reaches(ACCIDENT, wanted(None, on_freeway(28, 33)), STATION_30), "nor does it need a context of interest"
    moved = car(22)
    assert not reaches(ACCIDENT, wanted(everywhere, on_freeway(28, 33)), STATION_30, publisher=moved), (
        "the publisher's place counts when matching happens, not when it published"
    )


def test_the_order_to_leave_reaches_only_cars_with_one_occupant() -> None:
    order = ContextualEvent(
        Event.of("order", {"road": "freeway", "exit": 31}),
        Lifetime(10 * MINUTE, 30 * MINUTE),
        RELEVANCE,
        parse_context("occupants = 1"),
    )
    alone, together = car(25, occupants=1), car(25, occupants=2)
    for subscriber, expected in ((alone, True), (together, False), (STATION_25, False)):
        hosts = (*EVERYBODY, alone, together)
        assert reaches(order, wanted(here(25)), subscriber, 12 * MINUTE, STATION_30, hosts) == expected
    assert not reaches(order, wanted(here(25)), alone, 9 * MINUTE, STATION_30), "not published yet"


def test_the_contexts_of_the_scenario_are_allowed_where_they_stand() -> None:
    check_relevance(RELEVANCE, ())
    check_interest(parse_context(on_freeway(18, 40)), ())
    check_domain(parse_context(on_freeway(28, 33)), PUBLICATION_DOMAIN)
    check_domain(parse_context("occupants = 1"), SUBSCRIPTION_DOMAIN)


# The conditions, one by one

GREEN, RED = (Situation(HostView((x, 0), None, {"colour": c})) for x, c in ((0, "green"), (100, "red")))
YES, NO = parse_context('colour = "green"'), parse_context('colour = "blue"')


@pytest.mark.parametrize(
    "holding", list(product((True, False), repeat=6)), ids=lambda holding: "".join("ny"[each] for each in holding)
)
def test_all_five_conditions_are_needed(holding: tuple[bool, ...]) -> None:
    content, event_lives, subscription_lives, overlap, publisher_fits, subscriber_fits = holding
    event = ContextualEvent(
        Event.of("a" if content else "b"),
        Lifetime(0, 10 if event_lives else 4),
        YES,
        YES if subscriber_fits else NO,
    )
    subscription = ContextualSubscription(
        parse_filter('type = "a"'),
        Lifetime(0, 10 if subscription_lives else 4),
        YES if overlap else parse_context('colour = "red"'),
        YES if publisher_fits else NO,
    )
    assert matches(event, subscription, 5, GREEN, GREEN, (GREEN, RED)) == all(holding)


@pytest.mark.parametrize(
    ("lifetime", "in_force"),
    [
        (Lifetime(10), [10]),
        (Lifetime(10, 2), [10, 11, 12]),
        (Lifetime(10, None), [10, 11, 12, 13, 14]),
    ],
)
def test_lifetimes(lifetime: Lifetime, in_force: list[int]) -> None:
    assert [now for now in range(8, 15) if lifetime.covers(now)] == in_force


def test_without_contexts_it_is_plain_matching() -> None:
    event = ContextualEvent(Event.of("a"), Lifetime(5))
    plain = ContextualSubscription(parse_filter('type = "a"'), Lifetime(0, None))
    assert matches(event, plain, 5, GREEN, RED, (GREEN, RED))
    assert not matches(event, plain, 6, GREEN, RED, (GREEN, RED)), "an instantaneous event has one instant"
    assert not matches(event, plain._replace(filter=parse_filter("false")), 5, GREEN, RED, (GREEN, RED))


def test_one_host_must_be_in_both_contexts() -> None:
    def pair(relevance: Context, interest: Context) -> tuple[ContextualEvent, ContextualSubscription]:
        return (
            ContextualEvent(Event.of("a"), Lifetime(0), relevance),
            ContextualSubscription(parse_filter("true"), Lifetime(0), interest),
        )

    red = parse_context('colour = "red"')
    near, far = parse_context("x < 50"), parse_context("x > 50")
    for relevance, interest, expected in ((red, far, True), (red, near, False), (YES, near, True), (YES, far, False)):
        assert matches(*pair(relevance, interest), 0, GREEN, RED, (GREEN, RED)) == expected
        assert not matches(*pair(relevance, interest), 0, GREEN, RED, ())


def test_a_domain_may_depend_on_hosts_far_away() -> None:
    ambulance = HostView((300, 400), None, {"kind": "ambulance"})
    domain = parse_context('count(hosts within 500 where kind = "ambulance") >= 1')
    event = ContextualEvent(Event.of("a"), Lifetime(0), None, domain)
    subscription = ContextualSubscription(parse_filter("true"), Lifetime(0))
    asked = Situation(GREEN.host, (), (ambulance,))
    assert matches(event, subscription, 0, GREEN, asked, (GREEN,))
    assert not matches(event, subscription, 0, GREEN, GREEN, (GREEN,)), "nobody was asked, so nothing is sure"
