"""A broker that writes down how it is called."""

from collections.abc import Hashable, Mapping
from random import Random
from typing import Any

from roamcast.content.subscription import Publication
from roamcast.protocols.api import Broker
from roamcast.protocols.messages import Message


class Ping(Message, frozen=True, tag="ping"):
    number: int


class Probe(Broker[Any]):
    latest: "Probe"

    def __init__(self, node: int, params: Any, port: Any, rng: Random) -> None:  # noqa: ANN401  # for tests
        super().__init__(node, params, port, rng)
        self.calls: list[tuple[Any, ...]] = []
        self.inside = False
        Probe.latest = self

    def _called(self, now: int, *what: Any) -> None:  # noqa: ANN401  # for tests
        assert not self.inside, "the broker was re-entered"
        assert not self.calls or now >= self.calls[-1][0], "time went back"
        self.calls.append((now, *what))

    def start(self, now: int, kept: Mapping[str, bytes]) -> None:
        self._called(now, "start", dict(kept))

    def publish(self, now: int, publication: Publication) -> None:
        self._called(now, "publish", publication.event.id)
        if publication.event.type == "raise":
            raise RuntimeError("on purpose")
        self.inside = True
        if publication.event.type == "ask":
            self.port.unicast(99, Ping(1))
            self.port.keep("asked", b"yes")
        self.inside = False

    def receive(self, now: int, sender: int, message: Message) -> None:
        self._called(now, "receive", sender, message)

    def unreachable(self, now: int, to: int, message: Message) -> None:
        self._called(now, "unreachable", to, message)

    def timer(self, now: int, key: Hashable) -> None:
        self._called(now, "timer", key)
