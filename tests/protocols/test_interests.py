"""Interests, against asking every node's filter about every event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.protocols.interests import Interests

FILTERS = [EVERYTHING, NOTHING, *(Filter.where("n", "<", bound) for bound in range(1, 7))]


def test_nodes_that_want_the_same_are_found_in_the_order_in_which_they_came() -> None:
    interests = Interests()
    for node in (7, 3, 5):
        interests.put(node, EVERYTHING)
    interests.put(7, EVERYTHING)
    assert interests.match(Event("any")) == [7, 3, 5]
    interests.put(7, NOTHING)
    assert interests.match(Event("any")) == [3, 5]
    interests.remove(3)
    assert (interests.match(Event("any")), len(interests)) == ([5], 2)


def test_of_a_stranger_nothing_can_be_forgotten() -> None:
    with pytest.raises(KeyError):
        Interests().remove(7)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.none() | st.sampled_from(FILTERS)), max_size=60),
    st.integers(0, 7),
)
def test_all_are_found_that_want_it_and_nobody_else(steps: list[tuple[int, Filter | None]], value: int) -> None:
    """A step is a node, and what it wants from then on; None: it is forgotten."""
    interests = Interests()
    model: dict[int, Filter] = {}
    for node, filter in steps:
        if filter is not None:
            interests.put(node, filter)
            model[node] = filter
        elif node in model:
            interests.remove(node)
            del model[node]
    event = Event.of("any", {"n": value})
    assert sorted(interests.match(event)) == sorted(node for node, filter in model.items() if filter.matches(event))
    assert len(interests) == len(model)
