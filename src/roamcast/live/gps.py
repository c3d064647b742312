"""The position of a node from gpsd, which reads the receiver: JSON lines on its socket (`man 5 gpsd_json`).

The rules this file owns:

* A position is in metres east and north of an origin that the whole network shares, on a plane that touches the earth
  there: off by less than 1 in 1,000 within 100 km.
* Without a fix (`mode` below 2) and `STALE` seconds after the last one the position is unknown, never the last known.
* The direction of movement is in whole degrees clockwise from north; of a node that stands still, it is unknown.
* gpsd may stop and come back: it is connected to again.
"""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from roamcast.earth import metres_per_degree
from roamcast.errors import ConfigError
from roamcast.live import log

DEFAULT: Final = "127.0.0.1:2947"
STALE: Final = 10.0
RETRY: Final = 5.0
"""Seconds between two attempts to connect."""
SILENCE: Final = 60.0
"""Seconds without a line after which the connection is made anew: over a network gpsd may be gone unnoticed."""
WALKING: Final = 0.5
"""Metres per second: below it, the direction that a receiver gives is noise."""
MAX_LINE: Final = 65536
_WATCH: Final = b'?WATCH={"enable":true,"json":true};\n'


class Origin(NamedTuple):
    """Where x and y are 0, in degrees."""

    latitude: float
    longitude: float

    @classmethod
    def parse(cls, text: str) -> "Origin":
        try:
            latitude, longitude = (float(part) for part in text.split(","))
        except ValueError:
            latitude = longitude = math.nan
        if not (abs(latitude) <= 89 and abs(longitude) <= 180):
            raise ConfigError(
                f"--origin {text!r}: expected LAT,LON in degrees, such as 52.52,13.405, and no nearer than 1 degree to "
                "a pole"
            )
        return cls(latitude, longitude)

    def metres(self, latitude: float, longitude: float) -> tuple[float, float]:
        """Metres east and north of the origin, the short way around the earth."""
        east, north = metres_per_degree(self.latitude)
        return ((longitude - self.longitude + 180) % 360 - 180) * east, (latitude - self.latitude) * north


class _Fix(msgspec.Struct, tag_field="class", tag="TPV"):
    """A report of gpsd about position and movement; a field that is not known is missing."""

    mode: int = 0
    lat: float | None = None
    lon: float | None = None
    speed: float | None = None
    track: float | None = None


class Gps:
    def __init__(self, address: tuple[str, int], origin: Origin) -> None:
        self._address = address
        self._origin = origin
        self._place: tuple[float, float] | None = None
        self._direction: int | None = None
        self._heard = -math.inf
        self._failing: str | None = None
        self.failures: Counter[str] = Counter()
        self.on_fix: Callable[[], None] = lambda: None

    def here(self, now: float) -> tuple[float, float] | None:
        """The position, if it is known. `now` is the loop's time, in s."""
        return self._place if now - self._heard <= STALE else None

    def direction(self, now: float) -> int | None:
        return self._direction if now - self._heard <= STALE else None

    def hear(self, line: bytes, now: float) -> None:
        """Takes one line of gpsd; those about other things are passed over."""
        try:
            fix = msgspec.json.decode(line, type=_Fix)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        self._heard = now
        self._place = self._direction = None
        if fix.mode >= 2 and fix.lat is not None and fix.lon is not None and abs(fix.lat) <= 90:
            self._place = self._origin.metres(fix.lat, fix.lon)
            if fix.track is not None and fix.speed is not None and fix.speed >= WALKING:
                self._direction = round(fix.track) % 360
        self.on_fix()

    async def run(self) -> None:
        """Listens to gpsd for ever."""
        while True:
            try:
                await self._listen()
            except (OSError, ValueError, EOFError, TimeoutError) as problem:
                self.failures["gps"] += 1
                reason = str(problem) or type(problem).__name__
                if self._failing != reason:  # logged once, not every few seconds
                    self._failing = reason
                    log.warn("gpsd cannot be read", address="{}:{}".format(*self._address), reason=reason)
            await asyncio.sleep(RETRY)

    async def _listen(self) -> None:
        async with asyncio.timeout(SILENCE):
            reader, writer = await asyncio.open_connection(*self._address, limit=MAX_LINE)
        loop = asyncio.get_running_loop()
        try:
            writer.write(_WATCH)
            while True:
                async with asyncio.timeout(SILENCE):
                    line = await reader.readline()
                if not line:
                    raise EOFError("gpsd closed the connection")
                if self._failing is not None:
                    self._failing = None
                    log.info("gpsd is back")
                self.hear(line, loop.time())
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
