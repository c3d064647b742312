"""What holds whatever links come and go: over random encounters, against the simplest model of carrying."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from protocols.opportunistic.test_broker import BLUES, JAZZ, news
from roamcast.content.event import event_id
from roamcast.content.subscription import Subscription
from roamcast.protocols.opportunistic.broker import ENTRY
from roamcast.protocols.opportunistic.facts import CacheChanged
from roamcast.protocols.testing import Mesh
from roamcast.units import SECOND

NODES = 5
MEETING = 80 * SECOND
"""Long enough for two who meet to find each other and to exchange all they have, at any scope."""
WANTS = {0: JAZZ, 1: JAZZ, 2: JAZZ | BLUES, 3: BLUES, 4: JAZZ}

PAIRS = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(lambda pair: pair[0] != pair[1])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("meet", "publish", "restart")),
        PAIRS,
        st.sampled_from(("jazz", "blues")),
        st.sampled_from((None, 100, 250)),
    ),
    min_size=2,
    max_size=14,
)
PARAMETERS = st.fixed_dictionaries(
    {
        "scope": st.integers(1, 3),
        "relaying": st.sampled_from(("relays", "flooding")),
        "decide": st.sampled_from(("first", "any")),
        "catalog": st.sampled_from(("wanted", "missing")),
        "asking": st.sampled_from(("everyone", "one")),
        "whole": st.booleans(),
        "remember": st.booleans(),
        "cut": st.booleans(),
    }
)


class Story:
    """A mesh in which two nodes meet at a time, and what must have come of it: a meeting is an exchange."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.mesh = Mesh(ENTRY, range(NODES), (), {"piece": 1000, **parameters})
        self.published: dict[int, tuple[int, str, int | None]] = {}  # when, topic, until when
        self.has: dict[int, set[int]] = {node: set() for node in range(NODES)}
        for node in range(NODES):
            self.subscribe(node)

    def subscribe(self, node: int) -> None:
        self.mesh[node].subscribe(self.mesh.now, Subscription(node, WANTS[node]))

    def publish(self, node: int, topic: str, life: int | None) -> None:
        number = len(self.published) + 1
        publication = news(number, topic, node, 2500, None if life is None else life * SECOND)
        until = None if life is None else self.mesh.now + life * SECOND
        self.published[publication.event.id] = self.mesh.now, topic, until
        self.has[node].add(publication.event.id)
        self.mesh[node].publish(self.mesh.now, publication)

    def meet(self, a: int, b: int) -> None:
        mesh = self.mesh
        mesh.link(a, b)
        mesh.run(mesh.now + MEETING)
        mesh.cut(a, b)
        for one, other in ((a, b), (b, a)):
            for id in sorted(self.has[other]):
                _, _, until = self.published[id]
                if self.wants(one, id) and (until is None or until > mesh.now):
                    self.has[one].add(id)

    def wants(self, node: int, id: int) -> bool:
        return WANTS[node].matches(news(1, self.published[id][1]).event)

    def play(self, steps: list[tuple[str, tuple[int, int], str, int | None]]) -> None:
        for step, (a, b), topic, life in steps:
            if step == "meet":
                self.meet(a, b)
            elif step == "publish":
                self.publish(a, topic, life)
            else:
                self.mesh.restart(a)
                self.subscribe(a)


@given(STEPS, PARAMETERS)
@settings(max_examples=examples(200), deadline=None)
def test_who_meets_a_carrier_gets_what_it_wants_once_and_while_it_lives(
    steps: list[tuple[str, tuple[int, int], str, int | None]], parameters: dict[str, Any]
) -> None:
    story = Story(parameters)
    story.play(steps)
    for node, port in story.mesh.ports.items():
        delivered = [delivery.event.id for delivery in port.delivered]
        assert len(delivered) == len(set(delivered))
        must = {id for id in story.has[node] if story.wants(node, id)}
        assert must <= set(delivered)
        for id in delivered:
            assert story.wants(node, id)
        for at, fact in port.facts:
            if isinstance(fact, CacheChanged) and fact.entered:
                until = story.published[fact.event][2]
                assert until is None or at < until or fact.change == "published"


@given(STEPS, st.integers(1, 3), st.sampled_from(("oldest", "oldest arrival", "least requested", "others first")))
@settings(max_examples=examples(120), deadline=None)
def test_caches_stay_within_their_bounds_and_their_facts_add_up(
    steps: list[tuple[str, tuple[int, int], str, int | None]], capacity: int, policy: str
) -> None:
    story = Story({"capacity": {"0-1": capacity, "others": 2}, "policy": policy, "carry": "everything"})
    story.play(steps)
    for node, port in story.mesh.ports.items():
        here: set[int] = set()
        for _, fact in port.facts:
            if isinstance(fact, CacheChanged):
                if fact.change == "kept":  # of a node that began again
                    here.discard(fact.event)
                (here.add if fact.entered else here.remove)(fact.event)
                assert fact.documents <= (capacity if node < 2 else 2)
        assert story.mesh[node].tables()["documents"] == len(here)
        delivered = [delivery.event.id for delivery in port.delivered]
        assert len(delivered) == len(set(delivered))


def test_an_expired_document_is_never_delivered_however_it_travels() -> None:
    story = Story({"scope": 3})
    story.publish(0, "jazz", 100)
    story.meet(0, 1)  # 80 s: it has 20 s to live
    story.mesh.run(story.mesh.now + 20 * SECOND)
    story.meet(1, 4)
    assert [delivery.event.id for delivery in story.mesh.ports[1].delivered] == [event_id(0, 1)]
    assert story.mesh.ports[4].delivered == []
