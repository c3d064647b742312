"""How full caches are and what they drop, for protocols that carry documents. A run without them has no value."""

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.run import Run
from roamcast.facts.rows import rows_of


@family(
    Measure("cache_mean", "documents in a cache", "Documents in a node's cache, as a mean over nodes and time"),
    Measure("cache_peak", "most documents in a cache", "Most documents in any cache at any time"),
    Measure(
        "cache_drops",
        "documents dropped per node",
        "Documents that a node dropped because its cache was full",
        good="low",
    ),
)
def caches(run: Run) -> Values:
    """From the warm-up to the end of the run."""
    if not run.has("cache"):
        return {}
    start, end = run.start, run.end
    current: dict[int, int] = {}  # documents by node
    since: dict[int, int] = {}
    held, most, drops = 0, 0, 0
    for time, node, documents, change in rows_of(run.table("cache"), "time", "node", "documents", "change"):
        if time > end:
            break
        before = current.get(node, 0)
        held += before * max(0, time - max(since.get(node, start), start))
        current[node], since[node] = documents, time
        if time >= start:
            most = max(most, documents, before)
            drops += change == "full"
    for node, documents in current.items():
        held += documents * max(0, end - max(since[node], start))
        most = max(most, documents)
    mean = held / (run.nodes * (end - start)) if end > start else None
    return {"cache_mean": mean, "cache_peak": most, "cache_drops": drops / run.nodes}
