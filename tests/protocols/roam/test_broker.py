"""The rules on small networks, step by step: forwarding, suppression, repair, carrying, hellos, restarts."""

from collections import Counter
from itertools import pairwise

import pytest

from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.catalogue import find
from roamcast.protocols.facts import Decision
from roamcast.protocols.roam.broker import WAIT
from roamcast.protocols.roam.messages import Data, Hello
from roamcast.protocols.testing import Mesh
from roamcast.units import SECOND

ENTRY = find("roam")
CHEAP = Filter.where("price", "<", 20)
KNOWN = 60 * SECOND
"""Long enough for all nodes to have heard of all subscribers."""


def publication(serial: int = 1, node: int = 0, price: int = 5, lifetime: int | None = None) -> Publication:
    return Publication(Event.of("CD", {"price": price}, id=event_id(node, serial)), lifetime)


def line(nodes: int, subscribers: list[int]) -> Mesh:
    mesh = Mesh(ENTRY, range(nodes), [(node, node + 1) for node in range(nodes - 1)])
    for node in subscribers:
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(KNOWN)
    return mesh


def senders(mesh: Mesh) -> list[int]:
    """Who transmitted an event, in order."""
    return [node for _, node, message in mesh.log if isinstance(message, Data)]


def got(mesh: Mesh, node: int) -> list[int]:
    return [delivery.event.id & 0xFFFFFFFF for delivery in mesh.ports[node].delivered]


def hellos(mesh: Mesh, node: int) -> list[int]:
    return [time for time, sender, message in mesh.log if sender == node and isinstance(message, Hello)]


# --- Forwarding -------------------------------------------------------------------------------------------------------


def test_an_event_goes_to_the_subscriber_and_no_farther() -> None:
    mesh = line(6, [3])
    mesh[1].publish(mesh.now, publication())
    mesh.run(mesh.now + SECOND)
    assert senders(mesh) == [1, 2]
    assert [(delivery.hops, delivery.via) for delivery in mesh.ports[3].delivered] == [(2, "roam")]


def test_nothing_is_forwarded_for_those_who_do_not_want_it() -> None:
    mesh = line(5, [])
    mesh[4].subscribe(mesh.now, Subscription(1, CHEAP))
    mesh.run(mesh.now + KNOWN)
    mesh[0].publish(mesh.now, publication(1, price=30))
    mesh.run(mesh.now + SECOND)
    assert senders(mesh) == [0], "the publisher sends, and all who hear it know that nobody wants it"
    mesh[0].publish(mesh.now, publication(2, price=5))
    mesh.run(mesh.now + SECOND)
    assert (senders(mesh), got(mesh, 4)) == ([0, 0, 1, 2, 3], [2])


def between(subscribers: int) -> Mesh:
    """Nodes 1 to 4 hear the publisher, each other and all subscribers, which are numbered from 5."""
    middle, ends = range(1, 5), range(5, 5 + subscribers)
    links = [(0, node) for node in middle] + [(node, end) for node in middle for end in ends]
    mesh = Mesh(ENTRY, range(5 + subscribers), links + [(a, b) for a in middle for b in middle if a < b])
    for node in ends:
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(KNOWN)
    mesh[0].publish(mesh.now, publication())
    mesh.run(mesh.now + SECOND // 2)
    assert all(got(mesh, node) == [1] for node in ends)
    return mesh


def test_one_of_several_nodes_that_are_as_near_forwards() -> None:
    mesh = between(subscribers=4)
    first, second = senders(mesh)
    assert (first, second in range(1, 5)) == (0, True)
    decided = Counter(
        fact.decision for port in mesh.ports.values() for _, fact in port.facts if isinstance(fact, Decision)
    )
    assert decided["suppressed"] == 3


def test_an_event_that_few_want_is_forwarded_by_all_who_are_as_near_up_to_the_fourth_copy() -> None:
    first, *others = senders(between(subscribers=1))
    assert (first, len(others), set(others) <= {1, 2, 3, 4}) == (0, 3, True)


def test_an_event_that_many_want_is_forwarded_by_two_without_a_list_of_them() -> None:
    """Fifty nodes in range of each other, all of which want everything."""
    mesh = Mesh(ENTRY, range(50), [(a, b) for a in range(50) for b in range(a)])
    for node in range(50):
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(KNOWN)
    mesh[0].publish(mesh.now, publication())
    mesh.run(mesh.now + SECOND // 2)
    assert [message.claims == b"" for _, _, message in mesh.log if isinstance(message, Data)] == [False, True, True]


def test_who_reaches_more_subscribers_goes_first() -> None:
    """Node 1 leads to one subscriber, node 2 to three; the publisher hears both."""
    mesh = Mesh(ENTRY, range(7), [(0, 1), (0, 2), (1, 3), (2, 4), (2, 5), (2, 6)])
    for node in (3, 4, 5, 6):
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(KNOWN)
    published = mesh.now
    mesh[0].publish(published, publication())
    mesh.run(mesh.now + SECOND)
    sent = {node: time - published for time, node, message in mesh.log if isinstance(message, Data)}
    assert list(sent) == [0, 2, 1]
    # With 4 and 2 neighbours, which is fewer than 7, they wait for 4/7 and 2/7 of the time.
    assert WAIT * 4 // 7 // 3 <= sent[2] < sent[1]
    assert sent[1] >= WAIT * 2 // 7


def test_where_nothing_is_known_everybody_forwards_who_hears_it_once() -> None:
    mesh = Mesh(ENTRY, range(4), [(0, 1), (1, 2), (2, 3)])
    mesh[0].publish(0, publication())
    mesh.run(SECOND)
    assert sorted(senders(mesh)) == [0, 1, 2, 3]


def test_where_links_are_short_even_those_who_lead_away_forward_what_few_want() -> None:
    """The subscriber is at 3, the publisher at 1; strangers 6 to 9 pass by node 0, each for a few seconds."""
    mesh = Mesh(ENTRY, range(10), [(node, node + 1) for node in range(5)])
    mesh[3].subscribe(0, Subscription(1, EVERYTHING))
    for turn in range(40):
        stranger = 6 + turn % 4
        mesh.link(0, stranger)
        mesh.run(mesh.now + 4 * SECOND)
        mesh.cut(0, stranger)
    mesh[1].publish(mesh.now, publication())
    mesh.run(mesh.now + SECOND // 2)
    assert sorted(senders(mesh)) == [0, 1, 2], "0 leads away; 4 has long links and stays silent, as 3 does"
    assert got(mesh, 3) == [1]


def test_filters_are_known_far_away_because_each_node_asks_the_next() -> None:
    mesh = line(6, [])
    for node in (3, 4, 5):
        mesh[node].subscribe(mesh.now, Subscription(1, Filter.where("price", "<", 10 * node)))
    mesh.run(mesh.now + 2 * KNOWN)
    asked = {key for _, _, message in mesh.log if isinstance(message, Hello) for key in message.unknown}
    assert len(asked) == 3
    mesh[0].publish(mesh.now, publication(price=45))
    mesh.run(mesh.now + SECOND)
    assert ([got(mesh, node) for node in (3, 4, 5)], senders(mesh)) == ([[], [], [1]], [0, 1, 2, 3, 4])
    mesh[0].publish(mesh.now, publication(2, price=95))
    mesh.run(mesh.now + SECOND)
    assert senders(mesh) == [0, 1, 2, 3, 4, 0], "nobody wants it, and all know that"


# --- Repair and carrying ----------------------------------------------------------------------------------------------


def test_a_subscriber_that_was_away_gets_what_its_neighbour_carries() -> None:
    mesh = line(3, [2])
    mesh.cut(1, 2)
    mesh[0].publish(mesh.now, publication())
    mesh.run(mesh.now + 20 * SECOND)
    assert got(mesh, 2) == []
    mesh.link(1, 2)
    mesh.run(mesh.now + 30 * SECOND)
    assert got(mesh, 2) == [1]


def ferried(restart: bool) -> Mesh:
    """Nodes 0 and 2 never meet; node 1 walks from one to the other."""
    mesh = Mesh(ENTRY, range(3), [(0, 1)])
    mesh[2].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(30 * SECOND)
    for serial in (1, 2, 3):
        mesh[0].publish(mesh.now, publication(serial))
        mesh.run(mesh.now + SECOND)
    mesh.cut(0, 1)
    mesh.run(mesh.now + 10 * SECOND)
    if restart:
        mesh.restart(1)
    mesh.link(1, 2)
    mesh.run(mesh.now + 30 * SECOND)
    return mesh


@pytest.mark.parametrize("restart", [False, True])
def test_a_node_that_walks_between_two_carries_events(restart: bool) -> None:
    mesh = ferried(restart)
    assert sorted(got(mesh, 2)) == [1, 2, 3]
    mesh.run(mesh.now + 60 * SECOND)
    assert sorted(got(mesh, 2)) == [1, 2, 3]
    assert [key for port in mesh.ports.values() for key in port.kept if key.startswith("carried/")] == []


@pytest.mark.parametrize(("lifetime", "delivered"), [(9 * SECOND, []), (30 * SECOND, [1])])
def test_nothing_is_delivered_after_its_lifetime(lifetime: int, delivered: list[int]) -> None:
    mesh = line(3, [2])
    mesh.cut(1, 2)
    mesh[0].publish(mesh.now, publication(lifetime=lifetime))
    mesh.run(mesh.now + 10 * SECOND)
    mesh.link(1, 2)
    mesh.run(mesh.now + 60 * SECOND)
    assert got(mesh, 2) == delivered


def test_the_remaining_life_travels() -> None:
    mesh = line(2, [1])
    mesh[0].publish(mesh.now, publication(lifetime=30 * SECOND))
    mesh.run(mesh.now + SECOND)
    mesh[1].subscribe(mesh.now, Subscription(2, EVERYTHING))
    mesh.run(mesh.now + 28 * SECOND)
    mesh[1].subscribe(mesh.now, Subscription(3, EVERYTHING))
    mesh.run(mesh.now + 2 * SECOND)
    mesh[1].subscribe(mesh.now, Subscription(4, EVERYTHING))
    assert [delivery.subscriptions for delivery in mesh.ports[1].delivered] == [(1,), (2,), (3,)]


def test_two_parts_that_meet_exchange_what_they_lack() -> None:
    """Nodes 0 to 2 and 3 to 5, which 2 and 3 connect later; both ends want everything."""
    mesh = Mesh(ENTRY, range(6), [(0, 1), (1, 2), (3, 4), (4, 5)])
    for node in (0, 5):
        mesh[node].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(KNOWN)
    mesh[1].publish(mesh.now, publication(1, 1))
    mesh[4].publish(mesh.now, publication(2, 4))
    mesh.run(mesh.now + 10 * SECOND)
    assert (got(mesh, 0), got(mesh, 5)) == ([1], [2])
    mesh.link(2, 3)
    mesh.run(mesh.now + 40 * SECOND)
    assert (got(mesh, 0), got(mesh, 5)) == ([1, 2], [2, 1])


# --- Hellos -----------------------------------------------------------------------------------------------------------


def test_hellos_die_down_where_nothing_changes() -> None:
    mesh = Mesh(ENTRY, range(2), [(0, 1)])
    mesh[1].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(4000 * SECOND)
    late = [time for time in hellos(mesh, 0) if time >= 3000 * SECOND]
    # Half the root of 900 s, the longest life that is told apart from "for ever", moved by a tenth either way.
    assert all(13.5 * SECOND <= after - before <= 16.5 * SECOND for before, after in pairwise(late))
    assert hellos(mesh, 0)[3] < 30 * SECOND


def test_a_node_that_is_alone_is_nearly_silent() -> None:
    mesh = Mesh(ENTRY, range(1))
    mesh.run(1000 * SECOND)
    late = [time for time in hellos(mesh, 0) if time >= 700 * SECOND]
    assert all(27 * SECOND <= after - before <= 33 * SECOND for before, after in pairwise(late))


def test_a_new_neighbour_is_answered_with_a_hello() -> None:
    mesh = Mesh(ENTRY, range(2), [(0, 1)])
    mesh.run(1000 * SECOND)
    mesh.cut(0, 1)
    mesh.run(2000 * SECOND)
    mesh.link(0, 1)
    mesh.run(2100 * SECOND)
    first, answer = sorted((min(time for time in hellos(mesh, node) if time > 2000 * SECOND), node) for node in (0, 1))
    assert answer[0] - first[0] <= SECOND


def test_who_unsubscribes_is_no_longer_sent_anything() -> None:
    mesh = line(4, [3])
    mesh[3].unsubscribe(mesh.now, 1)
    mesh.run(mesh.now + 2 * KNOWN)
    mesh[0].publish(mesh.now, publication())
    mesh.run(mesh.now + SECOND)
    assert senders(mesh) == [0]
