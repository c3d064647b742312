"""Announces: a node's own, and copies of other nodes' announces that it passes on.

Section 2.1 of the paper, "Announcing": every 15 s or so a node broadcasts what it wants, and which of its documents
its neighbours may want. An announce that is longer than a frame is split into parts that are useful on their own.
"""

from itertools import repeat
from operator import sub
from random import Random
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.opportunistic.cache import Held
from roamcast.protocols.opportunistic.catalog import Catalog, Offer, parts
from roamcast.protocols.opportunistic.facts import RelaysChosen
from roamcast.protocols.opportunistic.forwarding import NO_CLAIM, Forwarding
from roamcast.protocols.opportunistic.interest import Interest
from roamcast.protocols.opportunistic.messages import (
    MAX_LISTED,
    MAX_SCOPE,
    MILLISECOND,
    Announce,
    clipped,
)
from roamcast.protocols.opportunistic.params import Opportunistic
from roamcast.protocols.relays import Claim
from roamcast.protocols.source_route import extended
from roamcast.units import seconds

_LATEST: Final = 2048
"""How many of other nodes' announces a node remembers, to recognise duplicates."""
_ROOM_FOR_HEADER: Final = 64
"""Size in bytes of an announce without its lists."""


class Announcing:
    def __init__(
        self,
        node: Node,
        params: Opportunistic,
        port: Port,
        rng: Random,
        *,
        catalog: Catalog,
        interest: Interest,
        forwarding: Forwarding,
    ) -> None:
        self._node = node
        self._params = params
        self._port = port
        self._rng = rng
        self._catalog = catalog
        self._interest = interest
        self._forwarding = forwarding
        self._recorded_relays: tuple[Node, ...] = ()
        self._heard: dict[tuple[Node, int, int], bool] = {}  # others' announces, and whether passed on
        self._withholds = not forwarding.decides_later
        if self._withholds:
            port.withhold(Announce, once=True)

    # --- The node's own ---------------------------------------------------------------------------------------------

    def announce(self, now: Time) -> None:
        params = self._params
        self._catalog.expire(now)
        claim = self._forwarding.claim(now)
        serial, relays = self._forwarding.next_serial(now), self._forwarding.relays(params.scope)
        if relays != self._recorded_relays:
            self._recorded_relays = relays
            self._port.record(RelaysChosen(relays))
        for part, (listing, published, expires) in enumerate(self._parts(claim, relays)):
            ages = tuple(map(sub, repeat(now // MILLISECOND), published))
            lives = _lives(now, expires)
            profile, said = (None, NO_CLAIM) if part else (self._interest.profile, claim)
            message = Announce(
                serial,
                part,
                params.scope,
                (),
                relays,
                profile,
                said.confirmed,
                said.heard,
                listing.catalog,
                ages,
                lives,
            )
            self._port.broadcast(message.with_listing(listing))

    def _parts(self, claim: Claim, relays: tuple[Node, ...]) -> list[Offer]:
        """The announced documents; split into parts that each fit into a frame, if the parameters ask for it."""
        params = self._params
        if not params.cut and not params.listed and params.catalog == "wanted":
            whole = self._catalog.everything_wanted()
            if len(whole.published) <= MAX_LISTED:
                return [whole]
        return [Offer.of(some) for some in self._cut(self._catalog.fitted(params.listed), claim, relays)]

    def _cut(self, offered: list[Held], claim: Claim, relays: tuple[Node, ...]) -> list[list[Held]]:
        """A catalog split into parts that each fit into a frame, or at least into a message."""
        if not self._params.cut:
            return [offered[start : start + MAX_LISTED] for start in range(0, max(1, len(offered)), MAX_LISTED)]
        room = self._params.piece - _ROOM_FOR_HEADER - 5 * len(relays)
        names = 5 * (len(claim.confirmed) + len(claim.heard))
        return parts(offered, room - names - len(msgspec.msgpack.encode(self._interest.profile)), room)

    # --- Announces of others ----------------------------------------------------------------------------------------

    def hear(self, sender: Node, message: Announce) -> Node | None:
        """Passes an announce on if this node is a relay for it; returns its announcer if the announce is new here."""
        key = message.subject(sender)
        if key is None:
            return sender
        passed_on = self._heard.get(key)
        if passed_on or (passed_on is False and self._withholds):
            return None
        if self._node in message.path or not message.plausible:
            if self._withholds:
                self._port.know(Announce, key, False)  # another copy may be the first
            return None
        self._pass_on(sender, key, message, passed_on is None)
        return key[0] if passed_on is None else None

    def _pass_on(self, sender: Node, key: tuple[Node, int, int], message: Announce, first: bool) -> None:
        chosen = message.scope > 1 and self._forwarding.chosen(message.relays, first)
        path = extended(message.path, sender) if chosen else None
        if path is not None:
            scope = min(message.scope, MAX_SCOPE) - 1
            # The neighbour lists are left out: they are for nodes that hear the announcer directly.
            copy = Announce(
                message.serial,
                message.part,
                scope,
                path,
                self._forwarding.relays(scope),
                message.profile,
                (),
                (),
                message.catalog,
                message.ages,
                message.lives,
            ).with_listing(message.listing)
            self._port.broadcast(copy, seconds(self._rng.random() * self._params.spread))
        if first or path is not None:
            oldest = put(self._heard, key, path is not None, _LATEST)
            if oldest is not None and self._withholds:
                self._port.know(Announce, oldest, False)


def _lives(now: Time, expires: list[Time | None]) -> tuple[int | None, ...]:
    """How long each document may still be delivered, in ms; empty if none of them expires."""
    if not any(expires):
        return ()
    return tuple([None if end is None else clipped((end - now) // MILLISECOND) for end in expires])
