"""Nodes that are away: switched off and on by a schedule, at random, or by where they are.

The rules this file owns:

* While a node is away it hears nothing, sends nothing and keeps no channel busy.
* `restart`: the broker ends as with `kill -9` and starts again with what it had stored. Its applications restart with
  it and subscribe again; what they would have published meanwhile is never published.
* `suspended`: like a sleeping laptop. Memory is kept, and applications subscribe and unsubscribe on waking up as they
  would have meanwhile. Two things depend on the device, and are parameters: `events`, whether what they would have
  published is published on waking, with that time, or never made; and `timers`, whether the clock that timers run by
  goes on while the node sleeps, so that those that are due fire at once on waking, or stops.
* The times depend only on the scenario and the seed, as movement does.
"""

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from roamcast.sim.mobility.base import Bounds, Leg, residual
from roamcast.sim.scenario.some_nodes import SomeNodes
from roamcast.units import SECOND, seconds


class Away(SomeNodes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that are not always there."""

    mode: Annotated[
        Literal["restart", "suspended"],
        Meta(
            description="restart: it begins again with what it had kept, as after a crash; suspended: its memory is "
            "kept, as with a laptop asleep"
        ),
    ] = "suspended"
    events: Annotated[
        Literal["deferred", "skipped"],
        Meta(
            description="with mode suspended, what applications would have published meanwhile: deferred: it is "
            "published on waking, with that time; skipped: it is never published"
        ),
    ] = "deferred"
    timers: Annotated[
        Literal["fire", "wait"],
        Meta(
            description="with mode suspended, what timers do: fire: those due meanwhile fire at once on waking; wait: "
            "the time away does not count, and each waits out what was left"
        ),
    ] = "fire"
    times: Annotated[tuple[Bounds, ...], Meta(description="a schedule: [from, to] each, s, in the order of time")] = ()
    on: Annotated[
        Bounds | None, Meta(description="instead of a schedule: [least, greatest] time on, s, drawn each time")
    ] = None
    off: Annotated[Bounds | None, Meta(description="with `on`: [least, greatest] time off, s, drawn each time")] = None
    where: Annotated[
        Literal["outdoors", "indoors", "travelling"] | None,
        Meta(
            description="instead of a schedule, by where the node is (movement in buildings): outdoors; indoors; or "
            "travelling, from leaving for another building until it is inside that one"
        ),
    ] = None

    def problems(self, nodes: int) -> Iterator[tuple[str, str]]:
        yield from super().problems(nodes)
        for field, chosen in (("events", self.events != "deferred"), ("timers", self.timers != "fire")):
            if chosen and self.mode == "restart":
                yield field, 'needs mode = "suspended": a node that restarts has no timers and skips events'
        if (self.on is None) != (self.off is None):
            yield "off" if self.off is None else "on", "give both on and off"
        given = [bool(self.times), self.on is not None, self.where is not None]
        if sum(given) != 1:
            yield "times", "give one of: times, on and off, or where"
        for field, bounds in (("on", self.on), ("off", self.off)):
            if bounds is not None and not 0 < bounds[0] <= bounds[1]:
                yield field, f"{list(bounds)}: the least must be above 0 and not above the greatest"
        edges = [edge for span in self.times for edge in span]
        if any(later <= earlier for earlier, later in pairwise(edges)) or (edges and edges[0] < 0):
            yield "times", f"{[list(span) for span in self.times]}: each must end after it begins, one after the other"

    def applies_on(self, leg: Leg) -> bool:
        """Whether a node on this leg is away, if that depends on where it is."""
        return {"outdoors": not leg.indoor, "indoors": leg.indoor, "travelling": leg.travelling, None: False}[
            self.where
        ]


class Switch(NamedTuple):
    """A node goes away or comes back."""

    time: int
    node: int
    away: bool
    restart: bool


def switches(groups: tuple[Away, ...], nodes: int, seed: int, end: int) -> Iterator[Switch]:
    """The switches before `end` that do not depend on movement, in order of time; the others come with the legs."""
    found: list[Switch] = []
    for number, group in enumerate(groups):
        restart = group.mode == "restart"
        for node in group.members(nodes):
            for gone, back in _spans(group, Random(f"{seed}/away/{number}/{node}"), end):
                found.append(Switch(gone, node, True, restart))
                found.append(Switch(back, node, False, restart))
    return iter(sorted(switch for switch in found if switch.time < end))


def _spans(group: Away, rng: Random, end: int) -> Iterator[tuple[int, int]]:
    if group.on is None or group.off is None:
        yield from ((seconds(gone), seconds(back)) for gone, back in group.times)
        return
    # At the start a node is on or off in proportion to the mean times, at a random instant of such a period.
    mean_on, mean_off = sum(group.on) / 2, sum(group.off) / 2
    back = 0.0
    if rng.random() * (mean_on + mean_off) < mean_off:
        back = residual(group.off, rng)
        yield 0, seconds(back)
        gone = back + rng.uniform(*group.on)
    else:
        gone = residual(group.on, rng)
    while gone * SECOND < end:
        back = gone + rng.uniform(*group.off)
        yield seconds(gone), seconds(back)
        gone = back + rng.uniform(*group.on)
