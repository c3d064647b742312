"""Digests: a host that enters the region of an item gets it from the hosts that hold it (section 3.2).

Neighbours say where they are and where they were. A host that sees one enter waits a random time, and sends it the
items that nobody else has sent meanwhile, in a digest or a refresh.
"""

from collections.abc import Hashable
from typing import Final

from roamcast.bounded import put
from roamcast.content.structure import SHORT
from roamcast.protocols.api import Node, Time
from roamcast.protocols.context.host import Host
from roamcast.protocols.context.matching import Matching
from roamcast.protocols.context.messages import MAX_DIGEST, Digest, EventItem, SubscriptionItem
from roamcast.protocols.context.presence import Presence
from roamcast.protocols.context.tables import Held
from roamcast.protocols.messages import LONGEST
from roamcast.units import seconds

_MOST_OCTETS: Final = LONGEST // 2
_MOST_VALUES: Final = SHORT // 4
"""Bytes of payloads and values of events in one digest, so that it can be sent."""


class Digests:
    def __init__(self, host: Host, matching: Matching) -> None:
        self._host = host
        self._matching = matching
        self._refresh = seconds(host.params.refresh)
        self._entered: dict[Hashable, Time] = {}  # by neighbour and item: when it last entered
        self._owed: dict[Node, dict[Hashable, None]] = {}  # by neighbour: the items for a digest

    @property
    def tables(self) -> dict[str, int]:
        return {"entered": len(self._entered), "owed": len(self._owed)}

    def watch(self, now: Time, node: Node, presence: Presence) -> None:
        """Schedules a digest if the neighbour has entered the region of an item held here."""
        events, subscriptions = self._matching.events, self._matching.subscriptions
        if not (events.placed or subscriptions.placed) or not self._host.params.digests:
            return
        for key in (*events.entered(now, presence), *subscriptions.entered(now, presence)):
            last = self._entered.get((node, key))
            if last is not None and now - last < self._refresh:
                continue
            put(self._entered, (node, key), now, self._host.params.window)
            self._owe(now, node, key)

    def _owe(self, now: Time, node: Node, key: Hashable) -> None:
        if node not in self._owed:
            if put(self._owed, node, {}, self._host.params.neighbours) is not None:
                self._host.port.note("digest dropped")
            self._host.port.set_timer(now + self._host.random_wait(), ("digest", node))
        self._owed[node][key] = None

    def made(self, now: Time, node: Node) -> Digest | None:
        """A digest of what nobody else has sent the neighbour meanwhile; the rest follows in another."""
        owed = self._owed.pop(node, {})
        events = [held for held in map(self._matching.events.get, owed) if held is not None and held.expires > now]
        wanted = [
            held for held in map(self._matching.subscriptions.get, owed) if held is not None and held.expires > now
        ]
        if not events and not wanted:
            self._host.port.note("digest suppressed")
            return None
        some = _fitting(events)
        for key in (*(held.item.key for held in events[some:]), *(held.item.key for held in wanted[MAX_DIGEST:])):
            self._owe(now, node, key)
        return Digest(
            self._host.whereabouts.presence(now),
            tuple(held.item.older(held.item.left - (held.expires - now)) for held in events[:some]),
            tuple(held.item.older(held.item.left - (held.expires - now)) for held in wanted[:MAX_DIGEST]),
        )

    def sent(self, key: Hashable) -> None:
        """Somebody has sent the item, in a digest or through the region: this host need not send it any more."""
        for owed in self._owed.values():
            owed.pop(key, None)

    def hear(self, now: Time, digest: Digest) -> None:
        for event in digest.events:
            self.sent(event.key)
            if event.publisher != self._host.node and _is_new(self._matching.events.get(event.key), event.version):
                self._matching.take_event(now, event, 1, "digest")
        for item in digest.subscriptions:
            self.sent(item.key)
            if item.subscriber != self._host.node and _is_new(self._matching.subscriptions.get(item.key), item.version):
                self._matching.take_subscription(now, item)


def _fitting(events: list[Held[EventItem]]) -> int:
    """How many of these events one digest may have: the first, and others as long as the message is not too long."""
    octets = values = 0
    for number, held in enumerate(events[:MAX_DIGEST]):
        octets += len(held.item.event.payload)
        values += held.item.event.held
        if number and (octets > _MOST_OCTETS or values > _MOST_VALUES):
            return number
    return min(len(events), MAX_DIGEST)


def _is_new(known: Held[EventItem] | Held[SubscriptionItem] | None, version: int) -> bool:
    return known is None or known.item.version < version
