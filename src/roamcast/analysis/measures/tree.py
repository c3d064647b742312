"""How well a tree of brokers holds the network together.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, section IV-A): TC is the share of the time in which all
nodes are in one tree. If the network itself is rarely connected, that is close to 0 for any protocol, so further
measures compare the tree with the islands of the network.

The rule this file owns: each measure comes in two versions. As in the paper, a tree link counts until one of its ends
has noticed that the other is gone: that is what the protocol believes. The *physical* version counts a tree link only
while the two can hear each other: that is what an event could travel on. Both are weighted exactly by time.
"""

from roamcast.analysis.contacts import Contacts
from roamcast.analysis.islands import agreement
from roamcast.analysis.measures.measure import Measure, Values, family, good_share
from roamcast.analysis.network import network
from roamcast.analysis.run import Run
from roamcast.analysis.tree_links import tree_links
from roamcast.errors import RoamcastError


@family(
    good_share(
        "tree_connected",
        "all nodes in one tree, TC (share of the time)",
        "Share of the time in which all nodes are in one tree",
        floor=0.01,
    ),
    good_share(
        "tree_matched",
        "tree's parts are the network's, TC* (share of the time)",
        "Share of the time in which the tree's parts are those of the network",
        floor=0.01,
    ),
    good_share(
        "tree_reach",
        "reach of the tree (share of connected pairs)",
        "Share of the pairs of nodes connected physically that the tree connects",
    ),
    good_share(
        "tree_connected_physical",
        "all nodes in one tree of links that are there (share of the time)",
        "Share of the time in which tree links that are physically there connect all nodes",
        floor=0.01,
    ),
    good_share(
        "tree_matched_physical",
        "parts of the tree's links that are there are the network's (share of the time)",
        "Share of the time in which tree links that are physically there connect whatever the network connects",
        floor=0.01,
    ),
    good_share(
        "tree_reach_physical",
        "reach of the tree over links that are there (share of connected pairs)",
        "Share of the pairs of nodes connected physically that tree links connect which are there",
    ),
    Measure(
        "tree_parts_mean",
        "parts of the tree (mean number)",
        "Mean number of parts of the tree; a node outside every tree counts as its own part",
        good="low",
    ),
)
def tree(run: Run) -> Values:
    if not run.has("tree"):
        return {}
    try:
        links = tree_links(run.table("tree", "time", "node", "parent", "children"), run.nodes, run.end)
    except RoamcastError as problem:
        raise RoamcastError(f"run {run.name}: {problem}") from None
    return figures(links, network(run), run.start)


def figures(tree: Contacts, network: Contacts | None, start: int) -> Values:
    """By name; those that need the network are undefined without it."""
    found = agreement(tree, network, start)
    values = {
        "tree_connected": found.connected,
        "tree_matched": found.matched,
        "tree_reach": found.reach,
        "tree_parts_mean": found.parts,
    }
    if network is not None:
        there = agreement(tree.while_in(network), network, start)
        values["tree_connected_physical"] = there.connected
        values["tree_matched_physical"] = there.matched
        values["tree_reach_physical"] = there.reach
    return values
