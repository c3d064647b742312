"""What routing asks of the layer above it: channels, content, attachments that make no sense, and parameters."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.odmrp.networks import CONTENTS, FILTERS, R1, R2, R4, filter_of
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.text import parse_filter
from roamcast.protocols.odmrp import content as content_module
from roamcast.protocols.odmrp.content import Content, about_of, wanted_of
from roamcast.protocols.odmrp.extension import Channels
from roamcast.protocols.odmrp.parameters import Odmrp

EVANS, DAVIS, BACH = (Event.of("CD", content) for content in CONTENTS)


def content(*filters: Filter, node: int = 0, grouping: str = "digest") -> Content:
    one = Content(node, msgspec.convert({"grouping": grouping}, Odmrp), lambda work: None)
    one.change(filters)
    return one


def asked(source: Content, event: Event, *known: bytes) -> tuple[int, bytes]:
    """The group of an event that goes to one, and what its Join Request says."""
    (offer,) = source.offers(event, lambda: known)
    return offer.group, source.about(event, offer, lambda: known)


# --- Channels ---------------------------------------------------------------------------------------------------------


def joined(channels: list[str], *wanted: str) -> list[int]:
    one = Channels(channels)
    one.change([parse_filter(text) for text in wanted])
    return [group for group in range(10) if one.joins(group, b"")]


def test_a_node_joins_the_channel_that_is_its_subscription_or_one_that_covers_it_or_all() -> None:
    channels = ["price < 5", "price < 20", 'category = "jazz"']
    assert joined(channels, "price < 20") == [2]
    assert joined(channels, "price < 20", 'category = "jazz"') == [2, 3]
    assert joined(channels, "price < 10") == [2]
    assert joined(channels, "price > 30") == [1, 2, 3], "it may want what another channel carries"
    assert joined(channels, 'price < 5 or category = "jazz"') == [1, 3], "one for each alternative"
    assert joined(channels, "price < 3 or price < 10 and price > 7") == [2], "one for both"
    assert joined(channels, 'category = "jazz" or price > 30') == [1, 2, 3]
    assert joined(channels) == []
    assert joined([], "price > 30") == [1]


def test_an_event_goes_to_every_channel_that_matches() -> None:
    one = Channels(list(FILTERS.values()))
    assert [[offer.group for offer in one.offers(event, list)] for event in (EVANS, DAVIS, BACH)] == [[1, 2], [2], [4]]


# --- Content ----------------------------------------------------------------------------------------------------------


def test_the_same_content_is_the_same_group_whoever_sends_it() -> None:
    written_otherwise = Event.of("CD", {"price": 18, "composer": "Evans", "category": "jazz"}, payload=b"x", id=9)
    assert asked(content(), EVANS)[0] == asked(content(node=3), written_otherwise)[0]
    assert len({asked(content(), event)[0] for event in (EVANS, DAVIS, BACH)}) == 3


def test_the_same_source_is_the_same_group_whatever_it_sends() -> None:
    source = content(grouping="source")
    assert asked(source, EVANS)[0] == asked(source, BACH)[0] != asked(content(node=1, grouping="source"), EVANS)[0]


def test_prefixes_are_carried_once_somebody_has_asked_for_them() -> None:
    source, member = content(), content(Filter.where("composer", "^=", "Da"))
    group, about = asked(source, EVANS)
    assert member.joins(group, about), "nothing is said of prefixes, so it may be"
    again, fuller = asked(source, EVANS, member.wanted())
    assert again == group
    assert not member.joins(group, fuller)
    assert member.joins(*asked(source, DAVIS, member.wanted()))


def test_a_changed_subscription_changes_the_answer_to_the_same_request() -> None:
    member = content(filter_of(R1))
    request = asked(content(), EVANS)
    assert member.joins(*request)
    member.change([Filter.where("category", "=", "pop")])
    assert not member.joins(*request)
    member.change([])
    assert not member.joins(*request)
    assert member.wanted() == b""


def test_merged_summaries_want_what_one_of_them_wants() -> None:
    one, other = content(filter_of(R1)), content(Filter.where("composer", "=", "Bach"))
    both = one.merge([one.wanted(), other.wanted()])
    assert [content().wants(both, event) for event in (EVANS, DAVIS, BACH)] == [True, False, True]


def test_merged_filters_want_what_one_of_them_wants() -> None:
    members = [content(filter, grouping="subscription") for filter in (filter_of(R1), Filter.where("price", ">", 20))]
    both = members[0].merge([member.wanted() for member in members])
    assert [content().wants(both, event) for event in (EVANS, DAVIS, BACH)] == [True, False, True]


def test_the_group_is_the_least_constrained_subscription_that_is_known() -> None:
    source = content(grouping="subscription")
    evans, jazz = (content(filter_of(node), grouping="subscription") for node in (R1, R2))
    nobody = asked(source, EVANS)[0]
    narrow = asked(source, EVANS, evans.wanted())[0]
    wide, about = asked(source, EVANS, evans.wanted(), jazz.wanted())
    assert len({nobody, narrow, wide}) == 3
    assert asked(source, DAVIS, evans.wanted(), jazz.wanted())[0] == wide, "combined"
    assert evans.joins(wide, about)
    assert jazz.joins(wide, about)
    assert asked(source, EVANS, evans.wanted())[0] == narrow, "and split again when the wider one has gone"


def fresh(event: Event, number: int) -> Event:
    """The event as in Figure 2, with the id and the timestamp that every document has for itself."""
    return Event.of("CD", {**event.attributes, "@id": number, "@timestamp": f"12:00:{number}"}, id=number)


def test_elements_that_no_member_asks_for_make_no_groups() -> None:
    source = content(grouping="elements")
    evans, cheap = content(filter_of(R1)).wanted(), content(Filter.where("price", "<", 15)).wanted()
    for known, groups in (((), 1), ((evans,), 3), ((cheap,), 3), ((evans, cheap), 3)):
        events = [fresh(event, number) for number in range(4) for event in (EVANS, DAVIS, BACH)]
        assert len({asked(source, event, *known)[0] for event in events}) == groups
    davis = [asked(source, fresh(DAVIS, number), evans)[0] for number in range(4)]
    assert len(set(davis)) == 1
    assert len({asked(source, fresh(event, 1), content(filter_of(R2)).wanted())[0] for event in (EVANS, DAVIS)}) == 1


def test_a_node_that_asks_for_another_element_joins_and_is_known_then() -> None:
    source, jazz = content(grouping="elements"), content(filter_of(R2))
    late = content(Filter.where("@timestamp", "=", "12:00:7"))
    group, about = asked(source, fresh(EVANS, 1), jazz.wanted())
    assert late.joins(group, about), "nothing is said about timestamps"
    assert not content(filter_of(R4)).joins(group, about), "but it is about jazz"
    again, fuller = asked(source, fresh(EVANS, 1), jazz.wanted(), late.wanted())
    assert again != group
    assert not late.joins(again, fuller)
    assert late.joins(*asked(source, fresh(EVANS, 7), jazz.wanted(), late.wanted()))


def test_elements_of_another_type_do_not_count() -> None:
    source, other = content(grouping="elements"), content(parse_filter('type = "LP" and price < 5')).wanted()
    assert asked(source, EVANS, other)[0] == asked(source, DAVIS, other)[0]
    anything = content(Filter.where("price", "<", 5)).wanted()
    assert asked(source, EVANS, anything)[0] != asked(source, DAVIS, anything)[0]


def test_merged_with_nothing_said_anything_may_be_wanted() -> None:
    evans = content(filter_of(R1))
    assert evans.wants(evans.merge([evans.wanted(), b""]), BACH)


def test_subscriptions_that_do_not_cover_each_other_are_groups_of_their_own() -> None:
    source = content(grouping="subscription")
    wishes = [content(Filter.where("category", "=", "jazz"), grouping="subscription").wanted()]
    wishes.append(content(Filter.where("price", "<", 15), grouping="subscription").wanted())
    assert [len(source.offers(event, lambda: wishes)) for event in (EVANS, DAVIS, BACH)] == [1, 2, 1]


def test_a_digest_that_is_too_long_is_cut_down_to_the_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_module, "MAX_ATTACHMENT", 4000)
    many = {f"name {number}": tuple(f"value {value}" * 3 for value in range(2)) for number in range(256)}
    event = Event.of("CD", many)
    everything = content(*(Filter.where(name, "^=", "v") & Filter.where(name, "$=", "3") for name in many))
    group, about = asked(content(), event, everything.wanted())
    assert len(about) <= 4000
    assert everything.joins(group, about)


@given(st.binary(max_size=40))
def test_attachments_that_make_no_sense_join_nothing_and_want_nothing(noise: bytes) -> None:
    one = content(EVERYTHING)
    about, wanted = about_of(noise), wanted_of(noise)
    if about is None:
        assert not one.joins(1, noise)
    if wanted is None:
        assert one.wants(noise, EVANS) == (noise == b""), "an empty one does not say what is wanted"
    one.merge([noise, one.wanted()])
    one.offers(EVANS, lambda: [noise])
    one.about(EVANS, one.offers(EVANS, list)[0], lambda: [noise])


# --- Parameters -------------------------------------------------------------------------------------------------------


def test_the_defaults_are_the_papers_where_it_has_any() -> None:
    assert (Odmrp().refresh, Odmrp().timeout) == (5.0, 25.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"refresh": 30.0}, "'timeout' (25 s) must not be below 'refresh' (30 s)"),
        ({"mode": "channels"}, "'channels' goes with mode"),
        ({"channels": ["true"]}, "'channels' goes with mode"),
        ({"mode": "channels", "channels": ["price <"]}, "price <"),
        ({"columns": [""]}, "a column's name is empty"),
        ({"summary": {"bits": 100}}, "'bits' must be a power of two"),
        ({"grouping": "topic"}, "Invalid enum value 'topic'"),
        ({"refresh": 0}, "`float` >= 0.01"),
        ({"spread": 1.0}, "`float` < 1.0"),
        ({"beacon": 1}, "unknown field `beacon`"),
        ({"unknown": "request"}, "Invalid enum value 'request'"),
        ({"grouping": "digest", "request": "event"}, 'request = "event" cannot be combined with grouping = "digest"'),
        (
            {"mode": "one-channel", "forwarding": "summary"},
            "'forwarding' cannot be combined with mode = \"one-channel\"",
        ),
        ({"mode": "one-channel", "request": "event"}, "'request' cannot be combined with mode"),
        (
            {"mode": "channels", "channels": ["true"], "merge": True},
            "'merge' cannot be combined with mode = \"channels\"",
        ),
        ({"mode": "one-channel", "summary": {"bits": 64}}, "'summary' cannot be combined with mode"),
        ({"mode": "one-channel", "grouping": "source"}, "'grouping' cannot be combined with mode"),
        ({"mode": "one-channel", "columns": ["a"]}, "'columns' cannot be combined with mode"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refusal:
        msgspec.convert(wrong, Odmrp)
    assert words in str(refusal.value)
