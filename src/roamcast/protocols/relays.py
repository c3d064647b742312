"""Multipoint relays: the few neighbours that pass a node's broadcasts on, so that all nodes two hops away hear them.

Qayyum, Viennot, Laouiti, "Multipoint Relaying for Flooding Broadcast Messages in Mobile Wireless Networks" (2002), as
OLSR uses it. The rules this file owns:

* **Only bidirectional links count.** Nodes tell their neighbours whom they hear. A node that we hear and that says it
  hears us is a neighbour. Of a neighbour's own links, only those count that it has confirmed itself.
* **The choice.** First the neighbours that alone reach some node two hops away; then, repeatedly, the one that reaches
  most nodes not yet reached. Among equals, the one with more links to nodes two hops away, then the lowest number.
* Nodes not heard for `lifetime` are forgotten; the table is bounded, and so is what one neighbour can claim.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from roamcast.protocols.neighbours import NeighbourTable

MAX_CLAIMED: Final = 256
"""Neighbours that one node can name."""


def select_relays(node: int, neighbours: Mapping[int, Collection[int]]) -> tuple[int, ...]:
    """The relays of a node, sorted: `neighbours` has the confirmed neighbours of each of its own."""
    near = {node, *neighbours}
    reach = {neighbour: beyond for neighbour, theirs in neighbours.items() if (beyond := frozenset(theirs) - near)}
    left: set[int] = set()  # nodes two hops away that no relay reaches yet
    by_several: set[int] = set()
    for beyond in reach.values():
        by_several |= left & beyond
        left |= beyond
    chosen = [neighbour for neighbour, beyond in reach.items() if not beyond <= by_several]
    for relay in chosen:
        left -= reach[relay]
    while left:
        reach = {neighbour: beyond for neighbour, beyond in reach.items() if not beyond.isdisjoint(left)}
        _, _, best = max([(len(beyond & left), len(beyond), -neighbour) for neighbour, beyond in reach.items()])
        chosen.append(-best)
        left -= reach[-best]
    return tuple(sorted(chosen))


@dataclass(frozen=True)
class Claim:
    """What a neighbour says about its own neighbourhood. All who hear it may share it."""

    confirmed: tuple[int, ...]
    """Nodes that it hears and that hear it."""
    heard: tuple[int, ...]
    """Nodes that it hears, without knowing whether they hear it."""

    @cached_property
    def links(self) -> frozenset[int]:
        """The confirmed ones, as far as they count."""
        return frozenset(self.confirmed[:MAX_CLAIMED])

    @cached_property
    def hears(self) -> frozenset[int]:
        """All whom it hears, as far as they count."""
        return self.links.union(self.heard[:MAX_CLAIMED])


class Neighbourhood:
    """What a node knows about the nodes around it, from their claims; and its relays."""

    def __init__(self, node: int, lifetime: int, capacity: int) -> None:
        self._node = node
        self._table: NeighbourTable[None] = NeighbourTable(lifetime, capacity)
        self._links: dict[int, frozenset[int]] = {}  # of the nodes whose link is confirmed: their confirmed neighbours
        self._relays: tuple[int, ...] | None = ()  # None: to be chosen again

    def hear(self, now: int, neighbour: int, claim: Claim) -> None:
        """A neighbour was heard directly, with its claim."""
        evicted = self._table.hear(now, neighbour, None)
        if evicted is not None:
            self._set_links(evicted, None)
        self._set_links(neighbour, claim.links if self._node in claim.hears else None)

    def expire(self, now: int) -> None:
        """Forgets nodes that were silent for too long."""
        for gone in self._table.expire(now):
            self._set_links(gone, None)

    def _set_links(self, neighbour: int, links: frozenset[int] | None) -> None:
        if links == self._links.get(neighbour):
            return
        self._relays = None
        if links is None:
            del self._links[neighbour]
        else:
            self._links[neighbour] = links

    @property
    def claim(self) -> Claim:
        """This node's own claim."""
        heard = sorted(neighbour for neighbour in self._table if neighbour not in self._links)
        return Claim(tuple(sorted(self._links)[:MAX_CLAIMED]), tuple(heard[:MAX_CLAIMED]))

    def confirmed(self, neighbour: int) -> bool:
        """Whether the link works both ways, as far as is known."""
        return neighbour in self._links

    @property
    def relays(self) -> tuple[int, ...]:
        """The neighbours that pass this node's broadcasts on."""
        if self._relays is None:
            self._relays = select_relays(self._node, self._links)
        return self._relays

    def __len__(self) -> int:
        return len(self._table)
