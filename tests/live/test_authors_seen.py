"""Applications learn who published an event, whether that was checked, and when by the author's clock."""

import time
from pathlib import Path

from live.nodes import address, network, run
from roamcast.live.client import Client


def test_an_event_says_who_published_it_and_when(tmp_path: Path) -> None:
    async def test() -> None:
        before = time.time()
        async with (
            network(tmp_path, 2) as (one, two),
            Client(address(one)) as here,
            Client(address(two)) as there,
            there.subscribe("n = 1") as events,
        ):
            number = await here.publish({"n": 1}, payload=b"abc")
            event = await anext(events)
        assert event.id == number
        assert event.payload == b"abc"
        assert (event.author, event.verified) == (1, "first use")
        assert event.published is not None
        assert before - 0.001 <= event.published <= time.time()

    run(test)


def test_without_signatures_an_event_says_that_nobody_vouches_for_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            network(tmp_path, 2, unsigned=True) as (one, two),
            Client(address(one)) as here,
            Client(address(two)) as there,
            there.subscribe("n = 1") as events,
        ):
            await here.publish({"n": 1})
            event = await anext(events)
        assert (event.author, event.verified, event.published) == (1, None, None)

    run(test)
