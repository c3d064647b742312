"""What survives, what is refused, and that nothing counts before it is on disk."""

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.nodes import run
from roamcast.live import store as module
from roamcast.live.link.replay import FrameSession
from roamcast.live.store import Store, StoreError, Sync


def fill(path: Path, work: Callable[[Store], None], node: int = 1) -> None:
    """Opens a store, does the work, and closes it."""

    async def test() -> None:
        store = Store(path, node, "normal")
        work(store)
        await store.close()

    run(test)


T = TypeVar("T")
THREE, FOUR = (FrameSession("k", sender, bytes(16)) for sender in (3, 4))


def look(path: Path, read: Callable[[Store], T], node: int = 1) -> T:
    found: list[T] = []
    fill(path, lambda store: found.append(read(store)), node)
    return found[0]


def test_a_new_store_knows_nothing(tmp_path: Path) -> None:
    def everything(store: Store) -> object:
        numbers = (
            store.numbers["node"],
            store.numbers.get("epoch"),
            store.numbers["clock"],
            store.numbers["serial"],
            store.numbers["subscriptions"],
        )
        return numbers, store.kept("x"), store.unhanded(), store.publications(), store.subscriptions()

    assert look(tmp_path / "s", everything) == ((1, None, 0, 0, 0), {}, [], [], [])


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    def work(store: Store) -> None:
        store.set_number("epoch", 5)
        store.keep("hint", "a", b"1")
        store.keep("hint", "b", b"2")
        store.keep("flooding", "a", b"3")
        store.keep("hint", "a", b"4")
        store.forget("hint", "b")
        store.forget("hint", "never there")
        store.add_publication(1, b"one", 10)
        store.add_publication(2, b"two", 20)
        store.hand(1)
        store.add_subscription(7, "price < 20", 99, "x < 5", None)
        store.add_subscription(8, "true", None, None, "y > 5")
        store.remove_subscription(8)
        store.hear({THREE: 5, FOUR: 9}, (), lambda problem: None)
        store.hear({THREE: 2**47}, (FOUR,), lambda problem: None)

    def read(store: Store) -> object:
        return (
            (store.numbers.get("epoch"), store.numbers["serial"]),
            (store.kept("hint"), store.kept("flooding")),
            (store.unhanded(), store.publications()),
            (store.subscriptions(), store.sessions()),
        )

    fill(tmp_path / "s", work)
    assert look(tmp_path / "s", read) == (
        (5, 2),
        ({"a": b"4"}, {"a": b"3"}),
        ([(2, b"two", 20)], [(1, b"one", 10), (2, b"two", 20)]),
        ([(7, "price < 20", 99, "x < 5", None)], {THREE: 2**47}),
    )


OPERATIONS = st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.binary(max_size=3))), max_size=30)


@given(OPERATIONS)
def test_keeping_and_forgetting_is_a_dict(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, bytes | None]]
) -> None:
    path = tmp_path_factory.mktemp("kept") / "s"
    model: dict[str, bytes] = {}

    def work(store: Store) -> None:
        for key, value in operations:
            if value is None:
                store.forget("p", key)
                model.pop(key, None)
            else:
                store.keep("p", key, value)
                model[key] = value

    fill(path, work)
    assert look(path, lambda store: store.kept("p")) == model


def test_callbacks_come_in_order_after_their_commit(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "normal")
        order: list[object] = []
        store.then(lambda problem: order.append("nothing to wait for"))
        store.keep("p", "a", b"")
        store.then(lambda problem: order.append((1, store.commits)))
        store.keep("p", "b", b"")
        store.then(lambda problem: order.append((2, store.commits)))
        assert order == ["nothing to wait for"]
        assert not store.clean
        await store.committed()
        assert order[1:] == [(1, 1), (2, 1)]  # both writes in one commit
        assert store.clean
        await store.close()

    run(test)


def test_what_a_callback_queues_is_committed_too(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "normal")

        def again(count: int) -> None:
            if count:
                store.keep("p", f"{count}", b"")
                store.then(lambda problem: again(count - 1))

        again(5)
        while not store.clean:
            await store.committed()
        await store.close()
        assert store.commits == 5

    run(test)
    assert sorted(look(tmp_path / "s", lambda store: list(store.kept("p")))) == ["1", "2", "3", "4", "5"]


def test_what_comes_along_is_in_the_same_commit(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "normal")
        store.before_commit = lambda: store.keep("p", "along", b"")
        store.keep("p", "a", b"")
        await store.committed()
        assert store.commits == 1
        await store.close()

    run(test)
    assert look(tmp_path / "s", lambda store: list(store.kept("p"))) == ["a", "along"]


def test_the_log_is_bounded_and_keeps_what_was_not_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOGGED", 3)

    def work(store: Store) -> None:
        for serial in range(1, 8):
            store.add_publication(serial, b"x", 0)
            if serial != 2:
                store.hand(serial)

    fill(tmp_path / "s", work)
    assert look(tmp_path / "s", lambda store: [publication.serial for publication in store.publications()]) == [
        2,
        5,
        6,
        7,
    ]

    def hand_late(store: Store) -> None:
        store.unhanded()
        store.hand(2)

    fill(tmp_path / "s", hand_late)  # it is the newest
    assert look(tmp_path / "s", lambda store: [publication.serial for publication in store.publications()]) == [2, 6, 7]


def test_the_log_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOGGED_BYTES", 10)

    def work(store: Store) -> None:
        for serial, size in ((1, 4), (2, 4), (3, 4), (4, 50)):
            store.add_publication(serial, bytes(size), 0)
            store.hand(serial)
            kept[serial] = None

    kept: dict[int, None] = {}
    fill(tmp_path / "s", work)
    # 1 goes for 3, and all go for 4, which is too long but the latest
    assert look(tmp_path / "s", lambda store: [publication.serial for publication in store.publications()]) == [4]


# --- Refusals -------------------------------------------------------------------------------------------------------


def refused(path: Path, node: int = 1) -> str:
    with pytest.raises(StoreError) as problem:
        look(path, lambda store: store.numbers["node"], node)
    return str(problem.value)


def test_a_store_of_another_node_is_refused(tmp_path: Path) -> None:
    look(tmp_path / "s", lambda store: store.numbers["node"])
    assert refused(tmp_path / "s", node=2).endswith("s: is the store of node 1, not of node 2: choose another")


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    look(tmp_path / "s", lambda store: store.numbers["node"])
    connection = sqlite3.connect(tmp_path / "s")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "is a store of version 99; this roamcast reads version 6" in refused(tmp_path / "s")


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "s")
    connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()
    assert "is an SQLite file of another program" in refused(tmp_path / "s")
    (tmp_path / "text").write_text("not a database, but long enough to be looked at " * 40)
    assert "is damaged or no store (file is not a database)" in refused(tmp_path / "text")
    assert (tmp_path / "text").read_text().startswith("not a database")


def test_a_store_of_which_nothing_is_left_is_refused_with_the_remedy(tmp_path: Path) -> None:
    fill(tmp_path / "s", lambda store: store.keep("p", "a", bytes(64)))
    with (tmp_path / "s").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 12 * 4096)
    words = refused(tmp_path / "s")
    assert "is damaged or no store" in words
    assert "put a copy of it back" in words


def test_what_can_be_read_of_a_damaged_file_is_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s"

    def work(store: Store) -> None:
        store.add_publication(7, b"one", 10)
        for number in range(2000):
            store.keep("p", f"{number:08}", number.to_bytes(64, "big"))

    fill(path, work)
    octets = bytearray(path.read_bytes())
    at = octets.index((1000).to_bytes(64, "big")) // 4096 * 4096  # a page in the middle of what was kept
    octets[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(octets)
    kept, serial, damaged = look(path, lambda store: (store.kept("p"), store.numbers["serial"], store.damaged))
    assert 1000 < len(kept) < 2000
    assert all(value == int(key).to_bytes(64, "big") for key, value in kept.items())
    assert {"00000000", "00001999"} <= kept.keys()
    assert serial == 7 + module.SKIPPED
    assert "s.damaged" in damaged[0]
    assert (tmp_path / "s.damaged").read_bytes()[at : at + 4096] == b"\xff" * 4096
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
    assert "the store is damaged" in caplog.text
    assert look(path, lambda store: store.damaged) == []  # told once


def test_damage_that_only_sqlite_sees_is_found(tmp_path: Path) -> None:
    """Every row can be read, and has the right sum; but the list of free pages, which the next writes use, is wrong."""
    path = tmp_path / "s"
    fill(path, lambda store: store.keep("p", "a", b"1"))
    octets = bytearray(path.read_bytes())
    octets[36:40] = (3).to_bytes(4, "big")  # the number of free pages, in the header of the file
    path.write_bytes(octets)
    kept, damaged = look(path, lambda store: (store.kept("p"), store.damaged))
    assert kept == {"a": b"1"}
    assert len(damaged) == 1
    assert "the file itself" in damaged[0]


def full(path: Path) -> None:
    """A row in every table, with values that can be found in the file."""

    def work(store: Store) -> None:
        store.set_number("epoch", 0x1122334455667788)
        store.keep("flooding", "kept key", b"kept value")
        store.keep("flooding", "other key", b"other")
        store.add_publication(0x51525354, b"published bytes", 10)
        store.add_subscription(0x61626364, "filter = 5", None, "interest text", None)
        store.add_delivery(0x71727374, b"delivered bytes", [0x61626364])
        store.hear({FrameSession("key name", 3, b"salt of sixteen."): 0x41424344}, [], lambda problem: None)

    fill(path, work)


def everything(store: Store) -> dict[str, Any]:
    return {
        "epoch": store.numbers.get("epoch"),
        "kept": store.kept("flooding"),
        "unhanded": [stored.publication for stored in store.unhanded()],
        "subscriptions": store.subscriptions(),
        "waiting": store.waiting(),
        "sessions": store.sessions(),
    }


@pytest.mark.parametrize(
    ("octets", "name", "table", "left"),
    [
        (b"kept value", "kept flooding kept key", "kept", {"other key": b"other"}),
        (b"other key", "kept flooding o\\udcf4her key", "kept", {"kept key": b"kept value"}),
        (b"published bytes", f"publication {0x51525354}", "unhanded", []),
        (b"filter = 5", f"subscription {0x61626364}", "subscriptions", []),
        (b"interest text", f"subscription {0x61626364}", "subscriptions", []),
        (b"delivered bytes", f"delivery {0x71727374}", "waiting", []),
        (b"salt of sixteen.", f"session key name 3 {bytes([115, 225]).hex()}", "sessions", {}),
        (bytes.fromhex("1122334455667788"), "number epoch", "epoch", None),
    ],
    ids=lambda case: case.decode(errors="replace") if isinstance(case, bytes) else "",
)
def test_a_bit_that_flips_in_a_value_is_found_told_and_survived(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, octets: bytes, name: str, table: str, left: object
) -> None:
    path = tmp_path / "s"
    full(path)
    before = look(path, everything)
    file = bytearray(path.read_bytes())
    for at in [at for at in range(len(file)) if file.startswith(octets, at)]:  # keys of a table may be in its index too
        file[at + 1] ^= 0x80
    path.write_bytes(file)
    found, damaged = look(path, lambda store: (everything(store), store.damaged))
    assert [what for what in damaged if what.startswith(name)], damaged
    assert found == before | {table: left} | ({"waiting": []} if table == "subscriptions" else {})
    assert "the store is damaged" in caplog.text
    assert look(path, lambda store: (everything(store), store.damaged)) == (found, [])


def test_no_flipped_bit_changes_what_a_store_says(tmp_path: Path) -> None:
    """Wherever it is: what was stored is there, or it is missing and that was told, or the store is refused."""
    full(tmp_path / "whole")
    whole = look(tmp_path / "whole", everything)
    octets = (tmp_path / "whole").read_bytes()
    rng = random.Random(3)
    interesting = [at for at in range(len(octets)) if octets[at]]
    told = 0
    for number, at in enumerate(rng.sample(interesting, 150)):
        path = tmp_path / str(number)
        changed = bytearray(octets)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            found, damaged = look(path, lambda store: (everything(store), store.damaged))
        except StoreError:
            continue
        told += bool(damaged)
        if not damaged:
            assert found == whole, (at, octets[at])
        for key, value in whole["kept"].items():
            assert found["kept"].get(key, value) == value
        for name in ("unhanded", "subscriptions"):
            assert found[name] in (whole[name], [])
    assert told > 20


@pytest.mark.parametrize(("sync", "number"), [("off", 0), ("normal", 1), ("full", 2)])
def test_sqlite_syncs_as_asked(tmp_path: Path, sync: Sync, number: int) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, sync)
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (number,)
        await store.close()

    run(test)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be opened" in refused(tmp_path / "missing" / "s")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    async def test() -> None:
        first = Store(tmp_path / "s", 1, "normal")
        with pytest.raises(StoreError, match="is in use by another process: each node needs a store of its own"):
            Store(tmp_path / "s", 1, "normal")
        await first.close()
        await Store(tmp_path / "s", 1, "normal").close()

    run(test)


# --- A disk that fails, a process that is killed --------------------------------------------------------------------


def test_a_store_that_cannot_be_written_tells_everybody_once(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "normal")
        told: list[StoreError] = []
        store.on_failure = told.append
        store.keep("p", "a", b"before")
        await store.committed()
        store._connection.execute("PRAGMA query_only = ON")  # as a disk that has become read-only
        store.keep("p", "a", b"after")
        with pytest.raises(StoreError, match="cannot be written: attempt to write a readonly database; nothing acknow"):
            await store.committed()
        store.keep("p", "a", b"later")
        with pytest.raises(StoreError):
            await store.committed()
        assert len(told) == 1
        await store.close()

    run(test)
    assert look(tmp_path / "s", lambda store: store.kept("p")) == {"a": b"before"}


def test_a_value_that_sqlite_cannot_hold_is_a_failure_and_not_a_silence(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "normal")
        told: list[StoreError] = []
        store.on_failure = told.append
        store.keep("p", "\ud800", b"")
        with pytest.raises(StoreError, match="cannot be written"):
            await store.committed()
        assert len(told) == 1
        await store.close()

    run(test)


def test_a_callback_that_raises_does_not_stop_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "normal")

        def fail(problem: BaseException | None) -> None:
            raise RuntimeError("on purpose")

        store.keep("p", "a", b"")
        store.then(fail)
        await store.committed()
        await store.close()

    run(test)
    assert caplog.messages == ["a callback of the store raised"]


KILLED = """
import asyncio, sys
from pathlib import Path
from roamcast.live.store import Store

async def main():
    store = Store(Path(sys.argv[1]), 1, "normal")
    serial = 0
    while True:
        serial += 1
        store.add_publication(serial, b"event %d" % serial, 0)
        store.keep("p", f"{serial % 7}", b"%d" % serial)
        await store.committed()
        print(serial, flush=True)

asyncio.run(main())
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "s")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(200):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
    acknowledged = int(rest[-1]) if rest else 200
    found = look(tmp_path / "s", lambda store: (store.publications(), store.numbers["serial"], store.kept("p")))
    assert isinstance(found, tuple)
    publications, serial, kept = found
    assert publications == [(number, b"event %d" % number, 0) for number in range(1, serial + 1)]
    assert serial in (acknowledged, acknowledged + 1)
    assert max(int(value) for value in kept.values()) == serial  # what was written with it came with it


def test_a_heard_session_is_on_disk_when_it_is_told(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom roamcast.live.link.replay import FrameSession\n"
        "from roamcast.live.store import Store\n"
        "async def main():\n"
        "    store = Store(Path(sys.argv[1]), 1, 'full')\n"
        "    store.hear({FrameSession('k', 3, bytes(16)): 7}, (), lambda problem: os._exit(9))\n"
        "    await asyncio.sleep(10)\n"
        "asyncio.run(main())\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "s")], check=False).returncode == 9
    assert look(tmp_path / "s", lambda store: store.sessions()) == {THREE: 7}


# --- Without waiting for the disk -------------------------------------------------------------------------------------


def test_with_sync_off_nothing_waits_and_an_orderly_end_keeps_everything(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "off")
        store.add_publication(1, b"event", 0)
        told: list[object] = []
        store.then(told.append)
        await store.committed()
        assert (told, store.commits) == ([None], 0)
        await store.close()
        assert store.commits == 1

    run(test)
    assert look(tmp_path / "s", lambda store: (store.publications(), store.numbers["serial"])) == (
        [(1, b"event", 0)],
        1,
    )


def test_with_sync_off_what_waits_for_a_subscription_is_found_before_it_is_on_disk(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(tmp_path / "s", 1, "off")
        store.add_delivery(7, b"packed", [1])
        assert await store.delivery(7) == b"packed"
        await store.close()

    run(test)


def test_with_sync_off_a_crash_repeats_no_id_and_accepts_no_frame_again(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom roamcast.live.link.replay import FrameSession\n"
        "from roamcast.live.store import Store\n"
        "async def main():\n"
        "    store = Store(Path(sys.argv[1]), 1, 'off')\n"
        "    serial = store.numbers['serial'] + 1\n"
        "    def crash(problem):\n"
        "        store.add_publication(serial + 1, b'lost', 0)\n"
        "        os._exit(9)\n"
        "    store.add_publication(serial, b'written', 0)\n"
        "    store.hear({FrameSession('k', 3, bytes(16)): 7}, (), crash)\n"
        "    await asyncio.sleep(10)\n"
        "asyncio.run(main())\n"
    )
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "s")], check=False).returncode == 9
    found = look(tmp_path / "s", lambda store: (store.numbers["serial"], store.sessions()))
    first, second = 1, 1 + module.SKIPPED + 1
    assert found == (second + module.SKIPPED, {THREE: 7})
    assert look(tmp_path / "s", lambda store: [each.serial for each in store.publications()]) == [first, second]
