"""A million mutated frames over UDP against a running `roamcast node`: it survives, nothing is raised, nothing grows.

The frames of `live_fuzz`, and authentic ones that carry mutated messages of the node's protocol, so that the codec and
the broker get their share. Datagrams that the kernel drops because the node is slower than we are do not count: as
many are sent as it takes for the node to have received a million.

`python -m bench.live_fuzz_node 20000` runs fewer.
"""

import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from bench.live_fuzz import COUNT, NODE, SEED, Maker, mutated
from roamcast.live.client import Client
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import BROADCAST, BROADCAST_DATA, Sealer
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.tree.messages import Grph, Hello, Mact, Place, Rrep, Rreq

PROTOCOL: Final = "coman"
BATCH: Final = 200
PLACE: Final = Place(9, 3, 1, 3 << 32, (9, 11))
SAID: Final = (
    Hello(NODE, 5 << 32),
    Rreq(11, 1, 0, 2, 3, 2 << 32, 127, False, None),
    Rrep(NODE, 1, 0, 11, 9, 3, 1, 0, 9 << 32, True, (9, 11)),
    Mact(11, 1, "join", NODE, 1 << 32),
    Mact(NODE, 1, "update", 0, 0, PLACE),
    Grph(PLACE, False, False, 0),
)


def messages(rng: random.Random, key: NetworkKey) -> Iterator[bytes]:
    """Authentic frames with something like a message in them."""
    codec = CATALOGUE[PROTOCOL].codec()
    senders = [Sealer(key, node, protocol=PROTOCOL, counter=2**50) for node in range(400, 500)]
    while True:
        payload = codec.encode(rng.choice(SAID))
        yield rng.choice(senders).seal(
            BROADCAST_DATA, BROADCAST, mutated(rng, payload)[:8000] if rng.random() < 0.7 else payload
        )


def resident(pid: int) -> float:
    """MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def throw(
    pid: int, control: str, sock: socket.socket, home: tuple[str, int], key: NetworkKey, count: int
) -> None:
    rng = random.Random(SEED)
    outside, inside = Maker(rng, key, PROTOCOL).frames(), messages(rng, key)
    sent, sizes = 0, list[float]()
    async with Client(control) as client:

        async def counters() -> dict[str, Any]:
            found: dict[str, Any] = (await client.status())["counters"]
            return found

        while (received := (await counters())["link"].get("received", 0)) < count:
            if received >= (len(sizes) + 1) * count / 5:
                sizes.append(resident(pid))
            for _ in range(20):
                for frame in [*islice(outside, BATCH // 2), *islice(inside, BATCH // 2)]:
                    with contextlib.suppress(OSError):  # too long for a datagram
                        sock.sendto(frame, home)
                    sent += 1
                with contextlib.suppress(BlockingIOError):
                    while sock.recv(9000):
                        pass
                await asyncio.sleep(0.005)
        told = await counters()
    sizes.append(resident(pid))
    raised = told["node"].get("raised", 0) + told["link"].get("host-failed", 0)
    print(f"{sent:,d} sent, {received:,d} received, {raised} raised")
    print("  MiB after each fifth: " + ", ".join(f"{size:.1f}" for size in sizes))
    print("  " + ", ".join(f"{name} {number:,d}" for name, number in sorted(told["link"].items())))
    print("  " + ", ".join(f"{name} {number:,d}" for name, number in sorted(told["node"].items())))
    assert not raised, "the broker or the link raised: see the node's log"


def run(count: int = COUNT) -> None:
    print(f"live node: mutated frames over UDP into a process of `roamcast node --protocol {PROTOCOL}`")
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        place = Path(folder)
        key = NetworkKey.new()
        key.save(place / "key")
        words = ["node", "--id", str(NODE), "--protocol", PROTOCOL, "--key", str(place / "key")]
        words.append("--unsigned")  # or no mutated event would reach the broker
        words += ["--store", str(place / "store"), "--api", f"unix:{place / 'api'}", "--sync", "normal"]
        words += ["--log", "error", "--air", f"127.0.0.1:{sock.getsockname()[1]}"]
        with subprocess.Popen([sys.executable, "-m", "roamcast", *words], stdout=subprocess.PIPE) as node:
            try:
                assert node.stdout is not None
                control = json.loads(node.stdout.readline())["api"]
                home = sock.recvfrom(9000)[1]
                sock.setblocking(False)
                asyncio.run(throw(node.pid, control, sock, home, key, count))
            finally:
                node.terminate()
        assert node.returncode == 0, f"the node ended with {node.returncode}"


if __name__ == "__main__":
    run(*map(int, sys.argv[1:2]))
