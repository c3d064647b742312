"""What a broker need not be called for: broadcasts about a subject that it knows.

In a flood nine of ten messages are copies that a broker would only count. It has said so (`Port.withhold`), and the
host counts them for it. Two things have to be known for that, and each has its class here:

* **The numbers of subjects**, for the world: a core knows no subjects, only small numbers. They count up, and the
  latest are remembered. An older subject that comes again gets a new number, which no node knows.
* **The marks**: which node knows which number. A core keeps them itself, so that a broadcast that is new to nobody
  never leaves it. Here is the version of the plain core, which is the definition; the compiled one has arrays.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

_MAX_SUBJECTS: Final = 4096
_MIN_SUBJECTS: Final = 16
_MAX_MARKS: Final = 16_000_000
"""Bytes, one for each subject and node of a kind: large networks remember fewer subjects."""


def subjects_followed(nodes: int) -> int:
    """How many subjects of a kind are remembered."""
    return max(_MIN_SUBJECTS, min(_MAX_SUBJECTS, _MAX_MARKS // nodes))


class Subjects:
    """The numbers of the subjects of one kind of messages, from 1 on."""

    def __init__(self, note: str | None, capacity: int, begin: Callable[[int], None]) -> None:
        """`begin` is called with each new number: it takes its place in the core at once. Else nodes could still know
        the former number there while messages that have it wait, although its subject can be forgotten no more."""
        self.note = note
        """What a withheld message counts as."""
        self._begin = begin
        self._capacity = capacity
        self._latest = 0
        self._numbers: dict[Hashable, int] = {}

    def number(self, subject: Hashable) -> int:
        """The number of a subject, which gets one if it has none."""
        number = self._numbers.get(subject)
        if number is None:
            number = self._latest = self._latest + 1
            self._numbers[subject] = number
            if len(self._numbers) > self._capacity:
                del self._numbers[next(iter(self._numbers))]
            self._begin(number)
        return number

    def find(self, subject: Hashable) -> int | None:
        return self._numbers.get(subject)


class Marks:
    """Which nodes know which subjects of some kinds of messages.

    Each kind has as many places as subjects are followed. A number has the place that it leaves as a remainder, until a
    greater one takes it; then no node knows the former any more.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._places = subjects_followed(nodes)
        self._once: dict[int, bool] = {}  # by kind
        self._skipped: dict[int, list[int]] = {}  # by kind and node: messages that were withheld
        self._marked: dict[int, dict[int, tuple[int, set[int]]]] = {}  # by kind and place: the number, who knows it

    def follow(self, kind: int, once: bool) -> None:
        self._once[kind], self._skipped[kind], self._marked[kind] = once, [0] * self._nodes, {}

    def begin_again(self, kind: int, node: int) -> None:
        """Notes that the node knows nothing any more."""
        for _, knowing in self._marked[kind].values():
            knowing.discard(node)

    def know(self, kind: int, node: int, number: int, known: bool) -> None:
        knowing = self._knowing(kind, number)
        if knowing is not None:
            (knowing.add if known else knowing.discard)(node)

    def choose(self, kind: int, number: int, receivers: Sequence[int]) -> list[int]:
        """The receivers of a message whose brokers must be called; for the others it is only counted."""
        knowing = self._knowing(kind, number)
        if knowing is None:
            return list(receivers)
        called = [node for node in receivers if node not in knowing]
        for node in knowing.intersection(receivers):
            self._skipped[kind][node] += 1
        if self._once[kind]:
            knowing.update(called)
        return called

    def _knowing(self, kind: int, number: int) -> set[int] | None:
        """The nodes that know a subject; None if it is not followed any more."""
        places, place = self._marked[kind], number % self._places
        latest, knowing = places.get(place, (0, set[int]()))
        if latest > number:
            return None
        if latest < number:
            places[place] = number, (knowing := set())
        return knowing

    def skipped(self, kind: int) -> list[int]:
        """The number of messages that were withheld, by node."""
        return self._skipped[kind]
