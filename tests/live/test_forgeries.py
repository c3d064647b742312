"""What a member with the network's key cannot do: publish in another node's name.

The attacker's messages are given to the host as the link gives them: it has the key, so its frames are authentic. Every
attack is also tried on nodes that do not check signatures, where it must succeed: a test that cannot fail shows
nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from live.nodes import address, network, run
from roamcast.content.event import Event, event_id
from roamcast.content.subscription import Publication
from roamcast.live.authors import Authors
from roamcast.live.client import Client, Events
from roamcast.live.identity import Identity
from roamcast.live.node import Node
from roamcast.live.signatures import Signatures
from roamcast.live.store import Store
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import Header, Piece

PROTOCOLS = {
    "flooding": (),
    "gossip": ("p=1",),
    "counter": (),
    "hint": ("interval=0.1",),
    "maodv": ("hello=0.1", "misses=100", "group_hello=0.2"),
    "coman": ("hello=0.1", "misses=100", "group_hello=0.2"),
    "odmrp": (),
    "context": ("interval=0.2",),
    "opportunistic": ("interval=0.2", "patience=0.1"),
    "roam": (),
}
assert PROTOCOLS.keys() == CATALOGUE.keys()
TRUE, FALSE = b"true", b"false"
VICTIM, ATTACKER = 2, 3


class _Nowhere(Store):
    """A store that keeps nothing."""

    def __init__(self) -> None: ...

    def kept(self, protocol: str) -> dict[str, bytes]:
        return {}

    def keep(self, protocol: str, key: str, value: bytes) -> None:
        pass

    def forget(self, protocol: str, key: str) -> None:
        pass


SIGNER = Signatures(Authors(ATTACKER, Identity.new(), None, _Nowhere()))


@asynccontextmanager
async def two(folder: Path, protocol: str, **changes: Any) -> AsyncIterator[tuple[Node, Client, Client]]:  # noqa: ANN401  # of NodeSettings
    """A node that listens, its client, and the client of the victim."""
    names = PROTOCOLS[protocol]
    async with (
        network(folder, 2, protocol=protocol, changes=names, here="0,0", **changes) as (one, other),
        Client(address(one)) as here,
        Client(address(other)) as there,
    ):
        yield one, here, there


@contextmanager
def overheard(node: Node) -> Iterator[list[bytes]]:
    """The messages that a node receives."""
    heard: list[bytes] = []
    receive = node.link._on_message

    def note(sender: int, payload: bytes) -> None:
        heard.append(payload)
        receive(sender, payload)

    node.link._on_message = note
    try:
        yield heard
    finally:
        node.link._on_message = receive


def falsified(serial: int, copied: Event) -> Event:
    """An event in the victim's name: unsigned, signed by the attacker, or with the signature of a true one."""
    event = Event.of("t", {"n": -serial}, FALSE, event_id(VICTIM, serial))
    if serial % 3 == 0:
        return event
    if serial % 3 == 1:
        return SIGNER.signed(Publication(event), 0, 0).event
    signed = copied.signed
    body = FALSE if signed is None else msgspec.structs.replace(signed, payload=FALSE)
    return msgspec.structs.replace(event, body=body)


def replaced(value: Any, true: list[Any], false: list[Any]) -> Any:  # noqa: ANN401  # a decoded message
    """The message with one event in place of another."""
    if isinstance(value, list):
        return false if value == true else [replaced(item, true, false) for item in value]
    return value


def builtin(event: Event) -> Any:  # noqa: ANN401  # as decoded
    return msgspec.msgpack.decode(msgspec.msgpack.encode(event))


def forged(heard: list[bytes], event: Event, false: Event) -> list[bytes]:
    """The messages that carry an event, with a false one in its place."""
    if any(payload[2:].startswith(b"\xa5piece") for payload in heard):
        document = Document(false)
        header = Header(VICTIM, 10_000 + false.id % 2**32, 1, (), false.id, document.length, 60_000, 0, 1, 0, None, 0)
        return [b"\x01" + msgspec.msgpack.encode(Piece(header, 0, document.octets(0, document.length)))]
    decoded = [(payload[:1], msgspec.msgpack.decode(payload[1:])) for payload in heard]
    changed = [(version, message, replaced(message, builtin(event), builtin(false))) for version, message in decoded]
    for _, message, new in changed:
        if message[0] == "join_event" and new != message:
            new[3] += false.id - event.id  # the sequence number that the true one will have
    return [version + msgspec.msgpack.encode(new) for version, old, new in changed if new != old]


async def first(victim: Client, events: Events, heard: list[bytes]) -> Event:
    """Publishes until an event arrives: some protocols need a moment. Returns it as it was on the air."""
    async with asyncio.timeout(20):
        while True:
            await victim.publish({"n": 0}, "t", payload=TRUE)
            try:
                async with asyncio.timeout(0.5):
                    received = await anext(events)
                    break
            except TimeoutError:
                continue
    for payload in heard:
        found = _event_in(msgspec.msgpack.decode(payload[1:]), received.id)
        if found is not None:
            return found
    return received.event


def _event_in(value: Any, number: int) -> Event | None:  # noqa: ANN401  # a decoded message
    if isinstance(value, list):
        if len(value) == 4 and value[3] == number and isinstance(value[1], dict):
            return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=Event)
        for item in value:
            found = _event_in(item, number)
            if found is not None:
                return found
    return None


async def ten_forged_then_ten_true(folder: Path, protocol: str, **changes: Any) -> tuple[list[Any], dict[str, Any]]:  # noqa: ANN401  # of NodeSettings
    """What the subscriber gets of ten true events after ten forged ones with their ids, and which tables changed."""
    async with two(folder, protocol, **changes) as (node, here, victim), here.subscribe('type = "t"') as events:
        with overheard(node) as heard:
            true = await first(victim, events, heard)
        last = (await victim.status())["counters"]["node"]["published"]
        before = dict(node.host.broker.tables())
        for serial in range(last + 1, last + 11):  # without a turn of the loop: nothing else changes a table meanwhile
            for payload in forged(heard, true, falsified(serial, true)):
                node.host.receive(VICTIM, payload)
        after = dict(node.host.broker.tables())
        ids = [await victim.publish({"n": number}, "t", payload=TRUE) for number in range(1, 11)]
        assert ids == [event_id(VICTIM, last + number) for number in range(1, 11)]
        got: dict[int, Any] = {}
        try:
            async with asyncio.timeout(8 if changes.get("unsigned") is None else 2):
                while len(got) < 10:
                    event = await anext(events)
                    if event.id in ids:
                        got[event.id] = event.payload
        except TimeoutError:
            pass
        changed = {name: (before[name], after[name]) for name in after if before[name] != after[name]}
        return [got.get(number) for number in ids], changed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_forged_events_neither_silence_the_true_ones_nor_touch_a_table(tmp_path: Path, protocol: str) -> None:
    async def test() -> None:
        got, changed = await ten_forged_then_ten_true(tmp_path, protocol)
        assert got == [TRUE] * 10
        assert changed == {}

    run(test)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_signatures_the_same_forgeries_silence_them(tmp_path: Path, protocol: str) -> None:
    async def test() -> None:
        got, _ = await ten_forged_then_ten_true(tmp_path, protocol, unsigned=True)
        assert TRUE not in got

    run(test)


# --- Documents in pieces --------------------------------------------------------------------------------------------

LONG = bytes(range(256)) * 40
"""A payload of nine pieces."""


def chunk_of(document: Document, numbers: list[int], size: int, source: int = VICTIM, serial: int = 77) -> list[bytes]:
    """Pieces of a document, as frames."""
    pieces = -(-document.length // size)
    header = Header(
        source, serial, 1, (), document.id, document.length, size, 0, (1 << pieces) - 1, 0, None, 0
    )  # fmt: skip
    found = [document.octets(number * size, min(document.length, (number + 1) * size)) for number in numbers]
    made = [Piece(header, number, octets) for number, octets in zip(numbers, found, strict=True)]
    return [b"\x01" + msgspec.msgpack.encode(piece) for piece in made]


async def one_forged_piece(folder: Path, number: int, **changes: Any) -> tuple[bytes, int]:  # noqa: ANN401  # of NodeSettings
    """The payload that a subscriber gets of a true document after one forged piece of it had come, and how many pieces
    of the true document are sent."""
    async with (
        network(folder, 2, protocol="opportunistic", changes=("interval=0.2", "patience=0.1"), **changes) as (one, two),
        Client(address(one)) as here,
        Client(address(two)) as victim,
        here.subscribe('type = "t"') as events,
    ):
        number_of_event = event_id(VICTIM, 1)
        template = two.host.admission.signed(
            Publication(Event.of("t", {"n": 1}, LONG, number_of_event)), 10**18, two.host.broker.block
        )
        document = Document(template.event)
        (piece,) = chunk_of(document, [number], 1250)
        decoded = msgspec.msgpack.decode(piece[1:])
        decoded[3] = decoded[3][:-10] + b"forged!!!!"
        one.host.receive(ATTACKER, b"\x01" + msgspec.msgpack.encode(decoded))
        await victim.publish({"n": 1}, "t", payload=LONG)
        event = await anext(events)
        return event.payload, two.facts.counted["piece"]["packets"]


@pytest.mark.parametrize("number", [0, 1, 4, 8])
def test_a_forged_piece_costs_only_itself_and_its_neighbours(tmp_path: Path, number: int) -> None:
    async def test() -> None:
        payload, pieces = await one_forged_piece(tmp_path, number)
        assert payload == LONG
        # Nine pieces, and then again at most three: the forged one and those that share a block with it.
        assert 9 <= pieces <= 12

    run(test)


def test_without_signatures_one_forged_piece_puts_a_forged_payload_under_another_name(tmp_path: Path) -> None:
    async def test() -> None:
        payload, _ = await one_forged_piece(tmp_path, 4, unsigned=True)
        assert b"forged!!!!" in payload

    run(test)


# --- The cache ------------------------------------------------------------------------------------------------------


async def flooded(folder: Path, documents: int, **changes: Any) -> int:  # noqa: ANN401  # of NodeSettings
    """How many of its own 50 acknowledged publications a node still has after `documents` newer ones of a member, who
    signs them properly with its own identity."""
    names = ("interval=1000", "capacity=400", 'carry="everything"', *changes.pop("changes", ()))
    async with (
        network(folder, 1, protocol="opportunistic", changes=names, **changes) as (node,),
        Client(address(node)) as client,
    ):
        mine = [await client.publish({"n": number}) for number in range(50)]
        assert node.authors is not None
        member = Authors(ATTACKER, Identity.new(), None, _Nowhere())
        assert member.own is not None
        node.authors.take(member.own)
        signer = Signatures(member)
        for serial in range(1, documents + 1):
            event = Event.of("t", {"n": serial % 7}, b"", event_id(ATTACKER, serial))
            document = Document(signer.signed(Publication(event), 10**18, 0).event)
            for payload in chunk_of(document, [0], 1250, ATTACKER, serial):
                node.host.receive(ATTACKER, payload)
            await asyncio.sleep(0.001)  # fewer per second than a node checks signatures (`checks`), or it drops some
        assert node.host.broker.tables()["documents"] == 400
        return sum(node.host.broker.holds(number) for number in mine)


def test_documents_of_others_do_not_push_out_what_this_node_has_acknowledged(tmp_path: Path) -> None:
    async def test() -> None:
        assert await flooded(tmp_path, 450) == 50

    run(test)


def test_without_a_reserve_they_do(tmp_path: Path) -> None:
    async def test() -> None:
        assert await flooded(tmp_path, 450, changes=("reserved=0",)) == 0

    run(test)
