"""What a node knows about itself: its position and attributes, from a file, a command, gpsd, or its API.

A source is text: `file:PATH` (JSON, read periodically), `command:WORDS` (prints JSON), or `X,Y` for a position that
never changes. A position is `[x, y]` or `{"x": …, "y": …}` in metres, or null for unknown; attributes are an object of
strings, numbers and booleans. Without a source, the API sets the value. The broker gets the latest value that was
read: if a source fails, that is logged and counted, and the value stays. gpsd (`gps.py`) gives the position and one
attribute, `direction`, in degrees clockwise from north; what it does not know any more is unknown.
"""

import asyncio
import contextlib
import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from roamcast.content.event import Scalar, check_scalar, check_text
from roamcast.errors import ConfigError, ContentError
from roamcast.live import log
from roamcast.live.gps import Gps

MAX_BYTES: Final = 65536
MAX_ATTRIBUTES: Final = 256
PATIENCE: Final = 10.0
"""Seconds that a command may take."""

DIRECTION: Final = "direction"

Place = tuple[float, float]


def as_place(raw: Any) -> Place | None:  # noqa: ANN401  # JSON
    """A position from JSON. Raises `ContentError` if it is not one."""
    if raw is None:
        return None
    if isinstance(raw, dict) and set(raw) == {"x", "y"}:
        raw = [raw["x"], raw["y"]]
    if isinstance(raw, list | tuple) and len(raw) == 2:
        numbers = [value for value in raw if isinstance(value, int | float) and not isinstance(value, bool)]
        with contextlib.suppress(OverflowError):
            if len(numbers) == 2 and all(math.isfinite(value) for value in numbers):
                return float(numbers[0]), float(numbers[1])
    raise ContentError('a position is [x, y] or {"x": …, "y": …} in metres, or null')


def as_attributes(raw: Any) -> dict[str, Scalar]:  # noqa: ANN401  # JSON
    """Attributes from JSON. Raises `ContentError` if they are not valid."""
    if not isinstance(raw, dict) or len(raw) > MAX_ATTRIBUTES:
        raise ContentError(f"attributes are an object of at most {MAX_ATTRIBUTES} names with one value each")
    if "" in raw:
        raise ContentError("an attribute's name is empty")
    for name, value in raw.items():
        check_text(name, "an attribute's name")
        check_scalar(value, "attribute", name)
    return dict(raw)


class Senses:
    def __init__(self, here: str | None, attributes: str | None, interval: float, gps: Gps | None = None) -> None:
        self._place: Place | None = None
        self._attributes: dict[str, Scalar] = {}
        self._interval = interval
        self._gps = gps
        self._fixed = _fixed_place(here) if here is not None else None
        self._sources = {
            name: source for name, source in (("here", here), ("attributes", attributes)) if source is not None
        }
        if self._fixed is not None:
            self._place = self._fixed
        for name, source in self._sources.items():
            if not source.startswith(("file:", "command:")) and not (name == "here" and self._fixed):
                also = ", or X,Y in metres" if name == "here" else ""
                raise ConfigError(f"--{name} {source!r}: expected file:PATH or command:WORDS{also}")
        self._failing: dict[str, str] = {}
        self.failures: Counter[str] = Counter() if gps is None else gps.failures
        self._tasks: list[asyncio.Task[None]] = []
        self.on_change: Callable[[Mapping[str, Scalar]], None] = lambda attributes: None
        """Called with the node's attributes each time they are set or read."""

    # --- Values -----------------------------------------------------------------------------------------------------

    @property
    def here(self) -> Place | None:
        return self._place if self._gps is None else self._gps.here(_now())

    @property
    def attributes(self) -> Mapping[str, Scalar]:
        direction = None if self._gps is None else self._gps.direction(_now())
        return self._attributes if direction is None else {**self._attributes, DIRECTION: direction}

    def set_here(self, raw: Any) -> None:  # noqa: ANN401  # JSON
        self._refuse_if_sourced("here")
        self._place = as_place(raw)

    def set_attributes(self, raw: Any) -> None:  # noqa: ANN401  # JSON
        self._refuse_if_sourced("attributes")
        self._take_attributes(raw)

    def _refuse_if_sourced(self, name: str) -> None:
        if name == "here" and self._gps is not None:
            raise ConfigError("here comes from gpsd on this node, and cannot be set")
        if name in self._sources:
            raise ConfigError(f"{name} comes from {self._sources[name]!r} on this node, and cannot be set")

    # --- Sources ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Reads every source once, and periodically from then on."""
        if self._gps is not None:
            self._gps.on_fix = lambda: self.on_change(self.attributes)
            self._tasks.append(asyncio.create_task(self._gps.run()))
        readers: dict[str, Callable[[Any], None]] = {"here": self._take_place, "attributes": self._take_attributes}
        for name, source in self._sources.items():
            if name == "here" and self._fixed is not None:
                continue
            await self._sense(name, source, readers[name])
            self._tasks.append(asyncio.create_task(self._watch(name, source, readers[name])))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take_place(self, raw: Any) -> None:  # noqa: ANN401  # JSON
        self._place = as_place(raw)

    def _take_attributes(self, raw: Any) -> None:  # noqa: ANN401  # JSON
        self._attributes = as_attributes(raw)
        self.on_change(self.attributes)

    async def _watch(self, name: str, source: str, take: Callable[[Any], None]) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._sense(name, source, take)

    async def _sense(self, name: str, source: str, take: Callable[[Any], None]) -> None:
        kind, _, rest = source.partition(":")
        try:
            text = await (asyncio.to_thread(_read, Path(rest)) if kind == "file" else _output(rest))
            take(json.loads(text))
        except (OSError, ValueError, TimeoutError, RecursionError) as problem:
            self.failures[name] += 1
            reason = str(problem) or type(problem).__name__
            if self._failing.get(name) != reason:  # logged once, not every few seconds
                self._failing[name] = reason
                log.warn("a sense failed", sense=name, source=source, reason=reason)
        else:
            if self._failing.pop(name, None) is not None:
                log.info("a sense is back", sense=name, source=source)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _fixed_place(text: str) -> Place | None:
    x, comma, y = text.partition(",")
    try:
        return as_place([float(x), float(y)]) if comma else None
    except ValueError:
        return None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} is longer than {MAX_BYTES} bytes")
    return content


async def _output(command: str) -> bytes:
    words = shlex.split(command)
    if not words:
        raise ValueError("an empty command")
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            content = b""
            while len(content) <= MAX_BYTES and (more := await process.stdout.read(MAX_BYTES)):
                content += more
            if len(content) > MAX_BYTES:
                raise ValueError(f"it printed more than {MAX_BYTES} bytes")
            if await process.wait() != 0:
                raise ValueError(f"it exited with {process.returncode}")
            return content
    except TimeoutError:
        raise TimeoutError(f"it took longer than {PATIENCE:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
