"""The network as a graph: how many neighbours nodes have, how many islands there are, how long contacts last.

Exact: the graph is weighted by how long it stays the same, from the warm-up to the end of the run. `roamcast.analysis`
says what a contact and an island is, `network.py` by which range. Only the width of islands is sampled, once per
second, and the length of paths, every ten seconds. All of it depends only on the world: it is computed once for runs
that share one (`run.py`).
While a node is away it is not part of the network. A run whose movement was not recorded has no such graph.
"""

from typing import Final

from roamcast.analysis.contacts import READ, Contacts
from roamcast.analysis.islands import (
    breaks_per_minute,
    changes_per_second,
    degree,
    durations,
    gaps,
    islands,
    path_hops,
)
from roamcast.analysis.kernels import Ints
from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.network import network
from roamcast.analysis.run import Run, once_per_world
from roamcast.units import SECOND

_PATH_STEP: Final = 10 * SECOND


@once_per_world(*READ)
def links(run: Run) -> Contacts | None:
    """The network of a run; None without positions and links."""
    return network(run) if run.has("leg") or run.has("link") else None


@family(
    Measure("degree_mean", "mean degree (neighbours)", "Mean number of neighbours of a node", unit="neighbours"),
    Measure(
        "partitions_mean", "partitions (mean number)", "Mean number of connected parts of the network: its islands"
    ),
    Measure(
        "largest_partition",
        "largest partition (share of nodes)",
        "Mean share of the nodes in the largest connected part",
        share=True,
        whole=True,
    ),
    Measure("island_size", "island size (nodes)", "Mean size of an island", unit="nodes"),
    Measure(
        "island_size_by_node",
        "size of a node's island (nodes)",
        "Mean size of the island that a node is on",
        unit="nodes",
    ),
    Measure("contact_time", "contact (mean time, s)", "Mean time for which two nodes stay in contact", unit="s"),
    Measure(
        "intercontact_time",
        "between contacts (mean time, s)",
        "Mean time between two contacts of a pair of nodes",
        unit="s",
    ),
    Measure("contact_breaks", "contacts that end (1/min)", "How many contacts end a minute", unit="1/min"),
    Measure("link_changes", "link changes (1/s)", "How many contacts begin or end a second", unit="1/s"),
    Measure(
        "pairs_connected",
        "connected pairs (share)",
        "Mean share of the pairs of nodes with a path between them",
        share=True,
        whole=True,
    ),
)
@once_per_world(*READ)
def graph(run: Run) -> Values:
    net, start = links(run), run.start
    if net is None:
        return {}
    seen = islands(net, start)
    return {
        "degree_mean": degree(net, start),
        "partitions_mean": seen.number_mean(),
        "largest_partition": seen.largest_share(),
        "island_size": seen.size(),
        "island_size_by_node": seen.size_by_node(),
        "contact_time": _seconds(durations(net, start)),
        "intercontact_time": _seconds(gaps(net, start)),
        "contact_breaks": breaks_per_minute(net, start),
        "link_changes": changes_per_second(net, start),
        "pairs_connected": seen.pairs_connected(),
    }


# Apart from the others, since they cost more.
@family(
    Measure(
        "island_hops",
        "width of an island (hops)",
        "Mean width of an island: the hops between its two farthest nodes",
        unit="hops",
    ),
    Measure(
        "island_hops_by_node",
        "width of a node's island (hops)",
        "Mean width of the island that a node is on",
        unit="hops",
    ),
    Measure("island_hops_max", "widest island (hops)", "Width of the widest island that was seen", unit="hops"),
)
@once_per_world(*READ)
def widths(run: Run) -> Values:
    net = links(run)
    if net is None:
        return {}
    seen = islands(net, run.start, widths=True, step=SECOND)
    return {
        "island_hops": seen.width(),
        "island_hops_by_node": seen.width_by_node(),
        "island_hops_max": seen.greatest_width(),
    }


@family(
    Measure(
        "path_hops",
        "shortest path (mean hops)",
        "Mean hops of the shortest path between two nodes that have one",
        unit="hops",
    ),
)
@once_per_world(*READ)
def paths(run: Run) -> Values:
    net = links(run)
    return {} if net is None else {"path_hops": path_hops(net, run.start, step=_PATH_STEP)}


def _seconds(times: Ints) -> float | None:
    return float(times.mean()) / SECOND if len(times) else None
