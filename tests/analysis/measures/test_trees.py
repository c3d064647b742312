"""Measures of trees of brokers, their repairs and their stable core: small runs worked out by hand."""

import dataclasses
import json
from typing import Any

import pytest

from analysis.places import place
from analysis.runs import values_of
from facts.rows import ROLES
from pipeline.measured import MS, Run, S, tables
from roamcast.analysis.measures.repairs import repairs
from roamcast.analysis.measures.stable_core import stable_core
from roamcast.analysis.measures.tree import tree
from roamcast.errors import RoamcastError

FAMILIES = (tree, repairs, stable_core)
NAMES = [one.name for family in FAMILIES for one in family.measures]


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


@pytest.mark.parametrize("coded", [False, True], ids=["plain texts", "dictionaries"])
def test_every_measure_of_a_small_run(coded: bool) -> None:
    assert set(BY_HAND) == set(NAMES)
    assert values_of(by_hand(), *FAMILIES, coded=coded) == pytest.approx(BY_HAND)


def test_links_that_only_one_end_hears_and_a_node_on_no_tree() -> None:
    assert values_of(linked(), *FAMILIES) == pytest.approx(LINKED)


def test_what_was_not_recorded_is_unknown() -> None:
    assert values_of(still_unknown(), *FAMILIES) == pytest.approx(UNKNOWN)


def test_a_run_that_ends_with_its_warm_up_has_no_figures() -> None:
    short = Run("short", tables(tree=TREE[:10]), 1.0, 1.0, 4)
    assert values_of(short, *FAMILIES) == dict.fromkeys(NAMES) | {"repairs": 0}


def test_a_run_without_a_tree_has_no_figures() -> None:
    bare = {name: rows for name, rows in by_hand().facts.items() if name != "tree"}
    assert values_of(dataclasses.replace(by_hand(), facts=bare), *FAMILIES) == dict.fromkeys(NAMES)


def test_a_node_that_is_not_there_is_refused_with_the_run() -> None:
    stranger = Run("odd", tables(tree=[place(0, 4, "start", 0, None)]), nodes=4)
    with pytest.raises(RoamcastError, match="run odd: the table `tree` names node 4, but the run has 4 nodes"):
        values_of(stranger, tree)


@pytest.mark.parametrize(
    ("start", "end", "stable"),
    [(0, 20, True), (10, None, True), (11, None, False), (5, 19, False), (5, 20, True)],
)
def test_a_stable_subscription_is_there_from_the_warm_up_to_the_end(start: int, end: int | None, stable: bool) -> None:
    """The warm-up ends at 10 s, the run at 20 s, and the event is published at 15 s."""
    subscribe: list[tuple[Any, ...]] = [(start * S, 1, 1, True, "true")]
    subscribe += [] if end is None else [(end * S, 1, 1, False, None)]
    facts = tables(
        tree=[place(0, 0, "start", 0, None)],
        subscribe=subscribe,
        publish=[(15 * S, 0, 7, "t", 50)],
        event_attribute=[(7, "", "str", None, None, "t", None)],
        deliver=[(16 * S, 1, 7, 1, 15 * S, 1, "data")],
    )
    found = values_of(Run("r", facts, simulated=20.0, warmup=10.0, nodes=2), stable_core)
    assert found == {"mdr": 1 if stable else None, "control": 0, "control_all": 0}
