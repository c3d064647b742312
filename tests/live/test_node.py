"""Whole nodes: brokers of the catalogue on real sockets and real stores."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from live.nodes import address, facts, network, run, settings, take, until
from roamcast.content.event import Event, event_id
from roamcast.errors import ConfigError
from roamcast.facts.schema import COUNTERS
from roamcast.live.client import Client, ClientError
from roamcast.live.key import NetworkKey
from roamcast.live.node import Node
from roamcast.live.store import StoreError
from roamcast.units import SECOND

# --- Events between nodes ---------------------------------------------------------------------------------------------

PROTOCOLS = {
    "flooding": ("jitter=0.001",),
    "gossip": ("jitter=0.001", "p=1"),
    "hint": ("interval=0.05", "spread=0.001", "beaconing=all"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("sealed", [True, False])
def test_what_one_publishes_the_other_hears(tmp_path: Path, protocol: str, sealed: bool) -> None:
    changes: dict[str, Any] = {"protocol": protocol, "changes": PROTOCOLS[protocol]}
    if sealed:
        NetworkKey.new().save(tmp_path / "key")
        changes["key"] = tmp_path / "key"

    async def test() -> None:
        async with (
            network(tmp_path, **changes) as (one, two),
            Client(address(one)) as here,
            Client(address(two)) as there,
            there.subscribe("price < 20") as events,
        ):
            if protocol == "hint":  # it has to have met the other
                await until(lambda: one.host.tables["hints"])
            sent = [await here.publish({"price": price}, "offer", b"\0payload") for price in (25, 12, 19.5)]
            heard = await take(events, 2)
        assert sent == [event_id(1, serial) for serial in (1, 2, 3)]
        assert heard == [
            Event.of("offer", {"price": price}, b"\0payload", id) for price, id in ((12, sent[1]), (19.5, sent[2]))
        ]

    run(test)


def test_long_events_travel_in_parts_and_own_subscribers_hear_their_node(tmp_path: Path) -> None:
    async def test() -> None:
        payload = os.urandom(100_000)
        async with (
            network(tmp_path) as (one, two),
            Client(address(one)) as here,
            Client(address(two)) as there,
            here.subscribe() as own,
            there.subscribe() as others,
        ):
            await here.publish({}, payload=payload)
            assert [(event.payload, event.hops, event.via) for event in [await anext(own)]] == [(payload, 0, "local")]
            assert [(event.payload, event.hops) for event in [await anext(others)]] == [(payload, 1)]

    run(test)


def test_another_key_is_another_network(tmp_path: Path) -> None:
    async def test() -> None:
        for name in ("a", "b"):
            NetworkKey.new().save(tmp_path / name)
        async with network(tmp_path, 1, key=tmp_path / "a") as (one,):
            stranger = settings(tmp_path, 2, key=tmp_path / "b", air=one.link.own_address)
            async with Node(stranger) as two, Client(address(two)) as there:
                await there.publish({"x": 1})
                await until(lambda: one.link.counters["key"])
                assert not one.link.neighbours
                assert one.host.counters["raised"] == 0

    run(test)


# --- Facts ------------------------------------------------------------------------------------------------------------


def test_facts_are_those_of_the_simulator(tmp_path: Path) -> None:
    epoch = time.time_ns() - 100 * SECOND

    async def test() -> None:
        pair = network(tmp_path, with_facts=True, epoch=epoch, unsigned=True)
        async with pair as (one, two), Client(address(one)) as here, Client(address(two)) as there:
            async with there.subscribe("price < 20", id=77) as events:
                await here.publish({"price": 12}, "offer")
                await take(events, 1)
            await until(lambda: not len(two.host.subscribers))
            await until(lambda: two.facts.counted["data"]["packets"] and one.facts.counted["data"]["receptions"])
            two.host.port.note("something")
            two.host.port.decide(event_id(1, 1), "no route")

    run(test)
    one, two = facts(tmp_path / "facts1"), facts(tmp_path / "facts2")
    event = event_id(1, 1)
    published = one["publish"][0]
    assert {**published, "time": 0, "size": 0} == {
        "time": 0,
        "node": 1,
        "event": event,
        "type": "offer",
        "size": 0,
        "lifetime": None,
        "relevance": None,
        "subscription_domain": None,
    }
    assert 100 * SECOND < published["time"] < 200 * SECOND
    assert [(row["attribute"], row["integer"], row["text"]) for row in one["event_attribute"]] == [
        ("", None, "offer"),
        ("price", 12, None),
    ]
    assert [(row["subscription"], row["active"], row["filter"]) for row in two["subscribe"]] == [
        (77, True, "price < 20"),
        (77, False, None),
    ]
    assert {(row["subscription"], row["attribute"], row["operator"]) for row in two["filter_constraint"]} == {
        (77, "price", "<")
    }
    delivered = two["deliver"][0]
    assert delivered["time"] >= published["time"]
    assert {**delivered, "time": 0} == {
        "time": 0, "node": 2, "event": event, "subscription": 77, "published": None, "hops": 1, "via": "data"
    }  # fmt: skip
    assert one["deliver"] == []
    for rows, node in ((one, 1), (two, 2)):
        total = {name: sum(row[name] for row in rows["transmit"]) for name in COUNTERS}
        assert total == {name: sum(row[name] for row in rows["series"]) for name in total}
        assert {(row["node"], row["kind"], row["role"], row["cause"]) for row in rows["transmit"]} == {
            (node, "data", "data", 0)
        }
        assert (total["packets"], total["receptions"], total["collision"]) == (1, 1, 0)
        assert total["bits"] > 8 * published["size"]
    assert two["note"] == [{"node": 2, "fact": "something", "count": 1}]
    assert "decision" not in two, "nobody asked for decisions"


def test_parts_go_on_after_a_restart_and_own_deliveries_know_their_time(tmp_path: Path) -> None:
    async def life() -> None:
        async with (
            Node(settings(tmp_path, facts=tmp_path / "facts")) as node,
            Client(address(node)) as client,
            client.subscribe(id=5) as events,
        ):
            await client.publish({})
            await take(events, 1)

    run(life)
    run(life)
    found = facts(tmp_path / "facts")
    assert [row["event"] for row in found["publish"]] == [event_id(1, 1), event_id(1, 2)]
    assert [row["published"] for row in found["deliver"]] == [row["time"] for row in found["publish"]]
    times = [row["time"] for row in found["publish"]]
    assert 0 < times[0] < times[1]  # the epoch is that of the first life
    assert not [file for file in (tmp_path / "facts").iterdir() if "partial" in file.name]


# --- Beginning and ending ---------------------------------------------------------------------------------------------


def test_a_node_without_a_key_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a node needs the network's key: make one with 'roamcast key new FILE'"):
        settings(tmp_path, insecure=False)
    with pytest.raises(ConfigError, match="exclude each other"):
        settings(tmp_path, insecure=True, key=tmp_path / "key")


def test_beyond_loopback_a_token_and_tls_are_needed(tmp_path: Path) -> None:
    token: dict[str, Any] = {"token_file": tmp_path / "t"}
    tls: dict[str, Any] = {"tls_cert": tmp_path / "c", "tls_key": tmp_path / "k"}
    for control in ("0.0.0.0:5", "example.org:5", "[::]:5"):
        with pytest.raises(ConfigError, match="needs --token-file FILE and --tls-cert FILE --tls-key FILE; or use"):
            settings(tmp_path, control=control)
        with pytest.raises(ConfigError, match="other machines can reach this address, so it needs --tls-cert"):
            settings(tmp_path, control=control, **token)
        with pytest.raises(ConfigError, match="so it needs --token-file FILE; or use"):
            settings(tmp_path, control=control, **tls)
        settings(tmp_path, control=control, **token, **tls)
    for control in ("127.0.0.1:0", "[::1]:0", "localhost:0", "127.3.2.1:0"):
        settings(tmp_path, control=control)
    with pytest.raises(ConfigError, match="--tls-cert and --tls-key go together"):
        settings(tmp_path, control="127.0.0.1:0", tls_cert=tmp_path)
    with pytest.raises(ConfigError, match="a Unix socket does not leave the machine"):
        settings(tmp_path, **tls)


@pytest.mark.parametrize("change", ["jitter=-1", "jitter=long", "jiter=1", "jitter"])
def test_wrong_parameters_are_refused_by_name(tmp_path: Path, change: str) -> None:
    with pytest.raises(ConfigError, match="--set ji"):
        Node(settings(tmp_path, changes=(change,)))


def test_a_failed_start_leaves_nothing_open(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, 1)) as first:
            taken = settings(tmp_path, 2, control=address(first))
            with pytest.raises(ConfigError, match="another process listens there"):
                await Node(taken).start()
            async with Node(settings(tmp_path, 2)):  # its store is free
                pass

    run(test)


def test_a_store_that_fails_ends_the_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({})
            node.store._connection.execute("PRAGMA query_only = ON")
            with pytest.raises(ClientError, match="nothing acknowledged is lost"):
                await client.publish({})
            assert node.failed is not None
            assert isinstance(await node.failed, StoreError)

    run(test)


def test_the_clock_does_not_go_back_across_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def life() -> int:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            await client.publish({})
            return node.clock.now()

    before = asyncio.run(life())
    hour_ago = time.time_ns() - 3600 * SECOND
    monkeypatch.setattr(
        "roamcast.live.clock.Clock.__init__.__kwdefaults__", {"wall": lambda: hour_ago, "monotonic": time.monotonic_ns}
    )
    assert asyncio.run(life()) >= before - SECOND  # the last moments were not stored
