"""Measures of trees of brokers: a small run worked out by hand, and what is connected against an obvious model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from examples import examples
from facts.rows import KNOWN, ROLES
from pipeline.measured import MS, Run, S, tables, write_campaign
from roamcast.content.rows import filter_rows
from roamcast.content.text import parse_filter
from roamcast.errors import RoamcastError
from roamcast.facts.pairs import Terms
from roamcast.facts.tree_links import tree_links
from roamcast.pipeline.measures import MEASURES, read, repairs, run_measures, tree
from roamcast.pipeline.measures import stable_core as core
from roamcast.pipeline.measures.repairs import Repair, repairs_of

NAMES = [one.name for family in (tree, repairs, core) for one in family.MEASURES]

Place = tuple[int, int, str, int, int | None, list[int], int | None]
"""A row of `tree`."""


def place(at: int, node: int, change: str, cause: int, parent: int | None, *children: int) -> Place:
    """At so many milliseconds; the leader does not matter here."""
    return at * MS, node, change, cause, parent, list(children), None


def sent(node: int, kind: str, cause: int, messages: int, packets: int | None = None) -> tuple[Any, ...]:
    """A message is one packet each if not told otherwise."""
    packets = messages if packets is None else packets
    return node, kind, ROLES[kind], cause, messages, packets, 8 * packets, MS, *[0] * 6


def second(number: int, kind: str, messages: int) -> tuple[Any, ...]:
    """The link layer has repeated every second message."""
    return number, kind, ROLES[kind], messages, 3 * messages // 2, *[0] * 8


def still(node: int, x: float, start: int = 0, end: int = 100 * S) -> tuple[Any, ...]:
    return node, start, end, x, 0.0, x, 0.0, False


def priced(event: int, price: int) -> list[tuple[Any, ...]]:
    return [(event, "", "str", None, None, "t", None), (event, "price", "int", price, None, None, None)]


# --- A run worked out by hand ---------------------------------------------------------------------------------------

TREE = [
    *(place(0, node, "start", 0, None) for node in range(4)),
    place(200, 0, "child", 0, None, 1),
    place(200, 1, "joined", 0, 0, 2),
    place(200, 2, "joined", 0, 1, 3),
    place(200, 3, "joined", 0, 2),
    # In the warm-up: counts for nothing.
    place(500, 3, "broken", 7, None),
    place(600, 3, "repaired", 7, 2),
    # 2 finds 0; node 1, its former parent, has not noticed yet.
    place(1250, 2, "broken", 11, None, 3),
    place(1450, 2, "repaired", 11, 0, 3),
    place(1470, 0, "child", 11, None, 1, 2),
    # 3 finds nobody.
    place(2350, 3, "broken", 12, None),
    place(2550, 3, "elected", 12, None),
    # 1 finds its parent again.
    place(2620, 1, "broken", 13, None),
    place(2680, 1, "repaired", 13, 0),
]
SENT = [
    *(sent(2, "rreq", 11, 2), sent(3, "rreq", 11, 1), sent(0, "rrep", 11, 1), sent(0, "rrep", 11, 1)),
    *(sent(2, "mact", 11, 1, 4), sent(1, "grph", 11, 3), sent(1, "hello", 11, 5), sent(1, "routed", 11, 6)),
    *(
        sent(3, "rreq", 12, 4),
        sent(3, "chkup", 12, 1),
        sent(2, "chkack", 12, 1),
        sent(2, "ack", 12, 0, 7),
        sent(1, "rrep", 12, 0),
    ),
    *(sent(2, "ack", 0, 0, 50), sent(3, "rreq", 7, 9), sent(1, "rreq", 99, 8)),
]
SERIES = [
    *(second(0, "rreq", 100), second(1, "rreq", 5), second(1, "hello", 40), second(1, "ack", 0)),
    *(second(2, "mact", 3), second(2, "grph", 1), second(2, "chkack", 1), second(2, "routes", 2), second(2, "data", 9)),
]
FILTERS = {1: "price < 40", 2: "true", 3: "price < 20", 4: "price < 20"}


def by_hand() -> Run:
    """Four nodes in a row, the last of which is out of reach from 2 s on; measured from 1 s to 3 s."""
    facts = tables(
        tree=TREE,
        leg=[still(0, 0), still(1, 100), still(2, 200), still(3, 300, end=2 * S), still(3, 1000, start=2 * S)],
        transmit=SENT,
        series=SERIES,
        subscribe=[
            (0, 1, 1, True, FILTERS[1]),
            (0, 2, 2, True, FILTERS[2]),
            (0, 3, 4, True, FILTERS[4]),
            (500 * MS, 3, 4, True, FILTERS[4]),  # made again in the warm-up: in force ever after
            (1500 * MS, 3, 3, True, FILTERS[3]),
            (2000 * MS, 2, 2, False, None),
        ],
        filter_constraint=[
            tuple(row) for number, text in FILTERS.items() for row in filter_rows(number, parse_filter(text))
        ],
        publish=[(at * MS, 0, event, "t", 50) for event, at in ((10, 900), (11, 1200), (12, 2500), (13, 2600))],
        event_attribute=[*priced(10, 5), *priced(11, 30), *priced(12, 5), *priced(13, 50)],
        deliver=[
            (1210 * MS, 1, 11, 1, 1200 * MS, 1, "data"),
            (1220 * MS, 2, 11, 2, 1200 * MS, 2, "data"),
            (2510 * MS, 3, 12, 3, 2500 * MS, 1, "data"),
            (2510 * MS, 3, 12, 4, 2500 * MS, 1, "data"),
        ],
    )
    return Run("hand", facts, 3.0, 1.0, 4, json.dumps({"radio": {"range": 150.0}}))


BY_HAND = {
    # All in one tree until 1.25 s, in 01 and 23 until 1.47 s, in one until 2.35 s although 3 is gone at 2 s; then 3 is
    # alone, and so is 1 from 2.62 s to 2.68 s.
    "tree_connected": (0.25 + 0.88) / 2,
    "tree_matched": (0.25 + 0.53 + 0.27 + 0.32) / 2,  # from 2.35 s on 3 knows that it is alone
    "tree_parts_mean": (1.13 + 0.22 * 2 + 0.59 * 2 + 0.06 * 3) / 2,
    "tree_reach": (0.25 + 0.22 * 4 / 12 + 0.53 + 0.94 + 0.06 * 2 / 6) / 2,
    # 2 has taken 0 for its parent, 200 m away: that link is on paper only, and 23 is from 2 s on.
    "tree_connected_physical": 0.25 / 2,
    "tree_matched_physical": 0.25 / 2,
    "tree_reach_physical": (0.25 + 0.75 * 4 / 12 + 0.94 * 2 / 6) / 2,
    "repairs": 3,
    "repairs_succeeded": 2 / 3,
    "repair_time": (0.2 + 0.06) / 2,
    "repair_messages": (2 + 1 + 1 + 1 + 1 + 3 + 4 + 1 + 1) / 3,
    "repair_transmissions": (2 + 1 + 1 + 1 + 4 + 3 + 4 + 1 + 1) / 3,
    "repair_nodes": (3 + 1 + 0) / 3,  # 0, 2 and 3; 3; nobody
    "repairs_same_parent": 1 / 2,
    "reconfiguration_nodes": 3,  # 2, 0, 1
    "link_breaks": 3 / (2 / 60),
    # Expected of 1 and 4, which do not change: 11 at 1, 12 at 1 and 4.
    "mdr": 2 / 3,
    # 11 and 12 are wanted; 2 would have wanted 13.
    "control": (5 + 3 + 1 + 1 + 2) / 2,
    "control_all": (5 + 40 + 3 + 1 + 1 + 2) / 2,
}


def linked() -> Run:
    """Scripted links; of 1 and 2, only the second hears the first until 1.5 s. 2 never says that it is on a tree."""
    heard = [(0, 0, 1, 0.0), (0, 1, 0, 0.0), (0, 1, 2, 0.2), (1500 * MS, 2, 1, 0.0)]
    facts = tables(tree=[place(0, 0, "start", 0, None, 1), place(0, 1, "joined", 0, 0)], link=heard)
    return Run("linked", facts, 2.0, 1.0, 3)


LINKED = dict.fromkeys(NAMES) | {
    "tree_connected": 0,
    "tree_matched": 0.5,
    "tree_parts_mean": 2,
    "tree_reach": (5 * 1 + 5 * 2 / 6) / 10,
    "tree_connected_physical": 0,
    "tree_matched_physical": 0.5,
    "tree_reach_physical": (5 * 1 + 5 * 2 / 6) / 10,
    "repairs": 0,
    "link_breaks": 0,
}


def still_unknown() -> Run:
    """A tree of two, and no record of where they are or of what they sent."""
    joined = [place(0, 0, "start", 0, None, 1), place(0, 1, "joined", 0, 0)]
    return Run("unknown", tables(tree=[*joined, place(600, 1, "broken", 5, None)]), 1.0, 0.5, 2)


UNKNOWN = dict.fromkeys(NAMES) | {
    "tree_connected": 1 / 5,  # from 0.5 s to 0.6 s
    "tree_parts_mean": 9 / 5,
    "repairs": 1,
    "repairs_succeeded": 0,
    "repair_messages": 0,
    "repair_transmissions": 0,
    "repair_nodes": 0,
    "link_breaks": 120,
}


def warming_up() -> Run:
    return Run("short", tables(tree=TREE[:10]), 1.0, 1.0, 4)


def measured(spark: SparkSession, out: Path, *runs: Run) -> dict[str, dict[str, float | None]]:
    write_campaign(out, runs)
    rows = run_measures(read(spark, out), [MEASURES[name] for name in NAMES]).to_pylist()
    return {run.name: {row["measure"]: row["value"] for row in rows if row["run"] == run.name} for run in runs}


def test_every_measure_of_small_runs(spark: SparkSession, tmp_path: Path) -> None:
    assert set(BY_HAND) == set(NAMES)
    bare = Run("bare", tables(leg=[still(0, 0)], transmit=SENT, series=SERIES))
    found = measured(spark, tmp_path, by_hand(), linked(), still_unknown(), warming_up(), bare)
    assert found == {
        "hand": pytest.approx(BY_HAND),
        "linked": pytest.approx(LINKED),
        "unknown": pytest.approx(UNKNOWN),
        "short": dict.fromkeys(NAMES) | {"repairs": 0},
        "bare": dict.fromkeys(NAMES),
    }


def test_a_node_that_is_not_there_is_refused_with_the_run(spark: SparkSession, tmp_path: Path) -> None:
    stranger = Run("odd", tables(tree=[place(0, 4, "start", 0, None)]), nodes=4)
    with pytest.raises(PySparkException, match="run odd: the table `tree` names node 4, but the run has 4 nodes"):
        measured(spark, tmp_path, stranger)


# --- Repairs --------------------------------------------------------------------------------------------------------


def found_in(*rows: Place) -> list[Repair]:
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
    assert found_in(*LINE, *turned) == [Repair(5, 1, 100 * MS, 0, 200 * MS, path=4)]
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
    assert found_in(*LINE, *rows) == [Repair(5, 2, 100 * MS, 1, 200 * MS, same_parent=True)]


def test_an_initiator_without_a_past_has_no_former_parent() -> None:
    rows = [place(100, 7, "broken", 5, None), place(200, 7, "repaired", 5, 0)]
    assert found_in(*rows) == [Repair(5, 7, 100 * MS, None, 200 * MS)]


def test_a_ring_of_parents_is_no_trap() -> None:
    """Nobody should be its own ancestor; if nodes say so all the same, the way is still found, or seen to be none."""
    ring = [place(0, node, "start", 0, (node + 1) % 3, (node - 1) % 3) for node in range(3)]
    rows = [place(0, 3, "start", 0, 4), place(100, 3, "broken", 5, None), place(200, 3, "repaired", 5, 0)]
    assert found_in(*ring, *rows, place(200, 0, "child", 5, 1, 2, 3))[0].path is None
    rows[0] = place(0, 3, "start", 0, 2)
    assert found_in(*ring, *rows, place(200, 0, "child", 5, 1, 2, 3))[0].path == 3


# --- Tree links -----------------------------------------------------------------------------------------------------

NODES, END = 6, 10
PLACES = st.lists(
    st.tuples(
        st.integers(0, END + 1),
        st.integers(0, NODES - 1),
        st.none() | st.integers(0, NODES),  # one more than there are
        st.lists(st.integers(0, NODES), unique=True).map(sorted),
    ),
    max_size=30,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@settings(max_examples=examples(300), deadline=None)
@given(PLACES)
def test_tree_links_are_those_on_which_both_ends_agree(rows: list[tuple[int, int, int | None, list[int]]]) -> None:
    facts = tables(tree=[(at, node, "x", 0, parent, children, None) for at, node, parent, children in rows])
    expected = set()
    for now in range(END):
        said = {node: (parent, children) for at, node, parent, children in rows if at <= now}
        for node, (parent, _) in said.items():
            if parent is not None and parent != node and parent in said and node in said[parent][1]:
                expected.add((min(node, parent), max(node, parent), now))
    links = tree_links(facts.get("tree", KNOWN["tree"].empty_table()), NODES, END)
    columns = zip(links.sender, links.receiver, links.begin, links.until, strict=True)
    found = [(a, b, now) for a, b, begin, until in columns for now in range(begin, until)]
    assert sorted(found) == sorted(expected)


# --- Small things ---------------------------------------------------------------------------------------------------


def test_a_stable_subscription_is_there_from_the_warm_up_to_the_end() -> None:
    start, end = np.array([0, 10, 11, 5, 5]), np.array([20, 99, 99, 19, 20])
    terms = Terms(np.arange(5), np.arange(5), np.zeros(5, np.int64), start, end)
    assert terms.throughout(10, 20).node.tolist() == [0, 1, 4]


def test_a_node_below_0_is_refused() -> None:
    with pytest.raises(RoamcastError, match="names node -1, but the run has 2 nodes"):
        tree_links(tables(tree=[place(0, -1, "start", 0, None)])["tree"], 2, S)
