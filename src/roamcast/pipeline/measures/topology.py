"""The network as a graph: how many neighbours nodes have, how many islands there are, how long contacts last.

Exact: the graph is weighted by how long it stays the same, from the warm-up to the end of the run. `roamcast.facts`
says what a contact and an island is, `network.py` by which range. Only the width of islands is sampled, once per
second, and the length of paths, every ten seconds. All of it depends only on the world: it is computed once for runs
that share one (`worlds.py`).
While a node is away it is not part of the network. A run whose movement was not recorded has no such graph.
"""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.campaign.measured import About
from roamcast.facts.compiled import Ints
from roamcast.facts.contacts import READ, Contacts
from roamcast.facts.islands import (
    breaks_per_minute,
    changes_per_second,
    degree,
    durations,
    gaps,
    islands,
    path_hops,
)
from roamcast.pipeline.measures.by_run import Files, of_runs
from roamcast.pipeline.measures.facts import Facts, Measure
from roamcast.pipeline.measures.worlds import LastWorld, worlds
from roamcast.sim.network import network_of
from roamcast.units import SECOND

_GRAPH: Final = (
    "degree",
    "partitions",
    "largest",
    "size",
    "size_by_node",
    "contact",
    "gap",
    "breaks",
    "changes",
    "connected",
)
_WIDTH: Final = ("width", "width_by_node", "widest")
_PATH: Final = ("path",)
_PATH_STEP: Final = 10 * SECOND


def graphs(facts: Facts) -> DataFrame:
    """(run, figures of the graph) of the runs with positions or links. For `Facts.once`."""
    return _of_graphs(facts, _GRAPH, _graph)


def widths(facts: Facts) -> DataFrame:
    """(run, figures of the islands' widths), separate from the others because they cost more. For `Facts.once`."""
    return _of_graphs(facts, _WIDTH, _width)


def paths(facts: Facts) -> DataFrame:
    """(run, mean length of paths), separate for the same reason. For `Facts.once`."""
    return _of_graphs(facts, _PATH, _path)


def _of_graphs(facts: Facts, named: tuple[str, ...], work: "Graph") -> DataFrame:
    runs = facts.having("leg") | facts.having("link")
    return of_runs(facts, runs, OfGraphs(Files.of(facts, *READ), named, work), named, together=worlds(facts))


Graph = Callable[[Contacts, int], dict[str, float | None]]
"""From a network and the end of the warm-up (ns) to figures by name."""


class OfGraphs:
    """Figures of the network of one run after the other; those of the last world are kept."""

    def __init__(self, files: Files, named: tuple[str, ...], work: Graph) -> None:
        self._files = files
        self._named = named
        self._work = work
        self._worlds = LastWorld(self._figures)

    def __call__(self, run: str, start: int, end: int, nodes: int, scenario: str) -> dict[str, float | None]:
        return self._worlds.of(self._files.read(run), start, end, nodes, scenario)

    def _figures(
        self, tables: dict[str, pa.Table], start: int, end: int, nodes: int, scenario: str
    ) -> dict[str, float | None]:
        network = network_of(tables, nodes, end, scenario)
        return dict.fromkeys(self._named) if network is None else self._work(network, start)


def _width(network: Contacts, start: int) -> dict[str, float | None]:
    seen = islands(network, start, widths=True, step=SECOND)
    return dict(zip(_WIDTH, (seen.width(), seen.width_by_node(), seen.greatest_width()), strict=True))


def _path(network: Contacts, start: int) -> dict[str, float | None]:
    return dict.fromkeys(_PATH, path_hops(network, start, step=_PATH_STEP))


def _graph(network: Contacts, start: int) -> dict[str, float | None]:
    """By name, from `start` to the end."""
    seen = islands(network, start)
    return {
        "degree": degree(network, start),
        "partitions": seen.number_mean(),
        "largest": seen.largest_share(),
        "size": seen.size(),
        "size_by_node": seen.size_by_node(),
        "contact": _seconds(durations(network, start)),
        "gap": _seconds(gaps(network, start)),
        "breaks": breaks_per_minute(network, start),
        "changes": changes_per_second(network, start),
        "connected": seen.pairs_connected(),
    }


def _seconds(times: Ints) -> float | None:
    return float(times.mean()) / SECOND if len(times) else None


def _of(transform: Callable[[Facts], DataFrame], column: str, about: About) -> Measure:
    def function(facts: Facts) -> DataFrame:
        return facts.once(transform).select("run", F.col(column).alias("value"))

    return Measure(about, function)


MEASURES: Final = (
    _of(
        graphs,
        "degree",
        About(
            name="degree_mean",
            title="mean degree (neighbours)",
            unit="neighbours",
            description="Mean number of neighbours of a node",
        ),
    ),
    _of(
        graphs,
        "partitions",
        About(
            name="partitions_mean",
            title="partitions (mean number)",
            description="Mean number of connected parts of the network: its islands",
        ),
    ),
    _of(
        graphs,
        "largest",
        About(
            name="largest_partition",
            title="largest partition (share of nodes)",
            description="Mean share of the nodes in the largest connected part",
            share=True,
            whole=True,
        ),
    ),
    _of(
        graphs,
        "size",
        About(name="island_size", title="island size (nodes)", unit="nodes", description="Mean size of an island"),
    ),
    _of(
        graphs,
        "size_by_node",
        About(
            name="island_size_by_node",
            title="size of a node's island (nodes)",
            unit="nodes",
            description="Mean size of the island that a node is on",
        ),
    ),
    _of(
        widths,
        "width",
        About(
            name="island_hops",
            title="width of an island (hops)",
            unit="hops",
            description="Mean width of an island: the hops between its two farthest nodes",
        ),
    ),
    _of(
        widths,
        "width_by_node",
        About(
            name="island_hops_by_node",
            title="width of a node's island (hops)",
            unit="hops",
            description="Mean width of the island that a node is on",
        ),
    ),
    _of(
        widths,
        "widest",
        About(
            name="island_hops_max",
            title="widest island (hops)",
            unit="hops",
            description="Width of the widest island that was seen",
        ),
    ),
    _of(
        graphs,
        "contact",
        About(
            name="contact_time",
            title="contact (mean time, s)",
            unit="s",
            description="Mean time for which two nodes stay in contact",
        ),
    ),
    _of(
        graphs,
        "gap",
        About(
            name="intercontact_time",
            title="between contacts (mean time, s)",
            unit="s",
            description="Mean time between two contacts of a pair of nodes",
        ),
    ),
    _of(
        graphs,
        "breaks",
        About(
            name="contact_breaks",
            title="contacts that end (1/min)",
            unit="1/min",
            description="How many contacts end a minute",
        ),
    ),
    _of(
        graphs,
        "changes",
        About(
            name="link_changes",
            title="link changes (1/s)",
            unit="1/s",
            description="How many contacts begin or end a second",
        ),
    ),
    _of(
        graphs,
        "connected",
        About(
            name="pairs_connected",
            title="connected pairs (share)",
            description="Mean share of the pairs of nodes with a path between them",
            share=True,
            whole=True,
        ),
    ),
    _of(
        paths,
        "path",
        About(
            name="path_hops",
            title="shortest path (mean hops)",
            unit="hops",
            description="Mean hops of the shortest path between two nodes that have one",
        ),
    ),
)
