"""What must survive a crash: one SQLite file per node, written by one process.

The rules this file owns:

* **Group commit.** Writes are queued on the event loop and committed together by one thread. `committed()` and `then()`
  say when everything queued so far is on disk; before that, the node sends nothing that depends on a write. What was
  queued and not committed never happened.
* **Durability.** With `sync` "full" a commit has reached the disk (it survives a loss of power); with "normal" it has
  reached the operating system (it survives `kill -9`). With "off" nothing waits for a commit, which follows a little
  later: only a clean stop guarantees that everything survives. Two promises hold even then, except after a loss of
  power: no frame is accepted twice, and ids never repeat, since a store that was not closed skips `SKIPPED` serials.
* **Bounded.** Of the publications handed to the broker, the last `LOGGED` are kept, up to `LOGGED_BYTES`; those not
  handed over yet are kept until they are.
* **Fail-stop.** If the store cannot be written, the node ends: it could no longer keep its promises. `on_failure` is
  called once, and all waiting callers get the error.
* **Damage is found, told and survived.** Every row has a checksum (`rows.py`). A row that has changed on the disk is
  dropped when the store opens, and logged by name; if SQLite itself cannot read the file any more, the rows that can
  still be read are copied to a new one, and the damaged file is kept beside it. The numbers of events then skip
  `SKIPPED`, so that none repeats.
* A file of another node, version or program is refused, with an error that says which.
"""

import asyncio
import errno
import os
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from roamcast.errors import RoamcastError
from roamcast.live import log
from roamcast.live.link.replay import FrameSession
from roamcast.live.rows import DAMAGE, SCHEMA, damaged_rows, health, marks, salvage, sum_of

VERSION: Final = 6
APPLICATION: Final = 0x726F616D
"""`roam`: identifies our files."""
LOGGED: Final = 10_000
LOGGED_BYTES: Final = 64 * 2**20

SKIPPED: Final = 1_000_000
"""Serials to skip after an unclean end with `sync` "off": more than can have been lost."""
BEHIND: Final = 0.2
"""Seconds during which writes are collected with `sync` "off"."""

Sync = Literal["full", "normal", "off"]
T = TypeVar("T")

_NUMBERS: Final = ("node", "epoch", "clock", "serial", "recorded", "subscriptions", "deliveries", "behind")
"""`epoch` is time 0 as first set, and `clock` the latest time at which the node is known to have run, both in ns of
wall-clock time; `serial` is the last event's that got an id, `recorded` the serial of the last event whose fact is
written, `subscriptions` counts those numbered here, `deliveries` is the number of the last event that had to wait for a
durable subscription, `behind` is 1 while the node runs with `sync` "off"."""
NOTHING_RECORDED: Final = 2**62
"""For `recorded`: the node last ran without facts, so none are missing."""


class StoreError(RoamcastError):
    """A store cannot be opened, read or written."""


class StoredPublication(NamedTuple):
    serial: int
    publication: bytes
    """A `Publication`, encoded."""
    time: int
    """Wall-clock time of publication, ns."""


class Store:
    """An open store. Everything except `delivery` is read while it opens; afterwards it is only written."""

    def __init__(self, path: Path, node: int, sync: Sync = "full", *, first_serial: int = 0) -> None:
        """In a new store, the first event gets the serial after `first_serial`."""
        self.path = path
        self.damaged: list[str] = []
        """What was dropped because it had changed on the disk, by name."""
        self.new = False
        """Whether the store was just created."""
        self._sync = sync
        self._lock = threading.Lock()  # guards the connection, which the writer's thread and the loop share
        self._connection = _connect(path, sync)
        try:
            self._check_file()
            self.numbers = self._load(node, first_serial)
            """As they were when the store was opened; 0: it is not set."""
            self._logged = deque(
                self._connection.execute(
                    "SELECT serial, length(publication) FROM publication WHERE handed ORDER BY serial"
                ).fetchall()
            )
        except DAMAGE as problem:
            self._connection.close()
            raise _unusable(path, problem) from problem
        except StoreError:
            self._connection.close()
            raise
        self._logged_bytes = sum(size for _, size in self._logged)
        self._sizes: dict[int, int] = {}  # of publications not handed to the broker yet
        self._writer = ThreadPoolExecutor(1, "store")
        self._pending: list[tuple[str, tuple[Any, ...]]] = []
        self._waiting: list[Callable[[BaseException | None], None]] = []
        self._writing: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None
        self._closing = False
        self.before_commit: Callable[[], None] = lambda: None
        """Called before a batch is committed: what it queues becomes part of the batch."""
        self.on_failure: Callable[[StoreError], None] = lambda problem: None
        self.commits = 0

    # --- Reading, while nothing is being written --------------------------------------------------------------------

    def kept(self, protocol: str) -> dict[str, bytes]:
        """What the brokers of a protocol kept."""
        return dict(self._read("SELECT key, value FROM kept WHERE protocol = ? ORDER BY key", protocol))

    def unhanded(self) -> list[StoredPublication]:
        """Acknowledged publications that were not handed to the broker, in order."""
        rows = self._read("SELECT serial, publication, time FROM publication WHERE NOT handed ORDER BY serial")
        found = [StoredPublication(*row) for row in rows]
        self._sizes.update((stored.serial, len(stored.publication)) for stored in found)
        return found

    def publications(self) -> list[StoredPublication]:
        """All publications in the log, in order."""
        return [
            StoredPublication(*row)
            for row in self._read("SELECT serial, publication, time FROM publication ORDER BY serial")
        ]

    def subscriptions(self) -> list[tuple[int, str, int | None, str | None, str | None]]:
        """The durable subscriptions: ids, filters as text, when they end (wall-clock ns) if they do, and contexts."""
        return self._read("SELECT id, filter, until, interest, publication_domain FROM subscription ORDER BY id")

    def waiting(self) -> list[tuple[int, int, int]]:
        """Subscription, number and size of the deliveries that wait for a durable subscription, oldest first."""
        return self._read(
            "SELECT subscription, number, length(packed) FROM waiting JOIN delivery ON delivery = number "
            "ORDER BY number, subscription"
        )

    async def delivery(self, number: int) -> bytes | None:
        """A waiting delivery. The writer's thread reads it, since the loop must not wait for the disk."""
        if self._sync == "off":  # it may not have been written yet
            await self._called(self._when_written)
        statement = "SELECT packed, sum FROM delivery WHERE number = ?"
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(self._writer, lambda: self._read(statement, number))
        if not rows:
            return None
        packed, checksum = rows[0]
        if checksum != sum_of(number, packed):
            self._tell_damage(f"delivery {number}")
            return None
        return bytes(packed)

    def sessions(self) -> dict[FrameSession, int]:
        """The latest block of counters received in each session, longest silent first."""
        rows = self._read("SELECT key, sender, salt, block FROM session ORDER BY rowid")
        return {FrameSession(key, sender, salt): block for key, sender, salt, block in rows}

    def _read(self, statement: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except DAMAGE as problem:
                raise _unusable(self.path, problem) from problem

    def _load(self, node: int, first_serial: int) -> Counter[str]:
        connection = self._connection
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        self.new = tables == 0
        if self.new:
            connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; PRAGMA application_id = {APPLICATION}; COMMIT;"
            )
            self._set_now({"node": node, "serial": first_serial, "deliveries": _first_delivery()})
        application, version = marks(connection)
        if application != APPLICATION:
            raise StoreError(f"{self.path}: is an SQLite file of another program, not a node's store; choose another")
        if version != VERSION:
            raise StoreError(
                f"{self.path}: is a store of version {version}; this roamcast reads version {VERSION}: use the "
                "roamcast that wrote it, or another --store"
            )
        for row in damaged_rows(connection):
            self._tell_damage(row)
        found = connection.execute("SELECT name, value FROM number").fetchall()
        numbers = Counter({name: value for name, value in found if name in _NUMBERS})
        if self.damaged:
            self._replace_lost(numbers, node, first_serial)
        if numbers.get("node") != node:
            raise StoreError(
                f"{self.path}: is the store of node {numbers.get('node')}, not of node {node}: choose another"
            )
        if numbers["behind"] or self._sync == "off":
            numbers["serial"] += SKIPPED * numbers["behind"]
            numbers["behind"] = int(self._sync == "off")
            self._set_now(numbers)
        # Remove what waited for a subscription that ended just when the node did.
        connection.executescript(
            "BEGIN; DELETE FROM waiting WHERE subscription NOT IN (SELECT id FROM subscription);"
            "DELETE FROM delivery WHERE number NOT IN (SELECT delivery FROM waiting); COMMIT;"
        )
        return numbers

    def _check_file(self) -> None:
        """If SQLite finds its file damaged, copies what can be read to a new one."""
        found = health(self._connection, APPLICATION, VERSION)
        if found == "ok":
            return
        aside = salvage(self._connection, self.path, APPLICATION, VERSION)
        if aside is None:  # not one of ours, or nothing is left of it
            raise _unusable(self.path, found)
        self._connection.close()
        self._connection = _connect(self.path, self._sync)
        self._tell_damage(f"the file itself ({found}): what could be read is in the store, the file is now {aside}")

    def _tell_damage(self, what: str) -> None:
        self.damaged.append(what)
        log.error("the store is damaged: dropped", what=what, store=str(self.path))

    def _replace_lost(self, numbers: Counter[str], node: int, first_serial: int) -> None:
        """Sets the numbers that a damaged store has lost. No event's number may repeat."""
        published = self._connection.execute("SELECT max(serial) FROM publication").fetchone()[0]
        numbers.setdefault("node", node)
        numbers.setdefault("deliveries", _first_delivery())
        numbers["serial"] = max(numbers.get("serial", first_serial), published or 0) + SKIPPED
        self._set_now(numbers)

    def _set_now(self, numbers: Mapping[str, int]) -> None:
        execute = self._connection.execute
        execute("BEGIN")
        for name, value in numbers.items():
            execute("INSERT OR REPLACE INTO number VALUES (?, ?, ?)", (name, value, sum_of(name, value)))
        execute("COMMIT")

    # --- Writing ----------------------------------------------------------------------------------------------------

    @property
    def clean(self) -> bool:
        """Whether everything queued so far is on disk."""
        return not self._pending and self._writing is None

    def set_number(self, name: str, value: int) -> None:
        self._set("number", name, value)

    def keep(self, protocol: str, key: str, value: bytes) -> None:
        self._set("kept", protocol, key, value)

    def forget(self, protocol: str, key: str) -> None:
        self._queue("DELETE FROM kept WHERE protocol = ? AND key = ?", protocol, key)

    def add_publication(self, serial: int, publication: bytes, time: int) -> None:
        self._sizes[serial] = len(publication)
        self.set_number("serial", serial)
        checksum = sum_of(serial, publication, time)
        self._queue("INSERT INTO publication VALUES (?, ?, ?, 0, ?)", serial, publication, time, checksum)

    def hand(self, serial: int) -> None:
        """The broker has got a publication; the oldest ones that it has got make room."""
        self._queue("UPDATE publication SET handed = 1 WHERE serial = ?", serial)
        size = self._sizes.pop(serial, 0)
        self._logged.append((serial, size))
        self._logged_bytes += size
        while len(self._logged) > 1 and (len(self._logged) > LOGGED or self._logged_bytes > LOGGED_BYTES):
            oldest, freed = self._logged.popleft()
            self._logged_bytes -= freed
            self._queue("DELETE FROM publication WHERE serial = ?", oldest)

    def add_subscription(
        self, number: int, filter_text: str, until: int | None, interest: str | None, publication_domain: str | None
    ) -> None:
        self.remove_subscription(number)
        self._set("subscription", number, filter_text, until, interest, publication_domain)

    def remove_subscription(self, number: int) -> None:
        """Removes a subscription and everything that waits for it."""
        self._queue("DELETE FROM subscription WHERE id = ?", number)
        self._queue("DELETE FROM waiting WHERE subscription = ?", number)

    def add_delivery(self, number: int, packed: bytes, subscriptions: Iterable[int]) -> None:
        """Adds an event that waits for durable subscriptions."""
        self.set_number("deliveries", number)
        self._set("delivery", number, packed)
        for subscription in subscriptions:
            self._queue("INSERT INTO waiting VALUES (?, ?)", subscription, number)

    def remove_waiting(self, subscription: int, number: int) -> None:
        self._queue("DELETE FROM waiting WHERE subscription = ? AND delivery = ?", subscription, number)

    def remove_delivery(self, number: int) -> None:
        self._queue("DELETE FROM delivery WHERE number = ?", number)

    def hear(
        self,
        blocks: Mapping[FrameSession, int],
        forgotten: Iterable[FrameSession],
        done: Callable[[BaseException | None], None],
    ) -> None:
        """Records the latest block of counters received in each session, and calls back when that is on disk."""
        for session, block in blocks.items():
            self._set("session", *session, block)
        for session in forgotten:
            self._queue("DELETE FROM session WHERE key = ? AND sender = ? AND salt = ?", *session)
        self._when_written(done)

    def _cannot_write(self, problem: Exception) -> StoreError:
        return StoreError(
            f"{self.path}: cannot be written: {problem}; nothing acknowledged is lost: make room or repair the disk, "
            "and start the node again"
        )

    def _set(self, table: str, *values: object) -> None:
        """Queues a row, which replaces one with the same key."""
        places = ", ".join("?" * len(values))
        self._queue(f"INSERT OR REPLACE INTO {table} VALUES ({places}, ?)", *values, sum_of(*values))

    def _queue(self, statement: str, *values: object) -> None:
        if self._failure is not None:
            return  # the node is ending
        self._pending.append((statement, values))
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_all())

    def then(self, callback: Callable[[BaseException | None], None]) -> None:
        """Calls back on the loop, in order, when everything queued so far is on disk, or with an error if it cannot be.

        With `sync` "off" it calls back at once.
        """
        if self._sync == "off":
            callback(self._failure)
        else:
            self._when_written(callback)

    def _when_written(self, callback: Callable[[BaseException | None], None]) -> None:
        if self._failure is not None or self.clean:
            callback(self._failure)
        else:
            self._waiting.append(callback)

    async def committed(self) -> None:
        """Waits until everything queued so far is on disk."""
        await self._called(self.then)

    @staticmethod
    async def _called(register: Callable[[Callable[[BaseException | None], None]], None]) -> None:
        def without_result(done: Callable[[None, BaseException | None], None]) -> None:
            register(lambda problem: done(None, problem))

        await called(without_result)

    async def _write_all(self) -> None:
        """Commits batch after batch until nothing is left."""
        loop = asyncio.get_running_loop()
        while self._pending:
            waiting: list[Callable[[BaseException | None], None]] = []
            try:
                if self._sync == "off" and not self._closing:
                    await asyncio.sleep(BEHIND)
                self.before_commit()
                batch, self._pending = self._pending, []
                waiting, self._waiting = self._waiting, []
                await loop.run_in_executor(self._writer, self._commit, batch)
            except Exception as problem:  # a disk, or a value that SQLite cannot hold: either way nothing was written
                self._fail(self._cannot_write(problem), waiting)
                return
            finished = not self._pending
            if finished:
                # Callbacks that came while this batch was being written have nothing else to wait for. They see a
                # clean store, and what they queue starts a new batch.
                waiting += self._waiting
                self._waiting, self._writing = [], None
            _call_all(waiting, None)
            if finished:
                return
        self._writing = None

    def _fail(self, problem: StoreError, waiting: Iterable[Callable[[BaseException | None], None]]) -> None:
        waiting = [*waiting, *self._waiting]
        self._pending, self._waiting, self._writing = [], [], None
        if self._failure is None:
            self._failure = problem
            self.on_failure(problem)
        _call_all(waiting, problem)

    def _commit(self, batch: list[tuple[str, tuple[Any, ...]]]) -> None:
        with self._lock:
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            try:
                for statement, values in batch:
                    execute(statement, values)
                execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    execute("ROLLBACK")
                raise
            self.commits += 1

    async def close(self) -> None:
        """Commits what is queued and closes the file."""
        self._closing = True
        if self._sync == "off":
            self.set_number("behind", 0)
        while self._writing is not None:
            await self._writing
        self._writer.shutdown()
        self._connection.close()


async def called(register: Callable[[Callable[[T, BaseException | None], None]], None]) -> T:
    """Waits for a callback; returns what it gets, or raises its problem."""
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def tell(result: T, problem: BaseException | None) -> None:
        if done.cancelled():
            return
        if problem is None:
            done.set_result(result)
        else:
            done.set_exception(problem)

    register(tell)
    return await done


def _call_all(waiting: Iterable[Callable[[BaseException | None], None]], problem: BaseException | None) -> None:
    for callback in waiting:
        try:
            callback(problem)
        except Exception as defect:  # a bug in one callback must not affect the others
            log.error("a callback of the store raised", defect)


def _connect(path: Path, sync: Sync) -> sqlite3.Connection:
    try:
        # It has events in clear text: only the owner may read a new store, or the files that SQLite adds.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as problem:
        if problem.errno in (errno.EROFS, errno.EACCES) and path.exists():
            raise StoreError(
                f"{path}: may only be read ({problem.strerror}): a node writes its store; mount its disk for writing, "
                "or give the file to the user that runs the node"
            ) from None
        raise StoreError(
            f"{path}: cannot be opened: {problem.strerror}; is its folder there, and may it be written?"
        ) from None
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=2.0)
    except sqlite3.Error as problem:
        raise StoreError(f"{path}: cannot be opened: {problem}; is its folder there, and may it be written?") from None
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {sync}")
        connection.execute("BEGIN EXCLUSIVE")  # takes the lock, which stays
        connection.execute("COMMIT")
    except DAMAGE as problem:
        connection.close()
        if "locked" in str(problem):
            raise StoreError(f"{path}: is in use by another process: each node needs a store of its own") from None
        raise _unusable(path, problem) from None
    return connection


def _first_delivery() -> int:
    """Above all numbers of a store that was lost: it used fewer than one number per microsecond."""
    return time.time_ns() // 1000


def _unusable(path: Path, problem: object) -> StoreError:
    return StoreError(
        f"{path}: is damaged or no store ({problem}): put a copy of it back, or move it (with its -wal file) away and "
        "start anew"
    )
