"""Multipoint relays: the paper's Figure 2 first, then the rules, then an obvious model of what must be covered."""

from hypothesis import given
from hypothesis import strategies as st

from roamcast.protocols.relays import MAX_CLAIMED, Claim, Neighbourhood, select_relays

# Haillot and Guidec, Figure 2: A broadcasts up to its 3-hop neighbours, and B, O and Q, at one, three and two hops,
# answer. The drawing itself is not in the text that we have; this network has its names and its distances.
FIGURE_2 = {
    "A": "BCDE",
    "B": "ACF",
    "C": "ABGH",
    "D": "AEHQ",
    "E": "ADQ",
    "F": "BGK",
    "G": "CFO",
    "H": "CD",
    "K": "F",
    "O": "G",
    "Q": "DER",
    "R": "Q",
}
NUMBER = {name: ord(name) for name in FIGURE_2}


def neighbours_in_figure_2(name: str) -> dict[int, list[int]]:
    return {NUMBER[other]: [NUMBER[two] for two in FIGURE_2[other]] for other in FIGURE_2[name]}


def relays_in_figure_2(name: str) -> str:
    return "".join(map(chr, select_relays(NUMBER[name], neighbours_in_figure_2(name))))


def test_figure_2_the_relays_of_every_host() -> None:
    # A: F only by B, G only by C; Q by D or E, H is reached through C already; D has more links outwards.
    # C: E by A alone, O by G alone, and these two reach D and F too. D: B by A alone, R by Q alone, and A reaches C.
    # G: K by F alone; A and H by C alone. Q: H by D alone, who reaches A too.
    assert {name: relays_in_figure_2(name) for name in FIGURE_2} == {
        "A": "BCD",
        "B": "ACF",
        "C": "AG",
        "D": "AQ",
        "E": "ADQ",
        "F": "BG",
        "G": "CF",
        "H": "CD",
        "K": "F",
        "O": "G",
        "Q": "D",
        "R": "Q",
    }


def test_figure_2_a_broadcast_of_a_reaches_its_3_hop_neighbours_and_few_pass_it_on() -> None:
    heard, passed_on = {"A": 0}, ["A"]
    for sender in passed_on:
        for other in FIGURE_2[sender]:
            if other not in heard:
                heard[other] = heard[sender] + 1
                if other in relays_in_figure_2(sender) and heard[other] < 3:
                    passed_on.append(other)
    assert {name: heard[name] for name in "BOQ"} == {"B": 1, "O": 3, "Q": 2}
    assert sorted(heard) == sorted(FIGURE_2)
    assert passed_on == ["A", "B", "C", "D", "F", "G", "Q"]


def test_who_alone_reaches_a_node_is_chosen_however_little_it_reaches() -> None:
    # 1 reaches most and is superfluous once 2 and 3, each the only way to somebody, are chosen.
    assert select_relays(0, {1: [0, 10, 11], 2: [0, 10, 20], 3: [0, 11, 30]}) == (2, 3)


def test_then_the_one_that_reaches_most_and_of_equals_the_one_with_more_links() -> None:
    assert select_relays(0, {1: [10, 11, 12], 2: [10, 11], 3: [12]}) == (1,)
    # Node 4 is the only way to 19. Then 1 and 2 both reach the two that are left; 2 has a link more.
    assert select_relays(0, {1: [10, 11], 2: [10, 11, 18], 3: [10, 11], 4: [18, 19]}) == (2, 4)
    assert select_relays(0, {1: [10, 11], 2: [10, 11]}) == (1,)


def test_nobody_is_needed_where_all_are_near() -> None:
    assert select_relays(0, {}) == ()
    assert select_relays(0, {1: [0, 2], 2: [0, 1]}) == ()


GRAPHS = st.dictionaries(st.integers(1, 6), st.lists(st.integers(0, 12), max_size=6), max_size=6)


@given(GRAPHS)
def test_all_nodes_two_hops_away_are_covered_and_no_relay_is_useless(graph: dict[int, list[int]]) -> None:
    relays = select_relays(0, graph)
    beyond = {two for theirs in graph.values() for two in theirs} - set(graph) - {0}
    assert {two for relay in relays for two in graph[relay]} >= beyond
    assert all(set(graph[relay]) & beyond for relay in relays)
    assert list(relays) == sorted(set(relays))


def test_a_link_counts_when_both_have_heard_each_other() -> None:
    one = Neighbourhood(1, lifetime=10, capacity=8)
    one.hear(0, 2, Claim((), ()))
    assert (one.claim, one.confirmed(2)) == (Claim((), (2,)), False)
    one.hear(1, 2, Claim((3,), (1,)))  # 2 hears 1, and did not know yet that 1 hears it
    assert (one.claim, one.confirmed(2), one.relays) == (Claim((2,), ()), True, (2,))
    one.hear(2, 2, Claim((1,), (3,)))  # the link to 3 is no longer confirmed
    assert one.relays == ()


def test_who_is_silent_is_forgotten_and_with_it_its_place_as_a_relay() -> None:
    one = Neighbourhood(1, lifetime=10, capacity=8)
    one.hear(0, 2, Claim((1, 3), ()))
    one.hear(5, 4, Claim((1,), ()))
    one.expire(10)
    assert list(one.relays) == [2]
    one.expire(11)
    assert (list(one.relays), len(one), one.confirmed(2)) == ([], 1, False)


def test_strangers_fill_neither_the_table_nor_a_claim() -> None:
    one = Neighbourhood(1, lifetime=10, capacity=4)
    for stranger in range(100, 200):
        one.hear(0, stranger, Claim((1, *range(1000, 3000)), tuple(range(4000, 9000))))
    assert len(one) == 4
    assert len(one.claim.confirmed) <= MAX_CLAIMED
    assert one.relays == (196,)  # all claim the same nodes
