"""The documents that a node has, and what it remembers about those that it had.

The cache decides which documents stay. This file keeps the rest in step with it: the store, so that documents survive
a crash; the catalog, which offers them; the recorded facts; the timer for the next document that expires.

* *had*: with `remember`, documents that were once here are not fetched again, even if they were dropped.
* *settled*: documents of interest that need not be requested, since they are or were here. Reading a neighbour's
  catalog starts with these, and is fast because most wanted documents are settled.
* *unwanted*: documents that arrived and were not of interest. They are kept apart because there are far more of them
  and no catalog is compared with them.
"""

from collections.abc import Mapping
from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId
from roamcast.protocols.api import Port, Time
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.opportunistic import storage
from roamcast.protocols.opportunistic.cache import Cache, Held
from roamcast.protocols.opportunistic.catalog import Catalog
from roamcast.protocols.opportunistic.facts import CacheChanged, Change

EXPIRE: Final = "expire"
"""The key of the timer."""
_SETS: Final = 64
"""How many sets of settled documents are remembered."""
_NONE: Final[frozenset[EventId]] = frozenset()


class Holdings:
    def __init__(self, port: Port, cache: Cache, catalog: Catalog, *, remember: bool, window: int) -> None:
        """`window` is how many documents the node remembers."""
        self._port = port
        self._catalog = catalog
        self._remember = remember
        self._window = window
        self._had: dict[EventId, bool] = {}  # documents that were here, and whether they were wanted
        self._expiry: Time | None = None  # when the timer fires, if it is set
        self.cache = cache
        self._settled: dict[EventId, None] = {}
        self._settled_sets: set[frozenset[EventId]] = set()  # sets of which every document is settled
        self._unwanted: dict[EventId, None] = {}

    def restore(self, now: Time, kept: Mapping[str, bytes]) -> None:
        """Takes over the documents that the node had before a restart."""
        for held in storage.restored(kept):
            if held.expires is not None and held.expires <= now:
                storage.forget(self._port, held)
            elif held.document.id not in self.cache:
                self.put(now, held, "kept")

    def put(self, now: Time, held: Held, change: Change) -> None:
        """Stores a document, if there is room or the cache makes room for it."""
        id, documents, octets = held.document.id, len(self.cache), self.cache.octets
        dropped = self.cache.put(held)
        if self._remember:
            put(self._had, id, held.wanted, self._window)
        self.settle(id)
        if dropped is None:
            self._port.decide(id, "cache full")
            if not self._remember:
                self._unsettle(id)
            if change == "kept":
                storage.forget(self._port, held)
            return
        for victim in dropped:
            documents, octets = documents - 1, octets - victim.octets
            self._gone(victim, "full", documents, octets)
        self._catalog.enter(held)
        if change != "kept":
            storage.keep(self._port, held)
        self._port.record(CacheChanged(id, True, change, len(self.cache), self.cache.octets))
        expiry = self.cache.next_expiry
        if expiry is not None and (self._expiry is None or expiry < self._expiry):
            self._set_timer(expiry)

    def _gone(self, held: Held, change: Change, documents: int, octets: int) -> None:
        id = held.document.id
        self._catalog.leave(held)
        storage.forget(self._port, held)
        if not self._remember:
            self._unsettle(id)
        self._port.decide(id, "expired" if change == "expired" else "cache full")
        self._port.record(CacheChanged(id, False, change, documents, octets))

    # --- Expiry -----------------------------------------------------------------------------------------------------

    def drop_expired(self, now: Time) -> None:
        expiry = self.cache.next_expiry
        if expiry is None or expiry > now:
            return
        gone = self.cache.expired(now)
        documents, octets = len(self.cache) + len(gone), self.cache.octets + sum(held.octets for held in gone)
        for held in gone:
            documents, octets = documents - 1, octets - held.octets
            self._gone(held, "expired", documents, octets)
        expiry = self.cache.next_expiry
        if expiry is not None and self._expiry is None:
            self._set_timer(expiry)

    def timer(self, now: Time) -> None:
        self._expiry = None
        self.drop_expired(now)

    def _set_timer(self, at: Time) -> None:
        self._expiry = at
        self._port.set_timer(at, EXPIRE)

    # --- What need not be requested ---------------------------------------------------------------------------------

    def needs_not(self, id: EventId) -> bool:
        """Whether this node has no use for further pieces of a document."""
        return id in self._unwanted or id in self._settled or id in self._had

    def unsettled(self, ids: frozenset[EventId]) -> frozenset[EventId]:
        """Which of these documents of interest are not settled. Neighbours offer the same ones again and again."""
        if ids in self._settled_sets:
            return _NONE
        unsettled = ids.difference(self._settled)
        if not unsettled:
            if len(self._settled_sets) == _SETS:
                self._settled_sets.clear()
            self._settled_sets.add(ids)
        return unsettled

    def settle(self, id: EventId) -> None:
        if put(self._settled, id, None, self._window) is not None:
            self._settled_sets.clear()

    def _unsettle(self, id: EventId) -> None:
        self._settled.pop(id, None)
        self._settled_sets.clear()

    def refuse(self, id: EventId) -> None:
        """Notes a document that arrived and is not of interest."""
        put(self._unwanted, id, None, self._window)

    def interests_changed(self, local: LocalSubscriptions) -> None:
        self._settled.clear()
        self._settled_sets.clear()
        self._unwanted.clear()
        for held in self.cache:
            self.cache.set_wanted(held, local.matches(held.document.event))

    def want_again(self) -> None:
        """Allows fetching again what was only carried for others: it may be wanted now."""
        self._had = {id: wanted for id, wanted in self._had.items() if wanted}

    @property
    def remembered(self) -> int:
        return len(self._had)
