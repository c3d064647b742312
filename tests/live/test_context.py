"""Contexts on devices: lifetimes, regions and domains from the client to the air and back, by what nodes sense."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from live.nodes import address, facts, network, run
from roamcast.live.client import Client, ClientError

ROAD = "within(rect(2000, 0, 3200, 100))"
CAR, WITNESS = (2500.0, 50.0), (3150.0, 50.0)


@asynccontextmanager
async def freeway(folder: Path) -> AsyncIterator[tuple[Client, Client]]:
    """A witness of an accident and a car that comes towards it. They hear each other."""
    async with (
        network(folder, with_facts=True, protocol="context", changes=("interval=0.5",)) as (one, two),
        Client(address(one)) as witness,
        Client(address(two)) as car,
    ):
        await witness.set_here(WITNESS)
        await car.set_here(CAR)
        await car.set_attributes({"heading": "east", "occupants": 1})
        yield witness, car


def test_an_accident_reaches_who_is_concerned_and_in_the_domains(tmp_path: Path) -> None:
    async def test() -> None:
        async with freeway(tmp_path) as (witness, car):
            asked = car.subscribe(id=1, interest=ROAD, publication_domain="x > 3000")
            elsewhere = car.subscribe(id=2, interest=ROAD, publication_domain="x < 3000")
            async with asked as near, elsewhere:
                await witness.publish({}, lifetime=60, relevance=ROAD, subscription_domain="occupants = 2")
                relevant = f'{ROAD} and heading = "east"'
                said = [
                    await witness.publish({}, lifetime=60, relevance=relevant, subscription_domain="occupants = 1")
                    for _ in range(2)
                ]
                got = [await anext(near) for _ in said]
                assert {(event.id, event.via) for event in got} == {(one, "matched-event") for one in said}
        recorded, decided = facts(tmp_path / "facts2"), facts(tmp_path / "facts1")["match"]
        assert {(row["event"], row["subscription"]) for row in recorded["deliver"]} == {(event, 1) for event in said}
        assert [row["relevance"] for row in facts(tmp_path / "facts1")["publish"]] == [ROAD, relevant, relevant]
        assert {(row["subscription"], row["holds"]) for row in decided if row["step"] == "publication domain"} >= {
            (1, True)
        }

    run(test)


def test_a_subscription_without_duration_gets_the_persistent_events_that_are_there(tmp_path: Path) -> None:
    async def test() -> None:
        async with freeway(tmp_path) as (witness, car):
            said = await witness.publish({}, lifetime=60, relevance=ROAD)
            await holding(car, "events", 1)
            async with witness.subscribe(lifetime=0, interest="within(rect(2400, 0, 2600, 100))") as events:
                assert (await anext(events)).id == said

    run(test)


async def holding(client: Client, table: str, count: int) -> None:
    """Waits until the node's table has so many entries."""
    while (await client.status())["tables"][table] != count:
        await asyncio.sleep(0.01)


def test_what_the_paper_does_not_allow_is_refused_by_name(tmp_path: Path) -> None:
    async def test() -> None:
        async with freeway(tmp_path) as (witness, car):
            with pytest.raises(ClientError, match="the context of relevance has no region"):
                await witness.publish({}, relevance='heading = "east"')
            with pytest.raises(ClientError, match=r"may look at key attributes of neighbours only \(none\)"):
                await witness.publish({}, relevance=f"{ROAD} and mean(neighbours.fuel) < 5")
            with pytest.raises(ClientError, match="the context of interest may look one hop far"):
                await car.subscribe(interest=f"{ROAD} and count(hosts within 500) > 3").open()
            with pytest.raises(ClientError, match=r"at position 7: expected a region"):
                await witness.publish({}, relevance="within(ellipse(1, 2, 3))")

    run(test)
