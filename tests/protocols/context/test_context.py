"""The broker of `context`: what is held where, what is matched when, and what the paper's mechanisms do, one by one."""

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.context.places import Places
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.context.broker import ENTRY
from roamcast.protocols.context.facts import Holding, Match
from roamcast.protocols.context.messages import (
    EventItem,
    Matched,
    Query,
    Request,
    Subscribed,
    SubscriptionItem,
    SubscriptionRefresh,
    Withdrawal,
)
from roamcast.protocols.context.params import ContextParams
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.context.reachability import is_safe, reachability
from roamcast.protocols.context.tables import ItemTable
from roamcast.units import SECOND

HERE = "within(rect(-50, -50, 50, 50))"
"""The region of the tests; node 0 stands in it."""


def line(count: int = 5, **parameters: object) -> Places:
    """Hosts 150 m apart, who hear their next neighbours."""
    hosts = Places({node: (150.0 * node, 0.0) for node in range(count)}, 160, parameters)
    hosts.wait(6)
    return hosts


def matches(hosts: Places, step: str) -> list[tuple[int, bool]]:
    return [
        (node, fact.holds)
        for node, port in hosts.ports.items()
        for _, fact in port.facts
        if isinstance(fact, Match) and fact.step == step
    ]


def holders(hosts: Places) -> set[int]:
    """Who holds something."""
    holding: dict[int, int] = {}
    for node, port in hosts.ports.items():
        for _, fact in port.facts:
            if isinstance(fact, Holding):
                holding[node] = holding.get(node, 0) + (1 if fact.holds else -1)
    return {node for node, count in holding.items() if count > 0}


# --- Matching in the overlap ------------------------------------------------------------------------------------------


def test_subscriber_and_publisher_far_apart_meet_where_relevance_and_interest_do() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=100, interest=HERE)
    hosts.wait(3)
    hosts.publish(2, 1, relevant=HERE)
    hosts.wait(3)
    assert hosts.got(4) == [1]
    assert matches(hosts, "overlap") == [(0, True)]
    assert [delivery.via for delivery in hosts.ports[4].delivered] == ["matched-event"]


def test_regions_that_do_not_overlap_never_match() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=100, interest="within(rect(100, -50, 200, 50))")
    hosts.wait(3)
    hosts.publish(2, 1, lifetime=30, relevant=HERE)
    hosts.wait(40)
    assert hosts.got(4) == []


def test_nobody_in_the_overlap_no_match_until_somebody_walks_in() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=100, interest="within(rect(-50, -50, 50, 50))")
    hosts.wait(2)
    hosts.publish(2, 1, lifetime=60, relevant="within(rect(-50, 20, 50, 120))")
    hosts.wait(20)
    assert hosts.got(4) == []
    hosts.move(0, (0.0, 30.0))
    hosts.wait(12)
    assert hosts.got(4) == [1]


def test_a_subscription_for_everywhere_is_left_to_its_subscriber_until_it_is_for_a_region() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=100)
    hosts.wait(3)
    hosts.publish(2, 1)
    hosts.wait(3)
    assert (hosts.got(4), matches(hosts, "overlap")) == ([1], [])
    hosts.subscribe(4, lifetime=100, interest=HERE)
    hosts.wait(3)
    hosts.publish(2, 2)
    hosts.wait(3)
    assert (hosts.got(4), matches(hosts, "overlap")) == ([1, 2], [(0, True)])
    hosts.subscribe(4, lifetime=100)
    hosts.wait(3)
    hosts.publish(2, 3)
    hosts.wait(3)
    assert (hosts.got(4), matches(hosts, "overlap")) == ([1, 2, 3], [(0, True)])


def test_an_instantaneous_subscription_gets_the_persistent_events_that_are_there() -> None:
    hosts = line()
    hosts.publish(2, 1, lifetime=60, relevant=HERE)
    hosts.publish(2, 2, relevant=HERE)
    hosts.wait(3)
    hosts.subscribe(4, lifetime=0, interest=HERE)
    hosts.wait(3)
    hosts.publish(2, 3, relevant=HERE)
    hosts.wait(3)
    assert hosts.got(4) == [1]


def test_the_subscriber_decides_the_subscription_domain_when_the_event_comes() -> None:
    hosts = line()
    hosts.attributes[4] = hosts.ports[4].properties = {"value": 7}
    hosts.subscribe(4, lifetime=200, interest=HERE)
    hosts.wait(3)
    hosts.publish(2, 1, lifetime=60, relevant=HERE, subscribers="value < 5")
    hosts.publish(2, 2, lifetime=60, relevant=HERE, subscribers="value > 5")
    hosts.wait(3)
    assert hosts.got(4) == [2]
    assert (4, False) in matches(hosts, "subscription domain")
    hosts.ports[4].properties["value"] = 3
    hosts.wait(12)  # the next refresh of either is matched again
    assert sorted(hosts.got(4)) == [1, 2]


def test_without_resend_a_match_is_sent_once() -> None:
    hosts = line(resend=False)
    hosts.ports[4].properties = {"value": 7}
    hosts.subscribe(4, lifetime=200, interest=HERE)
    hosts.wait(3)
    hosts.publish(2, 1, lifetime=60, relevant=HERE, subscribers="value < 5")
    hosts.wait(3)
    hosts.ports[4].properties["value"] = 3
    hosts.wait(30)
    assert hosts.got(4) == []


@pytest.mark.parametrize(("grace", "got"), [(1.0, [1]), (0.0, [])])
def test_an_instantaneous_event_with_a_publication_domain_needs_grace(grace: float, got: list[int]) -> None:
    hosts = line(grace=grace)
    hosts.subscribe(4, lifetime=100, interest=HERE, publishers="not exists value")
    hosts.wait(3)
    hosts.publish(2, 1, relevant=HERE)
    hosts.wait(5)
    assert hosts.got(4) == got


def test_many_hosts_in_the_overlap_send_one_matched_event() -> None:
    crowd = {node: (10.0 * node, 0.0) for node in range(5)}
    hosts = Places({**crowd, 8: (180.0, 0.0), 9: (320.0, 0.0)}, 160)
    hosts.wait(6)
    hosts.subscribe(9, lifetime=100, interest=HERE)
    hosts.wait(1)
    hosts.publish(8, 1, relevant=HERE)
    hosts.wait(1)
    assert hosts.got(9) == [1]
    assert len(matches(hosts, "overlap")) > 1
    assert len({node for _, node in hosts.sent("matched-event")} & set(crowd)) <= 2


def test_relations_to_neighbours_are_looked_at_by_the_host_in_the_overlap() -> None:
    relevant = f"{HERE} and fuel < min(neighbours.fuel)"
    for fuel, got in ((3, [1]), (9, [])):
        hosts = Places({node: (150.0 * node, 0.0) for node in range(4)}, 160, {"key_attributes": ["fuel"]})
        for node in range(4):
            hosts.ports[node].properties = {"fuel": fuel if node == 0 else 5}
        hosts.wait(6)
        hosts.subscribe(3, lifetime=100, interest=HERE)
        hosts.wait(1)
        hosts.publish(2, 1, relevant=relevant)
        hosts.wait(3)
        assert hosts.got(3) == got


def test_a_domain_that_looks_beyond_one_hop_is_decided_by_a_query() -> None:
    for least, got in ((4, [1]), (5, [])):
        hosts = line()
        hosts.subscribe(4, lifetime=100, interest=HERE)
        hosts.wait(1)
        hosts.publish(2, 1, relevant=HERE, subscribers=f"count(hosts within 700) >= {least}")
        hosts.wait(5)
        assert hosts.got(4) == got
        assert {node for _, node in hosts.sent("answer")} >= {0, 1, 2, 3}


def queries(hosts: Places, node: int) -> set[int]:
    """The numbers of the queries that a host has made."""
    return {message.number for _, _, message in hosts.log if isinstance(message, Query) and message.asker == node}


@pytest.mark.parametrize("query_wait", [0.5, 30.0])
def test_one_query_is_enough_for_an_event_and_a_subscription(query_wait: float) -> None:
    """Though the match is sent again with each refresh: after the delivery, and while the query waits for answers."""
    hosts = line(query_wait=query_wait)
    hosts.subscribe(4, lifetime=100, interest=HERE)
    hosts.wait(1)
    hosts.publish(2, 1, lifetime=60, relevant=HERE, subscribers="count(hosts within 700) >= 4")
    hosts.wait(50)
    assert hosts.got(4) == [1]
    assert len({time for time, node in hosts.sent("matched-event") if node == 0}) > 5
    assert len(queries(hosts, 4)) == 1


def test_a_publisher_with_a_publication_domain_is_asked_no_more_once_its_event_is_here() -> None:
    hosts = line()
    hosts.subscribe(4, publishers="not exists value")
    hosts.wait(1)
    hosts.publish(0, 1, lifetime=60)
    hosts.wait(50)
    assert hosts.got(4) == [1]
    assert len([node for _, node in hosts.sent("matching-request") if node == 4]) == 1


def test_a_publisher_says_where_it_is_in_events_to_everywhere_once_it_was_asked() -> None:
    hosts = line()
    hosts.subscribe(4, publishers="not exists value")
    hosts.wait(1)
    for serial in (1, 2):
        hosts.publish(0, serial)
        hosts.wait(10)
    assert hosts.got(4) == [1, 2]
    regions = [message.region for _, node, message in hosts.log if isinstance(message, Request) and node == 4]
    assert regions[0] is None
    assert regions[-1] is not None
    assert regions[-1].contains(0, 0)


def test_the_first_query_after_a_restart_is_answered() -> None:
    hosts = line()
    for serial in (1, 2):
        hosts.subscribe(4, lifetime=100, interest=HERE)
        hosts.wait(1)
        hosts.publish(2, serial, relevant=HERE, subscribers="count(hosts within 700) >= 4")
        hosts.wait(5)
        hosts.restart(4)
    assert hosts.got(4) == [1, 2]


# --- What is plain ----------------------------------------------------------------------------------------------------


def test_what_is_plain_is_wanted_and_relevant_everywhere() -> None:
    hosts = line()
    hosts.subscribe(4)
    hosts.wait(1)
    hosts.publish(0, 1)
    hosts.publish(2, 2, relevant=HERE)
    hosts.wait(3)
    assert sorted(hosts.got(4)) == [1, 2]
    assert next((delivery.hops, delivery.via) for delivery in hosts.ports[4].delivered) == (4, "event")


def test_unsubscribing_stops_refreshes_and_the_rest_expires() -> None:
    hosts = line()
    hosts.subscribe(4, interest=HERE)
    hosts.wait(8)
    assert holders(hosts) == {0}
    hosts[4].unsubscribe(hosts.now, 1)
    stopped = hosts.now / SECOND
    hosts.wait(20)
    assert hosts.sent("subscription-refresh", stopped) == []
    assert holders(hosts) == set()
    hosts.publish(2, 1, relevant=HERE)
    hosts.wait(3)
    assert hosts.got(4) == []


def test_what_is_unsubscribed_is_withdrawn_from_those_who_hold_it() -> None:
    hosts = line()
    hosts.subscribe(4, 1, lifetime=600, interest=HERE)
    hosts.subscribe(4, 2)
    hosts.wait(1)
    assert holders(hosts) == {0, 1, 2, 3, 4}
    hosts[4].unsubscribe(hosts.now, 1)
    hosts[4].unsubscribe(hosts.now, 2)
    hosts.wait(1)
    assert holders(hosts) == set()


def test_a_subscription_that_moves_to_another_region_leaves_the_first() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=600, interest=HERE)
    hosts.wait(1)
    hosts.subscribe(4, lifetime=600, interest="within(rect(100, -50, 200, 50))")
    hosts.wait(1)
    assert holders(hosts) == {1}
    hosts.subscribe(4, lifetime=600, interest="within(rect(-50, -50, 200, 50))")
    hosts.wait(1)
    assert holders(hosts) == {0, 1}


def test_nothing_is_withdrawn_that_others_know_to_be_over() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=3, interest=HERE)
    hosts.wait(3.5)
    hosts[4].unsubscribe(hosts.now, 1)
    hosts.wait(3)
    assert holders(hosts) == set()
    assert hosts.sent("withdrawal") == []


def test_an_old_withdrawal_does_not_end_a_subscription_that_was_made_again() -> None:
    hosts = line()
    hosts.subscribe(4, interest=HERE)
    hosts.wait(1)
    hosts[4].unsubscribe(hosts.now, 1)
    hosts.subscribe(4, interest=HERE)
    hosts.wait(1)
    (withdrawal,) = {
        message.version: message for _, _, message in hosts.log if isinstance(message, Withdrawal)
    }.values()
    hosts[0].receive(hosts.now, 1, msgspec.structs.replace(withdrawal, version=withdrawal.version - 1))
    assert holders(hosts) == {0}


def refreshes(hosts: Places, node: int) -> list[SubscriptionRefresh]:
    """Those that a host has made itself."""
    return [
        message
        for _, sender, message in hosts.log
        if isinstance(message, SubscriptionRefresh) and message.item.subscriber == sender == node
    ]


def test_a_subscription_to_everywhere_is_refreshed_ever_less_while_nobody_needs_its_place() -> None:
    hosts = line()
    hosts.subscribe(4)
    hosts.wait(1)
    for serial in range(1, 31):
        hosts.move(4, (600.0, 50.0 * (serial % 2)))  # out of where it was
        hosts.publish(0, serial)
        hosts.wait(20)
    assert hosts.got(4) == list(range(1, 31))
    times = [time for time, node in hosts.sent("subscription-refresh") if node == 4]
    gaps = [later - time for time, later in pairwise((6, *times))]
    assert [round(math.log2(gap / 5)) for gap in gaps] == [0, 1, 2, 3, 4, 5]
    assert [message.item.reach for message in refreshes(hosts, 4)] == [None] * 6
    assert hosts[0].tables()["subscriptions held"] == 1


def test_a_subscription_to_everywhere_says_where_it_is_as_long_as_events_with_a_region_match_it() -> None:
    hosts = line()
    hosts.subscribe(4)
    hosts.wait(100)
    before, asked = len(refreshes(hosts, 4)), hosts.now / SECOND
    hosts.publish(1, 1, relevant=HERE)
    hosts.wait(2)
    assert hosts.got(4) == [1]
    (refresh,) = refreshes(hosts, 4)[before:]
    assert refresh.item.reach is not None
    assert refresh.item.reach.contains(600.0, 0.0)
    hosts.publish(1, 2, relevant=HERE)
    hosts.wait(2)
    assert hosts.got(4) == [1, 2]
    regions = [message.region for _, _, message in hosts.log if isinstance(message, Matched)]
    assert (regions[0], regions[-1]) == (None, refresh.item.reach)
    hosts.wait(120)
    late = [time - asked for time, node in hosts.sent("subscription-refresh", asked) if node == 4]
    assert 4 <= len([time for time in late if time < 20]) <= 6
    assert len([time for time in late if time > 40]) <= 2
    assert refreshes(hosts, 4)[-1].item.reach is None


def test_a_subscriber_that_begins_again_is_heard_though_others_know_its_old_versions() -> None:
    hosts = line()
    hosts.subscribe(4, interest=HERE)
    hosts.wait(3)
    hosts.restart(4)
    hosts.subscribe(4, interest=HERE)
    hosts.wait(3)
    hosts.publish(2, 1, relevant=HERE)
    hosts.wait(3)
    assert hosts.got(4) == [1]


# --- Who holds what ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("store", "at_the_edge", "after_leaving"),
    [("strict", {0}, set()), ("enlarged", {0, 1}, set()), ("keep", {0, 1}, {0})],
)
def test_store_says_who_holds_an_event_at_the_edge(store: str, at_the_edge: set[int], after_leaving: set[int]) -> None:
    hosts = Places({0: (0.0, 0.0), 1: (75.0, 0.0), 2: (200.0, 0.0)}, 160, {"store": store})
    hosts.publish(2, 1, lifetime=60, relevant=HERE)
    hosts.wait(1)
    assert holders(hosts) == at_the_edge
    hosts.move(0, (140.0, 0.0))
    hosts.wait(2)
    assert holders(hosts) - {1} == after_leaving


def test_a_host_that_comes_into_the_region_is_told_by_a_digest() -> None:
    hosts = Places({0: (0.0, 0.0), 1: (140.0, 0.0), 2: (200.0, 0.0)}, 160, {"refresh": 1000.0})
    hosts.wait(12)
    hosts.publish(2, 1, lifetime=600, relevant=HERE)
    hosts.wait(2)
    assert holders(hosts) == {0}
    hosts.move(1, (60.0, 0.0))
    hosts.wait(6)
    assert holders(hosts) == {0, 1}
    assert [node for _, node in hosts.sent("digest")] == [0]


def test_a_host_is_told_of_more_items_than_one_digest_has() -> None:
    hosts = Places({0: (0.0, 0.0), 1: (140.0, 0.0), 2: (20.0, 0.0)}, 160, {"refresh": 1000.0})
    hosts.wait(12)
    for serial in range(1, 21):
        hosts.publish(0, serial, lifetime=600, relevant=HERE)
        hosts.subscribe(0, serial, lifetime=600, interest=HERE)
    hosts.wait(2)
    assert hosts[1].tables()["events"] == hosts[1].tables()["subscriptions held"] == 0
    hosts.move(1, (60.0, 0.0))
    hosts.wait(6)
    assert hosts[1].tables()["events"] == hosts[1].tables()["subscriptions held"] == 20


def test_one_digest_is_enough() -> None:
    crowd = {node: (5.0 * node, 0.0) for node in range(6)}
    hosts = Places({**crowd, 8: (140.0, 0.0), 9: (160.0, 0.0)}, 170, {"refresh": 1000.0})
    hosts.wait(12)
    hosts.publish(9, 1, lifetime=600, relevant=HERE)
    hosts.wait(2)
    hosts.move(8, (60.0, 0.0))
    hosts.wait(6)
    assert holders(hosts) == {*crowd, 8}
    assert len(hosts.sent("digest")) < len(crowd)


def test_a_refresh_makes_a_digest_superfluous() -> None:
    """Host 1 comes in and says so; before the holders' waits are over, the publisher refreshes the event."""
    hosts = Places({0: (0.0, 0.0), 1: (140.0, 0.0), 2: (20.0, 0.0)}, 160, {"refresh": 1000.0, "match_wait": 60.0})
    hosts.wait(12)
    hosts.publish(2, 1, lifetime=600, relevant=HERE)
    hosts.wait(2)
    hosts.move(1, (60.0, 0.0))
    hosts[1].publish(hosts.now, Publication(Event.of("hello", {}, id=event_id(1, 2)), 0))
    hosts.wait(0.1)
    assert hosts[0].tables()["owed"] == hosts[2].tables()["owed"] == 1
    hosts.move(2, (45.0, 0.0))  # beyond the safe distance: it refreshes
    hosts.wait(70)
    assert len(hosts.sent("event-refresh")) >= 1
    assert holders(hosts) >= {0, 1}
    assert hosts.sent("digest") == []


def test_beacons_are_sent_only_in_the_absence_of_other_traffic() -> None:
    quiet = Places({0: (0.0, 0.0), 1: (100.0, 0.0)}, 160)
    quiet.wait(50)
    assert 9 <= len([node for _, node in quiet.sent("beacon") if node == 0]) <= 11
    busy = Places({0: (0.0, 0.0), 1: (100.0, 0.0)}, 160)
    for serial in range(1, 26):
        busy.publish(0, serial)
        busy.wait(2)
    assert len(busy.sent("beacon")) <= 2


# --- Being reached ----------------------------------------------------------------------------------------------------


def test_a_subscriber_that_moves_refreshes_before_it_leaves_its_reachability_region() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=600, interest=HERE)
    hosts.wait(1)
    hosts.move(4, (580.0, 0.0))  # 20 m of its 25
    hosts.wait(1)
    assert next(node for _, node in hosts.sent("subscription-refresh")) == 4
    assert hosts.sent("subscription-refresh")[0][0] < 8.0


def test_one_that_stands_still_refreshes_by_the_clock() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=21, interest=HERE)
    hosts.wait(30)
    times = [6, *(time for time, node in hosts.sent("subscription-refresh") if node == 4)]
    assert len(times) == 5
    assert [gap for time, gap in pairwise(times) if not 4.4 <= gap - time <= 5.6] == []


def test_hosts_that_subscribe_together_do_not_stay_in_step() -> None:
    """Each is alone, so that only its own clock decides when it sends."""
    hosts = Places({node: (1000.0 * node, 500.0) for node in range(35)}, 160, {"repeats": 0})
    for node in hosts.places:
        hosts.subscribe(node, interest=HERE)
    hosts.wait(62)
    made: dict[int, list[float]] = {node: [] for node in hosts.places}
    for time, node, message in hosts.log:
        if isinstance(message, Subscribed) and message.item.subscriber == node:
            made[node].append(time / SECOND)
    for turn, spread in ((0, 0.02), (1, 0.5), (10, 1.5)):
        times = [issued[turn] for issued in made.values()]
        assert len(set(times)) == 35
        assert max(times) - min(times) > spread


def test_beacons_do_not_stay_in_step_with_the_traffic_that_came_before() -> None:
    hosts = Places({node: (10.0 * node, 0.0) for node in range(20)}, 400)
    hosts.wait(7)
    hosts.publish(0, 1)  # everybody passes it on at about the same time
    hosts.wait(6)
    times = [time for time, _ in hosts.sent("beacon", 8)]
    assert len(times) == 20
    assert max(times) - min(times) > 0.5


@given(
    st.tuples(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4)),
    st.none() | st.tuples(st.floats(-100, 100), st.floats(-100, 100)),
    st.floats(1, 500),
    st.floats(0, 0.49),
)
def test_a_reachability_region_has_its_size_and_its_host_safely_inside(
    place: tuple[float, float], velocity: tuple[float, float] | None, side: float, share: float
) -> None:
    region = reachability(place, velocity, side, side * share, 5 * SECOND)
    assert math.isclose(region.x1 - region.x0, side, rel_tol=1e-6)
    assert is_safe(place, region, side * share * 0.999 - 1e-6)
    if velocity is not None and math.hypot(*velocity) > 1:
        x, y = (region.x0 + region.x1) / 2, (region.y0 + region.y1) / 2
        assert (x - place[0]) * velocity[0] + (y - place[1]) * velocity[1] >= -1e-3


# --- Tables -----------------------------------------------------------------------------------------------------------


def event_item(number: int, version: int = 0, left: int = SECOND) -> EventItem:
    return EventItem(1, Event("t", id=number), left, parse_context(HERE), None, version, None)


def test_a_table_keeps_the_newest_version_until_it_expires_or_is_left() -> None:
    table: ItemTable[EventItem] = ItemTable(0, "strict", 30, 2)
    held, _ = table.put(0, event_item(1, 5), (0, 0), 1)
    assert held is not None
    assert held.expires == SECOND
    assert table.put(0, event_item(1, 4), (0, 0), 1)[0] is held
    assert table.put(0, event_item(2, left=0), (0, 0), 1) == (None, None)
    assert table.put(0, event_item(2), (60, 0), 1) == (None, None)
    assert table.put(0, event_item(2), None, 1) == (None, None)
    table.put(0, event_item(2), (0, 0), 1)
    assert table.put(0, event_item(3), (0, 0), 1)[1] == 1
    assert [held.item.key for held in table] == [2, 3]
    assert table.drop(SECOND, (0, 0)) == {}
    assert table.drop(SECOND + 1, (0, 0)) == {2: True, 3: True}


def test_items_of_others_do_not_push_out_own_ones() -> None:
    hosts = Places({node: (10.0 * node, 0.0) for node in range(8)}, 160, {"table": 3})
    hosts.publish(0, 1, lifetime=60)
    for node in range(7):
        hosts.subscribe(node)
        hosts.publish(node, 2, lifetime=60)
        hosts.wait(0.2)
    hosts.publish(7, 3)
    hosts.wait(0.2)
    assert [node for node in range(7) if 3 not in hosts.got(node)] == []
    tables = hosts[0].tables()
    assert (tables["subscriptions held"], tables["events"]) == (1 + 3, 2 + 3)
    hosts.subscribe(0, 2)
    assert {delivery.event.id for delivery in hosts.ports[0].delivered if delivery.subscriptions == (2,)} >= {
        event_id(0, 1),
        event_id(0, 2),
    }


def test_more_own_subscriptions_than_a_table_has_all_get_their_events() -> None:
    hosts = line(table=3)
    for number in range(8):
        hosts.subscribe(4, number)
    hosts.wait(20)
    hosts.publish(0, 1)
    hosts.wait(1)
    assert [delivery.subscriptions for delivery in hosts.ports[4].delivered] == [tuple(range(8))]


# --- Restarts ---------------------------------------------------------------------------------------------------------


def test_persistent_events_survive_a_restart_of_their_publisher() -> None:
    hosts = line()
    hosts.publish(2, 1, lifetime=60, relevant=HERE)
    hosts.publish(2, 2, relevant=HERE)
    hosts.wait(3)
    hosts.restart(2)
    restarted = hosts.now / SECOND
    hosts.wait(3)
    assert {node for _, node in hosts.sent("event-refresh", restarted)} >= {2}
    hosts.subscribe(4, lifetime=100, interest=HERE, publishers="not exists value")  # the publisher is asked
    hosts.wait(3)
    assert hosts.got(4) == [1]


def test_a_publisher_keeps_its_events_until_they_are_over_and_no_more_than_a_table_of_them() -> None:
    hosts = line(table=3)
    for serial in range(1, 8):
        hosts.publish(2, serial, lifetime=30, relevant=HERE)
    hosts.restart(2)
    hosts.wait(1)
    assert hosts[2].tables()["own events"] == 3
    assert sorted(hosts.ports[2].kept) == [f"event/{event_id(2, serial)}" for serial in (5, 6, 7)]
    hosts.wait(32)
    assert hosts.ports[2].kept == {}
    hosts.publish(2, 8, lifetime=2, relevant=HERE)
    kept = dict(hosts.ports[2].kept)
    hosts.wait(5)
    hosts.ports[2].kept = kept
    hosts.restart(2)  # as if it had been down when the event ended
    assert hosts.ports[2].kept == {}
    assert hosts[2].tables()["own events"] == 0


def test_tables_are_bounded() -> None:
    hosts = Places({0: (0.0, 0.0), 1: (100.0, 0.0)}, 160, {"table": 3})
    for serial in range(1, 20):
        hosts.publish(1, serial, lifetime=100, relevant=HERE)
        hosts.wait(0.2)
    assert hosts[0].tables()["events"] == 3
    assert hosts[1].tables()["own events"] == 3


# --- What it refuses, and what strangers say --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Publication(Event("t", id=1), 0, parse_context("speed > 3")), "context of relevance has no region"),
        (
            Subscription(1, EVERYTHING, None, parse_context(f"{HERE} and count(hosts within 300) > 3")),
            "the context of interest may look one hop far, at neighbours",
        ),
        (
            Publication(Event("t", id=1), 0, parse_context(f"{HERE} and max(neighbours.fuel) > 3")),
            "may look at key attributes of neighbours only (none); max(neighbours.fuel) looks at 'fuel'",
        ),
        (
            Subscription(1, EVERYTHING, None, None, parse_context("count(hosts within 5000) > 3")),
            "the publication domain may ask hosts within 1000 m",
        ),
    ],
)
def test_what_the_paper_does_not_allow_is_refused_by_name(asked: Publication | Subscription, said: str) -> None:
    (refusal,) = ENTRY.refusals(asked)
    assert said in refusal


@pytest.mark.parametrize("side", [20.0, 15.0])
def test_a_reachability_region_without_a_safe_place_is_refused(side: float) -> None:
    with pytest.raises(msgspec.ValidationError, match="reachability must be more than twice safe"):
        msgspec.convert({"reachability": side, "safe": 10.0}, ContextParams)
    ContextParams(reachability=20.1, safe=10.0)


def test_key_attributes_that_are_declared_may_be_looked_at() -> None:
    asked = Publication(Event("t", id=1), 0, parse_context(f"{HERE} and max(neighbours.fuel) > 3"))
    assert list(ENTRY.refusals(asked, ContextParams(key_attributes=("fuel",)))) == []


def test_a_match_that_a_stranger_invents_is_not_delivered_unless_it_is_wanted() -> None:
    hosts = line()
    hosts.subscribe(4, lifetime=100, interest=HERE, filter=Filter.where("price", "<", 20))
    for serial, price in ((1, 25), (2, 15)):
        invented = Matched(
            presence=Presence(),
            region=None,
            event=Event.of("t", {"price": price}, id=event_id(9, serial)),
            subscription_domain=None,
            subscriber=4,
            subscription=1,
            event_version=0,
            subscription_version=0,
        )
        hosts[4].receive(hosts.now, 3, invented)
        hosts[4].receive(hosts.now, 3, invented)
    assert hosts.got(4) == [2]


def test_items_of_others_do_not_pass_for_own_ones() -> None:
    item = SubscriptionItem(4, 1, EVERYTHING, SECOND, None, None, 3, None)
    assert item.key == (4, 1)
    assert item.older(10 * SECOND).left == 0
    assert item.older(-5).left == SECOND
