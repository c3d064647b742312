"""The events and subscriptions that a host holds because it is in their regions.

The rules this file owns:

* Every host in an item's region holds it, also while the item's other properties do not hold there. `store` defines the
  edge: *strict*, hosts in the region; *enlarged*, also those within the margin around it; *keep*, as enlarged, and a
  host that has an item keeps it wherever it goes.
* An older version never replaces a newer one. Expired items are removed.
* Bounded: of the items of others, the one that was added or renewed longest ago makes room. The host's own items are
  held beside them, as many as it issues: others cannot push them out.
"""

import math
from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from roamcast.bounded import put
from roamcast.content.context.expression import Context
from roamcast.content.context.rules import region_of
from roamcast.content.geometry import Point
from roamcast.content.region import Region
from roamcast.protocols.api import Node, Time
from roamcast.protocols.context.params import Store
from roamcast.protocols.context.presence import Presence


class Item(Protocol):
    """An event or a subscription."""

    @property
    def key(self) -> Hashable: ...
    @property
    def issuer(self) -> Node: ...
    @property
    def context(self) -> Context | None: ...
    @property
    def left(self) -> int: ...
    @property
    def version(self) -> int: ...


I = TypeVar("I", bound=Item)  # noqa: E741  # an item


class Held(Generic[I]):
    """An item that is held."""

    __slots__ = ("area", "expires", "hops", "inside", "item", "matched")

    def __init__(self, item: I, expires: Time, area: Region | None, hops: int) -> None:
        self.item = item
        self.expires = expires
        self.area = area
        """Where hosts hold it; None: everywhere."""
        self.hops = hops
        """Hops from its origin."""
        self.inside = False
        """Whether the host was in its context at the last check."""
        self.matched = 0
        """If matching it took too long for one call: how many of the others it was matched with."""


def target(context: Context | None, margin: float) -> Region | None:
    """The region of a context, enlarged; None: everywhere."""
    region = None if context is None else region_of(context)
    return region if region is None or margin == 0 else region.enlarged(margin)


class ItemTable(Generic[I]):
    def __init__(self, node: Node, store: Store, margin: float, capacity: int) -> None:
        self._node = node
        self._keep = store == "keep"
        self._margin = 0.0 if store == "strict" else margin
        self._capacity = capacity
        self.held: dict[Hashable, Held[I]] = {}
        """By key; read only from outside."""
        self._first_end: float = math.inf  # no item held expires before this
        self._others: dict[Hashable, None] = {}  # the keys of items of other hosts, in the same order
        self.placed: dict[Hashable, Region] = {}
        """The areas of those that have one, in the same order; read only from outside."""

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[Held[I]]:
        """In the order of adding; the table may change meanwhile."""
        return iter(list(self.held.values()))

    def entered(self, now: Time, presence: Presence) -> list[Hashable]:
        """The keys of the items whose area a neighbour has entered since its last mark."""
        there, before = presence.host.location, presence.before
        if there is None or before is None or there == before:
            return []
        return [
            key
            for key, area in self.placed.items()
            if area.contains(*there) and not area.contains(*before) and self.held[key].expires > now
        ]

    def get(self, key: Hashable) -> Held[I] | None:
        return self.held.get(key)

    def put(self, now: Time, item: I, here: Point | None, hops: int) -> tuple[Held[I] | None, Hashable | None]:
        """Adds an item if this host shall hold it; returns it, if it is held in this or a later version, and the key of
        an item that made room. `here` matters only for an item with a context."""
        known = self.held.get(item.key)
        if known is not None and known.item.version >= item.version:
            return known, None
        if item.left == 0:
            return None, None
        if known is not None and known.item.context == item.context:
            area = known.area
        else:
            region = target(item.context, 0.0)
            if region is not None and not self._is_near(region, here):  # true for most hosts that hear of it
                return None, None
            area = region if region is None or self._margin == 0 else region.enlarged(self._margin)
        if not (_contains(area, here) or (self._keep and known is not None)):
            return None, None
        held = Held(item, now + item.left, area, hops)
        self.remove(item.key)
        self.held[item.key] = held
        self._first_end = min(self._first_end, held.expires)
        if area is not None:
            self.placed[item.key] = area
        oldest = None if item.issuer == self._node else put(self._others, item.key, None, self._capacity)
        if oldest is not None:
            self.remove(oldest)
        return held, oldest

    def _is_near(self, region: Region, here: Point | None) -> bool:
        """Whether a host may be in the enlarged region; never wrongly says no."""
        if here is None:
            return False
        box, reach = region.box, self._margin + 1.0
        return box.x0 - reach <= here[0] <= box.x1 + reach and box.y0 - reach <= here[1] <= box.y1 + reach

    def remove(self, key: Hashable) -> bool:
        """Removes an item; returns whether it was held."""
        self.placed.pop(key, None)
        self._others.pop(key, None)
        return self.held.pop(key, None) is not None

    def drop(self, now: Time, here: Point | None) -> dict[Hashable, bool]:
        """Drops expired items, and those whose region this host has left; returns, by key, whether each had expired."""
        if now <= self._first_end and (self._keep or not self.placed):  # true most of the time
            return {}
        gone = {
            key: held.expires < now
            for key, held in self.held.items()
            if held.expires < now or not (self._keep or _contains(held.area, here))
        }
        for key in gone:
            self.remove(key)
        self._first_end = min((held.expires for held in self.held.values()), default=math.inf)
        return gone


def _contains(area: Region | None, here: Point | None) -> bool:
    return area is None or (here is not None and area.contains(*here))
