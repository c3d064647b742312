"""Hint-driven routing: the paper's examples with its node names, its pseudo-code line by line, and what it leaves open.

A hint is written as the number of missed beacons, ten times the paper's. Beacons come every 5 s here, and may be 0.5 s
late: k of them are missed from 5 k + 0.5 s after the last on.
"""

import random
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import INT_MAX, Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Time
from roamcast.protocols.catalogue import find
from roamcast.protocols.hint import MAX_DESTINATIONS, Beacon, Hint, HintBroker, Hinted
from roamcast.protocols.messages import MAX_HOPS
from roamcast.protocols.testing import Delivery, Mesh, RecordingPort, Sent
from roamcast.units import SECOND, seconds

ENTRY = find("hint")
INTERVAL = 5 * SECOND
LATE = SECOND // 2
STEP = 33_333_333
"""A third of a second for a hint of 1, in ten equal parts of whole nanoseconds."""

JAZZ = Filter.where("category", "=", "jazz")
BLUES = Filter.where("category", "=", "blues")
EVENT = Event.of("CD", {"category": "jazz"}, id=7)
ME = 99


class Scripted(random.Random):
    """Draws what the test says, and no more: a broker that draws without need fails it."""

    def __init__(self, *draws: float) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def random(self) -> float:
        return self.draws.pop(0)


def alone(*draws: float, **parameters: Any) -> tuple[HintBroker, RecordingPort]:  # noqa: ANN401  # as in a scenario
    """One broker whose first beacon is due at once, and what it draws later."""
    port = RecordingPort()
    broker = HintBroker(ME, msgspec.convert(parameters, Hint), port, Scripted(0.0, *draws))
    broker.start(0, {})
    port.clear()
    return broker, port


def knows(broker: HintBroker, port: RecordingPort, missed: dict[int, int], wanted: Filter = JAZZ) -> None:
    """Moves the clock on so far that the broker has missed that many beacons of each."""
    began, most = port.now, max(missed.values())
    for node, count in sorted(missed.items(), key=lambda item: -item[1]):
        port.now = began + (most - count) * INTERVAL
        broker.receive(port.now, node, Beacon(wanted))
    port.now = began + most * INTERVAL + LATE
    assert {node: broker.missed(port.now, node) for node in missed} == missed


def hear(broker: HintBroker, port: RecordingPort, destinations: dict[int, int], **fields: Any) -> None:  # noqa: ANN401
    message = Hinted(EVENT, 0, 0, destinations)
    broker.receive(port.now, 1, msgspec.structs.replace(message, **fields))


def waits(port: RecordingPort) -> list[tuple[Time, dict[int, int]]]:
    """What was sent or waits to be: after how long, and with which list."""
    return [
        (sent.at - port.now, sent.message.destinations)
        for sent in port.sent.values()
        if isinstance(sent.message, Hinted)
    ]


def events_on_air(mesh: Mesh, since: Time) -> list[tuple[Time, int, dict[int, int]]]:
    return [
        (time - since, node, message.destinations)
        for time, node, message in mesh.log
        if time >= since and isinstance(message, Hinted)
    ]


# --- The paper's examples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b3_meets_b4", [True, False])
def test_figure_2(b3_meets_b4: bool) -> None:
    """b0 has never met b4; b1 is next to it; b2 missed five of its beacons, and hears b1.

    What b3 knows of b4 the text does not say. Our reading is that it has met it, for else it would be silent in any
    case; whether it still hears b4 or has missed five beacons, zero is not to be bettered.
    """
    b0, b1, b2, b3, b4 = range(5)
    links = [(b0, b1), (b0, b2), (b1, b2), (b1, b3), (b1, b4), (b2, b4), (b3, b4)]
    mesh = Mesh(ENTRY, range(5), links, {"spread": 0.03})
    mesh[b4].subscribe(0, Subscription(1, JAZZ))
    mesh.run(INTERVAL)
    (met,) = [time for time, node, _ in mesh.log if node == b4]
    mesh.cut(b2, b4)
    if not b3_meets_b4:
        mesh.cut(b3, b4)
    now = met + 5 * INTERVAL + LATE
    mesh.run(now)
    assert [mesh[node].missed(now, b4) for node in (b0, b1, b2)] == [None, 0, 5]  # type: ignore[attr-defined]

    mesh[b1].rng, mesh[b2].rng = Scripted(0.2), Scripted(0.0)
    for silent in (b0, b3, b4):
        mesh[silent].rng = Scripted()
    mesh[b0].publish(now, Publication(EVENT))
    mesh.run(now)
    assert events_on_air(mesh, now) == [(0, b0, {})]
    assert waits(mesh.ports[b1]) == [(seconds(0.006), {b4: 0})]
    assert waits(mesh.ports[b2]) == [(5 * STEP, {b4: 5})]

    mesh.run(now + seconds(0.006))
    assert waits(mesh.ports[b2]) == [], "suppressed by b1"
    assert waits(mesh.ports[b3]) == [], "zero is the lowest hint"
    mesh.run(now + SECOND)
    assert events_on_air(mesh, now) == [(0, b0, {}), (seconds(0.006), b1, {b4: 0})]
    assert mesh.ports[b4].delivered == [Delivery(EVENT, (1,), 2, "hinted")]


S, A, B, C, D, E, F, G = range(8)


def figure_4(*more_links: tuple[int, int], **parameters: str) -> tuple[Mesh, Time]:
    """A message of S for A, B and C. The text gives S's hint for C, 0.9, and E's, 0; D's for C is lower than 0.9.

    Our reading of the rest: D has 0.6 for C and 0.5 for A; F has 0.4 for B; G is next to A and B. E and F hear D but
    not each other, since else the one would suppress the other.
    """
    links = [(S, D), (D, E), (D, F), (E, C), (F, G), (G, A), (G, B), *more_links]
    mesh = Mesh(ENTRY, range(8), links, {"spread": 0, **parameters})
    for node in (A, B, C):
        mesh[node].subscribe(0, Subscription(1, JAZZ))
    now = 20 * INTERVAL
    for missed, node, met in ((9, S, C), (6, D, C), (5, D, A), (4, F, B)):
        mesh.run(now - missed * INTERVAL - LATE)
        mesh[node].receive(mesh.now, met, Beacon(JAZZ))
    mesh.run(now)
    mesh[S].publish(now, Publication(EVENT))
    mesh.run(now + SECOND)
    return mesh, now


def test_figure_4() -> None:
    mesh, now = figure_4()
    assert events_on_air(mesh, now) == [
        (0, S, {C: 9}),
        (5 * STEP, D, {C: 6, A: 5}),
        (5 * STEP, E, {C: 0, A: 5}),
        (9 * STEP, F, {C: 6, A: 5, B: 4}),
        (9 * STEP, G, {C: 6, A: 0, B: 0}),
    ]
    reached = {node: [got.hops for got in port.delivered] for node, port in mesh.ports.items()}
    assert reached == {S: [], A: [4], B: [4], C: [3], D: [], E: [], F: [], G: []}


@pytest.mark.parametrize(("suppression", "senders"), [("any", [S, D, E]), ("covered", [S, D, E, F, G])])
def test_figure_4_if_e_and_f_heard_each_other(suppression: str, senders: list[int]) -> None:
    """E's copy says nothing of B, which F knows of: only a suppression that looks at the list lets F speak."""
    mesh, now = figure_4((E, F), suppression=suppression)
    assert [node for _, node, _ in events_on_air(mesh, now)] == senders


# --- Figure 3, line by line -------------------------------------------------------------------------------------------


def test_every_interval_do_broadcast_p() -> None:
    port = RecordingPort()
    broker = HintBroker(ME, Hint(), port, Scripted(0.25))
    broker.start(10, {})
    assert port.timers == [(10 + INTERVAL // 4, "beacon")]
    broker.subscribe(10, Subscription(1, JAZZ))
    for now in (10 + INTERVAL // 4, 10 + 5 * INTERVAL // 4):
        port.clear()
        port.now = now
        broker.timer(now, "beacon")
        assert port.timers == [(now + INTERVAL, "beacon")]
        assert list(port.sent.values()) == [Sent(now, None, Beacon(JAZZ))]


def test_p_is_summarise_st() -> None:
    broker, port = alone()
    broker.subscribe(0, Subscription(1, BLUES))
    broker.subscribe(0, Subscription(2, JAZZ & Filter.where("price", "<", 20)))
    broker.subscribe(0, Subscription(3, JAZZ))
    broker.timer(0, "beacon")
    assert port.messages == [Beacon(BLUES | JAZZ)]


def test_the_summary_keeps_to_its_budget_and_forgets_nothing() -> None:
    broker, port = alone(summary=64)
    wanted = [Filter.where("price", "=", 1000 * number) for number in range(100)]
    for number, filter in enumerate(wanted):
        broker.subscribe(0, Subscription(number, filter))
    broker.timer(0, "beacon")
    (beacon,) = port.messages
    assert isinstance(beacon, Beacon)
    assert len(msgspec.msgpack.encode(beacon.filter)) <= 64
    assert all(beacon.filter.matches(Event.of("CD", {"price": 1000 * number})) for number in range(100))


def test_cleanup_ht() -> None:
    broker, _ = alone()
    broker.receive(0, 1, Beacon(JAZZ))
    broker.receive(1, 2, Beacon(JAZZ))
    broker.timer(11 * INTERVAL + LATE - 1, "beacon")
    assert list(broker._table) == [1, 2]
    broker.timer(11 * INTERVAL + LATE, "beacon")
    assert list(broker._table) == broker._interests.match(EVENT) == [2]


def test_predicate_received_from_a_known_node_replaces_and_refreshes() -> None:
    broker, port = alone(0.0)
    knows(broker, port, {4: 3}, BLUES)
    hear(broker, port, {})
    assert waits(port) == []
    broker.receive(port.now, 4, Beacon(JAZZ))
    hear(broker, port, {}, event=msgspec.structs.replace(EVENT, id=8))
    assert waits(port) == [(0, {4: 0})]


def test_predicate_received_from_another_node_is_appended() -> None:
    broker, port = alone(0.0)
    knows(broker, port, {4: 2, 5: 1})
    hear(broker, port, {})
    assert waits(port) == [(STEP, {4: 2, 5: 1})]


def test_already_received_is_descheduled_and_dropped() -> None:
    broker, port = alone(0.0, credits=3)
    broker.subscribe(0, Subscription(1, JAZZ))
    knows(broker, port, {4: 3})
    hear(broker, port, {})
    assert waits(port) == [(3 * STEP, {ME: 0, 4: 3})]
    hear(broker, port, {}, credit=5, hops=3)
    hear(broker, port, {}, credit=5, hops=3)
    assert waits(port) == []
    assert port.delivered == [Delivery(EVENT, (1,), 1, "hinted")]
    assert port.notes == {"duplicate": 2}


@pytest.mark.parametrize(("early", "sent"), [(1, 0), (0, 1), (-1, 1)])
def test_already_received_counts_until_the_delay_has_elapsed(early: Time, sent: int) -> None:
    broker, port = alone(0.0)
    knows(broker, port, {4: 3})
    hear(broker, port, {})
    port.now += 3 * STEP - early
    hear(broker, port, {4: 0})
    assert len(waits(port)) == sent


def test_a_matching_subscription_gets_it_and_sets_the_own_hint_to_0() -> None:
    broker, port = alone(0.0)
    broker.subscribe(0, Subscription(1, BLUES))
    broker.subscribe(0, Subscription(2, JAZZ))
    knows(broker, port, {4: 1})
    hear(broker, port, {ME: 6})
    assert port.delivered == [Delivery(EVENT, (2,), 1, "hinted")]
    assert waits(port) == [(STEP, {ME: 0, 4: 1})]


def test_the_own_hint_alone_is_no_reason_to_pass_on() -> None:
    broker, port = alone()
    broker.subscribe(0, Subscription(1, JAZZ))
    knows(broker, port, {ME: 0})
    hear(broker, port, {ME: 6})
    assert port.delivered
    assert waits(port) == []


def test_a_beacon_in_the_own_name_is_no_reason_to_pass_on() -> None:
    broker, port = alone()
    knows(broker, port, {ME: 0})
    hear(broker, port, {})
    assert waits(port) == []


def test_the_message_that_was_heard_is_not_changed() -> None:
    broker, port = alone(0.0)
    broker.subscribe(0, Subscription(1, JAZZ))
    knows(broker, port, {4: 1})
    heard = {4: 2}
    hear(broker, port, heard)
    assert waits(port) == [(STEP, {4: 1, ME: 0})]
    assert heard == {4: 2}


@pytest.mark.parametrize("missed", range(1, 11))
def test_hint_for_counts_a_beacon_once_it_is_too_late(missed: int) -> None:
    """At ten the node stays, with the paper's hint of 1.0."""
    broker, _ = alone()
    broker.receive(3, 4, Beacon(JAZZ))
    due = 3 + missed * INTERVAL + LATE
    assert (broker.missed(due - 1, 4), broker.missed(due, 4)) == (missed - 1, missed)


def test_hint_for_is_infinite_when_more_than_ten_were_missed_or_none_was_heard() -> None:
    broker, port = alone()
    broker.receive(3, 4, Beacon(JAZZ))
    gone = 3 + 11 * INTERVAL + LATE
    assert (broker.missed(gone - 1, 4), broker.missed(gone, 4)) == (10, None)
    assert broker.missed(3, 5) is None
    port.now = gone
    hear(broker, port, {})
    assert waits(port) == [], "although it is still in the table: no beacon was due since"


@pytest.mark.parametrize("life", [1, 5, 9])
def test_an_entry_goes_after_so_many_missed_beacons(life: int) -> None:
    broker, port = alone(life=life)
    broker.receive(0, 4, Beacon(JAZZ))
    gone = (life + 1) * INTERVAL + LATE
    assert (broker.missed(gone - 1, 4), broker.missed(gone, 4)) == (life, None)
    broker.timer(gone - 1, "beacon")
    assert broker.tables()["hints"] == 1
    broker.timer(gone, "beacon")
    assert broker.tables()["hints"] == 0
    assert port.messages == [], "nothing is wanted here"


@pytest.mark.parametrize(("draw", "after"), [(0.0, 4 * SECOND), (0.5, 5 * SECOND), (0.75, 5.5 * SECOND)])
def test_beacons_are_moved_by_the_jitter_either_way(draw: float, after: float) -> None:
    broker, port = alone(draw, jitter=0.2)
    broker.timer(7, "beacon")
    assert port.timers == [(7 + after, "beacon")]


@pytest.mark.parametrize(("tolerance", "late"), [(0.0, 0), (0.1, SECOND // 2), (0.5, 5 * SECOND // 2)])
def test_hint_for_forgives_the_tolerance(tolerance: float, late: Time) -> None:
    broker, _ = alone(tolerance=tolerance)
    broker.receive(0, 4, Beacon(JAZZ))
    assert (broker.missed(INTERVAL + late - 1, 4), broker.missed(INTERVAL + late, 4)) == (0, 1)


@pytest.mark.parametrize(
    ("wanted", "destinations", "passed"),
    [
        (JAZZ, {}, True),  # matches, new
        (JAZZ, {4: 4}, True),  # matches, lower
        (JAZZ, {4: 3}, False),  # matches, the same
        (JAZZ, {4: 2}, False),  # matches, higher
        (BLUES, {}, False),  # new, but matches not
        (BLUES, {4: 4}, False),  # lower, but matches not: `(matches and new) or lower` would pass it on
    ],
)
def test_matches_and_either_new_or_lower(wanted: Filter, destinations: dict[int, int], passed: bool) -> None:
    broker, port = alone(*([0.0] if passed else []))
    knows(broker, port, {4: 3}, wanted)
    hear(broker, port, destinations)
    assert waits(port) == ([(3 * STEP, {4: 3})] if passed else [])


def test_min_hint_is_the_lowest_of_those_that_gave_a_reason() -> None:
    broker, port = alone(0.0)
    knows(broker, port, {4: 7, 5: 4, 6: 2, 8: 0})
    hear(broker, port, {4: 9, 6: 2, 8: 0, 77: 1})
    assert waits(port) == [(4 * STEP, {4: 7, 6: 2, 8: 0, 77: 1, 5: 4})]


def test_credit_is_spent_when_nothing_matched_with_the_delay_of_hint_1() -> None:
    broker, port = alone(0.0)
    hear(broker, port, {4: 0}, credit=3, hops=6)
    assert list(port.sent.values()) == [Sent(10 * STEP, None, Hinted(EVENT, 7, 2, {4: 0}))]


def test_credit_is_kept_when_something_matched() -> None:
    broker, port = alone(0.0)
    knows(broker, port, {4: 0})
    hear(broker, port, {}, credit=3)
    assert port.messages == [Hinted(EVENT, 1, 3, {4: 0})]


def test_without_credit_nothing_is_scheduled_when_nothing_matched() -> None:
    broker, port = alone(credits=5)
    hear(broker, port, {}, credit=0)
    assert port.messages == []


@pytest.mark.parametrize(("draw", "extra"), [(0.0, 0), (0.25, 5_000_000), (0.75, 15_000_000)])
def test_scheduled_after_a_third_of_min_hint_and_a_random_delay(draw: float, extra: Time) -> None:
    broker, port = alone(draw, spread=0.02)
    knows(broker, port, {4: 6})
    hear(broker, port, {})
    assert waits(port) == [(6 * STEP + extra, {4: 6})]


@pytest.mark.parametrize("known", [{}, {4: 6, 5: 10}])
def test_the_publisher_sends_at_once_with_what_it_knows_and_its_credits(known: dict[int, int]) -> None:
    broker, port = alone(credits=2)
    broker.subscribe(0, Subscription(1, JAZZ))
    if known:
        knows(broker, port, known)
    broker.publish(port.now, Publication(EVENT))
    hear(broker, port, {})
    assert list(port.sent.values()) == [Sent(port.now, None, Hinted(EVENT, 0, 2, {ME: 0, **known}))]
    assert port.delivered == [Delivery(EVENT, (1,), 0, "local")]


HINTS = st.dictionaries(st.integers(1, 6), st.integers(0, 10), max_size=6)


@given(HINTS, HINTS, HINTS, st.integers(0, 2), st.booleans())
def test_forward_is_figure_3(
    jazz: dict[int, int], blues: dict[int, int], destinations: dict[int, int], credit: int, subscribed: bool
) -> None:
    """Against the pseudo-code as it is printed, with the brackets that section 4 means, and fractions for hints."""
    table = {node: (BLUES, missed) for node, missed in blues.items()}
    table |= {node: (JAZZ, missed) for node, missed in jazz.items()}
    broker, port = alone(0.0)
    port.now = 10 * INTERVAL + LATE
    for node, (wanted, missed) in sorted(table.items(), key=lambda row: -row[1][1]):
        broker.receive((10 - missed) * INTERVAL, node, Beacon(wanted))
    if subscribed:
        broker.subscribe(port.now, Subscription(1, JAZZ))

    carried = {node: Fraction(missed, 10) for node, missed in destinations.items()}
    if subscribed:
        carried[ME] = Fraction(0)
    min_hint, matched, left = Fraction(1), False, credit
    for node, (wanted, missed) in table.items():
        h = Fraction(missed, 10)
        if wanted == JAZZ and (node not in carried or h < carried[node]):
            matched = True
            carried[node] = h
            min_hint = min(min_hint, h)
    if not matched and left > 0:
        left, matched = left - 1, True

    hear(broker, port, destinations, credit=credit)
    expected = Hinted(EVENT, 1, left, {node: int(10 * h) for node, h in carried.items()})
    assert list(port.sent.values()) == ([Sent(port.now + int(10 * min_hint) * STEP, None, expected)] if matched else [])


# --- Beacons: who, and when -------------------------------------------------------------------------------------------


def beacons(broker: HintBroker, port: RecordingPort, intervals: int) -> list[Filter]:
    """What the beacons of the next intervals say."""
    port.clear()
    for _ in range(intervals):
        port.now += INTERVAL
        broker.timer(port.now, "beacon")
    return [message.filter for message in port.messages if isinstance(message, Beacon)]


def test_subscribers_beacon_and_say_once_that_they_are_none_any_more() -> None:
    broker, port = alone()
    assert beacons(broker, port, 2) == []
    broker.subscribe(port.now, Subscription(1, JAZZ))
    assert beacons(broker, port, 2) == [JAZZ, JAZZ]
    broker.unsubscribe(port.now, 1)
    assert beacons(broker, port, 3) == [NOTHING]


def test_who_subscribes_and_leaves_between_two_beacons_says_nothing() -> None:
    broker, port = alone()
    broker.subscribe(port.now, Subscription(1, JAZZ))
    broker.unsubscribe(port.now, 1)
    assert beacons(broker, port, 2) == []


def test_with_beaconing_of_all_everyone_beacons_always() -> None:
    broker, port = alone(beaconing="all")
    assert beacons(broker, port, 2) == [NOTHING, NOTHING]
    broker.subscribe(port.now, Subscription(1, JAZZ))
    assert beacons(broker, port, 1) == [JAZZ]
    broker.unsubscribe(port.now, 1)
    assert beacons(broker, port, 2) == [NOTHING, NOTHING]


def test_a_changed_subscription_takes_effect_with_the_next_beacon() -> None:
    broker, port = alone()
    broker.subscribe(port.now, Subscription(1, JAZZ))
    assert beacons(broker, port, 1) == [JAZZ]
    broker.subscribe(port.now, Subscription(1, BLUES))
    assert port.messages == [Beacon(JAZZ)], "nothing is said before the beacon is due"
    assert beacons(broker, port, 1) == [BLUES]
    broker.subscribe(port.now, Subscription(2, JAZZ))
    assert beacons(broker, port, 1) == [BLUES | JAZZ]


def test_others_no_longer_send_to_whoever_said_it_wants_nothing() -> None:
    broker, port = alone()
    knows(broker, port, {4: 0})
    broker.receive(port.now, 4, Beacon(NOTHING))
    hear(broker, port, {})
    assert waits(port) == []


# --- Suppression by what the copy covers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copy", "left"),
    [
        ({4: 3, 5: 6}, []),  # as near as this broker
        ({4: 0, 5: 0, 6: 0}, []),  # nearer, and more
        ({4: 0}, [(3 * STEP, {4: 3, 5: 6})]),  # 5 is missing
        ({4: 0, 5: 7}, [(3 * STEP, {4: 3, 5: 6})]),  # farther from 5
    ],
)
def test_covered_cancels_only_if_the_copy_leaves_nothing_to_improve(
    copy: dict[int, int], left: list[tuple[Time, dict[int, int]]]
) -> None:
    broker, port = alone(0.0, suppression="covered")
    knows(broker, port, {4: 3, 5: 6})
    hear(broker, port, {})
    hear(broker, port, copy)
    assert waits(port) == left


def test_covered_cancels_what_had_no_reason_but_credit() -> None:
    broker, port = alone(0.0, suppression="covered")
    hear(broker, port, {}, credit=1)
    assert len(waits(port)) == 1
    hear(broker, port, {}, credit=1)
    assert waits(port) == []


# --- Bounds, and strangers --------------------------------------------------------------------------------------------


def test_who_is_evicted_from_a_full_table_is_no_destination_any_more() -> None:
    broker, port = alone(table=3)
    for node in (1, 2, 3, 1, 4, 5):
        broker.receive(0, node, Beacon(JAZZ))
    assert list(broker._table) == [1, 4, 5]
    assert len(broker._interests) == 3
    broker.publish(0, Publication(EVENT))
    assert port.messages == [Hinted(EVENT, 0, 0, {1: 0, 4: 0, 5: 0})]


def test_what_waits_is_remembered_for_as_many_events_as_the_window_has() -> None:
    broker, port = alone(*[0.0] * 5, window=3)
    knows(broker, port, {4: 2})
    for number in range(1, 6):
        hear(broker, port, {}, event=msgspec.structs.replace(EVENT, id=number))
    assert list(broker._scheduled) == [3, 4, 5]


def test_ids_that_no_node_has_are_carried_along() -> None:
    broker, port = alone(0.0)
    foreign = {-1: 0, 2**64 - 1: 10, 12345: 5}
    knows(broker, port, {4: 0})
    hear(broker, port, foreign, hops=MAX_HOPS)
    (message,) = port.messages
    assert message == Hinted(EVENT, MAX_HOPS, 0, {**foreign, 4: 0})
    assert ENTRY.codec().decode(ENTRY.codec().encode(message)) == message


def test_to_a_full_list_nobody_is_added_but_hints_on_it_get_lower() -> None:
    full = {1000 + number: 10 for number in range(MAX_DESTINATIONS)}
    broker, port = alone(0.0)
    broker.subscribe(0, Subscription(1, JAZZ))
    knows(broker, port, {4: 0, 1000: 2})
    hear(broker, port, full)
    (message,) = port.messages
    assert message == Hinted(EVENT, 1, 0, {**full, 1000: 2}), "neither 4 nor the broker itself is on it"
    assert waits(port)[0][0] == 2 * STEP, "4, which is nearer, gave no reason"
    assert ENTRY.codec().decode(ENTRY.codec().encode(message)) == message
    assert port.delivered == [Delivery(EVENT, (1,), 1, "hinted")]


def test_a_publisher_that_knows_more_than_a_list_holds_names_as_many_as_fit() -> None:
    broker, port = alone(table=2 * MAX_DESTINATIONS)
    broker.subscribe(0, Subscription(1, JAZZ))
    for node in range(1000, 1000 + 2 * MAX_DESTINATIONS):
        broker.receive(0, node, Beacon(JAZZ))
    broker.publish(0, Publication(EVENT))
    assert waits(port) == [(0, {ME: 0, **dict.fromkeys(range(1000, 1000 + MAX_DESTINATIONS - 1), 0)})]


@pytest.mark.parametrize("sender", [INT_MAX + 1, 2**64])
def test_a_sender_whose_id_no_frame_can_hold_is_not_put_into_the_table(sender: int) -> None:
    broker, port = alone()
    broker.receive(0, sender, Beacon(EVERYTHING))
    broker.publish(0, Publication(EVENT))
    assert waits(port) == [(0, {})]


# --- Parameters -------------------------------------------------------------------------------------------------------


def test_parameters() -> None:
    paper = {"interval": 5.0, "credits": 0, "life": 10}
    ours = {"beaconing": "subscribers", "jitter": 0.0, "tolerance": 0.1, "spread": 0.03, "suppression": "any"}
    bounds = {"summary": 256, "table": 1024, "window": 4096, "delivered": 1024}
    assert msgspec.to_builtins(Hint()) == {**paper, **ours, **bounds}


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval": 0},
        {"tolerance": 1},
        {"tolerance": -0.1},
        {"credits": -1},
        {"credits": 256},
        {"spread": -1},
        {"beaconing": "none"},
        {"suppression": "some"},
        {"table": 0},
        {"window": 0},
        {"p": 1},
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Hint)
