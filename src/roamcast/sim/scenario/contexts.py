"""Contexts of a workload: regions that are placed, and texts to draw from.

Draws here use their own random streams, so that the same scenario without contexts has the same events at the same
times.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.content.context.expression import And, Context, Within
from roamcast.content.context.text import parse_context
from roamcast.content.geometry import Point
from roamcast.content.region import Rectangle
from roamcast.errors import ContentError
from roamcast.sim.mobility import Area
from roamcast.sim.scenario.draw import choices

PositionOf = Callable[[int, int], Point]
"""Where a node is at a time."""


class Placed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rectangle that is placed anew for each event or subscription."""

    width: Annotated[float, Meta(gt=0, le=1e6, description="extent in x, m")]
    height: Annotated[float, Meta(gt=0, le=1e6, description="extent in y, m")]
    around: Annotated[
        Literal["area", "node"],
        Meta(
            description="area: anywhere in the area, wholly inside; node: centred where the node is when it publishes "
            "or subscribes"
        ),
    ] = "area"
    where: Annotated[str | None, Meta(description="what must hold besides, a context as text")] = None

    def problems(self, area: Area | None) -> Iterator[str]:
        if self.where is not None:
            yield from _unreadable(self.where)
        if area is None:
            yield "needs an [area] to be placed in"
        elif self.around == "area" and (self.width > area.width or self.height > area.height):
            yield f"{self.width:g} m × {self.height:g} m does not fit into the area of {area}"

    def draw(self, node: int, time: int, rng: Random, area: Area | None, here: PositionOf | None) -> Context:
        if self.around == "node":
            assert here is not None
            x, y = here(node, time)
            x, y = x - self.width / 2, y - self.height / 2
        else:
            assert area is not None
            x, y = rng.uniform(0, area.width - self.width), rng.uniform(0, area.height - self.height)
        within = Within(Rectangle(x, y, x + self.width, y + self.height))
        return Context(within if self.where is None else And((within, parse_context(self.where).expression)))


class GroupContexts(NamedTuple):
    """The contexts of a group's events or subscriptions, and the names of their fields."""

    place_field: str
    place: str | Placed | None
    domain_field: str
    domain: str | tuple[str, ...] | None

    def problems(self, area: Area | None) -> Iterator[tuple[str, str]]:
        if isinstance(self.place, Placed):
            yield from ((self.place_field, rule) for rule in self.place.problems(area))
        elif self.place is not None:
            yield from ((self.place_field, rule) for rule in _unreadable(self.place))
        if self.domain == ():
            yield self.domain_field, "an empty list: at least one context to draw from"
        for text in choices(self.domain):
            yield from ((self.domain_field, rule) for rule in _unreadable(text))

    def draw_place(
        self, node: int, time: int, rng: Random, area: Area | None, here: PositionOf | None
    ) -> Context | None:
        if isinstance(self.place, Placed):
            return self.place.draw(node, time, rng, area, here)
        return None if self.place is None else parse_context(self.place)

    def draw_domain(self, rng: Random) -> Context | None:
        texts = choices(self.domain)
        return parse_context(rng.choice(texts)) if texts else None


def _unreadable(text: str) -> Iterator[str]:
    try:
        parse_context(text)
    except ContentError as problem:
        yield str(problem)
