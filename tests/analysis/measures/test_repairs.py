"""Repairs of a tree: which there are, whether they succeeded, and their paths."""

import pytest

from analysis.places import Place, place
from pipeline.measured import MS, tables
from roamcast.analysis.measures.repairs import TreeRepair, repairs_of


def found_in(*rows: Place) -> list[TreeRepair]:
    return repairs_of(tables(tree=rows)["tree"])


LINE = [
    place(0, 0, "start", 0, None, 1),
    place(0, 1, "joined", 0, 0, 2),
    place(0, 2, "joined", 0, 1, 3),
    place(0, 3, "joined", 0, 2),
]


def test_a_path_turned_round_is_as_long_as_its_nodes() -> None:
    """1 loses 0, and 3, the last of its subtree, finds it: 1 - 2 - 3 - 0. It takes a moment to go all the way."""
    turned = [
        place(100, 1, "broken", 5, None, 2),
        place(200, 1, "repaired", 5, 2),
        place(205, 2, "parent", 5, 3, 1),
        place(210, 3, "parent", 5, 0, 2),
        place(215, 0, "child", 5, None, 1, 3),
    ]
    assert found_in(*LINE, *turned) == [TreeRepair(5, 1, 100 * MS, 0, 200 * MS, path=4)]
    assert found_in(*LINE, *turned[:-1])[0].path is None


@pytest.mark.parametrize(("late", "path"), [(300, 3), (301, None)])
def test_a_path_that_comes_too_late_is_not_the_repairs(late: int, path: int | None) -> None:
    rows = [
        place(100, 2, "broken", 5, None, 3),
        place(200, 2, "repaired", 5, 0, 3),
        place(late, 0, "child", 5, None, 1, 2),
    ]
    assert [repair.path for repair in found_in(*LINE, *rows)] == [path]


def test_a_cause_that_first_appears_otherwise_is_no_repair() -> None:
    """A merge has a cause of its own, and a link that breaks on its way breaks by that cause."""
    rows = [place(100, 1, "parent", 7, 0, 2), place(150, 2, "broken", 7, None, 3), place(160, 2, "repaired", 7, 1, 3)]
    assert found_in(*LINE, *rows) == []
    assert [repair.cause for repair in found_in(*LINE, *rows[1:])] == [7]


def test_a_path_of_the_next_repair_is_not_that_of_the_one_before() -> None:
    rows = [
        place(100, 2, "broken", 5, None, 3),
        place(200, 2, "repaired", 5, 9, 3),  # to a node that never hears of it
        place(250, 2, "broken", 6, None, 3),
        place(260, 2, "repaired", 6, 0, 3),
        place(260, 0, "child", 6, None, 1, 2),
    ]
    first, second = found_in(*LINE, *rows)
    assert (first.former, first.path) == (1, None)
    assert (second.former, second.path) == (9, None)  # 9 is on no tree


def test_what_is_no_success() -> None:
    elsewhere = [place(100, 2, "broken", 5, None, 3), place(200, 1, "repaired", 5, 0)]
    given_up = [place(300, 3, "broken", 6, None), place(400, 3, "elected", 6, None)]
    merged = [place(500, 3, "merged", 8, 0), place(600, 3, "repaired", 9, 0)]
    found = found_in(*LINE, *elsewhere, *given_up, *merged)
    assert [(repair.cause, repair.ended) for repair in found] == [(5, None), (6, None)]


def test_a_second_row_of_a_repair_changes_nothing() -> None:
    rows = [
        place(100, 2, "broken", 5, None, 3),
        place(150, 2, "broken", 5, None),
        place(200, 2, "repaired", 5, 1),
        place(250, 2, "repaired", 5, 0),
    ]
    assert found_in(*LINE, *rows) == [TreeRepair(5, 2, 100 * MS, 1, 200 * MS, same_parent=True)]


def test_an_initiator_without_a_past_has_no_former_parent() -> None:
    rows = [place(100, 7, "broken", 5, None), place(200, 7, "repaired", 5, 0)]
    assert found_in(*rows) == [TreeRepair(5, 7, 100 * MS, None, 200 * MS)]


def test_a_ring_of_parents_is_no_trap() -> None:
    """Nobody should be its own ancestor; if nodes say so all the same, the way is still found, or seen to be none."""
    ring = [place(0, node, "start", 0, (node + 1) % 3, (node - 1) % 3) for node in range(3)]
    rows = [place(0, 3, "start", 0, 4), place(100, 3, "broken", 5, None), place(200, 3, "repaired", 5, 0)]
    assert found_in(*ring, *rows, place(200, 0, "child", 5, 1, 2, 3))[0].path is None
    rows[0] = place(0, 3, "start", 0, 2)
    assert found_in(*ring, *rows, place(200, 0, "child", 5, 1, 2, 3))[0].path == 3
