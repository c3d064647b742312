"""The index against hand-written cases, and against asking every filter in turn."""

import gc
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from content.strategies import constraints, events, filters, scalars
from examples import examples
from roamcast.content.event import TYPE, Event, Scalar
from roamcast.content.filter import EVERYTHING, NOTHING, STRING_ONLY, Constraint, Filter, Operator
from roamcast.content.index import FilterIndex, _ConstraintTable, _SharedConstraint

where = Filter.where


def a_is(*values: Scalar) -> Event:
    return Event.of("t", {"a": values})


def matched(filter: Filter, event: Event) -> bool:
    """The answer for a filter that is held among others like it, so that no table has a single entry."""
    index: FilterIndex[str] = FilterIndex()
    for number in (-5, 0, 3, 2**60):
        for operator in ("=", "!=", "<", "<=", ">", ">="):
            index.add(f"{operator}{number}", where("a", operator, number))
    for text in ("", "k", "kl", "zz"):
        for operator in ("=", "!=", "<", "<=", ">", ">=", "^=", "$=", "*="):
            index.add(f"{operator}{text!r}", where("a", operator, text))
    index.add("it", filter)
    return "it" in index.match(event)


@pytest.mark.parametrize(
    ("filter", "values", "expected"),
    [
        (where("a", "=", 1), (1,), True),
        (where("a", "=", 1), (1.0,), True),
        (where("a", "=", 1), (True,), False),
        (where("a", "=", True), (1,), False),
        (where("a", "=", True), (True,), True),
        (where("a", "=", 1), ("1",), False),
        (where("a", "=", 0.0), (-0.0,), True),
        (where("a", ">=", -0.0), (0,), True),
        (where("a", "<", 0.0), (-0.0,), False),
        (where("a", "=", 2**53 + 1), (float(2**53),), False),
        (where("a", "<=", float(2**53)), (2**53 + 1,), False),
        (where("a", ">", float(2**53)), (2**53 + 1,), True),
        (where("a", "<", math.inf), (2**63 - 1,), True),
        (where("a", "<", math.inf), (math.inf,), False),
        (where("a", "<=", math.inf), (math.inf,), True),
        (where("a", ">", -math.inf), (-(2**63),), True),
        (where("a", ">=", -math.inf), (-math.inf,), True),
        (where("a", "<", 3), (3,), False),
        (where("a", "<=", 3), (3,), True),
        (where("a", ">", 3), (3,), False),
        (where("a", ">=", 3), (3,), True),
        (where("a", "<", "b"), ("a",), True),
        (where("a", "<", "b"), (1,), False),
        (where("a", "<", 5), ("",), False),
        (where("a", "!=", 1), (2,), True),
        (where("a", "!=", 1), (1.0,), False),
        (where("a", "!=", 1), (1, 1.0), False),
        (where("a", "!=", 1), (1, 2), True),
        (where("a", "!=", 1), (1, "x"), False),
        (where("a", "!=", 1), (True,), False),
        (where("a", "!=", True), (False,), True),
        (where("a", "!=", "x"), (1, "y"), True),
        (where("a", "^=", "ab"), ("abc",), True),
        (where("a", "^=", "ab"), ("a",), False),
        (where("a", "^=", "ab"), ("cab",), False),
        (where("a", "^=", ""), ("",), True),
        (where("a", "^=", ""), (1, True), False),
        (where("a", "$=", "bc"), ("abc",), True),
        (where("a", "$=", "bc"), ("bca",), False),
        (where("a", "$=", "bc"), ("c",), False),
        (where("a", "$=", ""), ("abc",), True),
        (where("a", "*=", "b"), ("abc",), True),
        (where("a", "*=", "ac"), ("abc",), False),
        (where("a", "*=", "abcd"), ("abc",), False),
        (where("a", "*=", ""), ("",), True),
        (where("a", "exists"), (False,), True),
        (where("b", "exists"), (1,), False),
        (where(TYPE, "=", "t"), (1,), True),
        (where(TYPE, "^=", "u"), (1,), False),
        # One value for each constraint is enough, and it need not be the same one.
        (where("a", ">", 5) & where("a", "<", 3), (1, 9), True),
        (where("a", ">", 5) & where("a", "<", 3), (4,), False),
        (where("a", "=", 1) & where("a", "=", "x"), ("x", 1), True),
        (where("a", "=", 1) & where("a", "=", 2), (1, 1.0), False),
        (where("a", "=", 1) & where("b", "exists"), (1,), False),
        (where("a", "=", 1) & where("b", "exists") | where("a", "<", 7), (1,), True),
        (EVERYTHING, (1,), True),
        (NOTHING, (1,), False),
    ],
)
def test_rules_of_matching(filter: Filter, values: tuple[Scalar, ...], expected: bool) -> None:
    assert matched(filter, a_is(*values)) is expected


def test_everything_matches_an_event_without_attributes() -> None:
    index: FilterIndex[str] = FilterIndex()
    index.add("everything", EVERYTHING)
    index.add("nothing", NOTHING)
    assert index.match(Event("")) == ["everything"]


def test_a_constraint_that_several_values_satisfy_is_not_two_constraints() -> None:
    index: FilterIndex[int] = FilterIndex()
    index.add(1, where("a", ">", 0) & where("b", "exists") & where("c", "exists"))
    assert index.match(Event.of("t", {"a": (1, 2, 3)})) == []


def test_a_key_is_given_once_though_several_alternatives_hold() -> None:
    index: FilterIndex[int] = FilterIndex()
    index.add(7, where("a", "=", 1) | where("a", "<", 5) | where("a", "exists"))
    assert index.match(a_is(1)) == [7]


def test_keys_come_in_the_order_of_adding_and_a_replaced_one_keeps_its_place() -> None:
    index: FilterIndex[str] = FilterIndex()
    # An event finds these in another order: attribute by attribute, and the bounds sorted.
    index.add("z", where("b", "^=", "x"))
    index.add("y", where("a", "<", 30))
    index.add("x", where("a", "<", 20))
    index.add("w", where("a", "=", 10))
    event = Event.of("t", {"a": 10, "b": "xyz"})
    assert index.match(event) == ["z", "y", "x", "w"]
    index.add("y", where("a", "=", 11))
    assert index.match(event) == ["z", "x", "w"]
    index.add("y", where("a", "=", 10))
    assert index.match(event) == ["z", "y", "x", "w"]
    index.remove("z")
    index.add("z", EVERYTHING)
    assert index.match(event) == ["y", "x", "w", "z"]


def test_keys_are_held_until_removed() -> None:
    index: FilterIndex[str] = FilterIndex()
    index.add("k", NOTHING)
    index.add("k", EVERYTHING)
    assert len(index) == 1
    assert "k" in index
    assert "other" not in index
    index.remove("k")
    assert len(index) == 0
    assert "k" not in index
    with pytest.raises(KeyError):
        index.remove("k")


def test_a_shared_constraint_stays_until_its_last_holder_goes() -> None:
    index: FilterIndex[int] = FilterIndex()
    shared = where("a", "<", 5)
    index.add(1, shared & where("b", "=", 1))
    index.add(2, shared & where("b", "=", 2))
    index.add(3, shared)
    assert index.constraints == 3
    event = Event.of("t", {"a": 4, "b": (1, 2)})
    assert index.match(event) == [1, 2, 3]
    index.remove(3)
    assert index.match(event) == [1, 2]
    index.remove(1)
    assert index.match(event) == [2]
    assert index.constraints == 2
    index.remove(2)
    assert index.constraints == 0


VALUES: dict[Operator, list[Scalar | None]] = {
    operator: [None]
    if operator is Operator.EXISTS
    else [*(() if operator in STRING_ONLY else range(9)), "", "a", "b", "ab", "ba", "abab", "bab"]
    for operator in Operator
}


@pytest.mark.parametrize("operator", [operator for operator in Operator if operator is not Operator.EXISTS])
def test_nothing_is_kept_of_a_removed_filter_while_others_like_it_are_held(operator: Operator) -> None:
    def entries_alive() -> int:
        gc.collect()
        return sum(isinstance(thing, _SharedConstraint) for thing in gc.get_objects())

    index: FilterIndex[int] = FilterIndex()
    before = entries_alive()
    for key, value in enumerate(VALUES[operator]):
        index.add(key, where("a", operator, value))
    assert entries_alive() - before == len(VALUES[operator])
    for key in range(1, len(VALUES[operator])):
        index.remove(key)
    assert entries_alive() - before == 1


@pytest.mark.parametrize(
    ("common", "own"),
    [
        (where(TYPE, "=", "t"), lambda key: where("a", "=", key)),
        (where("a", "exists"), lambda key: where("a", "=", key)),
        (where("a", "!=", -1), lambda key: where("a", "=", key)),
        (where("b", "<", "c"), lambda key: where("a", "=", key)),
        (where("b", "*=", "b"), lambda key: where("b", "^=", f"b{key:03}")),
        (where("b", "^=", "b"), lambda key: where("b", "$=", f"{key:03}b")),
    ],
)
def test_what_all_filters_have_in_common_is_not_an_access(
    common: Filter, own: Callable[[int], Filter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 500 filters one matches; a handful that came before anything was known may be verified in vain."""
    verified = 0
    holds = _ConstraintTable.holds

    def counting(table: _ConstraintTable, entry: _SharedConstraint, values: Sequence[Scalar]) -> bool:
        nonlocal verified
        verified += 1
        return holds(table, entry, values)

    index: FilterIndex[int] = FilterIndex()
    for key in range(500):
        index.add(key, common & own(key))
    monkeypatch.setattr(_ConstraintTable, "holds", counting)
    assert index.match(Event.of("t", {"a": 400, "b": "b400b"})) == [400]
    assert verified <= 10


def test_many_filters_agree_with_one_by_one() -> None:
    """Larger than what hypothesis makes: long sorted lists, and constraints that many filters share."""
    rng = random.Random(20)

    def constraint() -> Constraint:
        operator = rng.choice(list(Operator))
        return Constraint(rng.choice("ab"), operator, rng.choice(VALUES[operator]))

    held = {key: Filter((tuple(constraint() for _ in range(rng.randint(1, 3))),)) for key in range(600)}
    index: FilterIndex[int] = FilterIndex()
    for key, filter in held.items():
        index.add(key, filter)
    for key in rng.sample(range(600), 300):
        del held[key]
        index.remove(key)
    pool = [*range(9), "", "a", "abab", "bba", 4.5, True]
    for _ in range(100):
        event = Event.of("t", {name: rng.choices(pool, k=rng.randint(1, 3)) for name in "ab"})
        assert index.match(event) == [key for key, filter in held.items() if filter.matches(event)]


# All on one attribute, so that constraints are often shared and often hold.
crowded_filters = st.lists(
    st.lists(constraints.map(lambda c: Constraint("price", c.operator, c.value)), max_size=3).map(tuple), max_size=3
).map(lambda alternatives: Filter(tuple(alternatives)))
crowded_events = st.lists(scalars, min_size=1, max_size=3).map(lambda values: Event.of("", {"price": values}))


@settings(max_examples=examples(300))
@given(st.lists(crowded_filters, min_size=1, max_size=12), st.lists(crowded_events, min_size=1, max_size=4))
def test_agrees_with_one_by_one(held: list[Filter], asked: list[Event]) -> None:
    index: FilterIndex[int] = FilterIndex()
    for key, filter in enumerate(held):
        index.add(key, filter)
    for event in asked:
        assert index.match(event) == [key for key, filter in enumerate(held) if filter.matches(event)]


class Changing(RuleBasedStateMachine):
    """Filters are added, replaced and removed; a dict with a loop over it is the model."""

    def __init__(self) -> None:
        super().__init__()
        self.index: FilterIndex[int] = FilterIndex()
        self.model: dict[int, Filter] = {}

    @rule(key=st.integers(0, 9), filter=crowded_filters | filters | st.sampled_from([EVERYTHING, NOTHING]))
    def add(self, key: int, filter: Filter) -> None:
        self.index.add(key, filter)
        self.model[key] = filter

    @rule(key=st.integers(0, 9))
    def remove(self, key: int) -> None:
        if key in self.model:
            del self.model[key]
            self.index.remove(key)
        else:
            with pytest.raises(KeyError):
                self.index.remove(key)

    @rule(event=crowded_events | events)
    def match(self, event: Event) -> None:
        assert self.index.match(event) == [key for key, filter in self.model.items() if filter.matches(event)]

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert len(self.index) == len(self.model)
        assert [key for key in range(10) if key in self.index] == sorted(self.model)
        conjunctions = [conjunction for filter in self.model.values() for conjunction in filter.alternatives]
        different = {constraint for conjunction in conjunctions for constraint in conjunction}
        if () in conjunctions:
            different.add(Constraint(TYPE, Operator.EXISTS))
        assert self.index.constraints == len(different)

    def teardown(self) -> None:
        for key in self.model:
            self.index.remove(key)
        fresh: FilterIndex[int] = FilterIndex()
        assert vars(self.index) | {"_next_serial": 0, "_match": 0} == vars(fresh)


TestChanging = Changing.TestCase
TestChanging.settings = settings(max_examples=examples(100), stateful_step_count=25)
