"""The neighbours of a node: address, time last heard, rate, and the last unicast message received from each.

Only authentic frames make an entry, so that strangers can neither fill the table nor push anybody out of it. It is
bounded all the same, against a broken or hostile node with the key: when it is full, a neighbour silent for longer
than `lifetime` makes room; if there is none, the newcomer is refused. A neighbour that keeps sending keeps its place.
Numbers are cheap to invent, so a newcomer that is *vouched for*, since it has shown a valid signature, takes the place
of the one that was silent for longest among those that are not. As long as there is room, nobody needs it.
"""

from dataclasses import dataclass

from roamcast.live.link.limits import Allowance, Rate
from roamcast.live.link.replay import FrameSession

Address = tuple[str, int]


@dataclass(slots=True)
class Neighbour:
    address: Address
    """Where its latest frame came from, and where unicast goes."""
    heard: float
    allowance: Allowance
    session: FrameSession | None = None
    """The session of its latest frame."""
    vouched: bool = False
    """Whether it has shown a valid signature."""
    last_unicast: int = -1
    """The number of the last unicast message of the session that was handed up. Numbers rise, since each message is
    finished before the next begins."""


class Neighbours:
    def __init__(self, capacity: int, lifetime: float, rate: Rate) -> None:
        self._capacity = capacity
        self._lifetime = lifetime
        self._rate = rate
        self._table: dict[int, Neighbour] = {}  # longest silent first

    def too_fast(self, now: float, node: int) -> bool:
        neighbour = self._table.get(node)
        return neighbour is not None and not neighbour.allowance.ready(now)

    def hear(self, now: float, node: int, address: Address, octets: int, *, vouched: bool = False) -> Neighbour | None:
        """Notes an authentic frame; returns its sender's entry, or None if the table has no room."""
        neighbour = self._table.pop(node, None)
        if neighbour is None:
            if len(self._table) == self._capacity and not self._make_room(now, vouched):
                return None
            neighbour = Neighbour(address, now, Allowance(self._rate, now), vouched=vouched)
        self._table[node] = neighbour
        neighbour.address = address
        neighbour.heard = now
        neighbour.allowance.charge(octets)
        return neighbour

    def _make_room(self, now: float, vouched: bool) -> bool:
        silent: int | None = next(iter(self._table))
        assert silent is not None
        if now - self._table[silent].heard <= self._lifetime:
            silent = next((node for node in self._table if not self._table[node].vouched), None) if vouched else None
        if silent is None:
            return False
        del self._table[silent]
        return True

    def get(self, node: int) -> Neighbour | None:
        return self._table.get(node)

    def times(self) -> dict[int, float]:
        """When each was last heard, by node in ascending order."""
        return {node: self._table[node].heard for node in sorted(self._table)}

    def __len__(self) -> int:
        return len(self._table)
