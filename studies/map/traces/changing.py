"""Movement that changes while a run lasts: dense and slow at first, then sparse and fast. Prints commands of ns-2.

    python studies/map/traces/changing.py > out/changing.tcl
    roamcast traces import out/changing.tcl --format ns2 --out studies/map/traces/changing.trace

300 nodes, of which the seed of a run draws 100 (`subset = "drawn"`). Until 200 s they walk at 1 m/s between random
places in a square of 655 m, where 100 nodes have about 13 neighbours each. Then they give up their trips, and drive at
20 m/s between random places in the square of 1,521 m around it, where 100 have about 4.
"""

from collections.abc import Iterator
from math import dist
from random import Random

NODES, CHANGE, END = 300, 200.0, 460.0
OUTER, INNER = 1521.0, 655.0
SLOW, FAST = 1.0, 20.0
Point = tuple[float, float]


def place(rng: Random, side: float) -> Point:
    """Anywhere in a square in the middle of the area."""
    edge = (OUTER - side) / 2
    return round(edge + rng.random() * side, 2), round(edge + rng.random() * side, 2)


def trips(rng: Random, at: Point) -> Iterator[tuple[float, Point, float]]:
    """When a node sets out, where to, and how fast."""
    now = 0.0
    while now < CHANGE:
        goal = place(rng, INNER)
        yield now, goal, SLOW
        arrives = now + dist(at, goal) / SLOW
        share = min((CHANGE - now) / (arrives - now), 1.0)
        at = (at[0] + share * (goal[0] - at[0]), at[1] + share * (goal[1] - at[1]))
        now = min(arrives, CHANGE)
    while now < END:
        goal = place(rng, OUTER)
        yield now, goal, FAST
        now, at = now + dist(at, goal) / FAST, goal


def main() -> None:
    for node in range(NODES):
        rng = Random(f"changing: node {node}")
        at = place(rng, INNER)
        print(f"$node_({node}) set X_ {at[0]}")
        print(f"$node_({node}) set Y_ {at[1]}")
        for start, (x, y), speed in trips(rng, at):
            print(f'$ns_ at {start:.3f} "$node_({node}) setdest {x} {y} {speed}"')


if __name__ == "__main__":
    main()
