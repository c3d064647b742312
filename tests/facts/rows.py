"""Rows of facts for tests, without the columns that most tests do not care about."""

from typing import Any

from roamcast.facts.schema import TABLES, tables_of
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.messages import kind_of

KNOWN = TABLES | {name: table for entry in CATALOGUE.values() for name, table in tables_of(entry.facts).items()}
ROLES: dict[str, str] = {
    **{kind_of(message): message.role for entry in CATALOGUE.values() for message in entry.messages},
    "ack": "ack",
    "background": "background",
}
CONTEXTS = ("interest", "publication_domain", "relevance", "subscription_domain")
LEFT_OUT = {"lifetime": None, "room": -1, "role": ..., "messages": 0, **dict.fromkeys(CONTEXTS)}


def complete(table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with what was left out of it: no lifetime, no contexts, no messages, outdoors, the role of its kind."""
    names = KNOWN[table].names
    given = [name for name in names if name not in LEFT_OUT]
    if len(row) != len(given):
        return row
    values = dict(zip(given, row, strict=True))
    values |= {name: LEFT_OUT[name] for name in names if name in LEFT_OUT}
    if "role" in values:
        values["role"] = ROLES.get(values["kind"], "control")
    return tuple(values[name] for name in names)
