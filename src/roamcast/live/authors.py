"""Who is who: the public keys of the network's nodes, as far as this node knows them.

The rules this file owns:

* With an owner, a node is who the owner's certificate says, unless the owner has revoked it. Without an owner, the
  first key heard for a number counts, no matter who passed it on: trust on first use.
* What was learned is in the store: a restart forgets nobody, and in particular no revocation.
* Bounded: `MOST` nodes. With an owner, the one longest unused makes room, since others can introduce it again. Without
  one nobody makes room, or a member could have a node forget whom it trusts.
"""

from typing import Any, Final, Literal

import msgspec

from roamcast.bounded import put
from roamcast.live import log
from roamcast.live.certificates import NONE_REVOKED, Certificate, MembersFile, Revocations
from roamcast.live.identity import Identity, PublicKey
from roamcast.live.store import Store

MOST: Final = 4096
SECTION: Final = "authors"
"""Where they are in the store, beside what protocols keep."""
_REVOCATIONS: Final = "revocations"
_NODE: Final = "node/"

Trust = Literal["owner", "first use"]


class Authors:
    def __init__(self, node: int, identity: Identity, owner: bytes | None, store: Store) -> None:
        """`owner` is the public key of the network's owner, if it has one."""
        self.node = node
        self.identity = identity
        self.owner = owner
        self.revocations = NONE_REVOKED
        self.conflicts = 0
        """Certificates refused because the node is trusted with another key already."""
        self.computed = 0
        """How many signatures of certificates and revocations were checked."""
        self._store = store
        self._known: dict[int, tuple[Certificate, PublicKey]] = {}
        self._restore(store.kept(SECTION))
        if owner is None:
            self.take(Certificate(node, identity.public, 0).signed(identity))

    @property
    def trust(self) -> Trust:
        return "first use" if self.owner is None else "owner"

    @property
    def own(self) -> Certificate | None:
        """This node's certificate; None while the owner has not given it one."""
        certificate = self.certificate(self.node)
        return certificate if certificate is not None and certificate.key == self.identity.public else None

    def certificate(self, node: int) -> Certificate | None:
        """The valid certificate of a node."""
        known = self._known.get(node)
        return None if known is None or self.revocations.revokes(known[0]) else known[0]

    def key(self, node: int) -> PublicKey | None:
        """The key of a node; None if it is unknown or revoked."""
        if self.certificate(node) is None:
            return None
        known = self._known[node]
        if self.owner is not None:
            put(self._known, node, known, MOST)  # the latest used
        return known[1]

    def is_revoked(self, node: int) -> bool:
        """Whether the owner has revoked a node, as far as known, and it has no later certificate."""
        return node in self.revocations.void and self.key(node) is None

    def is_settled(self, node: int) -> bool:
        """Whether it is known who a node is, or that it is nobody any more."""
        return self.key(node) is not None or self.is_revoked(node)

    def take(self, certificate: Certificate) -> bool:
        """Takes a certificate from anywhere; returns whether it is valid and news."""
        node, known = certificate.node, self._known.get(certificate.node)
        if known is not None and (known[0] == certificate or known[0].number > certificate.number):
            return False
        if self.owner is None and known is None and len(self._known) >= MOST:
            return False
        if self.revocations.revokes(certificate):
            return False
        self.computed += 1
        if not certificate.holds(self.owner):
            return False
        if known is not None and self.owner is None:
            self.conflicts += 1
            if self.conflicts.bit_count() == 1:  # a line for 1, 2, 4 and so on: anybody can make many
                log.warn("nodes claim numbers that are trusted with other keys", last=node, conflicts=self.conflicts)
            return False
        gone = put(self._known, node, (certificate, PublicKey(certificate.key)), MOST)
        if gone is not None:
            self._store.forget(SECTION, f"{_NODE}{gone}")
        self._store.keep(SECTION, f"{_NODE}{node}", msgspec.msgpack.encode(certificate))
        return True

    def take_revocations(self, revocations: Revocations) -> bool:
        """Takes a list of revocations from anywhere; returns whether it is valid and news."""
        if revocations.number <= self.revocations.number:
            return False
        self.computed += 1
        if not revocations.holds(self.owner):
            return False
        self.revocations = revocations
        self._store.keep(SECTION, _REVOCATIONS, msgspec.msgpack.encode(revocations))
        log.warn("the owner has revoked nodes", number=revocations.number, nodes=sorted(revocations.void))
        return True

    def take_members(self, members: MembersFile) -> None:
        self.take_revocations(members.revocations)
        for certificate in members.certificates:
            self.take(certificate)

    def forget(self, node: int) -> bool:
        """Forgets a node, so that another key can be trusted for its number; returns whether it was known."""
        if node == self.node or self._known.pop(node, None) is None:
            return False
        self._store.forget(SECTION, f"{_NODE}{node}")
        return True

    @property
    def status(self) -> dict[str, Any]:
        return {
            "identity": self.identity.public.hex(),
            "trust": self.trust,
            "certified": self.own is not None,
            "known": len(self),
            "conflicts": self.conflicts,
            "revocations": self.revocations.number,
            "revoked": sorted(node for node in self.revocations.void if self.is_revoked(node)),
        }

    def __len__(self) -> int:
        return len(self._known)

    def _restore(self, kept: dict[str, bytes]) -> None:
        """Takes what was kept, as far as it is valid in this network: the owner may be another one now."""
        for key, value in kept.items():
            try:
                if key == _REVOCATIONS:
                    revocations = msgspec.msgpack.decode(value, type=Revocations)
                    if revocations.holds(self.owner):
                        self.revocations = revocations
                    continue
                certificate = msgspec.msgpack.decode(value, type=Certificate)
                if certificate.holds(self.owner) and len(self._known) < MOST:
                    self._known[certificate.node] = certificate, PublicKey(certificate.key)
            except (msgspec.MsgspecError, ValueError) as problem:
                log.warn("what was kept about a node cannot be read, and is passed over", key=key, reason=str(problem))
