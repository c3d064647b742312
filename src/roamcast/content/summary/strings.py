"""SEC, the string element constraint: three Bloom vectors for one element, of whole strings, prefixes and suffixes.

A string passes if one of the vectors has it. If a digest carries no prefixes of a string, the string passes if the
vector of prefixes is not empty; suffixes likewise.
"""

import msgspec

from roamcast.content.summary.bloom import check_vector, contains
from roamcast.content.summary.hashing import AFFIX, AFFIX_LENGTHS, WHOLE
from roamcast.errors import ContentError


class Text(msgspec.Struct, frozen=True, array_like=True):
    """A string in a digest: its hash, and the hashes of its prefixes and suffixes if the digest has them."""

    whole: bytes
    prefixes: bytes | None = None
    suffixes: bytes | None = None

    def __post_init__(self) -> None:
        if len(self.whole) != WHOLE:
            raise ContentError(f"the hash of a string has {WHOLE} bytes, not {len(self.whole)}")
        for affixes in (self.prefixes, self.suffixes):
            if affixes is not None and (len(affixes) % AFFIX or len(affixes) > AFFIX * len(AFFIX_LENGTHS)):
                raise ContentError(f"the hashes of affixes are {len(AFFIX_LENGTHS)} of {AFFIX} bytes at most")


class Strings(msgspec.Struct, frozen=True, array_like=True):
    """What passes: strings whose hash, or one of whose affixes' hashes, is in its vector."""

    equal: bytes = b""
    prefix: bytes = b""
    suffix: bytes = b""

    def __post_init__(self) -> None:
        for vector in (self.equal, self.prefix, self.suffix):
            check_vector(vector, "a vector of an SEC")

    def accepts(self, string: bytes | Text, hashes: int) -> bool:
        """Whether a string passes; bytes are its hash alone."""
        if isinstance(string, bytes):
            return bool(self.prefix or self.suffix) or contains(self.equal, string, hashes)
        return (
            contains(self.equal, string.whole, hashes)
            or _has_affix(self.prefix, string.prefixes, hashes)
            or _has_affix(self.suffix, string.suffixes, hashes)
        )


def _has_affix(vector: bytes, affixes: bytes | None, hashes: int) -> bool:
    if not vector or affixes is None:
        return bool(vector)
    return any(contains(vector, affixes[at : at + AFFIX], hashes) for at in range(0, len(affixes), AFFIX))
