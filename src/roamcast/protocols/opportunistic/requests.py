"""Which documents were requested, by whom and from whom.

*Wishes* are what this node has requested. Taken literally, the paper requests from every announcer all that it offers
and is missing here; with `asking = "one"`, a document is not requested again before `patience` is over.

*Orders* are what other nodes have requested from this one. It sends one document after the other, each piece at most
once between two of its announces ("Processing requests" in section 2.1).
"""

from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId

MAX_WISHES: Final = 4096
MAX_ORDERS: Final = 4096


class Wishes:
    def __init__(self, patience: int) -> None:
        """With a `patience` of 0, a document may be requested from any node that offers it at any time."""
        self._patience = patience
        self._asked: dict[EventId, int] = {}  # until when no other node is asked; the latest last

    def may_ask(self, now: int, id: EventId) -> bool:
        return self._asked.get(id, 0) <= now

    def ask(self, now: int, id: EventId) -> None:
        if self._patience:
            put(self._asked, id, now + self._patience, MAX_WISHES)

    def forget(self, id: EventId) -> None:
        """Forgets a document that has arrived, or will not."""
        self._asked.pop(id, None)

    def __len__(self) -> int:
        return len(self._asked)


class Orders:
    def __init__(self) -> None:
        self._waiting: dict[EventId, int] = {}  # masks of pieces, in the order of the first request
        self._history: dict[EventId, int] = {}  # pieces taken since the last announce

    def add(self, id: EventId, pieces: int) -> bool:
        """Adds a request for these pieces; returns whether any of them will be sent for it."""
        pieces &= ~self._history.get(id, 0)
        if not pieces or (id not in self._waiting and len(self._waiting) >= MAX_ORDERS):
            return False
        self._waiting[id] = self._waiting.get(id, 0) | pieces
        return True

    def take(self) -> tuple[EventId, int] | None:
        """The next document to send, and which of its pieces."""
        if not self._waiting:
            return None
        id = next(iter(self._waiting))
        pieces = self._waiting.pop(id)
        put(self._history, id, self._history.get(id, 0) | pieces, MAX_ORDERS)
        return id, pieces

    def put_back(self, id: EventId, pieces: int) -> None:
        """Notes that these pieces were not sent after all, and may be requested again."""
        if id in self._history:
            self._history[id] &= ~pieces

    def announced(self) -> None:
        """Called after this node has announced: pieces that were sent before may be requested again."""
        self._history.clear()

    def __len__(self) -> int:
        return len(self._waiting)
