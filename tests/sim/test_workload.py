"""The workload: the same from the same seed, and what it is asked to be."""

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario.draw import Span
from roamcast.sim.scenario.scenario import check
from roamcast.sim.scenario.workload import Act, PublisherGroup, SubscriberGroup, Workload, acts

S = 1_000_000_000

groups = st.lists(st.integers(1, 4), min_size=1, max_size=3)
Timing = Literal["periodic", "poisson"]
timings: st.SearchStrategy[Timing] = st.sampled_from(("periodic", "poisson"))


def publications(workload: Workload, nodes: int = 2, seed: int = 1, end: int = 100 * S) -> list[Act]:
    return [act for act in acts(workload, nodes, seed, end) if isinstance(act.what, Publication)]


def published_size(size: int) -> int:
    """Of the first event of node 1: 19 bytes bare (array 1, type 6, attributes 1, payload 2, id 9)."""
    act = publications(Workload(publishers=(PublisherGroup(nodes=(1,), rate=1, size=size),)))[0]
    assert isinstance(act.what, Publication)
    return act.what.event.size


@given(subscribing=groups, publishing=groups, timing=timings, seed=st.integers(0, 2**63 - 1))
@settings(max_examples=examples(60), deadline=None)
def test_the_same_seed_gives_the_same_acts_in_order_by_whom_was_asked(
    subscribing: list[int], publishing: list[int], timing: Timing, seed: int
) -> None:
    workload = Workload(
        subscribers=tuple(SubscriberGroup(count=count, filter=("a = 1", "a = 2"), stop=3.0) for count in subscribing),
        publishers=tuple(PublisherGroup(count=count, rate=2, timing=timing) for count in publishing),
    )
    assert not list(workload.problems(24, 5.0))
    made = list(acts(workload, 24, seed, 5 * S))

    assert made == list(acts(workload, 24, seed, 5 * S))
    assert all(a.time <= b.time for a, b in pairwise(made))
    assert all(0 <= act.time < 5 * S and 0 <= act.node < 24 for act in made)

    subscribers = [act.node for act in made if isinstance(act.what, Subscription)]
    publishers = {act.node for act in made if isinstance(act.what, Publication)}
    assert len(subscribers) == len(set(subscribers)) == sum(subscribing)
    assert len(publishers) <= sum(publishing)
    assert timing == "poisson" or len(publishers) == sum(publishing)
    assert not publishers & set(subscribers)

    begun = {act.what.id: act.node for act in made if isinstance(act.what, Subscription)}
    ended = {act.what: act.node for act in made if isinstance(act.what, int)}
    assert begun == ended
    events = [act.what.event.id for act in made if isinstance(act.what, Publication)]
    assert len(events) == len(set(events))


def test_another_seed_gives_other_acts() -> None:
    workload = Workload(subscribers=(SubscriberGroup(count=3),), publishers=(PublisherGroup(count=3, rate=1),))
    first, second = (list(acts(workload, 100, seed, 10 * S)) for seed in (1, 2))
    assert {act.node for act in first} != {act.node for act in second}
    assert {act.time for act in first} != {act.time for act in second}


def test_a_publisher_does_the_same_whoever_else_publishes() -> None:
    alone = Workload(publishers=(PublisherGroup(nodes=(1,), rate=1, timing="poisson"),))
    among = Workload(publishers=(PublisherGroup(nodes=(0, 1), rate=1, timing="poisson"),))
    assert publications(alone) == [act for act in publications(among) if act.node == 1]


def test_periodic_is_even_from_within_the_first_interval() -> None:
    workload = Workload(publishers=(PublisherGroup(nodes=(1,), rate=4, start=10, stop=20),))
    times = [act.time for act in publications(workload)]
    assert len(times) == 40
    assert 10 * S <= times[0] < 10 * S + S // 4
    assert all(abs(b - a - S // 4) <= 1 for a, b in pairwise(times))


def test_poisson_has_its_rate_and_the_spread_of_its_kind() -> None:
    # 5000 expected, standard deviation 71: five of them. Gaps of an exponential have a coefficient of variation of 1.
    workload = Workload(publishers=(PublisherGroup(nodes=(1,), rate=5, timing="poisson"),))
    times = [act.time for act in publications(workload, end=1000 * S)]
    assert 4650 < len(times) < 5350
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert 0.9 < deviation / mean < 1.1


@pytest.mark.parametrize(
    "size", [19, 20, 255, 256, 257, 273, 274, 276, 277, 1000, 65535, 65536, 65537, 65555, 65558, 70000]
)
def test_an_event_has_exactly_the_size_asked_for(size: int) -> None:
    assert published_size(size) == size


@pytest.mark.parametrize("size", [275, 65556, 65557])
def test_where_no_payload_gives_the_size_it_is_a_little_less(size: int) -> None:
    """A payload of 256 bytes takes 257 more than none, and one of 65,536 takes 65,539: these sizes do not exist."""
    assert size - 2 <= published_size(size) < size


def test_content_is_drawn_as_described() -> None:
    described = PublisherGroup(
        nodes=(1,),
        rate=10,
        type="offer",
        attributes={"fixed": "x", "one of": ("a", "b"), "whole": Span(low=1, high=3), "real": Span(low=0, high=0.5)},
    )
    made = publications(Workload(publishers=(described,)))
    events = [act.what.event for act in made if isinstance(act.what, Publication)]
    assert {event.type for event in events} == {"offer"}
    assert {event.attributes["fixed"] for event in events} == {("x",)}
    assert {event.attributes["one of"] for event in events} == {("a",), ("b",)}
    assert {event.attributes["whole"] for event in events} == {(1,), (2,), (3,)}
    reals = [event.attributes["real"][0] for event in events]
    assert all(isinstance(real, float) and 0 <= real <= 0.5 for real in reals)
    assert len(set(reals)) > 900


def test_subscriptions_start_stop_and_have_one_of_the_filters() -> None:
    group = SubscriberGroup(nodes=(4, 2), filter=("a = 1", "b = 2"), start=1, stop=2)
    made = list(acts(Workload(subscribers=(group,)), 5, 1, 10 * S))
    assert [(act.time, act.node) for act in made] == [(S, 2), (S, 4), (2 * S, 2), (2 * S, 4)]
    wanted = [act.what.filter for act in made if isinstance(act.what, Subscription)]
    assert set(wanted) <= {parse_filter("a = 1"), parse_filter("b = 2")}


def test_a_subscription_that_would_stop_after_the_end_just_lasts() -> None:
    made = list(acts(Workload(subscribers=(SubscriberGroup(nodes=(0,), stop=10),)), 1, 1, 10 * S))
    assert len(made) == 1


# --- Subscriptions that change --------------------------------------------------------------------------------------

FILTERS = ("a = 1", "a = 2", "a = 3")
intervals = st.floats(0.5, 20.0)


@given(change=intervals, start=st.floats(0, 5), stop=st.none() | st.floats(6, 40), seed=st.integers(0, 2**63 - 1))
@settings(max_examples=examples(60), deadline=None)
def test_a_node_that_changes_has_one_subscription_at_a_time_and_never_the_same_twice(
    change: float, start: float, stop: float | None, seed: int
) -> None:
    group = SubscriberGroup(nodes=(1, 3), filter=FILTERS, change=change, start=start, stop=stop)
    made = list(acts(Workload(subscribers=(group,)), 4, seed, 30 * S))
    assert made == list(acts(Workload(subscribers=(group,)), 4, seed, 30 * S))
    ids = [act.what.id for act in made if isinstance(act.what, Subscription)]
    assert sorted(ids) == list(range(1, len(ids) + 1))
    for node in (1, 3):
        begun: list[Act] = []
        current: int | None = None
        for act in (act for act in made if act.node == node):
            if isinstance(act.what, Subscription):
                assert current is None
                current = act.what.id
                begun.append(act)
            else:
                assert act.what == current
                current = None
        assert (current is None) == (stop is not None and round(stop * S) < 30 * S)
        wanted = [act.what.filter for act in begun if isinstance(act.what, Subscription)]
        assert all(a != b for a, b in pairwise(wanted))
        times = [act.time for act in begun]
        assert times[0] == round(start * S)
        assert all(time < (stop or 30) * S for time in times)
        assert all(time <= round((start + change) * S) for time in times[1:2])
        assert all(abs(b - a - round(change * S)) <= 1 for a, b in pairwise(times[1:]))


def test_changes_come_as_often_as_asked() -> None:
    """The first within 10 s, then every 10 s up to 100 s: ten, whatever the point of the first interval."""
    group = SubscriberGroup(nodes=(0,), filter=FILTERS, change=10)
    made = list(acts(Workload(subscribers=(group,)), 1, 1, 100 * S))
    assert [type(act.what) for act in made] == [Subscription, *[int, Subscription] * 10]


def test_who_changes_does_not_move_what_others_do() -> None:
    """The stable core, the publications and the first subscriptions are the same with and without changes."""
    publishers = (PublisherGroup(count=2, rate=1),)

    def of(change: float | None) -> list[tuple[object, ...]]:
        groups = (SubscriberGroup(count=3, filter=FILTERS, change=change), SubscriberGroup(count=3, filter=FILTERS))
        made = list(acts(Workload(subscribers=groups, publishers=publishers), 10, 1, 50 * S))
        first = [(act.node, act.what.filter) for act in made if isinstance(act.what, Subscription) and act.time == 0]
        return [*first, *((act.time, act.node, act.what) for act in made if isinstance(act.what, Publication))]

    assert of(5.0) == of(None)


def test_without_disjoint_a_node_may_do_both() -> None:
    workload = Workload(
        subscribers=(SubscriberGroup(count=3),), publishers=(PublisherGroup(count=3, rate=1),), disjoint=False
    )
    assert not list(workload.problems(3, 10.0))
    made = list(acts(workload, 3, 1, 10 * S))
    assert {act.node for act in made if isinstance(act.what, Publication)} == {0, 1, 2}


def test_a_scenario_file_may_ask_for_changes() -> None:
    group = {"count": 2, "filter": list(FILTERS), "change": 30}
    raw = {"nodes": 3, "duration": 5, "area": {"width": 9, "height": 9}, "workload": {"subscribers": [group]}}
    checked = check(raw, "here", Path())
    assert checked.workload.subscribers == (SubscriberGroup(count=2, filter=FILTERS, change=30.0),)


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        (Workload(subscribers=(SubscriberGroup(),)), ("subscribers[0].count", "give either count or nodes")),
        (
            Workload(subscribers=(SubscriberGroup(count=1, nodes=(1,)),)),
            ("subscribers[0].count", "give either count or nodes"),
        ),
        (Workload(subscribers=(SubscriberGroup(count=0),)), ("subscribers[0].count", "0: at least one node")),
        (Workload(subscribers=(SubscriberGroup(count=4),)), ("subscribers", "4 of them, but there are only 3 nodes")),
        (
            Workload(subscribers=(SubscriberGroup(nodes=(3,)),)),
            ("subscribers[0].nodes", "3: nodes are numbered from 0 to 2"),
        ),
        (Workload(subscribers=(SubscriberGroup(nodes=(1, 1)),)), ("subscribers", "node 1 is named more than once")),
        (
            Workload(subscribers=(SubscriberGroup(count=1, start=10),)),
            ("subscribers[0].start", "10 s is not before the end at 10 s"),
        ),
        (
            Workload(subscribers=(SubscriberGroup(count=1, start=2, stop=2),)),
            ("subscribers[0].stop", "2 s is not after the start at 2 s"),
        ),
        (
            Workload(subscribers=(SubscriberGroup(count=1, filter=()),)),
            ("subscribers[0].filter", "an empty list: at least one filter to draw from"),
        ),
        (
            Workload(subscribers=(SubscriberGroup(count=1, filter=("a = 1", "a=1"), change=5),)),
            ("subscribers[0].change", "every 5 s, but there is no other filter to change to"),
        ),
        (
            Workload(subscribers=(SubscriberGroup(count=1, filter=FILTERS, change=0),)),
            ("subscribers[0].change", "0 s: at least 0.001 s between two changes"),
        ),
        (
            Workload(subscribers=(SubscriberGroup(count=1, filter=FILTERS, change=float("nan")),)),
            ("subscribers[0].change", "nan s: at least 0.001 s between two changes"),
        ),
        (
            Workload(subscribers=(SubscriberGroup(count=2),), publishers=(PublisherGroup(count=2, rate=1),)),
            ("publishers", "4 publishers and subscribers, but only 3 nodes; disjoint = false lets a node be both"),
        ),
        (
            Workload(publishers=(PublisherGroup(count=1, rate=1, attributes={"a": Span(low=2, high=1)}),)),
            ("publishers[0].attributes.a", "low 2 is above high 1"),
        ),
        (
            Workload(publishers=(PublisherGroup(count=1, rate=1, attributes={"a": ()}),)),
            ("publishers[0].attributes.a", "an empty list: at least one value to draw from"),
        ),
    ],
)
def test_problems(workload: Workload, problem: tuple[str, str]) -> None:
    assert list(workload.problems(3, 10.0)) == [problem]


def test_contents_come_in_turn_over_drawn_attributes() -> None:
    contents: tuple[dict[str, str | int | float | bool], ...] = ({"a": 1}, {"a": 2, "b": "x"})
    group = PublisherGroup(nodes=(1,), rate=1, attributes={"c": 7}, contents=contents)
    events = [
        act.what.event
        for act in publications(Workload(publishers=(group,)), end=4 * S)
        if type(act.what) is Publication
    ]
    assert [event.attributes for event in events] == [
        {"c": (7,), "a": (1,)},
        {"c": (7,), "a": (2,), "b": ("x",)},
        {"c": (7,), "a": (1,)},
        {"c": (7,), "a": (2,), "b": ("x",)},
    ]
    assert {event.size for event in events} == {256}
    long = PublisherGroup(nodes=(1,), rate=1, contents=({"a": 1}, {"a": "x" * 300}))
    assert [field for field, _ in long.problems(2)] == ["size"]


def test_events_from_xml_files_and_filters_in_xpath(tmp_path: Path) -> None:
    (tmp_path / "jazz.xml").write_text("<CD><category>jazz</category></CD>")
    raw: dict[str, Any] = {
        "nodes": 2,
        "duration": 4,
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1]]},
        "workload": {
            "subscribers": [{"nodes": [1], "xpath": '/CD[category="jazz"]'}],
            "publishers": [{"nodes": [0], "rate": 1.0, "documents": ["jazz.xml", "<CD><category>pop</category></CD>"]}],
        },
    }
    scenario = check(raw, "test", tmp_path)
    (tmp_path / "jazz.xml").unlink()  # the scenario has it inside now
    happened = list(acts(scenario.workload, 2, 1, scenario.end))
    assert isinstance(happened[0].what, Subscription)
    assert happened[0].what.filter == parse_filter('type = "CD" and category = "jazz"')
    events = [act.what.event for act in happened if isinstance(act.what, Publication)]
    assert [event.attributes["category"] for event in events] == [("jazz",), ("pop",)] * 2
    assert events[0].payload == b"<CD><category>jazz</category></CD>"

    def refused(group: int, side: str, **fields: object) -> str:
        changed = msgspec.json.decode(msgspec.json.encode(scenario))
        changed["workload"][side][group] |= fields
        with pytest.raises(ScenarioError) as problem:
            check(changed, "test", tmp_path)
        return str(problem.value)

    assert "none.xml: cannot be read" in refused(0, "publishers", documents=["none.xml"])
    assert "documents: [1]: the document is not well-formed" in refused(0, "publishers", documents=["<a/>", "<a>"])
    assert "attributes: cannot be combined with documents" in refused(0, "publishers", attributes={"a": 1})
    assert "xpath: cannot be combined with a filter" in refused(0, "subscribers", filter="price < 20")
    assert "xpath: " in refused(0, "subscribers", xpath="//CD")
