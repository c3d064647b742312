"""What a node sends in pieces: one bulk after the other, each when the one before has left.

The host says when a bulk has left, or found the queue full. One that has never said so may be a host that does not:
then the next bulk goes after the time that this one takes at the parameter `pace`. Where it has, it is waited for much
longer; a host that was asleep meanwhile, or forgot, does not stop the node for good.

What is passed on for others goes before the answers to requests: it is a part of an exchange that is under way.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import msgspec

from roamcast.protocols.api import Port, Time
from roamcast.protocols.messages import Bulk, Message
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import MILLISECOND, Chunk, Header, chunks, clipped
from roamcast.units import SECOND

MAX_PASSING: Final = 64
"""Documents that wait to be passed on."""
_MAX_WAIT: Final = 60 * SECOND
"""How long a bulk may take on a host that tells when it has left."""
_PAUSE: Final = SECOND // 5
"""After a bulk that found the queue full."""
_FRAME: Final = 100
"""Bytes of headers a piece, for the estimate."""
PACE: Final = "pace"


@dataclass(slots=True, eq=False)
class Job:
    """Pieces of one document that are to be sent."""

    header: Header
    """`chunk`, `sent`, `relays`, `age` and `life` are filled in when they are sent."""
    pieces: int
    document: Document | None
    octets: dict[int, bytes] | None
    """The pieces' bytes, where there is no document."""
    since: Time
    """When its age and life were right."""


class Outgoing:
    def __init__(
        self,
        port: Port,
        pace: float,
        *,
        relays: Callable[[int], tuple[int, ...]],
        order: Callable[[Time], Job | None],
        lost: Callable[[Header], None],
    ) -> None:
        """`relays` says who passes a broadcast of a scope on; `order` gives the next answer to a request; `lost` is
        told what was dropped."""
        self._port = port
        self._pace = pace
        self._relays = relays
        self._order = order
        self._lost = lost
        self._passing: deque[Job] = deque()
        self._job: Job | None = None
        self._chunks: list[tuple[int, int]] = []  # of the job, still to be sent
        self._bulk: Chunk | None = None  # on its way
        self._due: Time = 0  # when no longer to wait for the bulk
        self._timer: Time | None = None  # for when one is set
        self._host_tells = False

    def pass_on(self, now: Time, job: Job) -> bool:
        """Something of others'; whether there is room for it."""
        if len(self._passing) >= MAX_PASSING:
            return False
        self._passing.append(job)
        self.pump(now)
        return True

    def pump(self, now: Time) -> None:
        """Sends the next bulk, if none is on its way."""
        while self._bulk is None:
            if not self._chunks:
                self._job = self._passing.popleft() if self._passing else self._order(now)
                if self._job is None:
                    return
                self._chunks = chunks(self._job.pieces)
            assert self._job is not None
            job, (chunk, sent) = self._job, self._chunks.pop(0)
            header = _updated(job, chunk, sent, self._relays(job.header.scope), now)
            if header is None:  # its life is over
                self._chunks = []
                continue
            self._bulk = Chunk(header, job.document, job.octets)
            self._port.broadcast_bulk(self._bulk)
            self._wait(now, self._bulk)

    def _wait(self, now: Time, bulk: Chunk) -> None:
        bits = 8 * len(bulk) * (bulk.header.size + _FRAME)
        wait = _MAX_WAIT if self._host_tells else round(bits / self._pace * SECOND)
        self._wait_until(now + wait)

    def _wait_until(self, due: Time) -> None:
        """Most bulks leave long before they are due: one timer serves for many, and is set again if it was early."""
        self._due = due
        if self._timer is None or due < self._timer:
            self._timer = due
            self._port.set_timer(due, (PACE, due))

    def left(self, now: Time, message: Message | Bulk) -> None:
        self._host_tells = True
        if message is self._bulk:
            self._bulk = None
            self.pump(now)

    def dropped(self, now: Time, message: Message | Bulk) -> None:
        self._host_tells = True
        if self._bulk is not None and message is self._bulk:
            self._lost(self._bulk.header)
            self._chunks = []
            self._wait_until(now + _PAUSE)

    def timer(self, now: Time, key: Hashable) -> None:
        if key != (PACE, self._timer):
            return
        self._timer = None
        if self._bulk is None:
            return
        if now < self._due:
            self._wait_until(self._due)
        else:
            self._bulk = None
            self.pump(now)

    def __len__(self) -> int:
        """Documents that wait to be passed on."""
        return len(self._passing)


def _updated(job: Job, chunk: int, sent: int, relays: tuple[int, ...], now: Time) -> Header | None:
    """The header of one bulk, as of now; None if the document's life is over."""
    header, waited = job.header, (now - job.since) // MILLISECOND
    life = None if header.life is None else clipped(header.life) - waited
    if life is not None and life <= 0:
        return None
    age = clipped(header.age + waited)
    return msgspec.structs.replace(header, chunk=chunk, sent=sent, relays=relays, age=age, life=life)
