"""What arrives at brokers: bytes, messages, throughput, and which messages carry events.

After the evaluation of extended ODMRP (Yoneki, Bacon 2004, section IV). The rules this file owns:

* **Incoming** is every message or fragment that a node received from the warm-up on, for whichever node, without
  headers; in the cooldown, only those that carry events. Which node received which frame is only known with
  `record.frames = true`; without, what needs it is undefined.
* A **receiver** is a node that had a subscription. It is *served* if an event of the measured time was delivered to it,
  and *unserved* if none was. Receivers are counted in the order of their numbers: of the first five there are measures
  of their own, as the paper has a bar for each.
* **Throughput** is the number of measured events that were delivered at least once, over the time from the first
  publication to the last delivery.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roamcast.analysis.measures.measure import Measure, Values, family
from roamcast.analysis.run import Run, mean, once, ratio
from roamcast.facts.schema import DATA_ROLE
from roamcast.units import SECOND

_LOCAL: Final = "local"
"""How events reach subscriptions on their publisher's own node."""
_IN_REQUEST: Final = "join_event"
_PROTOCOL: Final = "odmrp"
PLACES: Final = (1, 2, 3, 4, 5)
"""The receivers that have measures of their own."""


@once
def _arrived(run: Run) -> pa.Table:
    """Deliveries of measured events at other nodes than their publishers'."""
    rows = run.table("deliver", "time", "node", "event", "published", "via")
    return rows.filter(pc.and_(pc.greater_equal(rows["published"], run.start), pc.not_equal(rows["via"], _LOCAL)))


def _frames(run: Run) -> pa.Table:
    """The frames that count as sent, with their sizes."""
    frames, sent = run.table("frame", "frame", "start", "end", "kind", "size"), run.table("transmit", "kind", "role")
    carriers = pc.unique(sent.filter(pc.equal(sent["role"], DATA_ROLE))["kind"])
    in_time = pc.or_(pc.less(frames["start"], run.stop), pc.is_in(frames["kind"], carriers))
    counted = frames.filter(pc.and_(pc.greater_equal(frames["end"], run.start), in_time))
    return counted.select(["frame", "size"])


def _bytes(name: str, title: str, description: str) -> Measure:
    return Measure(name, title, description, unit="B", good="low")


@family(
    _bytes("bytes_in", "incoming (bytes per node)", "Mean number of bytes that a node received"),
    Measure("messages_in", "incoming (messages per node)", "Mean number of messages a node received", good="low"),
    _bytes(
        "bytes_in_receivers",
        "incoming (bytes per receiver)",
        "Mean number of bytes that a node with a subscription received",
    ),
    *(
        _bytes(
            f"bytes_in_receiver_{place}",
            f"incoming (bytes at receiver {place})",
            f"Bytes that receiver {place} received, in the order of the receivers' numbers",
        )
        for place in PLACES
    ),
    Measure(
        "bytes_in_unserved",
        "incoming at receivers that match nothing (in parts of what the others receive)",
        "Bytes received by receivers to which nothing was delivered, in parts of those of the others",
        good="low",
    ),
)
def incoming(run: Run) -> Values:
    if not run.has("frame"):
        return {}
    frames, receptions = _frames(run), run.table("reception", "frame", "node", "outcome")
    received = receptions.filter(pc.equal(receptions["outcome"], "received")).join(frames, "frame", join_type="inner")
    nodes = received["node"].to_numpy()
    octets = np.bincount(nodes, received["size"].to_numpy(), minlength=run.nodes)
    receivers, served = np.unique(run.column("subscribe", "node")), np.unique(_arrived(run)["node"].to_numpy())
    got = np.isin(receivers, served)
    places = {f"bytes_in_receiver_{place}": float(octets[node]) for place, node in zip(PLACES, receivers, strict=False)}
    return {
        "bytes_in": mean(octets),
        "messages_in": mean(np.bincount(nodes, minlength=run.nodes)),
        "bytes_in_receivers": mean(octets[receivers]),
        **places,
        "bytes_in_unserved": ratio(mean(octets[receivers[~got]]), mean(octets[receivers[got]])),
    }


@family(
    Measure(
        "throughput",
        "throughput (events per s)",
        "Events delivered, over the time from the first publication to the last delivery",
        unit="1/s",
        good="high",
    ),
    Measure(
        "in_join_requests",
        "delivered inside Join Requests (share of deliveries)",
        "Share of the deliveries by ODMRP that came inside a Join Request, not as data",
        share=True,
        whole=True,
    ),
)
def throughput(run: Run) -> Values:
    arrived, published = _arrived(run), run.column("publish", "time")
    published = published[published >= run.start]
    if not arrived.num_rows or not len(published):
        return {}
    span = (int(arrived["time"].to_numpy().max()) - int(published.min())) / SECOND
    inside = int(pc.sum(pc.equal(arrived["via"], _IN_REQUEST)).as_py())
    return {
        "throughput": ratio(len(np.unique(arrived["event"].to_numpy())), span),
        "in_join_requests": inside / arrived.num_rows if run.protocol == _PROTOCOL else None,
    }
