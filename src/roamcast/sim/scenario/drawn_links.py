"""Links drawn from the seed: a random tree, and links that take turns at varying times."""

import itertools
from collections.abc import Iterator
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from roamcast.units import SECOND

NodePair = tuple[int, int]


class _DrawnLinks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class RandomTree(_DrawnLinks, frozen=True, kw_only=True):
    """A random tree: forwarders hang on the root or on each other, and leaves on forwarders.

    If there are enough leaves, every forwarder has something below it.
    """

    root: Annotated[int, Meta(description="the node at its root")]
    forwarders: Annotated[tuple[int, ...], Meta(min_length=1, description="nodes in between")]
    leaves: Annotated[tuple[int, ...], Meta(description="nodes at the ends")]

    @property
    def nodes(self) -> tuple[int, ...]:
        return (self.root, *self.forwarders, *self.leaves)

    def links(self, rng: Random) -> Iterator[NodePair]:
        placed = [self.root]
        bare: list[int] = []
        for node in rng.sample(self.forwarders, len(self.forwarders)):
            above = rng.choice(placed)
            yield above, node
            placed.append(node)
            bare = [*(other for other in bare if other != above), node]
        for leaf in rng.sample(self.leaves, len(self.leaves)):
            yield (bare.pop() if bare else rng.choice(self.forwarders)), leaf


class Cycle(_DrawnLinks, frozen=True, kw_only=True):
    """Links that take turns, like those of a node that walks past others: one state after the other, and again."""

    states: Annotated[
        tuple[tuple[NodePair, ...], ...],
        Meta(min_length=2, description="the links that are there in each state, [a, b] each, in both directions"),
    ]
    every: Annotated[float, Meta(ge=0.001, le=1e7, description="from one state to the next, s")]
    jitter: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="how much the time from one state to the next varies at random, as a share of `every`; the "
            "first is cut short at random; 0: exactly `every`, in step with whatever has the same period",
        ),
    ] = 0.0

    def changes(self, rng: Random, end: int) -> Iterator[tuple[int, list[NodePair], list[NodePair]]]:
        """The times, ns, at which links go and come, and which; the first state holds from the start.

        Each time is drawn from the one before: were it drawn around a multiple of `every`, changes would stay in step
        with publishers and refreshes of that period for the whole run.
        """
        interval = self.every * SECOND
        time = 0.0
        former: tuple[NodePair, ...] = ()
        for number in itertools.count():
            if time >= end:
                return
            state = self.states[number % len(self.states)]
            gone, come = ([pair for pair in a if pair not in b] for a, b in ((former, state), (state, former)))
            yield round(time), gone, come
            former = state
            if self.jitter:
                time += interval * (rng.random() if number == 0 else 1 + self.jitter * (rng.random() - 0.5))
            else:
                time += interval
