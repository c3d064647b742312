"""The publications of applications that are being stored or sent, and those that wait for them.

The rule this file owns: few are under way at a time (`MAX_UNDER_WAY`), since what was acknowledged must be sent, and a
full queue of the link does not drop it. The others wait, unacknowledged, in order, and if there are too many or it
takes too long they are refused.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from roamcast.errors import RoamcastError
from roamcast.live.control_messages import EventForm

MAX_UNDER_WAY: Final = 128
MAX_UNDER_WAY_BYTES: Final = 4 * 2**20
"""Publications that are being stored or sent at a time: they may take half of the link's queue."""
MAX_WAITING: Final = 4096
MAX_WAITING_BYTES: Final = 16 * 2**20
"""Publications that wait for others to be sent."""
PATIENCE: Final = 10.0
"""Seconds after which a publication that waits is refused."""


class Busy(RoamcastError):
    """The node cannot do this now; it may later."""


Told = Callable[[int, BaseException | None], None]
"""Gets the id of a publication when it is on disk, or why it was refused."""
Accept = Callable[[EventForm, Told, Callable[[], None]], None]
"""Publishes; raises if that is refused."""


class _Waiting(NamedTuple):
    form: bytes
    since: float
    told: Told
    along: Callable[[], None]


class UnderWay:
    def __init__(self, accept: Accept, counters: Counter[str]) -> None:
        self.ended = False
        self._accept = accept
        self._counters = counters
        self._sizes: dict[int, int] = {}  # of those that are under way, by serial
        self._bytes = 0
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._taking: asyncio.Handle | None = None

    def add(self, form: EventForm, told: Told, along: Callable[[], None]) -> None:
        """Has a publication accepted, now or when there is room; raises if it is refused at once."""
        if self._has_room and not self._waiting:
            self._accept(form, told, along)
            return
        encoded = msgspec.msgpack.encode(form)
        if len(self._waiting) >= MAX_WAITING or self._waiting_bytes + len(encoded) > MAX_WAITING_BYTES:
            raise self._too_many()
        self._waiting.append(_Waiting(encoded, asyncio.get_running_loop().time(), told, along))
        self._waiting_bytes += len(encoded)

    def begin(self, serial: int, size: int) -> None:
        self._sizes[serial] = size
        self._bytes += size

    def end(self, serial: int) -> None:
        self._bytes -= self._sizes.pop(serial)
        if self._waiting and self._taking is None:
            # Not from here: this may be called while another publication is being accepted.
            self._taking = asyncio.get_running_loop().call_soon(self._take_waiting)

    @property
    def _has_room(self) -> bool:
        return len(self._sizes) < MAX_UNDER_WAY and self._bytes < MAX_UNDER_WAY_BYTES

    def _take_waiting(self) -> None:
        self._taking = None
        while self._waiting and self._has_room and not self.ended:
            waiting = self._next_waiting()
            try:
                self._accept(msgspec.msgpack.decode(waiting.form, type=EventForm), waiting.told, waiting.along)
            except RoamcastError as problem:
                waiting.told(0, problem)

    def _next_waiting(self) -> _Waiting:
        waiting = self._waiting.popleft()
        self._waiting_bytes -= len(waiting.form)
        return waiting

    def refuse_late(self, now: float) -> None:
        """Refuses the publications that have waited too long. `now` is the loop's time."""
        while self._waiting and now - self._waiting[0].since >= PATIENCE:
            problem = self._too_many()
            self._next_waiting().told(0, problem)

    def _too_many(self) -> Busy:
        self._counters["refused"] += 1
        return Busy(
            f"{len(self._sizes)} publications are being sent and {len(self._waiting)} wait for them: publish more "
            "slowly, or try again later; if nothing is sent at all, is the interface up?"
        )

    @property
    def tables(self) -> dict[str, int]:
        return {"publications under way": len(self._sizes), "publications waiting": len(self._waiting)}
