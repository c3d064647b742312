"""Retained messages: the last one of each topic that was published with RETAIN, for those who subscribe later.

The rules this file owns:

* A node retains what its own MQTT clients publish, and what arrives for one of their subscriptions. Nodes do not ask
  each other for what they retain: what a subscriber elsewhere gets of the past is decided by the protocol and by the
  events' lifetimes.
* A retained message lives until its Message Expiry Interval is over, or another takes its place; an empty one removes
  it [3.3.1.3]. It survives the node.
* There are at most `MAX_TOPICS`, of `MAX_BYTES` together; then the one that was published first goes.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.filter import Filter
from roamcast.live.control_messages import SubscriberMessage
from roamcast.live.mqtt.topics import ApplicationMessage, matches
from roamcast.live.mqtt.world import MqttWorld

MAX_TOPICS: Final = 1024
MAX_BYTES: Final = 4 * 2**20
PREFIX: Final = "retained/"


class _Kept(msgspec.Struct):
    message: SubscriberMessage
    ends: float | None
    """Seconds since 1970."""


class Retained:
    def __init__(self, world: MqttWorld) -> None:
        self._world = world
        self._by_topic: dict[str, bytes] = {}
        self._latest: dict[str, tuple[float, int]] = {}  # when each was published, also of those that were removed
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._by_topic)

    def restore(self, kept: Mapping[str, bytes]) -> None:
        for key, value in kept.items():
            if key.startswith(PREFIX):
                topic = key.removeprefix(PREFIX)
                self._set(topic, value)
                self._latest[topic] = _order(msgspec.msgpack.decode(value, type=_Kept).message)

    def take(self, message: ApplicationMessage, told: SubscriberMessage) -> None:
        """Retains a message that was published with RETAIN."""
        order = _order(told)
        if order <= self._latest.get(message.topic, (-1.0, 0)):
            return  # a subscription that is behind others
        put(self._latest, message.topic, order, 2 * MAX_TOPICS)
        if not message.payload:  # [MQTT-3.3.1-6], [MQTT-3.3.1-7]
            self._remove(message.topic)
            return
        published = self._world.now() if told.published is None else told.published
        kept = _Kept(told, None if message.expiry is None else published + message.expiry)
        self._remove(message.topic)
        self._set(message.topic, msgspec.msgpack.encode(kept))
        self._world.keep(PREFIX + message.topic, self._by_topic[message.topic])
        while len(self._by_topic) > MAX_TOPICS or (self._bytes > MAX_BYTES and len(self._by_topic) > 1):
            self._remove(next(iter(self._by_topic)))

    def matching(self, topic_filter: str, wanted: Filter) -> Iterator[SubscriberMessage]:
        for topic, packed in list(self._by_topic.items()):
            if not matches(topic_filter, topic):
                continue
            kept = msgspec.msgpack.decode(packed, type=_Kept)
            if kept.ends is not None and kept.ends <= self._world.now():
                self._remove(topic)
            elif kept.message.event is not None and wanted.matches(kept.message.event.event):
                yield kept.message

    def _set(self, topic: str, packed: bytes) -> None:
        self._by_topic[topic] = packed
        self._bytes += len(topic) + len(packed)

    def _remove(self, topic: str) -> None:
        packed = self._by_topic.pop(topic, None)
        if packed is not None:
            self._bytes -= len(topic) + len(packed)
            self._world.forget(PREFIX + topic)


def _order(told: SubscriberMessage) -> tuple[float, int]:
    assert told.event is not None
    return told.published or 0.0, told.event.id
