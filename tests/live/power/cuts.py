"""A node's store, and its facts, through many losses of power.

Each life publishes, keeps, and has events wait as fast as it can, until the power goes in the middle of something. The
next life must find everything that was acknowledged, in every table, and give no serial twice. A new store is made
every `LIVES` lives, so that cuts while it is made are among them.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from live.power.mount import Power
from roamcast.errors import RoamcastError
from roamcast.live.link.replay import FrameSession
from roamcast.live.parts import Parts, read
from roamcast.live.store import Store, StoreError, Sync

LIVES = 25
SUBSCRIPTION = 7


@dataclass
class Acknowledged:
    """What a store has said that it has."""

    publications: dict[int, bytes] = field(default_factory=dict)
    kept: int = -1
    waiting: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    """Of those, what was to be removed, whether or not it was."""
    heard: int = -1
    facts: list[int] = field(default_factory=list)
    given: int = 0
    """The highest serial given out, acknowledged or not."""


@dataclass
class Result:
    cuts: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)


def cut_power(folder: Path, power: Power, cuts: int, seed: int, sync: Sync = "full") -> Result:
    """Lives and cuts on a mounted disk."""
    result, rng = Result(), random.Random(seed)
    said = Acknowledged()
    for number in range(cuts):
        if number % LIVES == 0:
            power.on()
            for path in folder.iterdir():
                path.unlink()
            said = Acknowledged()
        power.cut_after(rng.choice((3, 10, 30, 100, 300)) + rng.randrange(30), rng.randrange(2**30))
        before = len(said.publications)
        with contextlib.suppress(StoreError, OSError, pa.ArrowException):  # the power has gone
            asyncio.run(_live(folder, said, sync, rng))
        power.on()
        result.cuts += 1
        result.acknowledged += len(said.publications) - before
        result.lost += [f"cut {number}: {what}" for what in _missing(folder, said, sync)]
    return result


async def _live(folder: Path, said: Acknowledged, sync: Sync, rng: random.Random) -> None:
    store = Store(folder / "store", 1, sync)
    try:
        if not store.subscriptions():
            store.add_subscription(SUBSCRIPTION, "true", None, None, None)
        said.given = max(said.given, store.numbers["serial"])
        await asyncio.gather(
            *(_work(store, said, random.Random(rng.random())) for _ in range(3)), _record(folder, said)
        )
    finally:
        await store.close()


async def _work(store: Store, said: Acknowledged, rng: random.Random) -> None:
    session = FrameSession("key", 2, b"salt")
    while True:
        said.given += 1
        serial, publication = said.given, rng.randbytes(rng.choice((20, 300, 5000)))
        store.add_publication(serial, publication, serial)
        store.keep("flooding", "latest", b"%d" % serial)
        store.add_delivery(serial, publication, (SUBSCRIPTION,))
        store.hear({session: serial}, (), lambda problem: None)
        await store.committed()
        said.publications[serial] = publication
        said.waiting.add(serial)
        said.kept, said.heard = max(said.kept, serial), max(said.heard, serial)
        if rng.random() < 0.5:
            said.sent.add(serial)
            store.hand(serial)
            store.remove_waiting(SUBSCRIPTION, serial)
            store.remove_delivery(serial)


async def _record(folder: Path, said: Acknowledged) -> None:
    """Facts, in a thread as those of a node are."""
    parts = await asyncio.to_thread(Parts, folder)
    for number in range(3):
        rows = pa.table({"n": [len(said.facts) + number]})
        await asyncio.to_thread(parts.write, {"t": rows})
        said.facts.append(rows["n"][0].as_py())


def _missing(folder: Path, said: Acknowledged, sync: Sync) -> Iterator[str]:
    """What was acknowledged and is not there."""
    try:
        store = asyncio.run(_opened(folder, sync))
    except RoamcastError as problem:
        yield f"the store cannot be opened: {problem}"
        return
    stored, kept, waiting, heard, serial = store
    yield from (f"publication {number}" for number, body in said.publications.items() if stored.get(number) != body)
    yield from (f"event {number} waits no more" for number in sorted(said.waiting - said.sent - waiting))
    if kept < said.kept:
        yield f"kept {said.kept}, found {kept}"
    if heard < said.heard:
        yield f"heard block {said.heard}, found {heard}"
    if serial < max(said.publications, default=0):
        yield f"serial {serial} would be given again"
    found = [n for _, rows in read(folder) for n in rows["n"].to_pylist()]
    yield from (f"facts {n}" for n in said.facts if n not in found)


async def _opened(folder: Path, sync: Sync) -> tuple[dict[int, bytes], int, set[int], int, int]:
    store = Store(folder / "store", 1, sync)
    try:
        return (
            {each.serial: each.publication for each in store.publications()},
            int(store.kept("flooding").get("latest", b"-1")),
            {number for _, number, _ in store.waiting()},
            max(store.sessions().values(), default=-1),
            store.numbers["serial"],
        )
    finally:
        await store.close()
