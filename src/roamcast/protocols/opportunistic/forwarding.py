"""Who passes a broadcast on: section 2.2 of the paper, "Broadcast message forwarding".

The lower layer of the protocol. Announces and documents travel up to `scope` hops. Every copy names the neighbours that
pass it on, the *relays* of whoever sent it; or everybody does, which is plain flooding. Who is a neighbour of whom is
told in the announces, to those who hear them directly.
"""

from typing import Final

from roamcast.protocols.api import Node, Time
from roamcast.protocols.opportunistic.messages import MILLISECOND, Announce
from roamcast.protocols.opportunistic.params import Opportunistic
from roamcast.protocols.relays import Claim, Neighbourhood

NO_CLAIM: Final = Claim((), ())


class Forwarding:
    def __init__(self, node: Node, params: Opportunistic, lifetime: Time) -> None:
        """`lifetime` is how long a neighbour counts that is not heard of again."""
        self._node = node
        self._floods = params.relaying == "flooding"
        self._any_copy = params.decide == "any"
        self._uses_relays = not self._floods and params.scope > 1
        self._neighbourhood = Neighbourhood(node, lifetime, params.neighbours)
        self._serial = 0
        self.decides_later = params.relaying == "relays" and params.decide == "any"
        """Whether a copy that is not the first may have this node pass a broadcast on."""

    def hear(self, now: Time, neighbour: Node, announce: Announce) -> None:
        """A neighbour was heard directly, and says whom it hears."""
        if self._uses_relays:
            self._neighbourhood.hear(now, neighbour, announce.claim)

    def claim(self, now: Time) -> Claim:
        """What this node says of its neighbours now."""
        if not self._uses_relays:
            return NO_CLAIM
        self._neighbourhood.expire(now)
        return self._neighbourhood.claim

    def relays(self, scope: int) -> tuple[Node, ...]:
        """Who is to pass on a broadcast that may go so many hops."""
        return self._neighbourhood.relays if self._uses_relays and scope > 1 else ()

    def chosen(self, relays: tuple[Node, ...], first: bool) -> bool:
        """Whether this node passes a broadcast on, of which it has the first copy or another."""
        if self._floods:
            return first
        return self._node in relays and (first or self._any_copy)

    def next_serial(self, now: Time) -> int:
        """The number of a new broadcast: greater than all before, those before a restart included."""
        self._serial = max(self._serial + 1, now // MILLISECOND)
        return self._serial

    def __len__(self) -> int:
        """Direct neighbours that are known."""
        return len(self._neighbourhood)
