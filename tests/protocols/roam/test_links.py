"""The life of links, by hand, and what follows for hellos."""

from roamcast.protocols.roam.links import CALM, FEW, LEAST, MOST, Links
from roamcast.units import SECOND


def heard(links: Links, now: int, node: int, interval: int) -> None:
    link = links.hear(now, node) or links.add(now, node)
    link.interval = interval


def test_the_life_is_the_time_observed_by_the_links_that_ended() -> None:
    links = Links(8)
    for second in range(0, 21, 2):  # node 1 is there for 20 s, node 2 for 10
        heard(links, second * SECOND, 1, 2 * SECOND)
        if second <= 10:
            heard(links, second * SECOND, 2, 2 * SECOND)
    links.update(20 * SECOND)
    assert (len(links), links.life) == (1, (20 + 10 + 60) / 2)  # one ended; a link of 60 s that ended is assumed
    links.update(26 * SECOND)
    assert (len(links), links.life) == (0, (20 + 10 + 60) / 3)


def test_a_silence_counts_for_an_interval_and_a_half_at_most() -> None:
    links = Links(8)
    heard(links, 0, 1, 2 * SECOND)
    heard(links, 5 * SECOND, 1, 2 * SECOND)
    links.update(5 * SECOND)
    assert links.life == 60 + 3


def test_neighbours_whose_hellos_are_rarer_than_links_live_do_not_count() -> None:
    links = Links(8)
    for second in (0, 40, 80):
        heard(links, second * SECOND, 1, 31 * SECOND)
    links.update(200 * SECOND)
    assert (len(links), links.life) == (0, 60)


def test_a_neighbour_whose_hello_is_late_does_not_count_and_later_it_is_gone() -> None:
    links = Links(8)
    heard(links, 0, 1, 10 * SECOND)
    seen = []
    for second in (12, 13, 25, 26):
        links.update(second * SECOND)
        seen.append((links.degree, len(links)))
    assert seen == [(1, 1), (0, 1), (0, 1), (0, 0)]


def test_hellos_follow_the_root_of_the_life_and_the_crowd() -> None:
    links = Links(64)
    heard(links, 0, 1, SECOND)
    links.life, links.degree = 36.0, 1
    assert (
        links.interval(0, subscriber=True, carrying=False)
        == links.interval(0, subscriber=False, carrying=False)
        == 3 * SECOND
    )
    links.degree = 18
    assert links.interval(0, subscriber=False, carrying=False) == 27 * SECOND
    links.degree = 24
    assert links.interval(0, subscriber=False, carrying=False) == MOST * SECOND
    assert 3 * SECOND < links.interval(0, subscriber=True, carrying=False) < 12 * SECOND
    links.life = 180.0
    assert links.interval(0, subscriber=False, carrying=False) == MOST * SECOND
    links.life = 900.0
    assert links.interval(0, subscriber=False, carrying=False) == 60 * SECOND, "a fifteenth of the life"
    links.life, links.degree = 1.0, 0
    assert links.interval(0, subscriber=True, carrying=False) == LEAST * SECOND


def test_whoever_carries_where_links_change_and_nodes_are_few_speaks_oftener() -> None:
    links = Links(64)
    heard(links, 0, 1, SECOND)
    links.life = 100.0
    assert links.interval(0, subscriber=False, carrying=False) == 5 * SECOND
    assert links.interval(0, subscriber=False, carrying=True) == 1.5 * SECOND
    links.density = 3.0
    assert links.interval(0, subscriber=False, carrying=True) == 3.375 * SECOND
    links.density = FEW
    assert links.interval(0, subscriber=False, carrying=True) == 5 * SECOND


def test_without_a_link_that_came_or_went_nobody_moves() -> None:
    links = Links(64)
    heard(links, 0, 1, 10 * SECOND)
    assert links.moving(CALM - 1)
    assert not links.moving(CALM)
    links.hear(CALM, 1)
    links.update(CALM + 30 * SECOND)
    assert (len(links), links.moving(CALM + 30 * SECOND)) == (0, True)


def test_the_density_is_the_mean_of_what_neighbours_tell_and_the_own_degree() -> None:
    links = Links(64)
    for node, density in ((1, 9), (2, 6), (3, None)):
        links.add(0, node).density = density
    links.update(0)
    assert (links.degree, links.density) == (3, 6.0)
    assert (links.sparse(6), links.sparse(7), links.sparse(None)) == (True, False, False)


def test_a_node_that_hears_nobody_waits_for_an_eighth_of_that_time() -> None:
    links = Links(64)
    heard(links, 100 * SECOND, 1, SECOND)
    links.life = 36.0
    assert [links.interval(at * SECOND, subscriber=True, carrying=False) / SECOND for at in (100, 124, 180, 1000)] == [
        3,
        3,
        10,
        30,
    ]


def test_it_is_bounded_and_the_one_silent_for_longest_makes_room() -> None:
    links = Links(2)
    for node in (1, 2):
        heard(links, node, node, SECOND)
    heard(links, 3, 1, SECOND)
    heard(links, 4, 3, SECOND)
    assert (links.hear(5, 2), len(links)) == (None, 2)
    assert links.hear(5, 1) is not None


def test_new_neighbours_tell_that_links_have_become_short_before_the_old_ones_are_missed() -> None:
    """Ten neighbours that stayed for ten minutes, and then a stranger every second."""
    links = Links(64)
    for now in range(0, 600, 30):
        for node in range(10):
            heard(links, now * SECOND, node, 30 * SECOND)
    links.update(600 * SECOND)
    assert links.life == 900, "6,000 s were observed and nobody has left"
    for stranger in range(20):
        heard(links, (600 + stranger) * SECOND, 100 + stranger, 30 * SECOND)
    assert links.life < 300


def test_the_first_neighbours_do_not_count_as_changes() -> None:
    links = Links(64)
    for node in range(20):
        heard(links, node * SECOND, node, 30 * SECOND)
    assert links.life == 60
