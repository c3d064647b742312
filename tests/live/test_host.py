"""The laws of the port, kept by the host on a real loop and a real store."""

import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from live.nodes import address, network, run, settings, until
from live.probe import Ping, Probe
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication
from roamcast.live.client import Client
from roamcast.live.node import Node
from roamcast.live.store import Store
from roamcast.units import SECOND

PROBE = """
from live.probe import Ping, Probe
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Flooding

ENTRY = Entry("probe", "", Flooding, Probe, (Ping,))
"""


@pytest.fixture
def probe(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "probe.py").write_text(PROBE)
    return {"protocol": f"{tmp_path / 'probe.py'}:ENTRY"}


def test_timers_ring_in_order_and_not_early(tmp_path: Path, probe: dict[str, Any]) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, **probe)) as node:
            broker, port = Probe.latest, node.host.port
            now = node.clock.now()
            at = {"b": now + SECOND // 50, "a": now + SECOND // 100, "past": now - SECOND, "c": now + SECOND // 50}
            for key, when in at.items():
                port.set_timer(when, key)
            await until(lambda: len(broker.calls) == 5)
            rung = broker.calls[1:]
            assert [call[2] for call in rung] == ["past", "a", "b", "c"]
            assert all(call[0] >= at[call[2]] for call in rung)

    run(test)


def test_withdrawing_works_until_the_delay_has_elapsed(tmp_path: Path, probe: dict[str, Any]) -> None:
    async def test() -> None:
        async with network(tmp_path, **probe) as (one, _):
            heard = Probe.latest  # of the second node
            port = one.host.port
            port.now = one.clock.now()
            port.broadcast(Ping(1))  # has no delay: it is gone
            taken = port.broadcast(Ping(2), SECOND // 100)
            port.broadcast(Ping(3), SECOND // 100)
            port.withdraw(taken)
            port.withdraw(taken)
            port.withdraw(12345)
            port.release()
            await until(lambda: len(heard.calls) == 3)
            assert [call[1:] for call in heard.calls[1:]] == [("receive", 1, Ping(1)), ("receive", 1, Ping(3))]

    run(test)


def test_an_unanswered_unicast_is_unreachable_and_what_was_kept_comes_back(
    tmp_path: Path, probe: dict[str, Any]
) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, **probe)) as node, Client(address(node)) as client:
            number = await client.publish({}, "ask")
            broker = Probe.latest
            await until(lambda: len(broker.calls) == 3)
            assert [call[1:] for call in broker.calls] == [
                ("start", {}),
                ("publish", number),
                ("unreachable", 99, Ping(1)),
            ]
            assert node.facts.counted["ping"]["unreachable"] == 1
        async with Node(settings(tmp_path, **probe)):
            assert Probe.latest.calls[0][1:] == ("start", {"asked": b"yes"})

    run(test)


def test_nothing_leaves_before_what_was_kept_is_on_disk(tmp_path: Path, probe: dict[str, Any]) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, **probe)) as node:
            sent: list[int] = []

            class Recording:
                def broadcast(
                    self, payload: bytes, *, token: Hashable, urgent: bool = False, promised: bool = False
                ) -> None:
                    if b"ping" in payload:  # and not the node's own introduction, which may come at any time
                        sent.append(node.store.commits)

                def unicast(
                    self, to: int, payload: bytes, *, token: Hashable, urgent: bool = False, promised: bool = False
                ) -> None:
                    raise AssertionError

            port = node.host.port
            port.air = Recording()
            before = node.store.commits
            port.broadcast(Ping(1))
            port.release()
            assert sent == [before]  # nothing was kept: nothing to wait for
            port.keep("a", b"1")
            port.broadcast(Ping(2))
            port.release()
            assert sent == [before]
            await node.store.committed()
            assert sent == [before, before + 1]
            port.air = node.link

    run(test)


def test_what_cannot_be_sent_is_unreachable_and_holds_nothing_up(tmp_path: Path, probe: dict[str, Any]) -> None:
    async def test() -> None:
        async with network(tmp_path, **probe) as (one, _):
            heard, port = Probe.latest, one.host.port
            port.unicast(2**40, Ping(1))  # a number that came from a stranger
            port.broadcast(Ping(2**70))
            port.broadcast(Ping(2))
            port.release()
            await until(lambda: len(heard.calls) == 2)
            assert heard.calls[1][1:] == ("receive", 1, Ping(2))
            assert one.facts.notes["unsendable"] == 2
            assert one.host.broker.calls[1][1:] == ("unreachable", 2**40, Ping(1))  # type: ignore[attr-defined]
            await until(lambda: port.tables["flying"] == 0)

    run(test)


def test_a_broker_that_raises_does_not_end_the_node(tmp_path: Path, probe: dict[str, Any]) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, **probe)) as node, Client(address(node)) as client:
            first = await client.publish({}, "raise")
            second = await client.publish({}, "fine")
            assert (first, second) == (event_id(1, 1), event_id(1, 2))
            status = await client.status()
            assert status["counters"]["node"]["raised"] == 1
            assert status["counters"]["notes"]["raised"] == 1
        async with Node(settings(tmp_path, **probe)):
            assert len(Probe.latest.calls) == 1  # it had its chance: it is not published again

    run(test)


def test_what_was_stored_and_not_handed_over_is_handed_over_after_the_restart(
    tmp_path: Path, probe: dict[str, Any]
) -> None:
    event = Event.of("late", {"a": 1}, id=event_id(1, 1))

    async def test() -> None:
        store = Store(tmp_path / "1.store", 1, "normal")
        store.add_publication(1, msgspec.msgpack.encode(Publication(event)), time.time_ns())
        await store.close()  # as if killed here
        async with Node(settings(tmp_path, **probe)) as node, Client(address(node)) as client:
            assert [call[1:] for call in Probe.latest.calls] == [("start", {}), ("publish", event.id)]
            assert await client.publish({}) == event_id(1, 2)
        async with Node(settings(tmp_path, **probe)):
            assert len(Probe.latest.calls) == 1

    run(test)
