"""The vocabulary of facts: the tables that every world records, simulated or live, and the pipeline reads.

A run records what happened, never what it means. Times are int64 nanoseconds since the run's start. Every run has these
tables; a protocol's own tables follow from the classes of facts it declares (`table_of`). `docs/facts.md` explains each
column.
"""

import types
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa

from roamcast.errors import RoamcastError
from roamcast.protocols.facts import Decision, Fact


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


FACTS_VERSION: Final = 2
"""Version of the tables and columns below. Increase it with every change of an existing one; see CHANGELOG.md."""

_I, _F, _S, _B = pa.int64(), pa.float64(), pa.string(), pa.bool_()

_TYPED_VALUE: Final = {"kind": _S, "integer": _I, "real": _F, "text": _S, "flag": _B}
LOSSES: Final = ("collision", "half_duplex", "random_loss", "queue_full", "unreachable")
"""Why a frame, or a message, did not arrive."""
COUNTERS: Final = ("packets", "bits", "airtime", "receptions", *LOSSES)
"""The counters of frames, in this order; `airtime` is in ns."""
_COUNTED: Final = dict.fromkeys(("messages", *COUNTERS), _I)
"""The counters of frames, and the number of brokers' messages: a message counts once, however often the link repeats
it."""

# Contexts are text, which parses to an equal context; none: null
TABLES: Final[dict[str, pa.Schema]] = {
    # A subscription began, or ended (`active` false)
    "subscribe": _schema(
        time=_I, node=_I, subscription=_I, active=_B, filter=_S, lifetime=_I, interest=_S, publication_domain=_S
    ),
    # A subscription's filter as rows, see content/rows.py
    "filter_constraint": _schema(
        subscription=_I, conjunction=_I, needed=_I, constraint=_I, attribute=_S, operator=_S, **_TYPED_VALUE
    ),
    "publish": _schema(time=_I, node=_I, event=_I, type=_S, size=_I, lifetime=_I, relevance=_S, subscription_domain=_S),
    # An event's attributes as rows
    "event_attribute": _schema(event=_I, attribute=_S, **_TYPED_VALUE),
    "deliver": _schema(time=_I, node=_I, event=_I, subscription=_I, published=_I, hops=_I, via=_S),
    # Totals by node, kind and cause (0: none); rows with the same key add up
    "transmit": _schema(node=_I, kind=_S, role=_S, cause=_I, **_COUNTED),
    # The network by second and kind
    "series": _schema(second=_I, kind=_S, role=_S, **_COUNTED),
    # What brokers noted, by node; rows with the same key add up
    "note": _schema(node=_I, fact=_S, count=_I),
    # A node's attribute changed: its value from then on
    "attribute": _schema(time=_I, node=_I, attribute=_S, **_TYPED_VALUE),
    # A node went away or came back; when it came back, whether it restarted with what it had kept (`restart`)
    "away": _schema(time=_I, node=_I, away=_B, restart=_B),
    # One straight movement
    "leg": _schema(node=_I, start=_I, end=_I, x0=_F, y0=_F, x1=_F, y1=_F, indoor=_B, room=_I),
    # A link appeared (with its loss) or disappeared (loss null)
    "link": _schema(time=_I, sender=_I, receiver=_I, loss=_F),
    # On request: every transmission, and its outcome at each node it was meant for
    "frame": _schema(frame=_I, start=_I, end=_I, sender=_I, to=_I, kind=_S, cause=_I, event=_I, packets=_I, size=_I),
    "reception": _schema(frame=_I, node=_I, outcome=_S),
}

LASTING: Final = b"lasting"
"""In the metadata of a schema: each row holds until the node's next row."""

DATA_ROLE: Final = "data"
"""Of messages that carry events."""
ACK_ROLE: Final = "ack"
BACKGROUND_ROLE: Final = "background"
"""Roles of frames without a broker's message: link-layer acknowledgements, and traffic that only loads the network."""

_OF_TYPE: Final = {int: _I, float: _F, str: _S, bool: _B}


@cache
def table_of(fact: type[Fact]) -> pa.Schema:
    """The table of a class of facts: time, node, and its fields."""
    hints = get_type_hints(fact, include_extras=False)
    columns = {field.name: _column(fact, field.name, hints[field.name]) for field in msgspec.structs.fields(fact)}
    metadata = {LASTING: b"true"} if fact.lasting else None
    return _schema(time=_I, node=_I, **columns).with_metadata(metadata)


def _column(fact: type[Fact], name: str, hint: Any) -> pa.DataType:  # noqa: ANN401  # a type, or what typing makes of one
    options = [option for option in get_args(hint) if option is not type(None)]
    if isinstance(hint, types.UnionType) and len(options) == 1:
        return _column(fact, name, options[0])
    if get_origin(hint) is tuple and options == [int, ...]:
        return pa.list_(_I)
    if options and all(isinstance(option, str) for option in options):  # a Literal
        return _S
    if hint in _OF_TYPE:
        return _OF_TYPE[hint]
    raise RoamcastError(
        f"the fact {fact.__name__}: {name}: {hint} cannot be a column: int, float, bool, str and tuple[int, ...] can"
    )


def tables_of(facts: Iterable[type[Fact]]) -> dict[str, pa.Schema]:
    """All tables of a run whose protocol records these facts."""
    every: list[type[Fact]] = [Decision, *facts]
    declared = {fact.table: table_of(fact) for fact in every}
    for name in declared:
        if name in TABLES:
            raise RoamcastError(f"a fact's table is named {name!r}, as one that every run has: choose another name")
    return TABLES | declared
