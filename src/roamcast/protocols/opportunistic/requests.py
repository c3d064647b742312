"""Who has asked whom for which document.

*Wishes* are what this node has asked for. Literally every announcer is asked for all that it offers and is missing
here; with `asking = "one"` a document that was asked for is not asked for again before `patience` is over.

*Orders* are what others have asked of this node: one document after the other, each piece at most once between two
announces of this node ("Processing requests" in section 2.1).
"""

from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId

MAX_WISHES: Final = 4096
MAX_ORDERS: Final = 4096


class Wishes:
    def __init__(self, patience: int) -> None:
        """0: whoever offers a document may be asked for it at any time."""
        self._patience = patience
        self._asked: dict[EventId, int] = {}  # until when nobody else is asked; the latest last

    def may_ask(self, now: int, id: EventId) -> bool:
        return self._asked.get(id, 0) <= now

    def ask(self, now: int, id: EventId) -> None:
        if self._patience:
            put(self._asked, id, now + self._patience, MAX_WISHES)

    def forget(self, id: EventId) -> None:
        """It has come, or will not."""
        self._asked.pop(id, None)

    def __len__(self) -> int:
        return len(self._asked)


class Orders:
    def __init__(self) -> None:
        self._waiting: dict[EventId, int] = {}  # masks of pieces, in the order of the first request
        self._history: dict[EventId, int] = {}  # what was taken since the last announce

    def add(self, id: EventId, pieces: int) -> bool:
        """Somebody wants these pieces; whether any of them will be sent for that."""
        pieces &= ~self._history.get(id, 0)
        if not pieces or (id not in self._waiting and len(self._waiting) >= MAX_ORDERS):
            return False
        self._waiting[id] = self._waiting.get(id, 0) | pieces
        return True

    def take(self) -> tuple[EventId, int] | None:
        """The document whose turn it is, and which of its pieces."""
        if not self._waiting:
            return None
        id = next(iter(self._waiting))
        pieces = self._waiting.pop(id)
        put(self._history, id, self._history.get(id, 0) | pieces, MAX_ORDERS)
        return id, pieces

    def put_back(self, id: EventId, pieces: int) -> None:
        """They were not sent after all, and may be asked for again."""
        if id in self._history:
            self._history[id] &= ~pieces

    def announced(self) -> None:
        """This node has announced again: what was sent before may be asked for again."""
        self._history.clear()

    def __len__(self) -> int:
        return len(self._waiting)
