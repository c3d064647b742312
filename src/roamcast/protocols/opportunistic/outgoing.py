"""What a node sends in pieces: one bulk after the other, each when the previous one has left.

The host reports when a bulk has left or has found the queue full. Some hosts never report: until the first report, the
next bulk is sent after the time that this one takes at the parameter `pace`. After the first report, the node waits
much longer, but not for ever: a host that slept or lost a report must not stop the node for good.

Documents passed on for others go before answers to requests, as they belong to exchanges that are under way.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import msgspec

from roamcast.protocols.api import Port, Time
from roamcast.protocols.messages import MAX_PIECES, Bulk, Message
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import MILLISECOND, Chunk, Header, chunks, clipped
from roamcast.units import SECOND

MAX_PASSING: Final = 64
"""Most documents that wait to be passed on."""
_MAX_WAIT: Final = 60 * SECOND
"""How long to wait for a bulk on a host that reports when it has left."""
_PAUSE: Final = SECOND // 5
"""How long to pause after a bulk that found the queue full."""
_FRAME: Final = 100
"""Bytes of headers per piece, for the estimate."""
PACE: Final = "pace"


@dataclass(slots=True, eq=False)
class Job:
    """Pieces of one document that wait to be sent."""

    header: Header
    """`chunk`, `sent`, `relays`, `age` and `life` are filled in when they are sent."""
    pieces: int
    document: Document | None
    octets: dict[int, bytes] | None
    """The pieces' bytes, if the whole document is not here."""
    since: Time
    """The time at which the header's age and life were right."""


class Outgoing:
    def __init__(
        self,
        port: Port,
        pace: float,
        *,
        relays: Callable[[int], tuple[int, ...]],
        order: Callable[[Time], Job | None],
        lost: Callable[[Header, int], None],
    ) -> None:
        """`relays` returns which nodes pass on a broadcast of a scope; `order` returns the next answer to a request;
        `lost` is called with the header and pieces of a document that will not be sent, since the queue was full."""
        self._port = port
        self._pace = pace
        self._relays = relays
        self._order = order
        self._lost = lost
        self._passing: deque[Job] = deque()
        self._job: Job | None = None
        self._chunks: list[tuple[int, int]] = []  # chunks of the job still to be sent
        self._bulk: Chunk | None = None  # on its way
        self._due: Time = 0  # when to stop waiting for the bulk
        self._timer: Time | None = None  # when the timer fires, if one is set
        self._host_tells = False

    def pass_on(self, now: Time, job: Job) -> bool:
        """Queues a job to pass on for another node; returns whether there was room."""
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
                self._port.decide(job.header.document, "expired")
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
        """Sets the timer. Most bulks leave long before they are due: one timer serves many, and is reset if early."""
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
            header = self._bulk.header
            unsent = [(header.chunk, header.sent), *self._chunks]
            self._chunks = []
            self._lost(header, sum(sent << chunk * MAX_PIECES for chunk, sent in unsent))
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
        """The number of documents that wait to be passed on."""
        return len(self._passing)


def _updated(job: Job, chunk: int, sent: int, relays: tuple[int, ...], now: Time) -> Header | None:
    """The header of one bulk, as of now; None if the document's life is over."""
    header, waited = job.header, (now - job.since) // MILLISECOND
    life = None if header.life is None else clipped(header.life) - waited
    if life is not None and life <= 0:
        return None
    age = clipped(header.age + waited)
    return msgspec.structs.replace(header, chunk=chunk, sent=sent, relays=relays, age=age, life=life)
