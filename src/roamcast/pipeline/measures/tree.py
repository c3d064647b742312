"""How well a tree of brokers holds the network together.

After the evaluation of the COMAN paper (Mottola, Cugola, Picco, section IV-A): TC is the share of the time in which all
nodes are in one tree. If the network itself is rarely connected, that is close to 0 for any protocol, so further
measures compare the tree with the islands of the network.

The rule this file owns: each measure comes in two versions. As in the paper, a tree link counts until one of its ends
has noticed that the other is gone: that is what the protocol believes. The *physical* version counts a tree link only
while the two can hear each other: that is what an event could travel on. Both are weighted exactly by time.
"""

from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.errors import RoamcastError
from roamcast.facts.contacts import READ, Contacts
from roamcast.facts.islands import agreement
from roamcast.facts.tree_links import tree_links
from roamcast.pipeline.measures.by_run import Files, Work, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.sim.network import network_of

_BELIEVED: Final = ("connected", "parts", "matched", "reach")
_FIGURES: Final = (*_BELIEVED, *(f"physical_{name}" for name in _BELIEVED))
_COLUMNS: Final = ["time", "node", "change", "cause", "parent", "children"]


def of_runs_with_a_tree(facts: Facts, work: Work, figures: tuple[str, ...]) -> DataFrame:
    """(run, figures): one row per run that has a tree."""
    return of_runs(facts, facts.having("tree"), work, figures)


def tree_of(files: Files, run: str) -> pa.Table:
    """The rows of a run's `tree`, without the leaders."""
    return files.rows("tree", run, _COLUMNS)


# --- Measures -------------------------------------------------------------------------------------------------------


def trees(facts: Facts) -> DataFrame:
    """(run, figures) of the runs with a tree. For `Facts.once`."""
    return of_runs_with_a_tree(facts, partial(_tree_of_run, Files.of(facts, *READ, "tree")), _FIGURES)


def _tree_of_run(files: Files, run: str, start: int, end: int, nodes: int, scenario: str) -> dict[str, float | None]:
    try:
        tree = tree_links(tree_of(files, run), nodes, end)
        network = network_of(files.read(run), nodes, end, scenario)
    except RoamcastError as problem:
        raise RoamcastError(f"run {run}: {problem}") from None
    return figures(tree, network, start)


def figures(tree: Contacts, network: Contacts | None, start: int) -> dict[str, float | None]:
    """The figures by name; those that need the network are undefined without it."""
    found: dict[str, float | None] = dict.fromkeys(_FIGURES)
    found |= agreement(tree, network, start)._asdict()
    if network is not None:
        physical = agreement(tree.while_in(network), network, start)
        found |= {f"physical_{name}": value for name, value in physical._asdict().items()}
    return found


def _of_tree(about: About, column: str) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(trees).select("run", F.col(column).alias("value"))

    return Measure(about, function)


def _share(name: str, title: str, description: str, floor: float | None = None) -> About:
    return About(name=name, title=title, description=description, share=True, whole=True, good="high", floor=floor)


MEASURES: Final = (
    _of_tree(
        _share(
            "tree_connected",
            "all nodes in one tree, TC (share of the time)",
            "Share of the time in which all nodes are in one tree",
            floor=0.01,
        ),
        "connected",
    ),
    _of_tree(
        _share(
            "tree_matched",
            "tree's parts are the network's, TC* (share of the time)",
            "Share of the time in which the tree's parts are those of the network",
            floor=0.01,
        ),
        "matched",
    ),
    _of_tree(
        _share(
            "tree_reach",
            "reach of the tree (share of connected pairs)",
            "Share of the pairs of nodes connected physically that the tree connects",
        ),
        "reach",
    ),
    _of_tree(
        _share(
            "tree_connected_physical",
            "all nodes in one tree of links that are there (share of the time)",
            "Share of the time in which tree links that are physically there connect all nodes",
            floor=0.01,
        ),
        "physical_connected",
    ),
    _of_tree(
        _share(
            "tree_matched_physical",
            "parts of the tree's links that are there are the network's (share of the time)",
            "Share of the time in which tree links that are physically there connect whatever the network connects",
            floor=0.01,
        ),
        "physical_matched",
    ),
    _of_tree(
        _share(
            "tree_reach_physical",
            "reach of the tree over links that are there (share of connected pairs)",
            "Share of the pairs of nodes connected physically that tree links connect which are there",
        ),
        "physical_reach",
    ),
    _of_tree(
        About(
            name="tree_parts_mean",
            title="parts of the tree (mean number)",
            description="Mean number of parts of the tree; a node that is on none is one",
            good="low",
        ),
        "parts",
    ),
)
