"""Movement files of ns-2, as its `setdest` and many other tools write them.

What is read, with times in s, coordinates in m and speeds in m/s:

    $node_(0) set X_ 12.5                            where node 0 is at first; Y_ likewise; Z_ is ignored
    $ns_ at 10.0 "$node_(0) setdest 50.0 60.0 1.5"   at 10 s it leaves for (50, 60) at 1.5 m/s

A `setdest` that comes before the last one's goal is reached starts from where the node is then; speed 0 stops it. The
order of the lines does not matter; of two at the same time for one node, the later in the file counts. Comments and
commands to `$god_`, the observer that knows all distances, are ignored. Jumps (`at … set X_ …`) are refused: a leg has
a speed.
"""

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from roamcast.sim.mobility.base import FOREVER, Area, Leg, Pen, Point, between
from roamcast.sim.mobility.lines import Lines

PLACE: Final = re.compile(r"\$node_\((\w+)\)\s+set\s+([XYZ])_\s+(\S+)")
SETDEST: Final = re.compile(r'\$ns_\s+at\s+(\S+)\s+"\$node_\((\w+)\)\s+setdest\s+(\S+)\s+(\S+)\s+(\S+?)\s*"')
IGNORED: Final = re.compile(r'#|\$god_\s|set\s+god_\s|\$ns_\s+at\s+\S+\s+"\s*\$god_\s')
JUMP: Final = re.compile(r'\$ns_\s+at\s+\S+\s+"\$node_\(\w+\)\s+set\s')

Command = tuple[int, Point, float]
"""From this time, to this place, at this speed."""


def read_ns2(lines: Lines, area: Area, nodes: int) -> list[Iterator[Leg]]:
    places: list[dict[str, float]] = [{} for _ in range(nodes)]
    commands: list[list[Command]] = [[] for _ in range(nodes)]
    for text in lines:
        if found := SETDEST.fullmatch(text):
            at, number, x, y, speed = found.groups()
            node = lines.node(number)
            goal = lines.coordinate("x", x, node), lines.coordinate("y", y, node)
            commands[node].append((lines.time(at), goal, _speed(lines, speed)))
        elif found := PLACE.fullmatch(text):
            number, axis, value = found.groups()
            node, axis = lines.node(number), axis.lower()
            if axis in places[node]:
                raise lines.error(f"{axis.upper()}_ of node {node} is set a second time: a node has one first place")
            if axis != "z":
                places[node][axis] = lines.coordinate(axis, value, node)
        elif JUMP.match(text):
            raise lines.error("a node cannot jump: expected setdest, or a first place without a time")
        elif text and not IGNORED.match(text):
            raise lines.error("expected '$node_(i) set X_ x' or '$ns_ at t \"$node_(i) setdest x y speed\"'")
    return [
        _walk(_first_place(lines, node, place), sorted(orders, key=itemgetter(0)), area)
        for node, (place, orders) in enumerate(zip(places, commands, strict=True))
    ]


def _speed(lines: Lines, text: str) -> float:
    speed = lines.real("speed", text)
    if speed < 0:
        raise lines.error(f"speed {speed:g} m/s: it must be 0 or more")
    return speed


def _first_place(lines: Lines, node: int, place: dict[str, float]) -> Point:
    for axis in ("x", "y"):
        if axis not in place:
            raise lines.missing(node, f"first place ({axis.upper()}_)")
    return place["x"], place["y"]


def _walk(first: Point, commands: list[Command], area: Area) -> Iterator[Leg]:
    pen = Pen(area, first)
    goal, arrival = first, 0
    for time, place, speed in commands:
        yield from _towards(goal, arrival, time, pen)
        goal, arrival = (place, pen.arrival(place, speed)) if speed > 0 else ((pen.x, pen.y), pen.time)
    yield from _towards(goal, arrival, FOREVER, pen)


def _towards(goal: Point, arrival: int, until: int, pen: Pen) -> Iterator[Leg]:
    """The legs of a moving node until a time: it arrives and waits, or is still on its way."""
    if arrival <= until:
        yield from pen.move(goal, arrival)
        yield from pen.move(goal, until)
    else:
        part = (until - pen.time) / (arrival - pen.time)
        yield from pen.move(between((pen.x, pen.y), goal, part), until)
