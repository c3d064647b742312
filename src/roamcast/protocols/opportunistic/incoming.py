"""Documents that arrive in pieces: section 2.1 of the paper, "Receiving documents".

A node that hears a document it wants keeps and delivers it, whether it requested it or not. It assembles pieces from
one broadcast or several; with whole documents only, from a single one. Relays pass on what they hear, wanted or not.
"""

from typing import Final

from roamcast.bounded import put
from roamcast.content.event import EventId
from roamcast.errors import ContentError
from roamcast.protocols.api import Node, Port, Time
from roamcast.protocols.local import LocalSubscriptions
from roamcast.protocols.messages import MAX_HOPS
from roamcast.protocols.opportunistic.cache import Held
from roamcast.protocols.opportunistic.documents import (
    Document,
    assembled,
    described,
    false_pieces,
    pieces_of_head,
)
from roamcast.protocols.opportunistic.holdings import Holdings
from roamcast.protocols.opportunistic.interest import Interest
from roamcast.protocols.opportunistic.messages import MILLISECOND, Header, clipped
from roamcast.protocols.opportunistic.params import Opportunistic
from roamcast.protocols.opportunistic.passing import Gather, Passing
from roamcast.protocols.opportunistic.requests import Wishes
from roamcast.protocols.pieces import Partial, Partials

_LATEST: Final = 2048
"""Most partial documents that a node remembers as worth keeping."""

Key = tuple[EventId, Node, int]
"""The key of a partial document. With whole documents only, it names one broadcast; else only the document counts."""


class Incoming:
    def __init__(
        self,
        params: Opportunistic,
        port: Port,
        local: LocalSubscriptions,
        *,
        interest: Interest,
        holdings: Holdings,
        wishes: Wishes,
        passing: Passing,
    ) -> None:
        self._whole = params.whole
        self._port = port
        self._local = local
        self._interest = interest
        self._holdings = holdings
        self._wishes = wishes
        self._passing = passing
        self._kept: dict[EventId, None] = {}  # partial documents that were found worth keeping
        self._partials: Partials[Key, Document] = Partials(params.partials, params.partial_octets)

    def hear(self, now: Time, header: Header, pieces: int, document: Document | None, octets: bytes) -> None:
        """Handles pieces of a document that arrived: one as bytes, or several as parts of a document at hand.

        Not to be called for a broadcast that goes no further, of a document that is not needed here.
        """
        id = header.document
        passed, settled = None, False
        if header.scope > 1:
            passed, settled = self._passing.hear(now, header), self._holdings.needs_not(id)
            if settled and passed is None:
                return
        held = self._holdings.cache.get(id)
        if held is not None:
            if passed is not None:
                self._passing.send(now, passed, held.document, None)
            return
        key, cut = self._key(header), header.cut
        if document is not None:
            if pieces == cut.all and self._partials.would_take(key, cut):  # nothing has to wait here for the rest
                if passed is not None:
                    self._passing.send(now, passed, document, None)
                if not settled:
                    self._complete(now, header, document)
                return
            partial = self._partials.add_shared(key, cut, pieces, document)
        else:
            partial = self._partials.add(key, cut, pieces.bit_length() - 1, octets)
        if partial is None:
            self._port.note("malformed")
            return
        if passed is not None:
            if self._passing.is_gathered(passed, partial):
                self._drop_false(key, partial)
            self._passing.gather(now, passed, partial)
        if settled:
            if passed is None or passed.done:
                self._partials.pop(key)
        elif partial.complete:
            whole = assembled(id, partial)
            if whole is None or not self._port.authentic(whole.event):
                self._drop_forged(key, partial, whole)
                return
            self._partials.pop(key)
            self._complete(now, header, whole)
        elif not self._may_be_wanted(key, partial) and (passed is None or passed.done):
            self._partials.pop(key)

    def _drop_forged(self, key: Key, partial: Partial[Document], whole: Document | None) -> None:
        """Drops the pieces of a complete document that are not its author's: the others are worth keeping."""
        listed = None if whole is None else described(key[0], partial)
        if listed is not None and self._port.authentic(listed.event):
            # All pieces are as the head says, and still it is false: its author has signed a false head.
            self._partials.drop(key, false_pieces(key[0], partial) or partial.cut.all)
            self._port.note("forged")
        else:
            self._drop_head(key, partial, "malformed" if whole is None else "forged")
        self._wishes.forget(key[0])

    def _drop_false(self, key: Key, partial: Partial[Document]) -> None:
        """Before pieces are passed on: drops those that are not their author's, as far as that can be told. It can if
        the head is here: what is asked for again is often only the rest."""
        try:
            listed = described(key[0], partial)
        except ContentError:
            self._drop_head(key, partial, "malformed")
            return
        if listed is None or listed.event.signed is None:
            return
        if not self._port.authentic(listed.event):
            self._drop_head(key, partial, "forged")
            return
        false = false_pieces(key[0], partial)
        if false:
            self._partials.drop(key, false)
            self._port.note("forged")

    def _drop_head(self, key: Key, partial: Partial[Document], why: str) -> None:
        """Drops the pieces of a false head: whoever sent them need not be the document's author."""
        self._partials.drop(key, pieces_of_head(partial))
        self._port.note(why)

    def timer(self, now: Time, key: Gather) -> None:
        """Handles the timer of a broadcast that this node passes on: no more pieces may come."""
        passed = self._passing.ripe(now, key)
        if passed is None:
            return
        id = passed.header.document
        partial_key = self._key(passed.header)
        held, partial = self._holdings.cache.get(id), self._partials.get(partial_key)
        if held is not None:
            self._passing.send(now, passed, held.document, None)
        elif partial is not None and not self._whole:
            self._drop_false(partial_key, partial)
            self._passing.send(now, passed, partial.whole, partial)
            if self._holdings.needs_not(id):
                self._partials.pop(partial_key)
        else:
            self._passing.give_up(passed)
            self._partials.pop(partial_key)

    def announced(self) -> None:
        """Called at every announce. With whole documents only, what came in part and got no further for so long is of a
        broadcast that is over, and useless."""
        if self._whole:
            self._partials.drop_idle()

    def partial(self, id: EventId) -> Partial[Document] | None:
        """The pieces of a document that are here; not those that may be combined only within one broadcast."""
        return self._partials.get((id, 0, 0))

    def _key(self, header: Header) -> Key:
        return (header.document, header.source, header.serial) if self._whole else (header.document, 0, 0)

    def _may_be_wanted(self, key: Key, partial: Partial[Document]) -> bool:
        """Whether a partial document is worth keeping; true also if that cannot be told yet."""
        id = key[0]
        if id in self._kept:
            return True
        if partial.whole is None:
            try:
                listed = described(id, partial)
            except ContentError:
                self._drop_head(key, partial, "malformed")
                return True
        else:
            head = partial.whole.head_pieces(partial.cut)
            listed = partial.whole.descriptor if partial.have & head == head else None
        if listed is None:
            return True
        if not self._port.authentic(listed.event):
            self._drop_head(key, partial, "forged")
            return True
        _, kept = self._interest.judge(listed)
        if kept:
            put(self._kept, id, None, _LATEST)
        else:
            self._holdings.refuse(id)
        return kept

    def _complete(self, now: Time, header: Header, document: Document) -> None:
        """Handles a complete document."""
        id = header.document
        wanted, kept = self._interest.judge(document.descriptor)
        self._wishes.forget(id)
        if not kept:
            self._holdings.refuse(id)
            return
        if header.life == 0:
            self._port.decide(id, "expired")
            return
        hops = min(header.hops + 1, MAX_HOPS)
        self._local.deliver_held(document.event, hops, "piece")
        life = None if header.life is None else clipped(header.life) * MILLISECOND
        signed = document.event.signed
        if signed is not None and signed.lifetime is not None:  # whoever passes it on cannot have it live for longer
            life = signed.lifetime if life is None else min(life, signed.lifetime)
        expires = None if life is None else now + life
        published = now - clipped(header.age) * MILLISECOND
        self._holdings.put(now, Held(document, published, now, now, wanted, expires, hops), "received")

    def __len__(self) -> int:
        """The number of partial documents."""
        return len(self._partials)
