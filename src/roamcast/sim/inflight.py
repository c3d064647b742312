"""The messages that the core is working on: maps the core's handles, and those that ports give out, to messages.

The core knows only small numbers, and reuses them. A port's handle also has the generation of its number, so that a
handle that a broker kept for too long is invalid, instead of meaning another message.
"""

from collections.abc import Sequence

from roamcast.protocols.messages import Bulk, Message


class MessagesInFlight:
    def __init__(self) -> None:
        self._messages: list[Message | Bulk | None] = []  # by handle of the core
        self._generation: list[int] = []
        self._release: list[int] = []
        self._to: list[int] = []
        self._free: list[int] = []

    def add(self, message: Message | Bulk, to: int, release: int) -> int:
        """Adds a message that leaves at `release`; returns the core's handle for it."""
        if self._free:
            handle = self._free.pop()
        else:
            handle = len(self._messages)
            self._messages.append(None)
            self._generation.append(0)
            self._release.append(0)
            self._to.append(0)
        self._messages[handle] = message
        self._release[handle] = release
        self._to[handle] = to
        return handle

    def port_handle(self, handle: int) -> int:
        """The handle by which a broker names the message."""
        return self._generation[handle] << 32 | handle

    def withdrawable(self, port_handle: int, now: int) -> int | None:
        """The core's handle, if that message has not left yet."""
        handle = port_handle & 0xFFFFFFFF
        if port_handle >> 32 == self._generation[handle] and self._release[handle] > now:
            return handle
        return None

    def message(self, handle: int) -> Message | Bulk:
        message = self._messages[handle]
        assert message is not None, f"handle {handle} is free"
        return message

    def addressee(self, handle: int) -> int:
        """Of a message, also just after it was finished."""
        return self._to[handle]

    def release(self, handle: int) -> int:
        """Of a message, also just after it was finished."""
        return self._release[handle]

    def finish(self, handle: int) -> Message | Bulk:
        """Ends a message: its handle becomes free, and copies of the port's handle become invalid."""
        message = self._messages[handle]
        assert message is not None, f"handle {handle} is free"
        self._messages[handle] = None
        self._generation[handle] += 1
        self._free.append(handle)
        return message

    def finish_all(self, handles: Sequence[int]) -> None:
        """The same for several, in their order."""
        messages, generation = self._messages, self._generation
        for handle in handles:
            messages[handle] = None
            generation[handle] += 1
        self._free.extend(handles)
