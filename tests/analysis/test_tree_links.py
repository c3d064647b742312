"""Tree links against an obvious model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.places import place
from examples import examples
from facts.rows import KNOWN
from pipeline.measured import S, tables
from roamcast.analysis.tree_links import tree_links
from roamcast.errors import RoamcastError

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


def test_a_node_below_0_is_refused() -> None:
    with pytest.raises(RoamcastError, match="names node -1, but the run has 2 nodes"):
        tree_links(tables(tree=[place(0, -1, "start", 0, None)])["tree"], 2, S)
