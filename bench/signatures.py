"""What signatures cost: bytes on the air and CPU per event, with and without, between two neighbours.

Real node processes, as in `bench.live`, which take turns. Then the parts alone: signing an event, checking it for the
first time, and recognising a copy.
"""

import asyncio
from collections.abc import Callable
from time import process_time

from bench.live import between, measure, nodes
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication
from roamcast.live.authors import Authors
from roamcast.live.client import Client
from roamcast.live.identity import Identity
from roamcast.live.signatures import Authenticity, Signatures
from roamcast.live.store import Store

TURNS = 3
EVENTS = 2000
WALL = 1_700_000_000 * 10**9


class _Nowhere(Store):
    """A store that keeps nothing."""

    def __init__(self) -> None: ...

    def kept(self, protocol: str) -> dict[str, bytes]:
        return {}

    def keep(self, protocol: str, key: str, value: bytes) -> None:
        pass

    def forget(self, protocol: str, key: str) -> None:
        pass


async def _octets(api: str) -> float:
    """Bytes of the datagrams of one event, as the node that published it counted them."""
    async with Client(api) as client:
        sent = (await client.status())["counters"]["sent"]["data"]
    return float(sent["bits"] / 8 / sent["messages"])


def _each(work: Callable[[int], object]) -> float:
    """CPU seconds of one call."""
    started = process_time()
    for number in range(EVENTS):
        work(number)
    return (process_time() - started) / EVENTS


def _parts() -> None:
    signer, reader = (Signatures(Authors(node, Identity.new(), None, _Nowhere())) for node in (1, 2))
    introduced = signer._authors.own
    assert introduced is not None
    reader._authors.take(introduced)
    plain = [Event.of("bench", {"n": number}, bytes(64), event_id(1, number + 1)) for number in range(EVENTS)]
    signed: list[Event] = []
    signing = _each(lambda number: signed.append(signer.signed(Publication(plain[number]), WALL, 0).event))
    first = _each(lambda number: reader.check(signed[number]))
    again = _each(lambda number: reader.check(signed[number]))
    assert reader.check(signed[0]) is Authenticity.GENUINE
    added = signed[0].size - plain[0].size
    print(f"an event: {plain[0].size} bytes, signed {added} more; CPU: signing {1e6 * signing:.0f} µs,")
    print(f"checking {1e6 * first:.0f} µs, a copy of what was checked {1e6 * again:.0f} µs")


def run() -> None:
    print("signatures: two neighbours, client to client, events of about 80 bytes, nothing waits for the disk")
    print(f"{'events':<10}{'bytes of datagrams':>20}{'events per second':>20}{'CPU µs each, both nodes':>25}")
    for _ in range(TURNS):
        for name, options in (("unsigned", ("--unsigned",)), ("signed", ())):
            with nodes(2, "off", *options) as (apis, pids):
                found = asyncio.run(measure(between(apis[0], apis[1]), pids))
                octets = asyncio.run(_octets(apis[0]))
            print(f"{name:<10}{octets:>20.0f}{found.rate:>20.0f}{1e6 * found.cpu:>25.0f}", flush=True)
    _parts()


if __name__ == "__main__":
    run()
