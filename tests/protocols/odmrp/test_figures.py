"""The paper's own example: its three events, its filters, and a network as its Figure 4 describes one."""

from typing import Any

import pytest

from protocols.odmrp.networks import (
    CONTENTS,
    FILTERS,
    R1,
    R2,
    R3,
    R4,
    R5,
    SOURCE,
    WANTED,
    cd,
    figure_4,
    filter_of,
    publish,
    received,
    sent,
)
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication
from roamcast.content.summary.digest import EventDigest
from roamcast.content.summary.summary import Summary
from roamcast.content.xml import event_from_xml
from roamcast.content.xpath import filter_from_xpath
from roamcast.protocols.odmrp.messages import GroupData, JoinEvent, JoinTable
from roamcast.protocols.odmrp.tables import MeshChanged
from roamcast.protocols.testing import RecordingPort
from roamcast.units import SECOND

CHANNELS = list(FILTERS.values())


def test_the_filters_are_those_of_figure_3_and_the_events_those_of_figure_2() -> None:
    xpaths = (
        '/CD[category="jazz"][composer="Evans"]',
        '/CD[category="jazz"]',
        '/CD[category="pop"]',
        '/CD[category="classic"][composer="Bach"]',
        '/CD[category="classic" and price<"20"]',
    )
    events = [Event.of("CD", content) for content in CONTENTS]
    xml = "<CD><category>jazz</category><composer>Evans</composer><price>18.00</price></CD>"
    assert event_from_xml(xml).attributes["composer"] == events[0].attributes["composer"]
    for node, xpath in zip(FILTERS, xpaths, strict=True):
        wanted = [filter_from_xpath(xpath).matches(event) for event in events]
        assert wanted == [filter_of(node).matches(event) for event in events]
        assert wanted == [node in receivers for receivers in WANTED]


def test_three_of_the_five_summaries_pass_one_of_the_three_digests() -> None:
    digests = [EventDigest.of(Event.of("CD", content)) for content in CONTENTS]
    passing = [{node for node in FILTERS if Summary.of([filter_of(node)]).passes(digest)} for digest in digests]
    assert passing == list(WANTED)


def test_the_first_message_travels_in_a_join_request_and_builds_the_mesh() -> None:
    mesh = figure_4(grouping="digest")
    publish(mesh, range(1, 2))
    assert sorted(sent(mesh, JoinEvent)) == list(range(10)), "everybody passes it on, receivers too"
    assert set(sent(mesh, JoinTable)) == {1, 3, R1, R2}, "those who want it, and who is on the way"
    assert [(node, change.forwards) for node, port in mesh.ports.items() for change in changes(port)] == [
        (1, True),
        (3, True),
    ]
    assert [(d.hops, d.via) for node in (R1, R2) for d in mesh.ports[node].delivered] == [(3, "join_event")] * 2


def changes(port: RecordingPort) -> list[MeshChanged]:
    return [fact for _, fact in port.facts if isinstance(fact, MeshChanged)]


def test_the_fourth_message_goes_along_the_mesh_and_nowhere_else() -> None:
    mesh = figure_4(grouping="digest")
    publish(mesh, range(1, 4))
    start = mesh.now
    mesh[SOURCE].publish(mesh.now, cd(4))
    mesh.run(mesh.now + SECOND)
    assert sent(mesh, GroupData, start) == [SOURCE, 1, 3]
    assert sent(mesh, JoinEvent, start) == []
    assert mesh.ports[R1].delivered[-1].via == mesh.ports[R2].delivered[-1].via == "data"
    assert received(mesh, R2) == [1, 2, 4]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"mode": "one-channel"},
        {"mode": "channels", "channels": CHANNELS},
        {"grouping": "digest"},
        {"grouping": "subscription"},
        {"grouping": "source"},
        {"request": "advertisement"},
        {"forwarding": "summary"},
        {"forwarding": "summary", "grouping": "source"},
        {"upstream": "all"},
        {"unknown": "data"},
        {"merge": True},
        {"merge": True, "grouping": "subscription", "request": "advertisement"},
        {"summary": {"use_eal": False}},
        {"summary": {"use_aec": False}},
        {"summary": {"use_sec": False}},
        {"summary": {"association": True}},
        {"columns": ["category", "composer", "price"]},
    ],
    ids=str,
)
def test_of_a_hundred_messages_each_receiver_gets_what_it_wants_with_every_switch(parameters: dict[str, Any]) -> None:
    mesh = figure_4(**parameters)
    publish(mesh, range(1, 101))
    for node in FILTERS:
        assert received(mesh, node) == [n for n in range(1, 101) if node in WANTED[(n - 1) % 3]], node
    assert received(mesh, R3) == received(mesh, R5) == []


@pytest.mark.parametrize(("grouping", "requests"), [("digest", 60), ("elements", 16)])
def test_documents_with_an_id_and_a_timestamp_of_their_own_do_not_all_flood(grouping: str, requests: int) -> None:
    """Figure 2 has both in every document. The first Join Request brings the members; then each of three groups, which
    has an event every 1.5 s and refreshes after 5 s, sends one every 6 s: five in 30 s."""
    mesh = figure_4(grouping=grouping, spread=0)
    for number in range(1, 61):
        own = {"@id": f"{number:03}", "@timestamp": f"12:00:{number}"}
        event = Event.of("CD", {**CONTENTS[(number - 1) % 3], **own}, id=event_id(SOURCE, number))
        mesh[SOURCE].publish(mesh.now, Publication(event))
        mesh.run(mesh.now + SECOND // 2)
    mesh.run(mesh.now + SECOND)
    for node in FILTERS:
        assert received(mesh, node) == [n for n in range(1, 61) if node in WANTED[(n - 1) % 3]], node
    assert sent(mesh, JoinEvent).count(SOURCE) == requests


def data_frames(**parameters: Any) -> int:  # noqa: ANN401
    """Frames that carried events as data, of messages 31 to 60: without the beginnings, and a refresh or two."""
    mesh = figure_4(**parameters)
    publish(mesh, range(1, 31))
    start = mesh.now
    publish(mesh, range(31, 61))
    return len(sent(mesh, GroupData, start))


def test_one_channel_sends_every_event_to_every_receiver() -> None:
    """Six transmitters reach all five receivers; the extension needs three, three and two for the three contents."""
    mesh = figure_4(mode="one-channel")
    publish(mesh, range(1, 4))
    start = mesh.now
    mesh[SOURCE].publish(mesh.now, cd(5))
    mesh.run(mesh.now + SECOND)
    assert sorted(sent(mesh, GroupData, start)) == [SOURCE, 1, 2, 3, 4]
    assert data_frames(mode="one-channel") > 1.5 * data_frames()


def test_with_channels_an_event_is_sent_once_for_each_channel_that_matches() -> None:
    mesh = figure_4(mode="channels", channels=CHANNELS)
    publish(mesh, range(1, 4))
    start = mesh.now
    mesh[SOURCE].publish(mesh.now, cd(4))
    mesh.run(mesh.now + SECOND)
    assert sorted(sent(mesh, GroupData, start)) == [SOURCE, SOURCE, 1, 1, 3, 3], "for R1's channel and for R2's"
    assert received(mesh, R1) == [1, 4]
    assert received(mesh, R2) == [1, 2, 4]


def test_with_the_least_constrained_subscription_one_jazz_group_serves_both() -> None:
    mesh = figure_4(grouping="subscription")
    publish(mesh, range(1, 13))
    groups = {
        message.event.id & 0xFFFFFFFF: message.group for _, _, message in mesh.log if isinstance(message, GroupData)
    }
    assert groups[10] == groups[11], "jazz by Evans and by Davis: the subscription to all jazz covers both"
    assert groups[10] != groups[12]


def test_a_join_request_about_one_event_loses_others_of_a_coarser_group() -> None:
    """The group is the source, but its Join Requests are about one event: who wants another one does not answer."""
    mesh = figure_4(grouping="source", request="event", spread=0)
    publish(mesh, range(1, 10))
    assert received(mesh, R4) == [], "the Join Request was about message 1, which R4 does not want"
    assert received(mesh, R1) == [1, 4, 7]
