"""Properties of the mesh on any connected network, soft state, and members that come and go."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocols.odmrp.networks import (
    CONTENTS,
    FILTERS,
    R1,
    R2,
    R4,
    SOURCE,
    TREE,
    WANTED,
    Links,
    cd,
    figure_4,
    filter_of,
    publish,
    received,
    sent,
)
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Node
from roamcast.protocols.odmrp.broker import ENTRY
from roamcast.protocols.odmrp.messages import GroupData, JoinEvent, JoinRequest, JoinTable, Member, Row
from roamcast.protocols.odmrp.tables import Flags, MeshChanged
from roamcast.protocols.testing import Mesh, RecordingPort
from roamcast.units import SECOND

SWITCHES: dict[str, tuple[Any, ...]] = {
    "grouping": ("elements", "digest", "subscription", "source"),
    "request": ("group", "advertisement"),
    "forwarding": ("flag", "summary"),
    "upstream": ("first", "all"),
    "merge": (False, True),
}
"""Those that lose nothing on links that stay: not `unknown = "data"`, nor `request = "event"` with coarse groups."""


@st.composite
def connected(draw: st.DrawFn) -> Links:
    """Links that connect 3 to 8 nodes: a random tree and a few more."""
    nodes = draw(st.integers(3, 8))
    links = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    return links + draw(st.lists(pair, max_size=6))


WISHES = st.sampled_from(
    [
        EVERYTHING,
        Filter.where("category", "=", "jazz"),
        Filter.where("category", "^=", "cl"),
        Filter.where("price", "<", 15),
        Filter.where("category", "=", "jazz") & Filter.where("price", ">=", 15),
        Filter.where("composer", "=", "Bach") | Filter.where("composer", "=", "Davis"),
        Filter.where("category", "=", "pop"),
    ]
)


@given(
    links=connected(),
    parameters=st.fixed_dictionaries({}, optional={name: st.sampled_from(some) for name, some in SWITCHES.items()}),
    wishes=st.lists(WISHES, min_size=8, max_size=8),
    sources=st.integers(1, 2),
    seed=st.integers(0, 3),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_on_links_that_stay_everybody_gets_what_it_wants_once_and_nothing_else(
    links: Links, parameters: dict[str, Any], wishes: list[Filter], sources: int, seed: int
) -> None:
    nodes = 1 + max(max(link) for link in links)
    mesh = Mesh(ENTRY, range(nodes), links, parameters, seed=seed)
    for node in range(nodes):
        mesh[node].subscribe(0, Subscription(1, wishes[node]))
    published: list[Event] = []
    for number in range(1, 25):
        for source in range(sources):
            event = Event.of("CD", CONTENTS[number % 3], id=event_id(source, number))
            published.append(event)
            mesh[source].publish(mesh.now, Publication(event))
        mesh.run(mesh.now + SECOND // 2)
    mesh.run(mesh.now + 8 * SECOND)
    # A source hears of a wish when a Join Request reaches who has it; with groups that are made for the wishes known
    # that far, an event that came before may have gone only to others. Three of each content, and two refreshes.
    settled = 0 if parameters.get("grouping") != "subscription" else 15 * sources
    for node in range(nodes):
        got = [delivery.event.id for delivery in mesh.ports[node].delivered]
        assert len(set(got)) == len(got), "nothing twice"
        assert all(wishes[node].matches(delivery.event) for delivery in mesh.ports[node].delivered)
        assert {e.id for e in published[settled:] if wishes[node].matches(e)} <= set(got), node


# --- Soft state -------------------------------------------------------------------------------------------------------


def forwarders(mesh: Mesh) -> dict[Node, int]:
    """How many groups each node forwards for, by what it has recorded."""
    changes = {
        node: [1 if fact.forwards else -1 for _, fact in port.facts if isinstance(fact, MeshChanged)]
        for node, port in mesh.ports.items()
    }
    return {node: sum(some) for node, some in changes.items() if sum(some)}


def test_when_the_source_falls_silent_the_mesh_expires() -> None:
    mesh = figure_4(grouping="digest")
    publish(mesh, range(1, 4))
    assert forwarders(mesh) == {1: 2, 2: 1, 3: 2}
    mesh.run(mesh.now + 26 * SECOND)
    assert forwarders(mesh) == {}
    quiet = mesh.now
    mesh.run(mesh.now + 60 * SECOND)
    assert [message for time, _, message in mesh.log if time > quiet] == []
    mesh[SOURCE].publish(mesh.now, cd(4))
    mesh.run(mesh.now + SECOND)
    assert sorted(sent(mesh, JoinEvent, quiet)) == list(range(10)), "it begins anew with a Join Request"
    assert received(mesh, R1) == [1, 4]


def test_a_flag_that_join_tables_refresh_stays_one_record() -> None:
    mesh = figure_4(grouping="digest")
    publish(mesh, range(1, 181))
    assert forwarders(mesh) == {1: 2, 2: 1, 3: 2}
    assert len([fact for _, fact in mesh.ports[3].facts if isinstance(fact, MeshChanged)]) == 2


def unsubscribed(**parameters: Any) -> Mesh:  # noqa: ANN401
    """R1 and R2, the only ones behind 1 and 3, want nothing any more, and the source goes on for 40 s."""
    mesh = figure_4(**parameters)
    publish(mesh, range(1, 13))
    for node in (R1, R2):
        mesh[node].unsubscribe(mesh.now, node)
    publish(mesh, range(13, 94))
    return mesh


def test_who_unsubscribes_gets_nothing_more_and_the_forwarders_stop_after_the_timeout() -> None:
    mesh = unsubscribed()
    assert max(received(mesh, R2)) <= 12
    assert forwarders(mesh) == {2: 1}
    recent = mesh.now - 10 * SECOND
    assert set(sent(mesh, GroupData, recent)) == {SOURCE, 2}


def test_who_subscribes_later_tells_the_sources_it_has_heard_of_at_once() -> None:
    mesh = figure_4()
    publish(mesh, range(1, 4))
    late = 9  # R5, who has not wanted any of it
    before = mesh.now
    mesh[late].subscribe(mesh.now, Subscription(77, filter_of(R4)))
    mesh.run(mesh.now + SECOND)
    assert set(sent(mesh, JoinTable, before)) == {late, 4, 2}
    mesh[SOURCE].publish(mesh.now, cd(6))
    mesh.run(mesh.now + SECOND)
    assert received(mesh, late) == [6]
    assert sent(mesh, JoinEvent, before) == [], "it came as data"


def test_a_link_that_breaks_is_healed_by_the_next_join_request() -> None:
    mesh = figure_4([*TREE, (4, R1)])
    publish(mesh, range(1, 4))
    mesh.cut(3, R1)
    publish(mesh, range(4, 31))
    assert received(mesh, R1)[-6:] == [13, 16, 19, 22, 25, 28]
    assert 4 in forwarders(mesh)


# --- Beginnings -------------------------------------------------------------------------------------------------------


def burst(**parameters: Any) -> Mesh:  # noqa: ANN401
    """Six events of one content at one instant, before anybody has said what it wants."""
    mesh = figure_4(**parameters)
    for number in (1, 4, 7, 10, 13, 16):
        mesh[SOURCE].publish(mesh.now, cd(number))
    mesh.run(10 * SECOND)
    return mesh


@pytest.mark.parametrize("unknown", ["hold", "data"])
def test_events_wait_until_the_first_routes_have_formed(unknown: str) -> None:
    mesh = burst(unknown=unknown)
    assert sorted(received(mesh, R1)) == sorted(received(mesh, R2)) == [1, 4, 7, 10, 13, 16]
    assert len([node for node in sent(mesh, JoinEvent) if node == SOURCE]) == 1


def test_data_before_there_are_routes_gets_lost() -> None:
    mesh = burst(unknown="data", settle=0)
    assert received(mesh, R1) == [1]


def test_what_nobody_wants_is_held_and_then_given_up() -> None:
    mesh = figure_4(grouping="digest")
    pop = [Publication(Event.of("CD", {"category": "folk"}, id=event_id(SOURCE, n))) for n in (1, 2, 3)]
    for publication in pop:
        mesh[SOURCE].publish(mesh.now, publication)
    mesh.run(4 * SECOND)
    assert mesh[SOURCE].tables()["held"] == 2
    mesh.run(6 * SECOND)
    assert mesh[SOURCE].tables()["held"] == 0
    assert sent(mesh, GroupData) == []


def test_an_advertisement_goes_ahead_of_the_data() -> None:
    mesh = figure_4(request="advertisement")
    publish(mesh, range(1, 2))
    assert sorted(sent(mesh, JoinRequest)) == list(range(10))
    assert sent(mesh, JoinEvent) == []
    assert [delivery.via for delivery in mesh.ports[R1].delivered] == ["data"]


# --- Ties, and what Join Tables carry ---------------------------------------------------------------------------------


def test_chance_decides_between_equal_neighbours() -> None:
    """Two ways of the same length from 0 to 3, over 1 and over 2."""
    chosen = set()
    for seed in range(12):
        mesh = Mesh(ENTRY, range(4), [(0, 1), (0, 2), (1, 3), (2, 3)], seed=seed)
        mesh[3].subscribe(0, Subscription(1, EVERYTHING))
        mesh[0].publish(0, cd(1))
        mesh.run(SECOND)
        chosen.add(tuple(forwarders(mesh)))
    assert chosen == {(1,), (2,)}


def test_every_neighbour_as_near_as_the_first_can_be_asked_to_forward() -> None:
    mesh = Mesh(ENTRY, range(4), [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], {"upstream": "all"})
    mesh[3].subscribe(0, Subscription(1, EVERYTHING))
    mesh[0].publish(0, cd(1))
    mesh.run(SECOND)
    assert forwarders(mesh) == {1: 1, 2: 1}
    (answer,) = [message for _, node, message in mesh.log if node == 3 and isinstance(message, JoinTable)]
    assert sorted(row.next_hop for row in answer.rows) == [1, 2]


@pytest.mark.parametrize("merge", [False, True])
def test_the_source_is_told_of_all_members_by_name_or_in_one_summary(merge: bool) -> None:
    mesh = figure_4(merge=merge, grouping="digest")
    publish(mesh, range(1, 2))
    told = {
        member.node
        for _, node, message in mesh.log
        if node == 1 and isinstance(message, JoinTable)
        for member in message.members
    }
    assert told == ({1} if merge else {R1, R2})


def star(leaves: int, **parameters: Any) -> Mesh:  # noqa: ANN401
    """A source, beside it a forwarder, and many leaves behind that, all of which want something else."""
    links = [(0, 1), *((1, node) for node in range(2, leaves + 2))]
    mesh = Mesh(ENTRY, range(leaves + 2), links, parameters)
    for node in range(1, leaves + 2):
        mesh[node].subscribe(0, Subscription(1, Filter.where("topic", "=", node)))
    return mesh


@pytest.mark.parametrize("forwarding", ["flag", "summary"])
@pytest.mark.parametrize("leaves", [80, 120])
def test_of_more_members_than_can_be_named_each_gets_what_it_wants(leaves: int, forwarding: str) -> None:
    mesh = star(leaves, grouping="source", forwarding=forwarding)
    for number in range(3 * leaves):
        event = Event.of("T", {"topic": 1 + number % (leaves + 1)}, id=event_id(SOURCE, number + 1))
        mesh[SOURCE].publish(mesh.now, Publication(event))
        mesh.run(mesh.now + SECOND // 8)
    got = [len(mesh.ports[node].delivered) for node in range(1, leaves + 2)]
    assert sum(got) == 3 * leaves
    assert min(got) >= 2
    nobody = Event.of("T", {"topic": 0}, id=event_id(SOURCE, 0xFFFF))
    before = mesh.now
    mesh[SOURCE].publish(mesh.now, Publication(nobody))
    mesh.run(mesh.now + SECOND)
    assert sent(mesh, GroupData, before) == [], "what nobody wants is still not sent"


@pytest.mark.parametrize("parameters", [{"mode": "one-channel"}, {"grouping": "digest"}, {"upstream": "all"}], ids=str)
def test_nothing_is_said_twice_in_answer_to_a_join_request(parameters: dict[str, Any]) -> None:
    for seed in range(8):
        mesh = figure_4([*TREE, (1, 2), (3, 4), (1, R1), (4, R2)], seed=seed, **parameters)
        publish(mesh, range(1, 25))
        said: set[tuple[Any, ...]] = set()
        for _, node, message in mesh.log:
            if isinstance(message, JoinTable):
                about = [(member.node, member.wanted) for member in message.members] or [(node, b"")]
                new = {(node, message.group, row, one) for row in message.rows for one in about}
                assert not new <= said
                said |= new


def test_a_node_that_unsubscribes_before_it_has_answered_does_not_answer() -> None:
    mesh = figure_4(gather=1.0)
    mesh[SOURCE].publish(0, cd(1))
    mesh.run(SECOND // 10)
    for node in FILTERS:
        mesh[node].unsubscribe(mesh.now, node)
    mesh.run(10 * SECOND)
    assert sent(mesh, JoinTable) == []


def test_a_join_table_without_members_does_not_say_that_nothing_is_wanted() -> None:
    mesh = Mesh(ENTRY, range(2), [(0, 1)])
    mesh[0].publish(0, cd(1))
    mesh.run(SECOND)
    (request,) = [message for _, node, message in mesh.log if node == 0 and isinstance(message, JoinRequest)]
    mesh[0].receive(mesh.now, 1, JoinTable(request.group, (Row(0, 0, request.sequence),), ()))
    mesh[0].publish(mesh.now, cd(4))
    mesh.run(2 * SECOND)
    assert sent(mesh, GroupData) == [0]


def test_a_join_table_that_names_nobody_but_its_reader_is_ignored() -> None:
    mesh = Mesh(ENTRY, range(2), [(0, 1)], {"grouping": "source"})
    mesh[0].publish(0, cd(1))
    mesh.run(SECOND)
    (request,) = [message for _, node, message in mesh.log if node == 0 and isinstance(message, JoinRequest)]
    mesh[0].receive(mesh.now, 1, JoinTable(request.group, (Row(0, 0, request.sequence),), (Member(0, b""),)))
    assert mesh[0].tables()["members"] == 0


def test_plain_join_tables_carry_no_subscriptions() -> None:
    mesh = figure_4(mode="one-channel")
    publish(mesh, range(1, 2))
    tables = [message for _, _, message in mesh.log if isinstance(message, JoinTable)]
    assert tables
    assert all(table.members == () for table in tables)


def test_a_join_table_belongs_to_the_refresh_that_it_answers() -> None:
    mesh = figure_4()
    publish(mesh, range(1, 2))
    causes = {message.cause for _, _, message in mesh.log if isinstance(message, JoinRequest | JoinTable)}
    assert causes == {SOURCE << 32 | 1}


def test_who_begins_again_is_heard_again() -> None:
    mesh = figure_4()
    publish(mesh, range(1, 4))
    mesh.restart(SOURCE)
    publish(mesh, range(4, 7))
    for node in FILTERS:
        assert received(mesh, node) == [n for n in range(1, 7) if node in WANTED[(n - 1) % 3]]


def test_a_flag_expires_although_its_timer_rings_late() -> None:
    """As on a device, where a timer never comes at the very nanosecond."""
    port = RecordingPort()
    flags = Flags(port, lifetime=10, capacity=4)
    flags.set(0, group=7, cause=1)
    ((at, _),) = port.timers
    flags.check(at + 3, 7)
    assert len(flags) == 0
    assert [fact for _, fact in port.facts] == [MeshChanged(7, True, 1), MeshChanged(7, False, 0)]


def test_the_timer_of_a_flag_that_made_room_does_not_end_its_successor() -> None:
    port = RecordingPort()
    flags = Flags(port, lifetime=10, capacity=1)
    flags.set(0, group=7, cause=1)
    flags.set(1, group=8, cause=1)
    flags.set(2, group=7, cause=1)  # its first timer, for the flag that is gone, comes before this one expires
    flags.check(11, 7)
    assert flags.is_set(12, 7)
