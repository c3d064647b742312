"""Pairs that an ideal system would match, and cost, against numbers worked out by hand. Pooling is in the pipeline."""

from analysis.runs import values_of, with_contexts
from roamcast.analysis.measures.contexts import pairs_with_contexts, traffic


def test_pairs_are_those_of_the_ideal() -> None:
    assert values_of(with_contexts("one", 1, 3, 3), pairs_with_contexts) == {
        "context_pairs": 3,
        "context_delivered": 3,
        "context_beyond": 0,
    }
    assert values_of(with_contexts("two", 2, 1, 0), pairs_with_contexts) == {
        "context_pairs": 1,
        "context_delivered": 0,
        "context_beyond": 0,
    }


def test_a_delivery_that_no_instant_justifies_is_beyond_the_ideal() -> None:
    """Host 1 gets an event that it wants only from where nobody is."""
    found = values_of(with_contexts("astray", 1, 2, 1, "within(rect(500, 500, 510, 510))"), pairs_with_contexts)
    assert found == {"context_pairs": 0, "context_delivered": 0, "context_beyond": 1}


def test_a_run_without_contexts_has_none_of_it() -> None:
    plain = with_contexts("plain", 3, 2, 2, None)
    assert set(values_of(plain, pairs_with_contexts).values()) == {None}


def test_cost_is_all_that_was_on_the_air() -> None:
    """But for background traffic."""
    assert values_of(with_contexts("one", 1, 3, 3), traffic) == {
        "mbit": 16,
        "mbit_per_cube": 16 / 8,
        "requests_share": 0.25,
    }
