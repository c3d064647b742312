"""What a bridge must not forget: one SQLite file, so that nothing is lost or doubled when either side is restarted.

The rules this file owns:

* An event for the broker is in the outbox, under its id, before the node gets its acknowledgement. It has a Packet
  Identifier, on disk, before it is sent; PUBREC is on disk before PUBREL is sent [4.3.3]; after PUBCOMP only its id is
  left, among the last `MAX_DONE`: an event that the node sends again is recognised by it.
* A message for the node is in the inbox, together with its Packet Identifier, before the broker gets PUBREC; PUBREL has
  freed the identifier before PUBCOMP is sent. The message leaves the inbox when the node has it on disk.
* **A broker may forget that it sent PUBREL.** Mosquitto 2.0.11, restarted at that moment, sends the PUBLISH again,
  which [MQTT-4.3.3-6] forbids. So a message with DUP, and the identifier and content of one of the last `MAX_FREED`
  that are complete, is taken for that one; unless this broker was seen to use identifiers again so soon, since then it
  may be another.
* Nothing is sent before `commit`.
"""

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from roamcast.errors import ConfigError
from roamcast.live.mqtt.topics import ApplicationMessage

APPLICATION: Final = 0x726F616E
"""`roan`: identifies these files."""
VERSION: Final = 1
MAX_ROWS: Final = 100_000
"""Messages in each direction; with more, no more are taken from that side until there is room."""
MAX_DONE: Final = 100_000
MAX_FREED: Final = 1000
"""Packet Identifiers of complete messages that are remembered."""

_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE named (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE outbox (
    serial INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL UNIQUE, message BLOB NOT NULL,
    packet INTEGER UNIQUE, released INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE done (serial INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL UNIQUE, time REAL NOT NULL);
CREATE TABLE inbox (serial INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB NOT NULL);
CREATE TABLE received (packet INTEGER PRIMARY KEY, digest BLOB NOT NULL, freed INTEGER);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""


class OutgoingEvent(NamedTuple):
    """An event on its way to the broker."""

    serial: int
    event: str
    message: ApplicationMessage
    packet: int
    released: bool
    """Whether the broker has it: only PUBREL and PUBCOMP are missing."""


class BridgeState:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.touch(0o600)
            self._connection = sqlite3.connect(path, timeout=0.2)
            self._prepare()
        except (OSError, sqlite3.Error) as problem:
            words = "another bridge uses it" if "locked" in str(problem) else str(problem)
            raise ConfigError(f"--state {path}: cannot be used: {words}") from None
        self.client_id = self._named("client", f"roamcast-bridge-{secrets.token_hex(8)}")
        self.commit()
        self._packet = 0

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        marks = [execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        if execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            self._connection.executescript(_SCHEMA)
            # Numbers of messages do not repeat if the file is lost.
            execute("INSERT INTO sqlite_sequence VALUES ('inbox', ?)", (time.time_ns() // 1000,))
            self.commit()
        elif marks != [APPLICATION, VERSION]:
            raise sqlite3.DatabaseError("it is not the state of a bridge of this version")

    def _named(self, name: str, default: str) -> str:
        self._connection.execute("INSERT OR IGNORE INTO named VALUES (?, ?)", (name, default))
        return str(self._one("SELECT value FROM named WHERE name = ?", name))

    def _one(self, statement: str, *values: object) -> Any:  # noqa: ANN401  # of SQLite
        row = self._connection.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self.commit()
        self._connection.close()

    def counts(self) -> dict[str, int]:
        """Messages that wait for each side, and Packet Identifiers of the broker's that are not freed."""
        tables = {"outbox": "outbox", "inbox": "inbox", "received": "received WHERE freed IS NULL"}
        return {name: self._one(f"SELECT count(*) FROM {table}") for name, table in tables.items()}

    # --- To the broker ----------------------------------------------------------------------------------------------

    @property
    def outbox_is_full(self) -> bool:
        return bool(self._one("SELECT count(*) FROM outbox") >= MAX_ROWS)

    def take_out(self, event: str, message: ApplicationMessage) -> bool:
        """Puts an event into the outbox; returns whether it is new."""
        if self._one("SELECT 1 FROM done WHERE event = ?", event) is not None:
            return False
        packed = msgspec.msgpack.encode(message)
        return bool(
            self._connection.execute(
                "INSERT OR IGNORE INTO outbox (event, message) VALUES (?, ?)", (event, packed)
            ).rowcount
        )

    def sent(self) -> list[OutgoingEvent]:
        """What has been sent and is not complete, in order."""
        return list(self._outgoing("packet IS NOT NULL ORDER BY serial"))

    def next_out(self) -> OutgoingEvent | None:
        """The next event to send, with a Packet Identifier of its own."""
        found = next(self._outgoing("packet IS NULL ORDER BY serial LIMIT 1"), None)
        if found is None:
            return None
        while True:
            self._packet = self._packet % 65535 + 1
            if self._one("SELECT 1 FROM outbox WHERE packet = ?", self._packet) is None:
                break
        self._connection.execute("UPDATE outbox SET packet = ? WHERE serial = ?", (self._packet, found.serial))
        return found._replace(packet=self._packet)

    def _outgoing(self, which: str) -> Iterator[OutgoingEvent]:
        rows = self._connection.execute(f"SELECT serial, event, message, packet, released FROM outbox WHERE {which}")
        for serial, event, packed, packet, released in rows.fetchall():
            message = msgspec.msgpack.decode(packed, type=ApplicationMessage)
            yield OutgoingEvent(serial, event, message, packet or 0, bool(released))

    def release(self, packet: int) -> bool:
        """PUBREC has come; returns whether the packet is known."""
        return bool(self._connection.execute("UPDATE outbox SET released = 1 WHERE packet = ?", (packet,)).rowcount)

    def complete(self, packet: int) -> str | None:
        """PUBCOMP has come, or a refusal; returns the event's id."""
        event = self._one("SELECT event FROM outbox WHERE packet = ?", packet)
        if event is None:
            return None
        execute = self._connection.execute
        execute("DELETE FROM outbox WHERE packet = ?", (packet,))
        serial = execute("INSERT INTO done (event, time) VALUES (?, ?)", (event, time.time())).lastrowid or 0
        execute("DELETE FROM done WHERE serial <= ?", (serial - MAX_DONE,))
        return str(event)

    def begin_anew(self) -> list[str]:
        """The broker has forgotten the session: what was not completed is sent again, as if it were new. Returns the
        events that the broker had got, and that it may now get twice."""
        doubtful = [outgoing.event for outgoing in self.sent() if outgoing.released]
        self._connection.execute("UPDATE outbox SET packet = NULL, released = 0")
        self._connection.execute("DELETE FROM received")
        return doubtful

    # --- To the node ------------------------------------------------------------------------------------------------

    @property
    def inbox_is_full(self) -> bool:
        return bool(self._one("SELECT count(*) FROM inbox") >= MAX_ROWS)

    def is_received(self, message: ApplicationMessage, packet: int, dup: bool) -> bool:
        """Whether a message with QoS 2 has been taken already."""
        known = self._connection.execute("SELECT digest, freed FROM received WHERE packet = ?", (packet,)).fetchone()
        if known is None:
            return False
        digest, freed = known
        if freed is None:  # [MQTT-4.3.3-10]
            return True
        if dup and digest == _digest(message) and self._named("identifiers", "once") == "once":
            return True
        self._connection.execute("UPDATE named SET value = 'again' WHERE name = 'identifiers'")
        return False

    def take_in(self, message: ApplicationMessage, packet: int) -> None:
        """Puts a message into the inbox, with its Packet Identifier if it has QoS 2; 0: it has not."""
        self._connection.execute("INSERT INTO inbox (message) VALUES (?)", (msgspec.msgpack.encode(message),))
        if packet:
            self._connection.execute("INSERT OR REPLACE INTO received VALUES (?, ?, NULL)", (packet, _digest(message)))

    def free(self, packet: int) -> None:
        """PUBREL has come: the Packet Identifier may be used again."""
        number = 1 + (self._one("SELECT max(freed) FROM received") or 0)
        self._connection.execute("UPDATE received SET freed = ? WHERE packet = ? AND freed IS NULL", (number, packet))
        self._connection.execute("DELETE FROM received WHERE freed <= ?", (number - MAX_FREED,))

    def inbox(self, after: int, most: int) -> list[tuple[int, ApplicationMessage]]:
        rows = self._connection.execute(
            "SELECT serial, message FROM inbox WHERE serial > ? ORDER BY serial LIMIT ?", (after, most)
        )
        return [(serial, msgspec.msgpack.decode(packed, type=ApplicationMessage)) for serial, packed in rows.fetchall()]

    def delivered(self, serial: int) -> None:
        """The node has a message on disk."""
        self._connection.execute("DELETE FROM inbox WHERE serial = ?", (serial,))


def _digest(message: ApplicationMessage) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(message)).digest()[:16]
