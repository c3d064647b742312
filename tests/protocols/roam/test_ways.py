"""Distances: learned from neighbours, outdated with time, bounded."""

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.protocols.roam.messages import FARTHEST, MAX_ASKED, MAX_LISTED, names, unpack
from roamcast.protocols.roam.ways import HOPS_PER_LIFE, NEAREST, NOBODY, SHORT, Ways, filter_key
from roamcast.units import SECOND

ALL = filter_key(EVERYTHING)
CHEAP = Filter.where("price", "<", 20)
DEAR, BARGAIN = Event.of("CD", {"price": 30}), Event.of("CD", {"price": 5})
LIFE = 40.0
"""Of a link, s: in it a distance grows by `HOPS_PER_LIFE`."""
PER_HOP = round(LIFE / HOPS_PER_LIFE * SECOND)


def ways(capacity: int = 64) -> Ways:
    made = Ways(999, capacity)
    made.age(0, LIFE, dense=False)
    made.learn_filters({ALL: EVERYTHING})
    return made


def distances(some: Ways, now: int) -> dict[int, float]:
    return {key: distance for entries in some.listed(now).values() for key, distance in unpack(entries).items()}


def test_a_distance_is_a_neighbours_and_one_more_and_grows() -> None:
    some = ways()
    some.learn(0, {1: 0, 2: 2.5}, ALL)
    assert distances(some, 0) == {1: 1.0, 2: 3.5}
    assert distances(some, PER_HOP // 2) == {1: 1.5, 2: 4.0}


def test_a_shorter_one_is_taken_and_a_longer_one_when_the_known_one_is_outdated() -> None:
    some = ways()
    some.learn(0, {1: 3}, ALL)
    some.learn(0, {1: 1}, ALL)
    some.learn(0, {1: 2}, ALL)
    assert distances(some, 0) == {1: 2.0}
    some.learn(PER_HOP, {1: 2}, ALL)
    assert distances(some, PER_HOP) == {1: 3.0}
    some.learn(2 * PER_HOP, {1: 2.5}, ALL)
    assert distances(some, 2 * PER_HOP) == {1: 3.5}, "4 by now without it"


def test_two_nodes_that_repeat_each_other_do_not_keep_a_subscriber_alive() -> None:
    one, other = ways(), ways()
    one.learn(0, {1: 0}, ALL)
    for step in range(1, 40):
        now = step * PER_HOP // 2
        for teller, listener in ((one, other), (other, one)):
            for filter, entries in teller.listed(now).items():
                listener.learn(now, unpack(entries), filter)
        for some in (one, other):
            some.age(now, LIFE, dense=False)
    assert (len(one), len(other)) == (0, 0)


def test_a_change_of_growth_changes_no_distance() -> None:
    some = ways()
    some.learn(0, {1: 1}, ALL)
    some.age(PER_HOP, 10 * LIFE, dense=False)
    assert distances(some, PER_HOP) == {1: 3.0}
    assert distances(some, 6 * PER_HOP) == {1: 3.5}


def test_what_is_too_far_is_forgotten() -> None:
    some = ways()
    some.learn(0, {1: 0}, ALL)
    some.age(round((FARTHEST - 1.1) * PER_HOP), LIFE, dense=False)
    assert len(some) == 1
    some.age(round((FARTHEST - 0.9) * PER_HOP), LIFE, dense=False)
    assert (len(some), some.wanting(DEAR)) == (0, {})


def test_who_wants_what_and_an_unknown_filter_may_want_anything() -> None:
    some = ways()
    some.learn(0, {1: 0}, ALL)
    some.learn(0, {2: 0}, filter_key(CHEAP))
    assert (list(some.wanting(DEAR)), some.wants(2, DEAR), some.wants(3, DEAR)) == ([1, 2], True, False)
    some.learn_filters({filter_key(CHEAP): CHEAP})
    assert (list(some.wanting(DEAR)), some.wants(2, DEAR), list(some.wanting(BARGAIN))) == ([1], False, [1, 2])


def test_a_filter_under_the_wrong_key_is_ignored() -> None:
    some = ways()
    some.learn(0, {2: 0}, 77)
    some.learn_filters({77: CHEAP, NOBODY: EVERYTHING})
    assert list(some.wanting(DEAR)) == [2]


def test_a_subscriber_that_changes_its_mind_or_unsubscribes() -> None:
    some = ways()
    some.learn_filters({filter_key(CHEAP): CHEAP})
    some.learn(0, {1: 0}, ALL)
    some.learn(1, {1: 0}, filter_key(CHEAP))
    assert not some.wanting(DEAR)
    assert filter_key(NOTHING) == NOBODY
    some.learn(2, {1: 0}, NOBODY)
    assert (some.wanting(BARGAIN), some.wants(1, BARGAIN)) == ({}, False)
    some.learn(3, {5: 0}, NOBODY)
    assert len(some) == 1, "nothing is remembered about who wants nothing and never did"


def test_gains_are_those_who_are_nearer_by_half_a_hop() -> None:
    some = ways()
    some.learn(0, dict.fromkeys(range(1, 8), 0), ALL)
    one, two, three, *others = (names(DEAR.id)[key] for key in range(1, 8))
    gained = some.gains(0, DEAR, some.wanting(DEAR), {one: 1.5, two: 1.25, **dict.fromkeys(others, 0.0)})
    assert gained == {one: 1.5, three: 1.5}, "3 is claimed by nobody"


def test_for_few_subscribers_half_a_hop_farther_is_enough() -> None:
    some = ways()
    some.learn(0, {1: 0, 2: 0}, ALL)
    one, two = (names(DEAR.id)[key] for key in (1, 2))
    assert some.gains(0, DEAR, some.wanting(DEAR), {one: 0.5, two: 0.25}) == {one: 0.5}
    some.age(0, LIFE, dense=True)
    assert some.gains(0, DEAR, some.wanting(DEAR), {one: 1.0, two: 0.75}) == {one: 1.0}, "as near, where it is dense"
    some.age(0, SHORT - 1, dense=True)
    assert some.gains(0, DEAR, some.wanting(DEAR), {one: 0.5, two: 0.0}) == {one: 0.0, two: 0.0}, (
        "a whole hop where links are short"
    )


def test_a_node_claims_those_who_are_as_near_as_claimed_by_others() -> None:
    some = ways()
    some.learn(0, {1: 0, 2: 3, 3: 1}, ALL)
    one, two, three = (names(DEAR.id)[key] for key in (1, 2, 3))
    assert list(some.wanting(DEAR)) == [1, 2, 3]
    assert some.nearer(0, DEAR, {two: 1.0, three: 2.0}) == {one: 1.0, three: 2.0}


def test_claims_grow_as_distances_do() -> None:
    assert ways().outdated(2 * PER_HOP, {1: 0.5, 2: FARTHEST - 2}) == {1: 2.5}, "2 is too far to be told"


def test_the_table_is_bounded_and_the_own_node_is_not_in_it() -> None:
    some = ways(capacity=3)
    some.learn(0, dict.fromkeys((999, 1, 2, 3, 4, 5), 0), ALL)
    assert (sorted(distances(some, 0)), list(some.wanting(DEAR))) == ([3, 4, 5], [3, 4, 5])


def test_the_nearest_are_always_listed_and_the_others_in_turn() -> None:
    some = ways(capacity=256)
    some.learn(0, {key: 1 + key // 100 for key in range(100, 200)}, ALL)
    some.learn(0, dict.fromkeys(range(NEAREST), 0), ALL)
    lists = [set(distances(some, 0)) for _ in range(5)]
    assert [len(listed) for listed in lists] == [MAX_LISTED - 1] * 5, "with the node itself: as many as a hello holds"
    assert all(set(range(NEAREST)) <= listed for listed in lists)
    assert set().union(*lists) == {*range(NEAREST), *range(100, 200)}, "23 of the 100 far ones each time"


def test_a_filter_is_told_to_who_asks_once() -> None:
    some = ways()
    key = filter_key(CHEAP)
    some.learn_filters({key: CHEAP})
    assert some.answers() == {}
    some.ask([key, 12345])
    assert some.answers() == {key: CHEAP}, "nobody answers for a filter that it does not know itself"
    assert some.answers() == {}


def test_a_filter_that_another_has_told_is_not_told_again() -> None:
    some = ways()
    key = filter_key(CHEAP)
    some.learn_filters({key: CHEAP})
    some.ask([key])
    some.learn_filters({key: CHEAP})
    assert some.answers() == {}


def test_a_filter_is_asked_for_until_it_is_known() -> None:
    some = ways()
    key = filter_key(CHEAP)
    some.learn(0, {1: 0}, ALL)
    some.learn(0, {2: 0, 3: 1}, key)
    some.learn(0, {4: 0}, NOBODY)
    assert some.unknown() == (key,)
    some.learn_filters({key: CHEAP})
    assert some.unknown() == ()


def test_no_more_is_asked_for_than_a_hello_holds() -> None:
    some = ways(capacity=256)
    for key in range(100):
        some.learn(0, {key: 0}, 1000 + key)
    assert len(some.unknown()) == MAX_ASKED
