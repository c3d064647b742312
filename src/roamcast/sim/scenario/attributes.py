"""Attributes of nodes, given by the scenario: constant, drawn, or changing over time.

They depend only on the scenario and the seed, as movement does. Each node draws from its own random stream.
"""

from collections.abc import Iterator
from random import Random
from typing import Annotated, NamedTuple

from msgspec import Meta

from roamcast.content.event import Scalar, check_scalar, check_text
from roamcast.errors import ContentError
from roamcast.sim.scenario.draw import Drawn, draw, interval_problems, values_of
from roamcast.sim.scenario.some_nodes import SomeNodes
from roamcast.units import SECOND


class Attributes(SomeNodes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes of some nodes, or of all."""

    set: Annotated[
        dict[str, Drawn],
        Meta(description="by name: a value; a list to draw from; or {low, high} to draw between"),
    ]
    change: Annotated[
        float | None,
        Meta(
            description="time between two changes, s, the first at a random point within it: all are drawn again; "
            "none: they stay"
        ),
    ] = None

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        yield from super().problems(nodes)
        yield from interval_problems("change", self.change, "changes")
        for name, drawn in self.set.items():
            try:
                check_text(name, "an attribute's name")
                for value in values_of(drawn):
                    check_scalar(value, "attribute", name)
            except (ContentError, ValueError) as problem:
                yield f"set.{name}", str(problem)


class Changed(NamedTuple):
    """A node's attribute changes."""

    time: int
    node: int
    values: dict[str, Scalar]


def attribute_changes(groups: tuple[Attributes, ...], nodes: int, seed: int, end: int) -> Iterator[Changed]:
    """All changes before `end`, in order of time; the first are those at the start."""
    changes: list[Changed] = []
    for number, group in enumerate(groups):
        for node in group.members(nodes):
            rng = Random(f"{seed}/attributes/{number}/{node}")
            changes.append(Changed(0, node, _drawn(group, rng)))
            if group.change is not None:
                interval = group.change * SECOND
                time = interval * rng.random()
                while round(time) < end:
                    changes.append(Changed(round(time), node, _drawn(group, rng)))
                    time += interval
    return iter(sorted(changes, key=lambda change: (change.time, change.node)))


def _drawn(group: Attributes, rng: Random) -> dict[str, Scalar]:
    return {name: draw(drawn, rng) for name, drawn in group.set.items()}
