"""Which nodes pass a broadcast on: section 2.2 of the paper, "Broadcast message forwarding".

The lower layer of the protocol. Announces and documents travel up to `scope` hops. Every copy names the neighbours that
pass it on, the *relays* of its sender; or all nodes pass it on, which is plain flooding. Nodes learn who is a neighbour
of whom from the announces that they hear directly.
"""

from typing import Final

from roamcast.protocols.api import Node, Time
from roamcast.protocols.opportunistic.messages import MILLISECOND, Announce
from roamcast.protocols.opportunistic.params import Opportunistic
from roamcast.protocols.relays import Claim, Neighbourhood

NO_CLAIM: Final = Claim((), ())


class Forwarding:
    def __init__(self, node: Node, params: Opportunistic, lifetime: Time) -> None:
        """`lifetime` is how long a neighbour counts after it was last heard."""
        self._node = node
        self._floods = params.relaying == "flooding"
        self._any_copy = params.decide == "any"
        self._uses_relays = not self._floods and params.scope > 1
        self._neighbourhood = Neighbourhood(node, lifetime, params.neighbours)
        self._serial = 0
        self.decides_later = params.relaying == "relays" and params.decide == "any"
        """Whether a later copy may make this node pass a broadcast on, if the first did not name it."""

    def hear(self, now: Time, neighbour: Node, announce: Announce) -> None:
        """Notes a neighbour that was heard directly, and which nodes it hears."""
        if self._uses_relays:
            self._neighbourhood.hear(now, neighbour, announce.claim)

    def claim(self, now: Time) -> Claim:
        """What this node announces about its neighbours now."""
        if not self._uses_relays:
            return NO_CLAIM
        self._neighbourhood.expire(now)
        return self._neighbourhood.claim

    def relays(self, scope: int) -> tuple[Node, ...]:
        """The neighbours that should pass on a broadcast with `scope` hops to go."""
        return self._neighbourhood.relays if self._uses_relays and scope > 1 else ()

    def chosen(self, relays: tuple[Node, ...], first: bool) -> bool:
        """Whether this node passes a broadcast on, given the relays of a copy and whether it is the first copy here."""
        if self._floods:
            return first
        return self._node in relays and (first or self._any_copy)

    def next_serial(self, now: Time) -> int:
        """The number of a new broadcast: greater than all earlier ones, including those before a restart."""
        self._serial = max(self._serial + 1, now // MILLISECOND)
        return self._serial

    def __len__(self) -> int:
        """The number of known direct neighbours."""
        return len(self._neighbourhood)
