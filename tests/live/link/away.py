"""Two links in two network namespaces, whose cable is pulled out, thrown away and replaced. A program of its own, since
a process that has left its namespace does not come back: `unshare -n python -m live.link.away`.

Each link says every 50 ms how many frames it has heard from each other. The first process prints the counters of its
links at the end, as JSON."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter

from roamcast.live.link.frame import Sealer
from roamcast.live.link.link import Link, LinkSettings

BROADCAST = "10.255.255.255"


class Talker:
    def __init__(self, number: int, interface: str | None) -> None:
        chosen = LinkSettings(interface=interface, address=BROADCAST)
        self.link = Link(Sealer(None, number), chosen, on_message=self._heard, on_done=lambda *_: None)
        self.heard: Counter[int] = Counter()
        self.heard_by: dict[int, int] = {}
        """How many frames of ours each other has heard, as it says."""
        self._number = number

    def _heard(self, sender: int, payload: bytes) -> None:
        self.heard[sender] += 1
        self.heard_by[sender] = json.loads(payload).get(str(self._number), 0)

    async def talk(self) -> None:
        while True:
            self.link.broadcast(json.dumps(self.heard).encode(), token=None)
            await asyncio.sleep(0.05)
            self.link.check()


@contextlib.asynccontextmanager
async def talking(*talkers: Talker):  # type: ignore[no-untyped-def]  # noqa: ANN201  # a program for one test
    for talker in talkers:
        await talker.link.open()
    tasks = [asyncio.create_task(talker.talk()) for talker in talkers]
    yield
    for task in tasks:
        task.cancel()


def ip(*words: str, inside: int | None = None) -> None:
    before = ["nsenter", "-t", str(inside), "-n"] if inside is not None else []
    subprocess.run([*before, "ip", *words], check=True)


def plug_in(other: int) -> None:
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(other))
    for inside, address in ((None, "10.0.0.1"), (other, "10.0.0.2")):
        ip("address", "add", f"{address}/8", "broadcast", BROADCAST, "dev", "eth0", inside=inside)
        ip("link", "set", "eth0", "up", inside=inside)


async def there() -> None:
    """The other side, until it is killed."""
    async with talking(Talker(2, None)):
        await asyncio.sleep(60)


async def here(other: int) -> None:
    talkers = Talker(1, None), Talker(3, "eth0")

    async def all_hear() -> None:
        """And are heard, from now on."""
        before = [(talker.heard[2], talker.heard_by.get(2, 0)) for talker in talkers]
        async with asyncio.timeout(10):
            while not all(
                talker.heard[2] > heard + 1 and talker.heard_by[2] > heard_by + 1
                for talker, (heard, heard_by) in zip(talkers, before, strict=True)
            ):
                await asyncio.sleep(0.01)

    plug_in(other)
    async with talking(*talkers):
        await all_hear()
        ip("link", "delete", "eth0")
        async with asyncio.timeout(10):
            while not all(talker.link.counters["send-failed"] for talker in talkers):
                await asyncio.sleep(0.01)
        plug_in(other)
        await all_hear()
        print(json.dumps([talker.link.counters for talker in talkers]))


def main() -> None:
    if sys.argv[1:] == ["there"]:
        print("ready", flush=True)
        sys.stdin.readline()  # until the cable is there
        asyncio.run(there())
        return
    words = ["unshare", "-n", sys.executable, "-m", "live.link.away", "there"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        other.stdin.write("\n")
        other.stdin.flush()
        try:
            asyncio.run(here(other.pid))
        finally:
            os.kill(other.pid, 9)


if __name__ == "__main__":
    main()
