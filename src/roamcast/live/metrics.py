"""A node's metrics in the text format of Prometheus, written by its client library.

Nothing is counted here: every number is read from the node's status when Prometheus asks.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE_LATEST", "exposition"]


class _Status(Collector):
    def __init__(self, status: Mapping[str, Any]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        status, counters = self._status, self._status["counters"]
        yield _gauge("roamcast_neighbours", "Neighbours heard.", len(status["neighbours"]))
        yield _gauge("roamcast_subscriptions", "Subscriptions of this node.", len(status["subscriptions"]))
        waiting = sum(each["waiting"] for each in status["subscriptions"])
        yield _gauge("roamcast_events_waiting", "Events that wait for a listener.", waiting)
        missed = sum(each["missed"] for each in status["subscriptions"])
        yield _total("roamcast_events_missed", "Events that a listener was too slow for.", {(): missed})
        yield _total("roamcast_store_commits", "Commits of the store.", {(): status["store"]["commits"]})
        tables = GaugeMetricFamily("roamcast_table", "Entries of a table of the protocol.", labels=["table"])
        for name, size in status["tables"].items():
            tables.add_metric([name], size)
        yield tables
        for name, words in (
            ("node", "What the node did."),
            ("link", "Datagrams, and why they were dropped."),
            ("notes", "What the protocol noted."),
            ("senses", "Failures of a sense."),
        ):
            yield _total(f"roamcast_{name}", words, {(what,): n for what, n in counters[name].items()}, ["what"])
        sent: dict[tuple[str, ...], float] = {
            (kind, what): n for kind, counted in counters["sent"].items() for what, n in counted.items()
        }
        yield _total("roamcast_messages", "Messages by their kind.", sent, ["kind", "what"])


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value=value)


def _total(
    name: str, words: str, values: Mapping[tuple[str, ...], float], labels: list[str] | None = None
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, words, labels=labels or [])
    for names, value in values.items():
        family.add_metric(list(names), value)
    return family


def exposition(status: Mapping[str, Any]) -> bytes:
    """The status of a node, for Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Status(status))
    return generate_latest(registry)
