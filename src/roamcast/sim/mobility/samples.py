"""Movement as sampled positions, in comma-separated values with a header: id, time, and x, y or latitude, longitude.

Columns are recognised by their usual names (`NAMES`), in any order and case, or named by the user; others are ignored.
The separator is a comma, a semicolon or a tab, as in the header. A time is

* a number of seconds; one beyond 1e11 is in ms since 1970, beyond 1e14 in µs, beyond 1e17 in ns (1e11 s would be the
  year 5138);
* or a date and time such as 2008-02-02T15:36:08Z. Without an offset it is in a given time zone, else in UTC. A local
  time that comes twice, or not at all, since clocks were changed, is refused: it may be wrong by an hour.

Of two positions of a node at one time, the one with the greater x (then y) counts; the order of rows does not matter.

A scenario and `roamcast traces import` read such a file by the rules of `SampleColumns`, so that both take the same. A
scenario has its own rules: nodes are numbered from 0, x and y are metres in the area, times begin with the run. Between
two samples a node moves straight at constant speed; before the first and after the last it stands still.
"""

import csv
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from roamcast.sim.mobility.base import Area, Leg, Pen
from roamcast.sim.mobility.lines import MovementFile, Refused, real
from roamcast.units import SECOND

NAMES: Final = {
    "id": (
        "id",
        "node",
        "node_id",
        "vehicle",
        "vehicle_id",
        "user",
        "user_id",
        "device",
        "device_id",
        "taxi_id",
        "name",
    ),
    "t": ("time", "t", "timestamp", "datetime", "date_time", "date time", "seconds"),
    "x": ("x",),
    "y": ("y",),
    "lon": ("lon", "lng", "long", "longitude"),
    "lat": ("lat", "latitude"),
}
"""The usual names of each column, the more telling first."""
EPOCH_UNITS: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Times greater than the first are in units of the second, s."""
SEPARATORS: Final = ("\t", ";", ",")
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_LATE: Final = 1e8
"""s: a recording that begins later, after three years, counts from 1970."""
_IMPORT: Final = "make a trace of it with roamcast traces import"


class PositionSample(NamedTuple):
    id: str
    t: float
    """s."""
    x: float
    y: float


@dataclass(frozen=True)
class SampleColumns:
    """Which column is what, in files with one header."""

    header: tuple[str, ...]
    found: Mapping[str, str]
    """The names of the columns id, t, and x, y or lon, lat."""
    separator: str = ","
    zone: ZoneInfo | None = None

    @classmethod
    def of_line(cls, line: str, named: Mapping[str, str] = _NONE, zone: ZoneInfo | None = None) -> "SampleColumns":
        """Raises `Refused` for a header without a column that is needed."""
        separator = next((mark for mark in SEPARATORS if mark in line), ",")
        header = tuple(name.strip() for name in _split(line, separator))
        return cls(header, find(header, named), separator, zone)

    @property
    def geographic(self) -> bool:
        return "lon" in self.found

    @property
    def axes(self) -> tuple[str, str]:
        """What the columns of x and y are: x, y or lon, lat."""
        return ("lon", "lat") if self.geographic else ("x", "y")

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """Where the id, the time and the two coordinates stand in a line."""
        return tuple(self.header.index(self.found[what]) for what in ("id", "t", *self.axes))

    def parse(self, line: str) -> PositionSample:
        """Raises `Refused`."""
        values = _split(line, self.separator)
        if len(values) != len(self.header):
            raise Refused(f"expected {len(self.header)} values: {self.separator.join(self.header)}")
        id, t, x, y = (values[at].strip() for at in self.wanted)
        if not id:
            raise Refused("it has no id")
        if self.geographic:
            return PositionSample(id, self._seconds(t), self._degrees("lon", x, 180), self._degrees("lat", y, 90))
        return PositionSample(id, self._seconds(t), real("x", x), real("y", y))

    def _degrees(self, what: str, text: str, most: float) -> float:
        value = real(what, text)
        if abs(value) > most:
            raise Refused(f"{what} is not within ±{most:g}°")
        return value

    def _seconds(self, text: str) -> float:
        try:
            value = real("time", text)
        except Refused:
            return self._since_1970(text)
        return next((value * unit for more, unit in EPOCH_UNITS if value > more), value)

    def _since_1970(self, text: str) -> float:
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            raise Refused("its time is not a time") from None
        if date.tzinfo is None:
            date = date.replace(tzinfo=self.zone or UTC)
            if date.utcoffset() != date.replace(fold=1).utcoffset():
                raise Refused(
                    f"its time comes twice or not at all in {self.zone}, when clocks change: it needs an offset"
                )
        return date.timestamp()


def find(header: tuple[str, ...], named: Mapping[str, str] = _NONE) -> dict[str, str]:
    """The columns by what they are; `named` has the user's own choice."""
    there = {name.lower(): name for name in reversed(header)}
    usual = {what: there[name] for what, names in NAMES.items() for name in reversed(names) if name in there}
    for what, name in named.items():
        if name not in header:
            raise Refused(f"there is no column {name!r} for {what}: there are {', '.join(header)}")
    found = {**usual, **named}
    metres = {"x", "y"} <= found.keys() and not {"lon", "lat"} & named.keys()
    needed = ("id", "t", *(("x", "y") if metres else ("lon", "lat")))
    for what in needed:
        if what not in found:
            raise Refused(
                f"no column is the {_SAID[what]}: there are {', '.join(header)}; usual names are "
                f'{", ".join(NAMES[what])}, and traces import takes others by --columns id="Device ID",t=when'
            )
    return {what: found[what] for what in needed}


_SAID: Final = {"id": "node's id", "t": "time", "lon": "longitude (or x)", "lat": "latitude (or y)", "x": "x", "y": "y"}


def _split(line: str, separator: str) -> list[str]:
    # One line at a time: a stray quotation mark must not swallow those after it.
    return next(csv.reader([line], delimiter=separator)) if '"' in line else line.split(separator)


class Samples(NamedTuple):
    """The samples of one node. Arrays, since a file may have many millions: 24 bytes each instead of 150."""

    times: "array[int]"
    xs: "array[float]"
    ys: "array[float]"


def read_samples(lines: MovementFile, area: Area, nodes: int) -> list[Iterator[Leg]]:
    samples = [Samples(array("q"), array("d"), array("d")) for _ in range(nodes)]
    rows = (text for text in lines if text and not text.startswith("#"))
    columns = lines.parse(SampleColumns.of_line, next(rows, ""))
    if columns.geographic:
        raise lines.error(f"is in degrees, and a scenario needs metres: {_IMPORT}")
    for text in rows:
        sample = lines.parse(columns.parse, text)
        node = lines.node(sample.id)
        times, xs, ys = samples[node]
        times.append(lines.time(sample.t))
        xs.append(lines.coordinate("x", sample.x, node))
        ys.append(lines.coordinate("y", sample.y, node))
    for node, own in enumerate(samples):
        if not own.times:
            raise lines.missing(node, "samples")
    if (first := min(min(own.times) for own in samples)) > _LATE * SECOND:
        raise lines.error_in_file(
            f"begins at {first / SECOND:.0f} s, and times are since the start of a run: {_IMPORT}"
        )
    return [_walk(_ordered(own), area) for own in samples]


def _ordered(own: Samples) -> Samples:
    """In the order of time, without duplicates."""
    if all(one < other for one, other in pairwise(own.times)):
        return own
    last = {time: (x, y) for time, x, y in sorted(zip(*own, strict=True))}
    return Samples(array("q", last), *(array("d", axis) for axis in zip(*last.values(), strict=True)))


def _walk(samples: Samples, area: Area) -> Iterator[Leg]:
    pen = Pen(area, (samples.xs[0], samples.ys[0]))
    for time, x, y in zip(*samples, strict=True):
        yield from pen.move((x, y), time)
    yield from pen.stay()
