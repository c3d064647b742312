"""The rows of a store: their tables, a checksum for each, and what can be saved of a damaged file.

SQLite notices a damaged page only if its structure is wrong: a bit that has flipped in a value is read as if it had
been written. So each row has a CRC-32 of its values. `waiting` needs none: a row of it names two others, and one that
names none is removed. `handed` is not part of the sum, since it changes alone; at worst a publication is sent again.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

SCHEMA: Final = """
CREATE TABLE number (name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kept (
    protocol TEXT, key TEXT, value BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (protocol, key)
) WITHOUT ROWID;
CREATE TABLE publication (
    serial INTEGER PRIMARY KEY, publication BLOB NOT NULL, time INTEGER NOT NULL, handed INTEGER NOT NULL,
    sum INTEGER NOT NULL
);
CREATE TABLE subscription (
    id INTEGER PRIMARY KEY, filter TEXT NOT NULL, until INTEGER, interest TEXT, publication_domain TEXT,
    sum INTEGER NOT NULL
);
CREATE TABLE delivery (number INTEGER PRIMARY KEY, packed BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE waiting (
    subscription INTEGER, delivery INTEGER, PRIMARY KEY (subscription, delivery)
) WITHOUT ROWID;
CREATE TABLE session (
    key TEXT, sender INTEGER, salt BLOB, block INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (key, sender, salt)
);
"""
DAMAGE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises: the second, if a name in its schema is no longer UTF-8."""
_SUMMED: Final = {
    "number": (("name",), ("value",)),
    "kept": (("protocol", "key"), ("value",)),
    "publication": (("serial",), ("publication", "time")),
    "subscription": (("id",), ("filter", "until", "interest", "publication_domain")),
    "delivery": (("number",), ("packed",)),
    "session": (("key", "sender", "salt"), ("block",)),
}
"""The columns of each table that its checksum is of: its key, and the others."""


def sum_of(*values: object) -> int:
    try:
        return zlib.crc32(msgspec.msgpack.encode(values))
    except (UnicodeEncodeError, OverflowError):  # no row has such a value: SQLite refuses it, or it is damaged
        return -1


def marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """What a file says that it is: the number of its program, and the version of its tables."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    return application, version


def health(connection: sqlite3.Connection, application: int, version: int) -> str:
    """What is wrong with a file's structure; "ok" if nothing is, or if it is not a store of this version."""
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        found_marks = marks(connection)
        tables = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    except DAMAGE as problem:
        return str(problem)
    if (
        found == "ok"
        and found_marks == (application, version)
        and tables != {one.strip() for one in SCHEMA.split(";")} - {""}
    ):
        return "its tables are not those of a store"
    return str(found)


def damaged_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Removes the rows whose checksum is wrong, and names each."""
    connection.text_factory = _text
    try:
        for table, (keys, others) in _SUMMED.items():
            rows = connection.execute(f"SELECT {', '.join((*keys, *others))}, sum FROM {table}")
            wrong = [row[: len(keys)] for row in rows if sum_of(*row[:-1]) != row[-1]]
            same = " AND ".join(f"CAST({column} AS BLOB) IS CAST(? AS BLOB)" for column in keys)
            for key in wrong:
                connection.execute(f"DELETE FROM {table} WHERE {same}", [_octets(part) for part in key])
                yield f"{table} {' '.join(map(_name, key))}"
    finally:
        connection.text_factory = str


def _text(octets: bytes) -> str:
    return octets.decode(errors="surrogateescape")


def _octets(part: Any) -> Any:  # noqa: ANN401  # a value of SQLite
    return part.encode(errors="surrogateescape") if isinstance(part, str) else part


def _name(part: object) -> str:
    return part.hex() if isinstance(part, bytes) else str(part).encode(errors="backslashreplace").decode()


def salvage(damaged: sqlite3.Connection, path: Path, application: int, version: int) -> Path | None:
    """Copies the rows that can still be read to a new store at `path`, and moves the damaged file away; returns where
    to. None, and nothing is changed, if it is not a store of this version or none of its numbers can be read."""
    with suppress(*DAMAGE):
        if marks(damaged) != (application, version) or not _readable(damaged, "number"):
            return None
        fresh, aside = path.with_name(f"{path.name}.fresh"), path.with_name(f"{path.name}.damaged")
        fresh.unlink(missing_ok=True)
        copy = sqlite3.connect(fresh, isolation_level=None)
        fresh.chmod(0o600)
        copy.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {version}; PRAGMA application_id = {application};")
        for table in (*_SUMMED, "waiting"):
            for row in _readable(damaged, table):
                copy.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        copy.execute("COMMIT")
        copy.close()
        damaged.close()
        for end in ("-wal", ""):  # the log of the damaged file must not be applied to the new one
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).replace(aside.with_name(aside.name + end))
        fresh.replace(path)
        return aside
    return None


def _readable(damaged: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table that can be read, from its beginning and from its end."""
    rows: dict[tuple[Any, ...], None] = {}
    keys, _ = _SUMMED.get(table, (("subscription", "delivery"), ()))
    key = ", ".join(f"{column} DESC" for column in keys)
    damaged.text_factory = _text
    for order in ("", f" ORDER BY {key}"):
        with suppress(*DAMAGE):
            for row in damaged.execute(f"SELECT * FROM {table}{order}"):
                rows[tuple(_octets(part) if _is_broken(part) else part for part in row)] = None
    damaged.text_factory = str
    return list(rows)


def _is_broken(part: object) -> bool:
    return isinstance(part, str) and any("\ud800" <= character <= "\udfff" for character in part)
