"""Introductions: how nodes learn each other's certificates and the owner's revocations.

The rules this file owns:

* **An author is introduced before its events.** Ahead of an event, a node broadcasts its author's certificate, if a
  neighbour has appeared since it last did. It introduces itself to each newcomer.
* **A node that does not know an author asks the sender of the event**, and keeps the message for `PATIENCE`. Then it is
  judged once more. So a certificate that got lost costs a moment, not an event.
* **Neighbours exchange revocations.** Every introduction has the number of the sender's list; a node that has a later
  one answers with it.
* Bounded: messages that wait, questions and answers per second, and certificates in a message. Everything here is
  signed by the owner, or by the node that it is about: who sends it does not matter.
"""

from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta

from roamcast.bounded import put
from roamcast.live.authors import Authors
from roamcast.live.certificates import Certificate, NodeId, Number, Revocations
from roamcast.live.clock import Agenda
from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.units import SECOND

PATIENCE: Final = 2 * SECOND
"""How long a message waits for the certificates of its events' authors."""
FORGOTTEN: Final = 60 * SECOND
"""A neighbour not heard for so long is a newcomer when it comes back."""
MAX_WAITING: Final = 64
MAX_WAITING_BYTES: Final = 2**20
MAX_NEIGHBOURS: Final = 1024
MAX_CERTIFICATES: Final = 8
_PAUSE: Final = SECOND
"""Between two questions, or two answers, about the same node; and between two greetings."""
_MOST_ASKED: Final = 1024


class Introduction(Message, frozen=True, tag="introduction"):
    """What a node knows about others. It goes ahead of other messages: they need it."""

    urgent: ClassVar[bool] = True
    longest: ClassVar[int | None] = 2**15  # with the longest list of revocations

    number: Number
    """That of the latest list of revocations that the sender has."""
    certificates: Annotated[tuple[Certificate, ...], Meta(max_length=MAX_CERTIFICATES)] = ()
    asked: Annotated[tuple[NodeId, ...], Meta(max_length=MAX_CERTIFICATES)] = ()
    """Nodes whose certificates the sender lacks."""
    revocations: Revocations | None = None


class _Waiting(NamedTuple):
    sender: Node
    message: Message
    size: int
    authors: tuple[Node, ...]
    """Those that are not known."""
    until: Time


class Introductions:
    def __init__(
        self,
        authors: Authors,
        agenda: Agenda,
        rng: Random,
        *,
        send: Callable[[Node | None, Introduction], None],
        judge: Callable[[Node, Message, int], None],
    ) -> None:
        """`send` sends to a neighbour, or to all; `judge` gets a message that need not wait any more, its sender and
        its size."""
        self._authors = authors
        self._agenda = agenda
        self._rng = rng
        self._send = send
        self._judge = judge
        self._met: dict[Node, Time] = {}
        self._appeared = 1  # how many newcomers there were, this node included
        self._introduced: dict[Certificate, int] = {}  # how many newcomers there were when it was last sent
        self._greeting = False
        self._greeted: Time = -_PAUSE
        self._asked: dict[Node, Time] = {}
        self._answered: dict[Node, Time] = {}
        self._told: Time = -_PAUSE  # when this node last sent its list of revocations
        self._inquired: Time = -_PAUSE  # when it last said that it has an older one
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0

    def meet(self, now: Time, neighbour: Node) -> None:
        """A neighbour was heard."""
        last = self._met.get(neighbour)
        put(self._met, neighbour, now, MAX_NEIGHBOURS)
        if last is None or now - last > FORGOTTEN:
            self._appeared += 1
            self.greet(now)

    def greet(self, now: Time) -> None:
        """Introduces this node soon, once for all who have just appeared."""
        if not self._greeting:
            self._greeting = True
            due = max(now, self._greeted + _PAUSE)
            self._agenda.plan(due + round(self._rng.random() * _PAUSE / 4), self._greet)

    def _greet(self, now: Time) -> None:
        self._greeting, self._greeted = False, now
        own = self._authors.own
        self._send(None, self._made(() if own is None else (own,)))

    def ahead_of(self, authors: Iterable[Node]) -> list[Introduction]:
        """What must be sent before a message with events of these authors."""
        found = []
        for node in dict.fromkeys(authors):
            certificate = self._authors.certificate(node)
            if certificate is not None and self._introduced.get(certificate) != self._appeared:
                found.append(certificate)
                put(self._introduced, certificate, self._appeared, MAX_NEIGHBOURS)
        return [
            self._made(tuple(found[start : start + MAX_CERTIFICATES]))
            for start in range(0, len(found), MAX_CERTIFICATES)
        ]

    def hear(self, now: Time, sender: Node, message: Introduction) -> None:
        news = [self._authors.take(certificate) for certificate in message.certificates]
        if message.revocations is not None:
            news.append(self._authors.take_revocations(message.revocations))
        if any(news):
            self._look_again()
        if message.number < self._authors.revocations.number and now - self._told >= _PAUSE:
            self._told = now
            self._send(None, Introduction(self._authors.revocations.number, revocations=self._authors.revocations))
        elif message.number > self._authors.revocations.number and now - self._inquired >= _PAUSE:
            self._inquired = now
            self._send(sender, self._made(()))
        wanted = [node for node in message.asked if now - self._answered.get(node, -_PAUSE) >= _PAUSE]
        known = [certificate for node in wanted if (certificate := self._authors.certificate(node)) is not None]
        if known:
            for certificate in known:
                put(self._answered, certificate.node, now, _MOST_ASKED)
            self._send(None, self._made(tuple(known)))

    def ask(self, now: Time, sender: Node, authors: Iterable[Node]) -> None:
        """Asks the sender of events who their authors are, unless they were asked for just now."""
        wanted = [node for node in dict.fromkeys(authors) if now - self._asked.get(node, -_PAUSE) >= _PAUSE]
        for node in wanted[:MAX_CERTIFICATES]:
            put(self._asked, node, now, _MOST_ASKED)
        if wanted:
            self._send(sender, self._made((), tuple(wanted[:MAX_CERTIFICATES])))

    def wait(self, now: Time, sender: Node, message: Message, size: int, authors: tuple[Node, ...]) -> None:
        """Keeps a message until these authors of events in it are known."""
        if len(self._waiting) >= MAX_WAITING or self._waiting_bytes + size > MAX_WAITING_BYTES:
            self._judge(sender, message, size)
            return
        self._waiting.append(_Waiting(sender, message, size, authors, now + PATIENCE))
        self._waiting_bytes += size
        self._agenda.plan(now + PATIENCE, self._expire)

    def _expire(self, now: Time) -> None:
        while self._waiting and self._waiting[0].until <= now:
            self._take_up(self._waiting.popleft())

    def _look_again(self) -> None:
        """Takes up the messages whose authors are all known now."""
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            if all(self._authors.is_settled(node) for node in one.authors):
                self._take_up(one)
            else:
                self._waiting.append(one)

    def _take_up(self, one: _Waiting) -> None:
        self._waiting_bytes -= one.size
        self._judge(one.sender, one.message, one.size)

    def _made(self, certificates: tuple[Certificate, ...], asked: tuple[Node, ...] = ()) -> Introduction:
        return Introduction(self._authors.revocations.number, certificates, asked)

    def __len__(self) -> int:
        """The number of messages that wait."""
        return len(self._waiting)
