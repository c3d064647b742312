"""Admission: which events reach the broker and the applications, and who published them.

The rules this file owns:

* **No event reaches a broker before its signature was checked.** What is forged is taken out of its message, or the
  whole message is dropped: no table of a broker has ever heard of it.
* A message with an event of an unknown author waits until the author was introduced (`introductions.py`).
* At most `MOST_CHECKED` signatures are checked for one message: the others count as forged, and may come again. Those
  of all messages are bounded per second (`checks.py`).
* **No event reaches an application as verified unless it is**, by what is known then: a broker may hold an event whose
  author was revoked meanwhile, or that was stored before events were signed. Such events are not delivered.
* Without authors (`--unsigned`), everything passes, nothing is signed, and applications are told so.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from roamcast.content.event import Event
from roamcast.content.subscription import Publication
from roamcast.errors import RoamcastError
from roamcast.live.authors import Authors, Trust
from roamcast.live.carried import Carried, CarriedEvents
from roamcast.live.checks import Checks
from roamcast.live.clock import Agenda
from roamcast.live.introductions import Introduction, Introductions
from roamcast.live.signatures import Authenticity, Signatures
from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message

MOST_CHECKED: Final = 64
"""Some 10 ms of CPU time."""


class NotCertified(RoamcastError):
    """This node cannot publish: nobody would believe it."""


class Authorship(NamedTuple):
    """What applications are told about the author of an event."""

    author: Node
    verified: Trust | None
    """Who vouches for the author: the owner, or the one who was heard first; None: nobody, it may be anyone."""
    published: float | None
    """When, in s since 1970, by the author's clock; None: it does not say."""


class Admission:
    def __init__(
        self,
        authors: Authors | None,
        messages: Sequence[type[Message]],
        agenda: Agenda,
        rng: Random,
        counters: Counter[str],
        *,
        send: Callable[[Node | None, Introduction], None],
        admit: Callable[[Node, Message], None],
    ) -> None:
        """`send` sends to a neighbour, or to all; `admit` hands a message to the broker."""
        self.authors = authors
        self._counters = counters
        self._admit = admit
        self._carried = CarriedEvents(messages)
        if authors is not None:
            self._signatures = Signatures(authors)
            self._checks = Checks(agenda, counters, self._take, authors.computed)
            self._introductions = Introductions(authors, agenda, rng, send=send, judge=self._in_turn)

    def greet(self, now: Time) -> None:
        """This node has started, or has a new certificate."""
        if self.authors is not None:
            self._introductions.greet(now)

    # --- From the air -----------------------------------------------------------------------------------------------

    def hear(self, now: Time, sender: Node, message: Message, size: int) -> None:
        """Admits what is genuine in a message of `size` bytes, now or when its authors are known."""
        if self.authors is None:
            if not isinstance(message, Introduction):
                self._admit(sender, message)
            return
        self._checks.at(now)
        self._introductions.meet(now, sender)
        if isinstance(message, Introduction):
            self._in_turn(sender, message, size)
            return
        carried = self._carried.within(message)
        unknown = [one.event.author for one in carried if one.fits and self.authors.key(one.event.author) is None]
        if unknown:
            self._introductions.ask(now, sender, unknown)
        # Nothing waits for who is revoked: it may have been added again, and be introduced for its next event.
        missing = tuple(node for node in unknown if not self.authors.is_revoked(node))
        if missing:
            self._introductions.wait(now, sender, message, size, missing)
        else:
            self._in_turn(sender, message, size, carried)

    def _in_turn(self, sender: Node, message: Message, size: int, carried: Sequence[Carried] | None = None) -> None:
        """Takes a message now, or when signatures may be checked again."""
        if self._checks.may(sender) or self._costs_nothing(message, carried):
            self._take(sender, message, size, carried)
        else:
            self._checks.wait(sender, message, size)

    def _costs_nothing(self, message: Message, carried: Sequence[Carried] | None) -> bool:
        """Whether no signature has to be checked for a message."""
        if isinstance(message, Introduction):
            return not message.certificates and message.revocations is None
        found = self._carried.within(message) if carried is None else carried
        return all(not one.fits or self._signatures.remembers(one.event) for one in found)

    def _take(self, sender: Node, message: Message, size: int, carried: Sequence[Carried] | None = None) -> None:
        if isinstance(message, Introduction):
            self._introductions.hear(self._checks.now, sender, message)
        else:
            self._judge(sender, message, self._carried.within(message) if carried is None else carried)
        self._count_checks()

    def _count_checks(self) -> None:
        assert self.authors is not None
        self._checks.made(self._signatures.computed + self.authors.computed)

    def _judge(self, sender: Node, message: Message, found: Sequence[Carried]) -> None:
        most = self._signatures.computed + MOST_CHECKED
        refused = frozenset(one.event.id for one in found if not self._is_admitted(one, most))
        admitted = message.without(refused) if refused else message
        if admitted is not None:
            self._admit(sender, admitted)

    def _is_admitted(self, one: Carried, most: int) -> bool:
        if not one.fits:
            self._counters[Authenticity.FORGED.value] += 1
            return False
        if self._signatures.computed >= most:
            self._counters["not checked"] += 1
            return False
        return self._is_genuine(one.event)

    def vouches(self, sender: Node, message: Message) -> bool:
        """Whether a message shows that its sender is who it says: it carries an event of the sender's own, with a
        valid signature."""
        if self.authors is None:
            return False
        own = [one.event for one in self._carried.within(message) if one.fits and one.event.author == sender]
        if not own or not self._checks.may():
            return False
        verdict = self._signatures.check(own[0])
        self._count_checks()
        return verdict is Authenticity.GENUINE

    def ahead_of(self, message: Message) -> list[Introduction]:
        """What must be sent before a message."""
        if self.authors is None or isinstance(message, Introduction):
            return []
        carried = self._carried.within(message)
        return self._introductions.ahead_of([one.event.author for one in carried]) if carried else []

    # --- From the broker and from applications ----------------------------------------------------------------------

    def is_authentic(self, event: Event) -> bool:
        """Whether an event that a broker has put together is its author's; also without its payload. What cannot be
        checked now may come again."""
        if self.authors is None:
            return True
        if not self._checks.may() and not self._signatures.remembers(event):
            self._counters["not checked"] += 1
            return False
        genuine = self._is_genuine(event)
        self._count_checks()
        return genuine

    def _is_genuine(self, event: Event) -> bool:
        verdict = self._signatures.check(event)
        if verdict is not Authenticity.GENUINE:
            self._counters[verdict.value] += 1
        return verdict is Authenticity.GENUINE

    def signed(self, publication: Publication, wall: int, block: int) -> Publication:
        """The publication as it is sent; `wall` is this node's clock, in ns since 1970."""
        if self.authors is None:
            return publication
        if publication.event.signed is not None and self._is_genuine(publication.event):  # before a restart
            return publication
        if self.authors.own is None:
            raise NotCertified(
                f"node {self.authors.node} has no valid certificate of the network's owner, and nobody would believe "
                f"its events: have the owner run 'roamcast key add MEMBERS {self.authors.node} "
                f"{self.authors.identity.public.hex()} --owner FILE', and give the result to this node with --members"
            )
        return self._signatures.signed(publication, wall, block)

    def authorship(self, event: Event) -> Authorship | None:
        """What applications are told about an event; None: they must not get it."""
        signed = event.signed
        published = None if signed is None else signed.time / 1000
        if self.authors is None:
            return Authorship(event.author, None, published)
        return Authorship(event.author, self.authors.trust, published) if self._is_genuine(event) else None

    @property
    def tables(self) -> dict[str, int]:
        if self.authors is None:
            return {}
        return {
            "authors": len(self.authors),
            "signatures checked": len(self._signatures),
            "messages of unknown authors": len(self._introductions),
            "messages to be checked": len(self._checks),
        }
