"""The network's key: 32 random octets shared by all nodes of a network, in a file that only its owner can read.

Everyone with the key belongs to the network, and all are equally trusted (`frame.py` says what that means). The key
itself is never used directly: each use has its own key, derived by HKDF-SHA256 with the use as its name, so that no
use can compromise another. The file is one line, `roamcast-key-1` and 64 hex digits; if the network has an owner, a
second line, `roamcast-owner-1` and 64 hex digits, is the owner's public key.

The owner's own key is in a file of the same form, `roamcast-owner-secret-1` and 64 hex digits, which no node needs.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from roamcast.errors import RoamcastError

OCTETS: Final = 32
MARK: Final = "roamcast-key-1"
OWNER: Final = "roamcast-owner-1"
OWNER_SECRET: Final = "roamcast-owner-secret-1"
_MAX_FILE: Final = 1024
_OWNER_MADE: Final = "'roamcast key new FILE --owner FILE' makes one"


class KeyProblem(RoamcastError):
    """A key cannot be read, written or used; the text says what to do."""


class NetworkKey:
    def __init__(self, secret: bytes, owner: bytes | None = None) -> None:
        """`owner` is the public key of the network's owner."""
        if len(secret) != OCTETS:
            raise KeyProblem(f"a key has {OCTETS} octets, not {len(secret)}")
        self._secret = secret
        self.owner = owner

    @classmethod
    def new(cls, owner: bytes | None = None) -> Self:
        return cls(secrets.token_bytes(OCTETS), owner)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        found = _read(Path(path))
        if list(found) not in ([MARK], [MARK, OWNER]):
            # The content is not shown: it may be a key, mistyped.
            raise KeyProblem(
                f"{path} is not a key; it must be one line: {MARK} and {2 * OCTETS} hex digits; or two, the second "
                f"with {OWNER}"
            )
        return cls(found[MARK], found.get(OWNER))

    def save(self, path: Path | str) -> None:
        """Writes a new file; never overwrites one, since nodes may depend on it."""
        _write(Path(path), {MARK: self._secret} | ({} if self.owner is None else {OWNER: self.owner}))

    def derive(self, use: str, salt: bytes | None = None) -> bytes:
        """32 octets for one use, which reveal nothing about those for another use or about the key."""
        return HKDF(SHA256(), OCTETS, salt=salt, info=b"roamcast " + use.encode()).derive(self._secret)

    @property
    def fingerprint(self) -> str:
        """16 hex digits to compare two keys without showing them."""
        return self.derive("fingerprint")[:8].hex()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NetworkKey)
            and secrets.compare_digest(self._secret, other._secret)
            and self.owner == other.owner
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<NetworkKey {self.fingerprint}>"


def load_owner(path: Path) -> bytes:
    """The owner's secret."""
    found = _read(path, _OWNER_MADE)
    if list(found) != [OWNER_SECRET]:
        raise KeyProblem(f"{path} is not an owner's key: {_OWNER_MADE}")
    return found[OWNER_SECRET]


def save_owner(path: Path, secret: bytes) -> None:
    """Writes a new file; never overwrites one."""
    _write(path, {OWNER_SECRET: secret})


def _read(path: Path, remedy: str = "'roamcast key new' makes one") -> dict[str, bytes]:
    """The keys in a file, by their marks; empty if it is not a file of keys. `remedy` says how to get a missing one."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_MAX_FILE + 1)
    except OSError as problem:
        hint = f"; {remedy}" if isinstance(problem, FileNotFoundError) else ""
        raise KeyProblem(f"the key {path} cannot be read: {problem.strerror}{hint}") from None
    # Access for a group is the administrator's choice; access for everyone is always a mistake.
    if mode & 0o007:
        raise KeyProblem(f"the key {path} is open to every user of this machine; close it with: chmod 600 {path}")
    words = content.decode("ascii", "replace").split()
    try:
        keys = {mark: bytes.fromhex(digits) for mark, digits in zip(words[::2], words[1::2], strict=True)}
    except ValueError:
        return {}
    return keys if all(len(digits) == 2 * OCTETS for digits in words[1::2]) else {}


def _write(path: Path, keys: Mapping[str, bytes]) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyProblem(f"{path} is there already; a key is never overwritten: remove it or name another") from None
    except OSError as problem:
        raise KeyProblem(f"the key {path} cannot be written: {problem.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write("".join(f"{mark} {key.hex()}\n" for mark, key in keys.items()))
        file.flush()
        os.fsync(descriptor)
