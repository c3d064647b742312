"""What a node has, and what it need not request: remembered sets must not outlive what they were remembered for."""

import pytest

from roamcast.content.event import Event
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.opportunistic.cache import Cache, Held
from roamcast.protocols.opportunistic.catalog import Catalog
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.holdings import Holdings
from roamcast.protocols.testing import RecordingPort

BOTH = frozenset({1, 2})


def holdings(*, remember: bool = True, window: int = 100, capacity: int = 2) -> Holdings:
    catalog = Catalog("wanted", lifetime=10, neighbours=4)
    return Holdings(RecordingPort(), Cache(capacity, 0, "oldest"), catalog, remember=remember, window=window)


def put(holdings: Holdings, *ids: int) -> None:
    for id in ids:
        holdings.put(0, Held(Document(Event.of("news", id=id)), id, 0, 0, True, None, 1), "received")


def test_what_is_here_is_settled() -> None:
    made = holdings()
    assert made.unsettled(BOTH) == BOTH
    put(made, 1)
    assert made.unsettled(BOTH) == {2}
    put(made, 2)
    assert made.unsettled(BOTH) == made.unsettled(BOTH) == set()


@pytest.mark.parametrize("remember", [True, False])
def test_what_was_dropped_is_settled_only_if_it_is_remembered(remember: bool) -> None:
    made = holdings(remember=remember)
    put(made, 1, 2)
    assert made.unsettled(BOTH) == set()
    put(made, 3)  # displaces 1, the oldest
    assert made.unsettled(BOTH) == (set() if remember else {1})


def test_other_interests_settle_nothing() -> None:
    made = holdings()
    put(made, 1, 2)
    assert made.unsettled(BOTH) == set()
    made.interests_changed(LocalSubscriptions(RecordingPort(), 10))
    assert made.unsettled(BOTH) == BOTH


def test_more_than_it_can_remember_is_forgotten() -> None:
    made = holdings(window=2)
    put(made, 1, 2)
    assert made.unsettled(BOTH) == set()
    put(made, 3)
    assert made.unsettled(BOTH) == {1}
