"""A network with an owner: who is certified may publish, who is revoked may not, and who is added again may again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from live.nodes import Relay, address, run, settings, until
from roamcast.content.subscription import Publication
from roamcast.live.certificates import MembersFile
from roamcast.live.client import Client, ClientError
from roamcast.live.identity import Identity
from roamcast.live.key import NetworkKey
from roamcast.live.node import Node, identity_of


class Network:
    """The files of a network with an owner, in a folder, and its air."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.owner = Identity.new()
        self.members = MembersFile()
        self.key = folder / "network.key"
        NetworkKey.new(self.owner.public).save(self.key)
        self.relay = Relay()
        self.air = ("", 0)

    async def certify(self, *nodes: int) -> None:
        for node in nodes:
            self.members = self.members.add(node, await self.identity(node), self.owner)

    async def identity(self, node: int) -> bytes:
        return await identity_of(node, self.folder / f"{node}.store")

    def revoke(self, node: int) -> None:
        self.members = self.members.revoke(node, self.owner)

    def give(self, node: int) -> Path:
        """What a node has on disk of the owner's."""
        path = self.folder / f"{node}.members"
        self.members.save(path)
        return path

    @asynccontextmanager
    async def node(self, number: int, *, told: bool = False, **changes: Any) -> AsyncIterator[Node]:  # noqa: ANN401  # of NodeSettings
        """`told`: whether it gets the latest members file."""
        path = self.folder / f"{number}.members"
        if told or not path.exists():
            self.give(number)
        chosen = settings(self.folder, number, key=self.key, air=self.air, members=path, **changes)
        async with Node(chosen) as node:
            self.relay.members.append(node.link.own_address)
            yield node

    async def __aenter__(self) -> "Network":
        self.air = await self.relay.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.relay.close()


async def hears(node: Node, publisher: Node, value: int, verified: str = "owner") -> bool:
    """Whether an event that one node publishes reaches another, which is told who published it."""
    async with (
        Client(address(publisher)) as there,
        Client(address(node)) as here,
        here.subscribe(f"n = {value}") as events,
    ):
        number = await there.publish({"n": value})
        try:
            async with asyncio.timeout(1.5):
                event = await anext(events)
        except TimeoutError:
            return False
        assert (event.id, event.author, event.verified) == (number, publisher.settings.node, verified)
        return True


def test_a_node_without_a_certificate_cannot_publish_and_says_what_to_do(tmp_path: Path) -> None:
    async def test() -> None:
        async with Network(tmp_path / "net") as network, network.node(1) as node, Client(address(node)) as client:
            with pytest.raises(ClientError, match=r"roamcast key add MEMBERS 1 [0-9a-f]{64} --owner FILE"):
                await client.publish({})
            assert (await client.status())["authors"]["certified"] is False

    run(test)


def test_certificates_travel_ahead_of_events_also_over_several_hops(tmp_path: Path) -> None:
    """Node 3 has never heard node 1, and its members file has only itself: node 2 introduces them."""

    async def test() -> None:
        async with Network(tmp_path / "net") as network, AsyncExitStack() as stack:
            for number in (1, 2, 3):
                alone = MembersFile().add(number, await network.identity(number), network.owner)
                alone.save(network.folder / f"{number}.members")
            one = await stack.enter_async_context(network.node(1))
            two = await stack.enter_async_context(network.node(2))
            far = await stack.enter_async_context(network.node(3))
            whole = {node.link.own_address[1]: node.settings.node for node in (one, two, far)}
            network.relay.hears = lambda sender, receiver: abs(whole[sender] - whole[receiver]) <= 1  # a chain
            assert await hears(far, one, 1)
            assert one.authors is not None
            assert far.authors is not None
            assert far.authors.certificate(1) == one.authors.own

    run(test)


def deaf(monkeypatch: pytest.MonkeyPatch, node: Node) -> None:
    """A thief's node: an honest one refuses to publish when it hears that it is revoked."""
    monkeypatch.setattr(node.authors, "take_revocations", lambda revocations: False)


def test_revoked_and_added_again_in_two_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with Network(tmp_path / "a") as network, Network(tmp_path / "b") as other:
            for each in (network, other):
                await each.certify(1, 2, 3)
            async with AsyncExitStack() as stack:
                one, two, three = [await stack.enter_async_context(network.node(number)) for number in (1, 2, 3)]
                elsewhere = [await stack.enter_async_context(other.node(number)) for number in (1, 2)]
                assert await hears(one, two, 1)
                assert await hears(elsewhere[0], elsewhere[1], 1)

                deaf(monkeypatch, two)
                network.revoke(2)  # only node 3 gets the file; node 1 learns it from node 3
                network.give(3)
                three.reload()
                assert one.authors is not None
                known = one.authors
                await until(lambda: known.is_revoked(2))
                assert not await hears(one, two, 2)
                assert not await hears(three, two, 3)
                assert await hears(one, three, 4)
                assert await hears(elsewhere[0], elsewhere[1], 2)  # the other network has nothing to do with it
            async with network.node(1) as one, network.node(2) as two:  # it is on disk
                deaf(monkeypatch, two)
                assert not await hears(one, two, 5)
                assert two.authors is not None
                network.members = network.members.add(2, two.authors.identity.public, network.owner)
                network.give(2)
                two.reload()
                assert await hears(one, two, 6)  # only node 2 got the file

    run(test)


def test_events_of_a_revoked_node_that_others_still_hold_are_not_delivered(tmp_path: Path) -> None:
    async def test() -> None:
        async with Network(tmp_path / "net") as network:
            await network.certify(1, 2)
            changes: dict[str, Any] = {"protocol": "opportunistic", "changes": ("interval=0.2", 'carry="everything"')}
            async with network.node(1, **changes) as one, network.node(2, **changes) as two:
                async with Client(address(two)) as there:
                    await there.publish({"n": 1})
                await until(lambda: one.host.broker.tables()["documents"] == 1)
                network.revoke(2)
                network.give(1)
                one.reload()
                async with Client(address(one)) as here, here.subscribe("n >= 1") as events:
                    await here.publish({"n": 2})
                    event = await anext(events)
                assert (event.author, event.attributes["n"]) == (1, 2)
                assert one.host.counters["forged"] > 0

    run(test)


def test_a_signature_is_for_one_network(tmp_path: Path) -> None:
    """The same device, certified in two networks: an event of one is not an event of the other."""

    async def test() -> None:
        async with Network(tmp_path / "a") as network, Network(tmp_path / "b") as other:
            await network.certify(1)
            (other.folder / "1.store").write_bytes((network.folder / "1.store").read_bytes())
            await other.certify(1)
            async with network.node(1) as here, Client(address(here)) as client:
                await client.publish({"n": 1})
                stored = here.store.publications()[0].publication
            published = msgspec.msgpack.decode(stored, type=Publication).event
            async with network.node(1) as here, other.node(1) as there:
                assert here.authors is not None
                assert there.authors is not None
                assert here.authors.identity.public == there.authors.identity.public
                assert here.host.admission.is_authentic(published)
                assert not there.host.admission.is_authentic(published)

    run(test)


def test_without_an_owner_the_first_to_speak_under_a_number_keeps_it(tmp_path: Path) -> None:
    async def test() -> None:
        relay = Relay()
        air = await relay.open()
        first, second = tmp_path / "first", tmp_path / "second"
        for folder in (first, second):
            folder.mkdir()

        async def heard(node: Node, folder: Path, value: int) -> bool:
            async with Node(settings(folder, 2, air=air)) as other:
                relay.members.append(other.link.own_address)
                return await hears(node, other, value, "first use")

        try:
            async with Node(settings(tmp_path, 1, air=air)) as node:
                relay.members.append(node.link.own_address)
                assert await heard(node, first, 1)
                assert not await heard(node, second, 2)
                assert node.authors is not None
                assert node.authors.conflicts > 0
            async with Node(settings(tmp_path, 1, air=air)) as node:  # it is on disk
                relay.members.append(node.link.own_address)
                assert not await heard(node, second, 3)
                assert node.authors is not None
                async with Client(address(node)) as client:
                    await client.forget_author(2)  # the device was replaced, and its user says so
                    with pytest.raises(ClientError, match="no other node 2 is known here"):
                        await client.forget_author(2)
                assert await heard(node, second, 4)
        finally:
            relay.close()

    run(test)
