"""The daemon: one broker of the catalogue on a link, with a store, facts, senses and the local API.

It starts bottom up (store, clock, link, broker, API) and stops top down, so that each layer can use those below it
until it has stopped. An exception during the start closes everything that was opened and ends the node.
"""

import asyncio
import contextlib
import random
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from roamcast.errors import ConfigError, RoamcastError
from roamcast.live import log
from roamcast.live.authors import Authors
from roamcast.live.certificates import MembersFile
from roamcast.live.clock import Clock
from roamcast.live.control import Control
from roamcast.live.facts import facts_of
from roamcast.live.host import Host
from roamcast.live.identity import Identity
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import Sealer, protocol_number
from roamcast.live.link.link import Link, LinkSettings
from roamcast.live.link.replay import Replay
from roamcast.live.mqtt.server import MqttServer
from roamcast.live.places import default_store, read_token
from roamcast.live.senses import Senses
from roamcast.live.settings import NodeSettings, parameters
from roamcast.live.store import Store, StoreError
from roamcast.live.systemd import notify
from roamcast.live.troubles import Troubles
from roamcast.protocols import catalogue
from roamcast.units import SECOND

FIRST_SERIALS: Final = 2**31
"""A new store begins with a serial below this; at least as many are left then, of 2^32."""
TICK: Final = 1.0
"""Seconds between two rounds of periodic work."""


class Node:
    """One node, running between `start` and `close`. `failed` gets the error that ended it, if any."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self._entry = settings.entry()
        self._params = parameters(self._entry, settings.changes)
        self._keys = self._read_keys()
        self._members = self._read_members()
        self._token = self._read_token()
        self._tls = settings.tls()
        self.senses = Senses(settings.here, settings.attributes, settings.sense_interval, settings.gpsd())
        self._link_settings = LinkSettings(
            port=settings.port, address=settings.address, interface=settings.interface, air=settings.air
        )
        self.failed: asyncio.Future[StoreError] | None = None
        self._closing = contextlib.AsyncExitStack()
        self.mqtt: MqttServer | None = None
        self._acknowledgements = (0, 0)
        self._twins = 0
        self._troubles = Troubles()

    def _read_keys(self) -> list[NetworkKey]:
        """The first key seals; while the network changes its key, frames sealed with the old one are accepted too."""
        return [NetworkKey.load(path) for path in (self.settings.key, self.settings.old_key) if path is not None]

    def _read_members(self) -> MembersFile:
        return MembersFile() if self.settings.members is None else MembersFile.load(self.settings.members)

    def _read_token(self) -> str | None:
        return read_token(self.settings.token_file) if self.settings.token_file is not None else None

    def reload(self) -> None:
        """Reads keys, members, token and certificate from their files again. If one cannot be read, none is changed."""
        try:
            keys, token, tls, members = self._read_keys(), self._read_token(), self.settings.tls(), self._read_members()
        except RoamcastError as problem:
            log.error("nothing was reloaded", reason=str(problem))
            return
        self._keys = keys
        if keys and self._sealer.change_keys(keys):
            self._note_own_session()
        if self.authors is not None:
            self.authors.take_members(members)
            self.host.admission.greet(self.clock.now())
        self._control.change(token, tls)
        if self.mqtt is not None:
            self.mqtt.change(token, tls)
        log.info("reloaded", key=keys[0].fingerprint if keys else None)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def start(self) -> None:
        try:
            await self._start()
        except BaseException:
            await self._closing.aclose()
            raise

    async def _start(self) -> None:
        settings, close_later = self.settings, self._closing.push_async_callback
        self.failed = asyncio.get_running_loop().create_future()
        self.store = self._open_store()
        close_later(self.store.close)
        self.store.on_failure = self._store_failed
        self.store.before_commit = self._before_commit
        epoch = settings.epoch if settings.epoch is not None else self.store.numbers.get("epoch")
        self.clock = Clock(epoch, self.store.numbers["clock"])
        self.facts = facts_of(settings, self._entry, self.clock.epoch)
        self.senses.on_change = lambda attributes: self.facts.sensed(self.clock.now(), attributes)
        close_later(self._close_facts)
        self.authors = self._make_authors()
        self.host = self._make_host()
        self._sealer = self._make_sealer()
        self._note_own_session()
        self.link = Link(
            self._sealer,
            self._link_settings,
            on_message=self.host.receive,
            on_done=self.host.port.done,
            vouch=self.host.vouches,
        )
        if "epoch" not in self.store.numbers:
            self.store.set_number("epoch", self.clock.epoch)
        close_later(self.senses.close)
        await self.senses.start()
        close_later(self._close_link)
        await self.link.open()
        # No turn of the loop between the two: nothing is received before the broker has started.
        self.host.port.air = self.link
        self._start_broker()
        close_later(self._commit_the_rest)
        close_later(self.host.stop)
        ticking = asyncio.create_task(self._tick_for_ever())
        close_later(_cancelled, ticking)
        self._control = Control(self, settings.address_of_api, self._token, self._tls)
        self.control = await self._control.open()
        self.gate = self._control.gate
        close_later(self._control.close)
        address = settings.address_of_mqtt
        if address is not None:
            self.mqtt = MqttServer(self, address, self._token, self._tls)
            await self.mqtt.open()
            close_later(self.mqtt.close)
        await self.store.committed()
        log.info("ready", protocol=self.host.protocol, api=str(self.control), sealed=bool(self._keys))

    def _open_store(self) -> Store:
        settings = self.settings
        path = settings.store
        if path is None:
            path = default_store(settings.node)
        if settings.store is None or settings.control is None:
            _make_folder(settings.node)
        # A node that has lost its store has forgotten its events' ids. Others drop an id that they have seen, so a new
        # store begins at a random serial: with n events before the loss and m after it, the probability of repeating
        # one is (n + m) / 2^31.
        first = secrets.randbelow(FIRST_SERIALS) if settings.seed is None else 0
        store = Store(path, settings.node, settings.sync, first_serial=first)
        if store.new:
            log.warn(
                "a NEW STORE was made: if this node ran before, its store was elsewhere", store=str(path.resolve())
            )
        return store

    def _make_host(self) -> Host:
        settings = self.settings
        # Seeded by the operating system unless the run must be repeatable.
        rng = random.Random() if settings.seed is None else random.Random(f"{settings.seed}/broker/{settings.node}")
        world = self.clock, self.store, self.facts, self.senses
        return Host(settings.node, self._entry, self._params, rng, *world, self.authors)

    def _make_authors(self) -> Authors | None:
        """Who this node is, and who the others are; None: events are not signed."""
        if self.settings.unsigned:
            return None
        owner = self._keys[0].owner if self._keys else None
        if owner is None and self.settings.members is not None:
            raise ConfigError(f"--members {self.settings.members}: the network's key has no owner")
        authors = Authors(self.settings.node, Identity.of(self.store), owner, self.store)
        authors.take_members(self._members)
        if authors.own is None:
            identity = authors.identity.public.hex()
            remedy = f"the owner runs 'roamcast key add MEMBERS {self.settings.node} {identity} --owner FILE'"
            log.warn("this node has NO CERTIFICATE: it cannot publish", remedy=f"{remedy}; then --members MEMBERS")
        return authors

    def _start_broker(self) -> None:
        try:
            self.host.start()
        except StoreError:
            raise
        except Exception as problem:
            log.error("the broker could not start", problem)
            raise RoamcastError(
                f"{self.host.protocol} could not start with what is in {self.store.path}: "
                f"{type(problem).__name__}: {problem}"
            ) from problem

    def _make_sealer(self) -> Sealer:
        replay = Replay(persist=self.store.hear)
        replay.restore(self.store.sessions())
        return Sealer(self._keys or None, self.settings.node, protocol=self._entry.name, replay=replay)

    def _note_own_session(self) -> None:
        """Stores our own session like those of others, to tell our frames before a restart from a twin's."""
        self.store.hear({self._sealer.session: 0}, (), lambda problem: None)

    async def close(self) -> None:
        await self._closing.aclose()
        log.info("ended")

    async def _close_facts(self) -> None:
        await self.facts.close(self.clock.now())

    async def _close_link(self) -> None:
        await self.link.close()
        self._count_acknowledgements()
        self._take_along()  # what was sent just now has been handed over

    async def _commit_the_rest(self) -> None:
        with contextlib.suppress(StoreError):  # reported when it happened
            await self.store.committed()
            self._take_along()
            await self.store.committed()

    def _before_commit(self) -> None:
        self.host.before_commit()
        self.store.set_number("clock", self.clock.wall)

    def _take_along(self) -> None:
        """Starts a commit for what would otherwise wait for one."""
        if self.host.uncommitted:
            self.store.set_number("clock", self.clock.wall)

    def _store_failed(self, problem: StoreError) -> None:
        log.error("the store failed; the node ends", reason=str(problem))
        if self.failed is not None and not self.failed.done():
            self.failed.set_result(problem)

    # --- Every second -----------------------------------------------------------------------------------------------

    async def _tick_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        cut = loop.time()
        while True:
            await asyncio.sleep(TICK)
            notify("WATCHDOG=1")
            self._count_acknowledgements()
            self._warn_of_twins()
            foreign = {other["node"]: other["protocol"] for other in self.other_protocols()}
            self._troubles.look(loop.time(), self.link.counters, foreign)
            self.link.check()
            self.host.refuse_late(loop.time())
            if self.store.clean:
                self._take_along()
            if loop.time() - cut >= self.facts.interval - TICK / 2:
                cut = loop.time()
                await self.facts.cut(self.clock.now())

    def _count_acknowledgements(self) -> None:
        """Counts acknowledgements, the link's own frames, in the facts."""
        counters = self.link.counters
        total = counters["acknowledged"], counters["acknowledged-octets"]
        packets, octets = (now - before for now, before in zip(total, self._acknowledgements, strict=True))
        self._acknowledgements = total
        if packets:
            self.facts.count(self.clock.now(), "ack", packets=packets, bits=8 * octets)

    def _warn_of_twins(self) -> None:
        twins = self.link.counters["twin"]
        if twins > self._twins:
            self._twins = twins
            log.error("another node has this node's number: stop one of them, and make a new key", heard=twins)

    # --- Status -----------------------------------------------------------------------------------------------------

    def failure(self) -> str | None:
        """Why the node is about to end, or None."""
        return str(self.failed.result()) if self.failed is not None and self.failed.done() else None

    def other_protocols(self) -> list[dict[str, Any]]:
        """The nodes heard lately that run another protocol, and which."""
        loop_time = asyncio.get_running_loop().time()
        return [
            {"node": node, "protocol": _protocol_name(number), "heard_s_ago": _ago(loop_time, heard)}
            for node, (number, heard) in sorted(self.link.foreign.items())
        ]

    def status(self) -> dict[str, Any]:
        """Everything that `roamcast status` shows."""
        loop_time = asyncio.get_running_loop().time()
        return {
            "node": self.settings.node,
            "protocol": self.host.protocol,
            "parameters": msgspec.to_builtins(self._params),
            "now_s": self.clock.now() / SECOND,
            "epoch_ns": self.clock.epoch,
            "key": self._keys[0].fingerprint if self._keys else None,
            "old_key": self._keys[1].fingerprint if len(self._keys) > 1 else None,
            "authors": None if self.authors is None else self.authors.status,
            "api": str(self.control),
            "mqtt": None if self.mqtt is None else self.mqtt.status(),
            "here": self.senses.here,
            "attributes": dict(self.senses.attributes),
            "neighbours": [
                {"node": node, "heard_s_ago": _ago(loop_time, heard)}
                for node, heard in sorted(self.link.neighbours.items())
            ],
            "other_protocols": self.other_protocols(),
            "tables": self.host.tables,
            "subscriptions": [
                {
                    "id": mailbox.subscription.id,
                    "filter": str(mailbox.subscription.filter),
                    "durable": mailbox.durable,
                    "listening": mailbox.listening,
                    "waiting": len(mailbox),
                    "missed": mailbox.missed_in_all,
                }
                for mailbox in self.host.subscribers
            ],
            "counters": {
                "node": _counts(self.host.counters),
                "link": _counts(self.link.counters),
                "notes": _counts(self.facts.notes),
                "senses": _counts(self.senses.failures),
                "sent": {kind: _counts(counted) for kind, counted in sorted(self.facts.counted.items())},
            },
            "store": {"commits": self.store.commits, "sync": self.settings.sync},
        }


def _make_folder(node: int) -> None:
    """Makes the folder of the default store and of the default address."""
    folder = default_store(node).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(
            f"{folder}: cannot be made: {problem.strerror}; name other places with --store and --api"
        ) from None


async def identity_of(node: int, path: Path | None) -> bytes:
    """The public key of a node that does not run; it is made if its store is new."""
    if path is None:
        _make_folder(node)
        path = default_store(node)
    store = Store(path, node, first_serial=secrets.randbelow(FIRST_SERIALS))
    try:
        found = Identity.of(store).public
        await store.committed()
    finally:
        await store.close()
    return found


@lru_cache(64)
def _protocol_name(number: int) -> str:
    named = {protocol_number(name): name for name in catalogue.known()}
    return named.get(number, f"not installed here (number {number:08x})")


def _ago(now: float, then: float) -> float:
    return round(max(0.0, now - then), 3)


def _counts(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counters.items()) if count}


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
