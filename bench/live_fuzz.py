"""A million mutated frames against an open link: nothing is raised, and nothing grows.

Two kinds of mutation. From *outside*: a frame that somebody recorded or made up, with octets flipped, cut, added,
spliced or replaced, headers with telling numbers, and frames played again. From *inside*: an authentic frame, sealed
with the right key, whose payload is mutated in the same way; without a key everything is inside. Senders are many,
so that the tables fill; beside them a good neighbour says something now and then, which must all be heard if there
is a key.

`python -m bench.live_fuzz 20000` runs fewer, and `python -m bench.live_fuzz 3600s` as many as an hour takes.
"""

import asyncio
import os
import random
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import monotonic, process_time
from typing import Final

from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import (
    ACK,
    ACK_REQUEST,
    BROADCAST,
    BROADCAST_DATA,
    BUNDLE,
    FRAGMENT,
    HEADER_SIZE,
    SKIP,
    UNICAST_DATA,
    Sealer,
)
from roamcast.live.link.link import BATCH, Link, LinkSettings, Rate
from roamcast.live.link.payload import Ack, Fragment, seal_ack, seal_fragment

SEED: Final = 1
COUNT: Final = 1_000_000
NODE: Final = 5
GOOD: Final = 1
"""The honest neighbour."""
WORD: Final = b"a good word"
TELLING: Final = (0, 1, 2, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
SETTINGS: Final = LinkSettings(
    bind="127.0.0.1", neighbours=256, rate=Rate(frames=1e6, octets=1e9), retries=1, partial_lifetime=0.5
)


def mutated(rng: random.Random, octets: bytes) -> bytes:
    """Some places changed, cut, doubled, or the end gone."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(octets))
        what = rng.randrange(5)
        if what == 0 and octets:
            at %= len(octets)
            octets = octets[:at] + bytes((octets[at] ^ 1 << rng.randrange(8),)) + octets[at + 1 :]
        elif what == 1:
            octets = octets[:at]
        elif what == 2:
            octets = octets[:at] + rng.randbytes(rng.choice((1, 2, 8, 40, 9100))) + octets[at:]
        elif what == 3:
            octets = octets[:at] + octets[at + rng.randint(1, 9) :]
        else:
            number = rng.choice(TELLING).to_bytes(8, "big")[-rng.choice((1, 2, 4, 8)) :]
            octets = octets[:at] + number + octets[at + len(number) :]
    return octets


class Maker:
    def __init__(self, rng: random.Random, key: NetworkKey | None, protocol: str = "") -> None:
        self._rng = rng
        self._insiders = [Sealer(key, node, protocol=protocol) for node in range(10, 310)]
        self._stranger = Sealer(NetworkKey(bytes(32)) if key else None, 7)
        self._good = Sealer(key, GOOD, protocol=protocol)
        self._recorded: list[bytes] = []

    def good(self) -> bytes:
        return self._good.seal(BROADCAST_DATA, BROADCAST, WORD)

    def frames(self) -> Iterator[bytes]:
        rng = self._rng
        while True:
            choice = rng.random()
            if choice < 0.3:
                yield self._inside()
            elif choice < 0.9:
                yield self._changed(self._valid(rng.choice(self._insiders)))
            elif choice < 0.93:
                yield self._valid(self._stranger)
            elif choice < 0.96:
                yield self._valid(rng.choice(self._insiders))
            elif choice < 0.98 and self._recorded:
                yield rng.choice(self._recorded)
            else:
                yield self._made_up()

    def _changed(self, frame: bytes) -> bytes:
        # Without a seal a changed counter would be accepted, and soon all frames of its sender would look too old.
        kept = 0 if self._good.overhead > HEADER_SIZE else HEADER_SIZE
        return frame[:kept] + mutated(self._rng, frame[kept:])

    def _valid(self, sender: Sealer) -> bytes:
        rng = self._rng
        octets = rng.randbytes(rng.randrange(40))
        message, fragments = rng.randrange(50), rng.choice((1, 1, 2, 3, 255))
        to = rng.choice((BROADCAST, NODE, NODE, NODE + 1))
        if rng.random() < 0.2:
            frame = seal_ack(sender, NODE, Ack(message, rng.randrange(3), rng.getrandbits(rng.randint(1, 255))))
        else:
            fragment = Fragment(octets or b"x", message, rng.randrange(256), rng.randrange(fragments), fragments)
            frame = seal_fragment(sender, to, fragment, ask=rng.random() < 0.5)
        if len(self._recorded) < 1000:
            self._recorded.append(frame)
        return frame

    def _inside(self) -> bytes:
        rng = self._rng
        kind = rng.choice((BROADCAST_DATA, UNICAST_DATA, ACK, SKIP))
        flags = {
            BROADCAST_DATA: rng.choice((0, FRAGMENT, BUNDLE)),
            UNICAST_DATA: rng.choice((0, FRAGMENT, ACK_REQUEST, FRAGMENT | ACK_REQUEST)),
            ACK: 0,
            SKIP: 0,
        }[kind]
        payload = mutated(rng, struct.pack(">QBBB", rng.randrange(50), 1, 0, 2) + b"octets")[:8900]
        return rng.choice(self._insiders).seal(
            kind, BROADCAST if kind == BROADCAST_DATA else NODE, payload, flags=flags
        )

    def _made_up(self) -> bytes:
        rng = self._rng
        numbers = rng.choice((2, 0x82)), rng.randrange(5), rng.randrange(5), *rng.choices(TELLING, k=3)
        version, kind, flags, sender, receiver, counter = numbers
        salt = rng.randbytes(16)
        header = struct.pack(">BBBII16sQ", version, kind, flags, sender % 2**32, receiver % 2**32, salt, counter)
        return header + rng.randbytes(rng.randrange(60))


def resident() -> float:
    """MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def fuzz(name: str, key: NetworkKey | None, enough: Callable[[int], float]) -> None:
    """`enough` says which part of the work is done after so many frames."""
    rng = random.Random(SEED)
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(repr(context)))
    words = 0

    def heard(sender: int, payload: bytes) -> None:
        nonlocal words
        words += (sender, payload) == (GOOD, WORD)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:  # what the link answers ends here
        sink.bind(("127.0.0.1", 0))
        link = Link(
            Sealer(key, NODE, counter=2**40),
            LinkSettings(**{**vars(SETTINGS), "air": sink.getsockname()}),
            on_message=heard,
            on_done=lambda *_: None,
        )
        await link.open()
        maker = Maker(rng, key)
        frames = maker.frames()
        spent, slowest, octets, batches, before = 0.0, 0.0, 0, 0, 0.0
        while (part := enough(batches * (BATCH - 1))) < 1:
            if not before and part >= 0.2:  # by now the tables are as full as they get
                before = resident()
            for to in range(3):
                link.unicast(10 + to, b"waiting to be answered", token=None)
            given = [*islice(frames, BATCH - 1), maker.good()]
            started = process_time()
            try:
                link.datagrams([(frame, ("127.0.0.1", 9)) for frame in given])
            except Exception:
                print(f"{name}: batch {batches}, seed {SEED}, raised; its frames:", *(f.hex() for f in given), sep="\n")
                raise
            took = process_time() - started
            spent, slowest, octets = spent + took, max(slowest, took), octets + sum(map(len, given))
            batches += 1
            await asyncio.sleep(0)
        grown = resident() - before
        await link.close()
    assert not problems, problems[0]
    # Without a key anybody can be the good neighbour, and use up its counters.
    assert words == batches or key is None, f"{batches - words} of {batches} good words were not heard"
    done = batches * BATCH
    print(f"{name}: {done:,d} frames, {done / spent:,.0f} a CPU second, none raised; grown by {grown:.1f} MiB")
    longest = f"slowest call, of {BATCH} frames, {slowest * 1000:.1f} ms; {spent / octets * 1e9:.0f} ns per octet"
    print(f"  {spent:.0f} s of CPU; {longest}")
    known = link.counters
    print(f"  neighbours {len(link.neighbours)}; " + ", ".join(f"{name} {known[name]:,d}" for name in sorted(known)))


def run(limit: str = str(COUNT)) -> None:
    """A number of frames, or seconds such as "3600s"; half of the seconds with a key, half without."""
    print("live link: mutated frames into the handler of datagrams")
    for name, key in (("sealed", NetworkKey(bytes(range(32)))), ("without a key", None)):
        started = monotonic()

        def enough(done: int, started: float = started) -> float:
            if limit.endswith("s"):
                return (monotonic() - started) / (float(limit[:-1]) / 2)
            return done / int(limit)

        asyncio.run(fuzz(name, key, enough))


if __name__ == "__main__":
    run(*sys.argv[1:2])
