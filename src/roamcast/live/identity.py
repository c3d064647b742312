"""A node's identity: an Ed25519 key that it makes at its first start and keeps in its store.

The secret never leaves the store. What others see is the public key, and it is what a certificate binds to the node's
number (`certificates.py`).
"""

from typing import TYPE_CHECKING, Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

if TYPE_CHECKING:
    from roamcast.live.store import Store

SECTION: Final = "identity"
"""Where it is in the store, beside what protocols keep."""
_SECRET: Final = "secret"
PUBLIC: Final = 32
"""Bytes of a public key."""

_P: Final = 2**255 - 19
_EIGHTH: Final = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_SMALL: Final = frozenset((0, 1, _P - 1, _P, _P + 1, _EIGHTH, _P - _EIGHTH))
"""The y coordinates of the points of order 1, 2, 4 and 8. As keys they accept signatures that nobody has made, and the
library does not refuse them."""


class Identity:
    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw()

    @classmethod
    def new(cls) -> Self:
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def of(cls, store: "Store") -> Self:
        """The identity in a store; a new one is queued for it."""
        secret = store.kept(SECTION).get(_SECRET)
        if secret is not None:
            return cls(secret)
        made = cls.new()
        store.keep(SECTION, _SECRET, made.secret)
        return made

    @property
    def secret(self) -> bytes:
        return self._key.private_bytes_raw()

    def sign(self, statement: bytes) -> bytes:
        return self._key.sign(statement)

    def __repr__(self) -> str:
        return f"<Identity {self.public.hex()}>"


class PublicKey:
    """A public key that is ready to check signatures."""

    __slots__ = ("_key", "octets")

    def __init__(self, octets: bytes) -> None:
        """Raises `ValueError` if these bytes are not a public key that can be trusted."""
        if int.from_bytes(octets, "little") % 2**255 in _SMALL:
            raise ValueError("a point of small order is not a key")
        self.octets = octets
        self._key = Ed25519PublicKey.from_public_bytes(octets)

    def verifies(self, signature: bytes, statement: bytes) -> bool:
        try:
            self._key.verify(signature, statement)
        except InvalidSignature:
            return False
        return True
