"""A node's identity, and keys that prove nothing."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from live.memory_store import MemoryStore
from roamcast.live.identity import Identity, PublicKey

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def added(a: Point, b: Point) -> Point:
    """The sum of two points of -x² + y² = 1 + d x² y² (RFC 8032, section 5.1)."""
    (x1, y1), (x2, y2) = a, b
    product = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, P)
    return x % P, y % P


def point(y: int) -> Point | None:
    """A point with this y, if there is one."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (x, y) if x * x % P == square else None


def small() -> list[int]:
    """The y coordinates of all points whose order divides 8: every multiple of one of order 8."""
    y = 2
    while True:
        found = point(y)
        if found is not None:
            eighth = _times(found, 2**252 + 27742317777372353535851937790883648493)  # the order of the large subgroup
            multiples = [_times(eighth, number) for number in range(8)]
            if len(set(multiples)) == 8:
                return sorted({y for _, y in multiples})
        y += 1


def _times(base: Point, number: int) -> Point:
    total: Point = (0, 1)
    while number:
        if number & 1:
            total = added(total, base)
        base, number = added(base, base), number >> 1
    return total


def test_a_key_of_small_order_is_refused_in_every_form() -> None:
    coordinates = small()
    assert len(coordinates) == 5
    forms = [form for y in coordinates for form in (y, y + P) if form < 2**255]
    for form in forms:
        for sign in (0, 1 << 255):
            octets = (form | sign).to_bytes(32, "little")
            with pytest.raises(ValueError, match="small order"):
                PublicKey(octets)
    Ed25519PublicKey.from_public_bytes(bytes(32))  # the library takes it


def test_an_identity_is_made_once_and_kept() -> None:
    store = MemoryStore()
    first = Identity.of(store)
    again = Identity.of(store)
    assert again.public == first.public
    assert Identity.of(MemoryStore()).public != first.public
    assert PublicKey(first.public).verifies(again.sign(b"x"), b"x")
    assert not PublicKey(first.public).verifies(again.sign(b"x"), b"y")
    assert first.secret.hex() not in repr(first)
