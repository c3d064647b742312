"""Makes the rows of facts about publications and subscriptions, and reads events back from their rows.

Contexts are written as text, which parses to an equal context.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from roamcast.content.context.expression import Context
from roamcast.content.event import TYPE, Event, EventId, Scalar
from roamcast.content.rows import BOOL, FLOAT, INT, STR
from roamcast.content.subscription import Publication, Subscription

VALUE_COLUMNS: Final = {INT: "integer", FLOAT: "real", STR: "text", BOOL: "flag"}
"""The column that has a value of each `kind`."""


def subscribe_row(time: int, node: int, subscription: Subscription) -> tuple[Any, ...]:
    """A subscription begins."""
    wanted, contexts = str(subscription.filter), (subscription.interest, subscription.publication_domain)
    return time, node, subscription.id, True, wanted, subscription.lifetime, *map(_text, contexts)


def unsubscribe_row(time: int, node: int, subscription: int) -> tuple[Any, ...]:
    """A subscription ends."""
    return time, node, subscription, False, None, None, None, None


def publish_row(time: int, node: int, publication: Publication) -> tuple[Any, ...]:
    event, contexts = publication.event, (publication.relevance, publication.subscription_domain)
    return time, node, event.id, event.type, event.size, publication.lifetime, *map(_text, contexts)


def _text(context: Context | None) -> str | None:
    return None if context is None else str(context)


def rows_of(table: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Some columns of a table, row by row."""
    return zip(*(table[column].to_pylist() for column in columns), strict=True)


def read_rows(facts: Mapping[str, pa.Table], table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The same of a run's table; none if it has no such table."""
    return rows_of(facts[table], *columns) if table in facts else iter(())


def read_events(facts: Mapping[str, pa.Table], wanted: Iterable[EventId]) -> dict[EventId, Event]:
    """The events with these ids, rebuilt from their attributes; payloads are not recorded."""
    attributes: dict[EventId, dict[str, list[Scalar]]] = {event: defaultdict(list) for event in wanted}
    place = {kind: number for number, kind in enumerate(VALUE_COLUMNS, 3)}
    for row in read_rows(facts, "event_attribute", "event", "attribute", "kind", *VALUE_COLUMNS.values()):
        if row[0] in attributes:
            attributes[row[0]][row[1]].append(row[place[row[2]]])
    rebuilt = {}
    for event, values in attributes.items():
        (type_,) = values.pop(TYPE)
        rebuilt[event] = Event.of(str(type_), values, id=event)
    return rebuilt
