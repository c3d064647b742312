"""Who may be which node: certificates and revocations, signed by the owner of a network.

The rules this file owns:

* A *certificate* binds a node's number to a public key. The owner's certificates are numbered from 1, and of two for
  the same node the higher number counts. Without an owner, a node signs its own, with the number 0.
* A *list of revocations* is signed as a whole and numbered: the highest number counts. It says, for each node, up to
  which number its certificates are void. So a node can be added again, with a certificate of a higher number.
* On disk both are lines of text in the *members file*, which is public: nobody but the owner can make a line.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from roamcast.content.event import MAX_NODE
from roamcast.content.signed import SIGNATURE
from roamcast.live.identity import PUBLIC, Identity, PublicKey
from roamcast.live.key import KeyProblem

MAX_REVOKED: Final = 1024
"""Nodes in a list of revocations; with more, the network needs a new key."""
MAX_NUMBER: Final = 2**62
_CERTIFICATE: Final = "roamcast-member-1"
_REVOCATIONS: Final = "roamcast-revocations-1"

NodeId = Annotated[int, Meta(ge=0, le=MAX_NODE)]
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
_Signature = Annotated[bytes, Meta(min_length=SIGNATURE, max_length=SIGNATURE)]


class Certificate(msgspec.Struct, frozen=True, array_like=True):
    node: NodeId
    key: Annotated[bytes, Meta(min_length=PUBLIC, max_length=PUBLIC)]
    number: Number
    signature: _Signature = bytes(SIGNATURE)

    @property
    def statement(self) -> bytes:
        return msgspec.msgpack.encode(("roamcast certificate 1", self.node, self.key, self.number))

    def signed(self, by: Identity) -> "Certificate":
        return msgspec.structs.replace(self, signature=by.sign(self.statement))

    def holds(self, owner: bytes | None) -> bool:
        """Whether the owner has signed it; without an owner, whether its node has."""
        if (self.number == 0) != (owner is None):
            return False
        return _verifies(self.key if owner is None else owner, self.signature, self.statement)

    @property
    def line(self) -> str:
        return f"{_CERTIFICATE} {self.node} {self.number} {self.key.hex()} {self.signature.hex()}"


class Revocations(msgspec.Struct, frozen=True, array_like=True):
    number: Number
    void: Annotated[dict[NodeId, Number], Meta(max_length=MAX_REVOKED)]
    """By node: the highest number of its certificates that is void."""
    signature: _Signature = bytes(SIGNATURE)

    @property
    def statement(self) -> bytes:
        return msgspec.msgpack.encode(("roamcast revocations 1", self.number, sorted(self.void.items())))

    def signed(self, by: Identity) -> "Revocations":
        return msgspec.structs.replace(self, signature=by.sign(self.statement))

    def holds(self, owner: bytes | None) -> bool:
        return owner is not None and _verifies(owner, self.signature, self.statement)

    def revokes(self, certificate: Certificate) -> bool:
        return certificate.number <= self.void.get(certificate.node, -1)

    @property
    def line(self) -> str:
        void = ",".join(f"{node}:{upto}" for node, upto in sorted(self.void.items()))
        return f"{_REVOCATIONS} {self.number} {void or '-'} {self.signature.hex()}"


NONE_REVOKED: Final = Revocations(0, {})


class MembersFile(NamedTuple):
    """What a members file says."""

    certificates: tuple[Certificate, ...] = ()
    revocations: Revocations = NONE_REVOKED

    @property
    def next_number(self) -> int:
        numbers = [certificate.number for certificate in self.certificates]
        return 1 + max([self.revocations.number, *self.revocations.void.values(), *numbers])

    def add(self, node: int, key: bytes, owner: Identity) -> "MembersFile":
        """With a new certificate instead of the node's former ones."""
        made = Certificate(node, key, self.next_number).signed(owner)
        return MembersFile((*(other for other in self.certificates if other.node != node), made), self.revocations)

    def revoke(self, node: int, owner: Identity) -> "MembersFile":
        """Without the node: all its certificates up to now are void."""
        number = self.next_number
        void = self.revocations.void | {node: number}
        if len(void) > MAX_REVOKED:
            raise KeyProblem(f"{MAX_REVOKED} nodes are revoked already: give the network a new key and a new owner")
        others = tuple(other for other in self.certificates if other.node != node)
        return MembersFile(others, Revocations(number, void).signed(owner))

    @classmethod
    def load(cls, path: Path) -> "MembersFile":
        try:
            lines = path.read_text("ascii").splitlines()
        except UnicodeDecodeError:
            raise KeyProblem(f"{path} is not a members file: 'roamcast key add' makes one") from None
        except OSError as problem:
            hint = "; 'roamcast key add' makes one" if isinstance(problem, FileNotFoundError) else ""
            raise KeyProblem(f"the members file {path} cannot be read: {problem.strerror}{hint}") from None
        certificates, revocations = [], NONE_REVOKED
        for number, line in enumerate(lines, 1):
            try:
                read = _read(line.split())
            except (ValueError, msgspec.ValidationError):
                raise KeyProblem(
                    f"{path}, line {number}: not a line of a members file: 'roamcast key add' makes them"
                ) from None
            if isinstance(read, Certificate):
                certificates.append(read)
            elif read is not None and read.number >= revocations.number:
                revocations = read
        return cls(tuple(certificates), revocations)

    def save(self, path: Path) -> None:
        lines = [certificate.line for certificate in sorted(self.certificates, key=lambda one: one.node)]
        if self.revocations.number:
            lines.append(self.revocations.line)
        partial = path.with_name(f".{path.name}.partial")
        try:
            partial.write_text("".join(f"{line}\n" for line in lines), "ascii")
            partial.replace(path)
        except OSError as problem:
            raise KeyProblem(f"{path}: cannot be written: {problem.strerror}") from None

    def __iter__(self) -> Iterator[Certificate]:  # type: ignore[override]
        return iter(self.certificates)


def _read(words: Sequence[str]) -> Certificate | Revocations | None:
    if not words:
        return None
    mark, *rest = words
    if mark == _CERTIFICATE:
        node, number, key, signature = rest
        fields: list[object] = [int(node), bytes.fromhex(key), int(number), bytes.fromhex(signature)]
        return msgspec.convert(fields, Certificate)
    if mark == _REVOCATIONS:
        serial, listed, signature = rest
        pairs = [pair.split(":") for pair in listed.split(",")] if listed != "-" else []
        void = {int(node): int(upto) for node, upto in pairs}
        return msgspec.convert([int(serial), void, bytes.fromhex(signature)], Revocations)
    raise ValueError(mark)


def _verifies(key: bytes, signature: bytes, statement: bytes) -> bool:
    try:
        return PublicKey(key).verifies(signature, statement)
    except ValueError:
        return False
