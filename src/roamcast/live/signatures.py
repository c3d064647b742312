"""Signs the events that are published here, and checks those of others.

The rules this file owns:

* The signature of an event covers its id, type and attributes, its payload's length and hash, its lifetime and its
  contexts when it was published, and its author's clock; and, with an owner, which network it is for. It does not cover
  what changes on the way: hops, age, remaining lifetime, and what brokers say about routes.
* A signature is checked with the key of the node that the event's id names (`authors.py`).
* What was checked is remembered, by a hash of the key, the signature and everything that it covers: a copy of an event
  costs a few microseconds, and one that differs in a bit is not taken for it. Failures are not remembered, since
  anybody can make as many as they like.
"""

import enum
from hashlib import sha256
from typing import Final

import msgspec

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.content.signed import SIGNATURE, Signed, leaves_of, root_of
from roamcast.content.subscription import Publication
from roamcast.live.authors import Authors

REMEMBERED: Final = 16384
_encode: Final = msgspec.msgpack.Encoder().encode


class Authenticity(enum.Enum):
    GENUINE = "genuine"
    FORGED = "forged"
    """Or unsigned, or of a revoked author."""
    UNKNOWN = "author unknown"
    """It cannot be told yet: the author's certificate is not here."""


class Signatures:
    def __init__(self, authors: Authors) -> None:
        self._authors = authors
        self._checked: dict[bytes, None] = {}
        self.computed = 0
        """How many signatures were really checked."""

    def signed(self, publication: Publication, wall: int, block: int) -> Publication:
        """The publication with this node's signature; `wall` is its clock, in ns since 1970."""
        prepared = publication.to_be_signed(wall // 1_000_000, block)
        event, body = prepared.event, prepared.event.signed
        assert body is not None
        statement = self._statement(event, body)
        signature = self._authors.identity.sign(statement)
        self._remember(self._authors.identity.public, signature, statement)
        body = msgspec.structs.replace(body, signature=signature)
        return msgspec.structs.replace(prepared, event=msgspec.structs.replace(event, body=body))

    def remembers(self, event: Event) -> bool:
        """Whether an event needs no check: it was checked, or there is nothing to check it with."""
        signed, key = event.signed, self._authors.key(event.author)
        return (
            signed is None
            or key is None
            or _token(key.octets, signed.signature, self._statement(event, signed)) in self._checked
        )

    def check(self, event: Event) -> Authenticity:
        signed = event.signed
        if signed is None or len(signed.signature) != SIGNATURE or (signed.root and signed.payload):
            return Authenticity.FORGED
        key = self._authors.key(event.author)
        if key is None:
            return Authenticity.FORGED if self._authors.is_revoked(event.author) else Authenticity.UNKNOWN
        statement = self._statement(event, signed)
        if _token(key.octets, signed.signature, statement) in self._checked:
            return Authenticity.GENUINE
        self.computed += 1
        if not key.verifies(signed.signature, statement):
            return Authenticity.FORGED
        self._remember(key.octets, signed.signature, statement)
        return Authenticity.GENUINE

    def _statement(self, event: Event, signed: Signed) -> bytes:
        root = signed.root or root_of(len(signed.payload), leaves_of(signed.payload, signed.block))
        covered = (event.id, event.type, event.attributes, root, signed.block)
        said = (signed.time, signed.lifetime, signed.contexts)
        return _encode(("roamcast event 1", self._authors.owner, *covered, *said))

    def _remember(self, key: bytes, signature: bytes, statement: bytes) -> None:
        put(self._checked, _token(key, signature, statement), None, REMEMBERED)

    def __len__(self) -> int:
        return len(self._checked)


def _token(key: bytes, signature: bytes, statement: bytes) -> bytes:
    return sha256(key + signature + statement).digest()
