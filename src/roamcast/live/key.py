"""The network's key: 32 random octets shared by all nodes of a network, in a file that only its owner can read.

Everyone with the key belongs to the network, and all are equally trusted (`frame.py` says what that means). The key
itself is never used directly: each use has its own key, derived by HKDF-SHA256 with the use as its name, so that no
use can compromise another. The file is one line, `roamcast-key-1` and 64 hex digits.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from roamcast.errors import RoamcastError

OCTETS: Final = 32
MARK: Final = "roamcast-key-1"
_MAX_FILE: Final = 1024


class KeyProblem(RoamcastError):
    """A key cannot be read, written or used; the text says what to do."""


class NetworkKey:
    def __init__(self, secret: bytes) -> None:
        if len(secret) != OCTETS:
            raise KeyProblem(f"a key has {OCTETS} octets, not {len(secret)}")
        self._secret = secret

    @classmethod
    def new(cls) -> Self:
        return cls(secrets.token_bytes(OCTETS))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        path = Path(path)
        try:
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read(_MAX_FILE + 1)
        except OSError as problem:
            raise KeyProblem(f"the key {path} cannot be read: {problem.strerror}") from None
        # Access for a group is the administrator's choice; access for everyone is always a mistake.
        if mode & 0o007:
            raise KeyProblem(f"the key {path} is open to every user of this machine; close it with: chmod 600 {path}")
        words = content.decode("ascii", "replace").split()
        if len(words) == 2 and words[0] == MARK and len(words[1]) == 2 * OCTETS:
            with suppress(ValueError):
                return cls(bytes.fromhex(words[1]))
        # The content is not shown: it may be a key, mistyped.
        raise KeyProblem(f"{path} is not a key; it must be one line: {MARK} and {2 * OCTETS} hex digits")

    def save(self, path: Path | str) -> None:
        """Writes a new file; never overwrites one, since nodes may depend on it."""
        path = Path(path)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise KeyProblem(
                f"{path} is there already; a key is never overwritten: remove it or name another"
            ) from None
        except OSError as problem:
            raise KeyProblem(f"the key {path} cannot be written: {problem.strerror}") from None
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{MARK} {self._secret.hex()}\n")
            file.flush()
            os.fsync(descriptor)

    def derive(self, use: str, salt: bytes | None = None) -> bytes:
        """32 octets for one use, which reveal nothing about those for another use or about the key."""
        return HKDF(SHA256(), OCTETS, salt=salt, info=b"roamcast " + use.encode()).derive(self._secret)

    @property
    def fingerprint(self) -> str:
        """16 hex digits to compare two keys without showing them."""
        return self.derive("fingerprint")[:8].hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NetworkKey) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<NetworkKey {self.fingerprint}>"
