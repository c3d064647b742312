"""Movement files of ns-2, as its `setdest`, BonnMotion, SUMO's exporter and many other tools write them.

What is read, with times in s, coordinates in m and speeds in m/s:

    $node_(0) set X_ 12.5                            where node 0 is at first; Y_ likewise; Z_ is ignored
    $ns_ at 10.0 "$node_(0) setdest 50.0 60.0 1.5"   at 10 s it leaves for (50, 60) at 1.5 m/s

A `setdest` that comes before the last one's goal is reached starts from where the node is then; speed 0 stops it; a
fourth number (z) is ignored. The order of the lines does not matter, except that of two for one node at the same time,
or of two initial positions, the later in the file counts. Comments and commands to `$god_`, the observer that knows all
distances, and to routing agents are skipped. Jumps (`at … set X_ …`) are refused: a leg has a speed.

A scenario and `roamcast traces import` read such a file with `parse` and `walk`, so that both take the same files.
"""

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from roamcast.sim.mobility.base import FOREVER, Area, Leg, Pen, Point, between
from roamcast.sim.mobility.lines import MovementFile, Refused, real

_PLACE: Final = re.compile(r"\$node_\((\w+)\)\s+set\s+([XYZ])_\s+(\S+)")
_SETDEST: Final = re.compile(
    r'\$ns_\s+at\s+(\S+)\s+"\s*\$node_\((\w+)\)\s+setdest\s+(\S+)\s+(\S+)\s+([^\s"]+)(?:\s+[^\s"]+)?\s*"'
)
_SKIPPED: Final = re.compile(r'#|\$god_\s|set\s|\$ns_\s+at\s+\S+\s+"\s*\$god_\s|.*(?:RoutingAgent|activate)')
_JUMP: Final = re.compile(r'\$ns_\s+at\s+\S+\s+"\s*\$node_\(\w+\)\s+set\s')

Command = tuple[int, Point, float]
"""From this time, to this place, at this speed."""


class Initial(NamedTuple):
    """A coordinate of a node's initial position."""

    node: str
    axis: str
    value: float


class SetDest(NamedTuple):
    node: str
    time: float
    """s."""
    x: float
    y: float
    speed: float


def parse(text: str) -> Initial | SetDest | None:
    """What a line says, or none if nothing about movement; raises `Refused`."""
    if found := _SETDEST.fullmatch(text):
        at, node, x, y, speed = found.groups()
        return SetDest(node, real("time", at, 0), real("x", x), real("y", y), real("speed", speed, 0))
    if found := _PLACE.fullmatch(text):
        node, axis, value = found.groups()
        return None if axis == "Z" else Initial(node, axis.lower(), real(axis.lower(), value))
    if _JUMP.match(text):
        raise Refused("a node cannot jump: expected setdest, or an initial position without a time")
    if text and not _SKIPPED.match(text):
        raise Refused("expected '$node_(i) set X_ x' or '$ns_ at t \"$node_(i) setdest x y speed\"'")
    return None


def read_ns2(lines: MovementFile, area: Area, nodes: int) -> list[Iterator[Leg]]:
    places: list[dict[str, float]] = [{} for _ in range(nodes)]
    commands: list[list[Command]] = [[] for _ in range(nodes)]
    for text in lines:
        if (said := lines.parse(parse, text)) is None:
            continue
        node = lines.node(said.node)
        if isinstance(said, Initial):
            places[node][said.axis] = lines.coordinate(said.axis, said.value, node)
        else:
            goal = lines.coordinate("x", said.x, node), lines.coordinate("y", said.y, node)
            commands[node].append((lines.time(said.time), goal, said.speed))
    for node, place in enumerate(places):
        for axis in ("x", "y"):
            if axis not in place:
                raise lines.missing(node, f"initial position ({axis.upper()}_)")
    return [walk((place["x"], place["y"]), orders, area) for place, orders in zip(places, commands, strict=True)]


def walk(first: Point, commands: Iterable[Command], area: Area | None) -> Iterator[Leg]:
    """The way of a node with this initial position and these commands, in the order of the file."""
    pen = Pen(area, first)
    goal, arrival = first, 0
    for time, place, speed in sorted(commands, key=itemgetter(0)):
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
