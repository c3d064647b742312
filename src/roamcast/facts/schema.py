"""The vocabulary of facts: what every world records, simulated or live, and the pipeline reads.

A run records what happened, never what it means. Times are int64 nanoseconds since the run's start. Facts are streamed
out in batches, so that memory does not grow with time. `docs/facts.md` explains each column.
"""

from typing import Final

import pyarrow as pa


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_I, _F, _S, _B = pa.int64(), pa.float64(), pa.string(), pa.bool_()

_TYPED_VALUE: Final = {"kind": _S, "integer": _I, "real": _F, "text": _S, "flag": _B}
LOSSES: Final = ("collision", "half_duplex", "random_loss", "queue_full", "unreachable")
"""Why a frame, or a message, did not arrive."""
COUNTERS: Final = ("packets", "bits", "airtime", "receptions", *LOSSES)
"""What is counted of frames, in this order; `airtime` is in ns."""
_COUNTED: Final = dict.fromkeys(COUNTERS, _I)

TABLES: Final[dict[str, pa.Schema]] = {
    # Who asked for what, and when it was over (`active` false)
    "subscribe": _schema(time=_I, node=_I, subscription=_I, active=_B, filter=_S),
    # A subscription's filter as rows, see content/rows.py
    "filter_constraint": _schema(
        subscription=_I, conjunction=_I, needed=_I, constraint=_I, attribute=_S, operator=_S, **_TYPED_VALUE
    ),
    "publish": _schema(time=_I, node=_I, event=_I, type=_S, size=_I),
    # An event's attributes as rows
    "event_attribute": _schema(event=_I, attribute=_S, **_TYPED_VALUE),
    "deliver": _schema(time=_I, node=_I, event=_I, subscription=_I, published=_I, hops=_I, via=_S),
    # Totals by node, kind and cause (0: none); rows of the same key add up
    "transmit": _schema(node=_I, kind=_S, cause=_I, **_COUNTED),
    # The network by second and kind
    "series": _schema(second=_I, kind=_S, **_COUNTED),
    # What brokers noted, by node; rows of the same key add up
    "note": _schema(node=_I, fact=_S, count=_I),
    # A node's place in a tree changed: at a root the parent is null, and so is a leader that is not known
    "tree": _schema(time=_I, node=_I, change=_S, cause=_I, parent=_I, children=pa.list_(_I), leader=_I),
    # One stretch of straight movement
    "leg": _schema(node=_I, start=_I, end=_I, x0=_F, y0=_F, x1=_F, y1=_F, indoor=_B),
    # A link came (with its loss) or went (loss null)
    "link": _schema(time=_I, sender=_I, receiver=_I, loss=_F),
    # On request: every transmission, and what became of it at each node it was meant for
    "frame": _schema(frame=_I, start=_I, end=_I, sender=_I, to=_I, kind=_S, cause=_I, packets=_I, size=_I),
    "reception": _schema(frame=_I, node=_I, outcome=_S),
}
