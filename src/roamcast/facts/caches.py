"""How full caches are, and what they drop, from the facts of the table `cache`."""

from typing import Any, Final

import pyarrow as pa

FIGURES: Final = ("cache_mean", "cache_peak", "cache_drops")


def cache_figures(changes: pa.Table, nodes: int, start: int, end: int) -> dict[str, Any]:
    """From `start` to `end` (ns): the mean number of documents in a cache, over nodes and time; the most in any cache
    at any time; and how many documents a node dropped because its cache was full."""
    columns = [changes[name].to_pylist() for name in ("time", "node", "documents", "change")]
    current: dict[int, int] = {}  # documents by node
    since: dict[int, int] = {}
    held, most, drops = 0, 0, 0
    for time, node, documents, change in zip(*columns, strict=True):
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
    span = end - start
    mean = held / (nodes * span) if span > 0 and nodes else None
    return dict(zip(FIGURES, (mean, float(most), drops / nodes if nodes else None), strict=True))
