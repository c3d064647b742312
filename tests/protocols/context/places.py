"""Hosts at places, in a mesh: who is within range of whom hears it."""

import math
from collections.abc import Mapping
from typing import Any

from roamcast.content.context.expression import Context
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event, Scalar, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.context.broker import ENTRY
from roamcast.protocols.messages import kind_of
from roamcast.protocols.testing import Mesh
from roamcast.units import SECOND, seconds


class Places(Mesh):
    """A mesh of hosts that stand somewhere, and can be moved."""

    def __init__(
        self,
        places: Mapping[int, tuple[float, float]],
        reach: float,
        parameters: Mapping[str, Any] | None = None,
        attributes: Mapping[int, dict[str, Scalar]] | None = None,
    ) -> None:
        self.reach = reach
        self.places = dict(places)
        self.attributes = dict(attributes or {})
        super().__init__(ENTRY, places, parameters={"reach": reach, **(parameters or {})})
        self.connect()

    def restart(self, node: int) -> None:
        self.ports[node].position = self.places[node]
        self.ports[node].properties = self.attributes.get(node, {})
        super().restart(node)

    def connect(self) -> None:
        self.links = {
            (one, other)
            for one, here in self.places.items()
            for other, there in self.places.items()
            if one != other and math.dist(here, there) <= self.reach
        }

    def move(self, node: int, place: tuple[float, float]) -> None:
        self.places[node] = self.ports[node].position = place
        self.connect()

    def wait(self, amount: float) -> None:
        self.run(self.now + seconds(amount))

    def publish(
        self, node: int, serial: int, lifetime: float = 0, relevant: str | None = None, subscribers: str | None = None
    ) -> None:
        event = Event.of("accident", {"n": serial}, id=event_id(node, serial))
        asked = Publication(event, seconds(lifetime), context(relevant), context(subscribers))
        assert list(self.entry.refusals(asked, self.params)) == []
        self[node].publish(self.now, asked)

    def subscribe(
        self,
        node: int,
        number: int = 1,
        lifetime: float | None = None,
        interest: str | None = None,
        publishers: str | None = None,
        filter: Filter = EVERYTHING,
    ) -> None:
        life = None if lifetime is None else seconds(lifetime)
        asked = Subscription(number, filter, life, context(interest), context(publishers))
        assert list(self.entry.refusals(asked, self.params)) == []
        self[node].subscribe(self.now, asked)

    def got(self, node: int) -> list[int]:
        """The serials of the events that a host's application got."""
        return [delivery.event.id & 0xFFFFFFFF for delivery in self.ports[node].delivered]

    def sent(self, kind: str, since: float = 0) -> list[tuple[float, int]]:
        """Who sent messages of a kind, and when, in s."""
        return [
            (time / SECOND, node)
            for time, node, message in self.log
            if kind_of(type(message)) == kind and time >= seconds(since)
        ]


def context(text: str | None) -> Context | None:
    return None if text is None else parse_context(text)
