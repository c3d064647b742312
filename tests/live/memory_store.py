"""A store for tests that keeps things in memory."""

from roamcast.live.authors import Authors
from roamcast.live.identity import Identity
from roamcast.live.store import Store


class MemoryStore(Store):
    def __init__(self) -> None:
        self.sections: dict[str, dict[str, bytes]] = {}

    def kept(self, protocol: str) -> dict[str, bytes]:
        return dict(self.sections.get(protocol, {}))

    def keep(self, protocol: str, key: str, value: bytes) -> None:
        self.sections.setdefault(protocol, {})[key] = value

    def forget(self, protocol: str, key: str) -> None:
        self.sections.get(protocol, {}).pop(key, None)


def authors(node: int, owner: Identity | None = None, store: MemoryStore | None = None) -> Authors:
    """Those whom a new node knows: itself, unless an owner must certify it."""
    kept = MemoryStore() if store is None else store
    return Authors(node, Identity.of(kept), None if owner is None else owner.public, kept)
