"""One datagram: a header in the clear, and a payload sealed with a key of its sender's session.

```
version u8 | kind u8 | flags u8 | sender u32 | receiver u32 | protocol u32 | salt, 16 octets | counter u64 | payload
```
The seal is ChaCha20-Poly1305, 16 octets longer than the payload; the header is its associated data, so that nothing in
it can be changed. All numbers are big-endian. A counter is below 2^63, so that every store can hold it.

**The protocol** is a hash of its name. Nodes that run different protocols cannot read each other's messages; so an
authentic frame of another protocol is refused as such, with its sender and protocol, which the host should report. Who
wrote an event is not the header's business, which every hop writes anew: an author and a signature belong to the event,
in the payload, where they travel unchanged.

**A session is one life of a node**, from a start to the next. It begins with a salt of 128 random bits, which every
frame carries: broadcasts get lost, and so would a handshake. The session key is HKDF-SHA256 of the network's key, with
the salt, and the sender's number as its name; the nonce is the counter.

**No nonce is used twice** under one key: within a life the counter only rises, and two lives have the same key only if
they drew the same salt, which among a million lives of one node happens with a probability below 2^-88. This needs no
clock, no store and no guarantee that a number is unique: a node whose store was lost or restored, whose clock was set
back, or whose card was cloned draws another salt. A second node with this node's number is noticed all the same: an
authentic frame with our number in a session that is not ours is a `twin`, which its host should report loudly.

**Counters move in blocks.** Each minute of a session has its own block of `BLOCK` counters, and a counter is in the
current block or above. Receivers record each block once (`replay.py`). A receiver that has restarted may refuse the
rest of a block: for a minute at most, and usually not at all, since it tells the sender (`SKIP`) which counter it
accepts next.

**What this protects.** Without the key nobody can read a payload, make a frame, change one, or have a receiver accept
one twice (`replay.py`). **What it does not.** Who sends to whom, when and how much is visible. There is no forward
secrecy: an attacker who gets the key can read recorded frames. An attacker can jam, and can relay genuine frames to
places out of their range. Above all, everybody with the key is an insider, who can pose as any other node, and by using
up the counters of its session have it refused until it restarts. If a node falls into hostile hands, all others need a
new key.

**Two keys.** While a network changes its key, a node seals with the first of its keys and accepts any of them.

Without a key the format is the same except for the seal, under another version number: the two never mix, and none of
the above is promised.
"""

import hashlib
import secrets
import struct
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from roamcast.bounded import put
from roamcast.content.event import MAX_NODE
from roamcast.errors import RoamcastError
from roamcast.live.key import NetworkKey
from roamcast.live.link.replay import BLOCK, FrameSession, Novelty, Replay

SEALED: Final = 3
OPEN: Final = 0x83
"""The version numbers, with and without a key."""

BROADCAST_DATA: Final = 1
"""A broadcast, or a fragment of one."""
UNICAST_DATA: Final = 2
"""A unicast, or a fragment of one."""
ACK: Final = 3
SKIP: Final = 4
"""A receiver that has restarted says which counters it refuses."""

FRAGMENT: Final = 1
"""Flag: the payload is a fragment of a longer message."""
ACK_REQUEST: Final = 2
"""Flag: the receiver of this fragment must acknowledge what it has."""
BUNDLE: Final = 4
"""Flag: the payload is several broadcasts."""
_FLAGS: Final = {
    BROADCAST_DATA: (0, FRAGMENT, BUNDLE),
    UNICAST_DATA: (0, FRAGMENT, ACK_REQUEST, FRAGMENT | ACK_REQUEST),
    ACK: (0,),
    SKIP: (0,),
}
"""Those that each kind may have."""

BROADCAST: Final = 2**32 - 1
MAX_COUNTER: Final = 2**63 - 1
MAX_DATAGRAM: Final = 9000
"""Octets; longer ones are refused unread."""

SALT_SIZE: Final = 16
_HEADER: Final = struct.Struct(f">BBBIII{SALT_SIZE}sQ")
_SALT: Final = slice(15, 15 + SALT_SIZE)
"""Its place in the header."""
_NONCE: Final = struct.Struct(">IQ")
HEADER_SIZE: Final = _HEADER.size
TAG_SIZE: Final = 16
MINUTE: Final = 60 * 10**9
_CIPHERS: Final = 4096
"""Sessions whose ciphers are cached; making one takes some ten microseconds."""
_INSECURE: Final = "insecure"

REASONS: Final = (
    "short",  # shorter than a header and a seal
    "long",  # longer than MAX_DATAGRAM
    "version",  # another version, or only one of the two nodes has a key
    "malformed",  # a header, or an authentic payload, that makes no sense
    "self",  # our own frame, of this life or an earlier one
    "twin",  # authentic and with our number, but not ours
    "others",  # addressed to another node
    "stale",  # a unicast or an acknowledgement that a later one has overtaken
    "replay",  # accepted before, or too old to tell
    "behind",  # authentic, and perhaps accepted before our restart
    "protocol",  # authentic, and of a node that runs another protocol
    "crowded",  # no room in the table of neighbours
    "rate",  # its sender sends too fast
    "key",  # not sealed with our key
)
"""Why a frame may be refused; each is a counter of the link."""


class FrameRefused(RoamcastError):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FrameBehind(FrameRefused):
    """An authentic frame of a session known from before our restart, in the block that was current then."""

    def __init__(self, session: FrameSession, upto: int) -> None:
        super().__init__("behind")
        self.session = session
        self.upto = upto
        """The last counter that is refused."""


class FrameForeign(FrameRefused):
    """An authentic frame of a node that runs another protocol."""

    def __init__(self, sender: int, protocol: int) -> None:
        super().__init__("protocol")
        self.sender = sender
        self.protocol = protocol


def protocol_number(name: str) -> int:
    """A protocol's number in a header."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])


class FrameHeader(NamedTuple):
    version: int
    kind: int
    flags: int
    sender: int
    receiver: int
    protocol: int
    salt: bytes
    counter: int


class OpenedFrame(NamedTuple):
    kind: int
    flags: int
    sender: int
    receiver: int
    counter: int
    payload: bytes
    session: FrameSession


class Sealer:
    def __init__(
        self,
        keys: NetworkKey | Sequence[NetworkKey] | None,
        node: int,
        *,
        protocol: str = "",
        replay: Replay | None = None,
        salt: bytes | None = None,
        counter: int | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Begins a session. Tests may set its salt, its first counter and the clock (ns)."""
        if not 0 <= node <= MAX_NODE:
            raise ValueError(f"a node has a number from 0 to {MAX_NODE}, not {node}")
        # Messages are numbered by counters; a random first counter keeps the numbers of two lives apart.
        first = secrets.randbelow(BLOCK // 2) if counter is None else counter
        if not 0 <= first <= MAX_COUNTER:
            raise ValueError(f"counters go from 0 to {MAX_COUNTER}; {first} cannot be the first")
        self.node = node
        self._protocol = protocol_number(protocol)
        self.replay = Replay() if replay is None else replay
        self._ciphers: dict[FrameSession, ChaCha20Poly1305] = {}
        self._take_keys(keys)
        self.session = FrameSession(self._names[0], node, secrets.token_bytes(SALT_SIZE) if salt is None else salt)
        self._salts = {self.session.salt}  # all salts of this life: a new key brings a new one
        self._own = self._cipher(self.session) if self._keys else None
        self._version = SEALED if self._keys else OPEN
        self._next = first
        self._clock = clock
        self._began = clock()
        self.overhead = HEADER_SIZE + (TAG_SIZE if self._keys else 0)
        """Octets that a frame has beyond its payload."""

    def _take_keys(self, keys: NetworkKey | Sequence[NetworkKey] | None) -> None:
        self._keys: dict[str, NetworkKey] = {}
        if keys is not None:
            self._keys = {key.fingerprint: key for key in ((keys,) if isinstance(keys, NetworkKey) else keys)}
        self._names = tuple(self._keys) or (_INSECURE,)

    def change_keys(self, keys: Sequence[NetworkKey]) -> bool:
        """From now on seals with the first of these keys and accepts any of them; returns whether that starts a new
        session. The counter continues, and so do the numbers of messages."""
        if not keys or not self._keys:
            raise ValueError("a node has keys all its life, or none")
        self._take_keys(keys)
        self._ciphers.clear()  # including those of keys that are no longer accepted
        if self._names[0] == self.session.key:
            return False
        self.session = FrameSession(self._names[0], self.node, secrets.token_bytes(SALT_SIZE))
        self._salts.add(self.session.salt)
        self._own = self._cipher(self.session)
        return True

    def take(self) -> int:
        """A number that no frame of this session has had or will have."""
        taken = max(self._next, (self._clock() - self._began) // MINUTE * BLOCK)
        if taken > MAX_COUNTER:
            raise FrameRefused("malformed")
        self._next = taken + 1
        return taken

    def skip(self, salt: bytes, upto: int) -> bool:
        """A receiver refuses counters up to `upto`; returns whether that was news. No jump is longer than two blocks:
        nobody can use up the counters."""
        if salt != self.session.salt or not self._next <= upto <= self._next + 2 * BLOCK:
            return False
        self._next = upto + 1
        return True

    def seal(self, kind: int, receiver: int, payload: bytes, *, flags: int = 0) -> bytes:
        """A datagram, with a counter of its own."""
        if len(payload) + self.overhead > MAX_DATAGRAM:
            raise ValueError(f"{len(payload)} octets of payload do not fit into {MAX_DATAGRAM}")
        counter = self.take()
        header = _HEADER.pack(
            self._version, kind, flags, self.node, receiver, self._protocol, self.session.salt, counter
        )
        if self._own is None:
            return header + payload
        return header + self._own.encrypt(_NONCE.pack(0, counter), payload, header)

    def open(self, datagram: bytes) -> OpenedFrame:
        return self.unseal(self.look(datagram), datagram)

    def look(self, datagram: bytes) -> FrameHeader:
        """Refuses everything that can be refused without the key; the sender is not authenticated yet."""
        if len(datagram) < self.overhead:
            raise FrameRefused("short")
        if len(datagram) > MAX_DATAGRAM:
            raise FrameRefused("long")
        if datagram[0] != self._version:
            raise FrameRefused("version")
        header = FrameHeader._make(_HEADER.unpack_from(datagram))
        _, kind, flags, sender, receiver, _, salt, counter = header
        # Exactly the broadcasts go to the broadcast address, and only the flags of this kind are set.
        if flags not in _FLAGS.get(kind, ()) or (kind == BROADCAST_DATA) != (receiver == BROADCAST):
            raise FrameRefused("malformed")
        if sender > MAX_NODE or counter > MAX_COUNTER:
            raise FrameRefused("malformed")
        if sender == self.node:
            if salt in self._salts:
                raise FrameRefused("self")
            session, _ = self._decrypt(header, datagram)
            raise FrameRefused("self" if self.replay.knows(session) else "twin")
        if receiver not in (self.node, BROADCAST):
            raise FrameRefused("others")
        for session in self._sessions(header):
            if self.replay.judge(session, counter) is not Novelty.SEEN:
                return header
        raise FrameRefused("replay")

    def is_own(self, datagram: bytes) -> bool:
        """Whether this node has sent a datagram itself, by the salt of its session; nobody else can use that."""
        return datagram[_SALT] == self.session.salt

    def unseal(self, header: FrameHeader, datagram: bytes) -> OpenedFrame:
        session, payload = self._decrypt(header, datagram)
        verdict = self.replay.judge(session, header.counter)
        if verdict is Novelty.SEEN:  # `look` may have seen two copies before the first was unsealed
            raise FrameRefused("replay")
        foreign = header.protocol != self._protocol
        if verdict is Novelty.BEHIND and not foreign:
            raise FrameBehind(session, self.replay.upto(session))
        if verdict is Novelty.NEW:
            self.replay.accept(session, header.counter)
        if foreign:
            raise FrameForeign(header.sender, header.protocol)
        return OpenedFrame(header.kind, header.flags, header.sender, header.receiver, header.counter, payload, session)

    def _sessions(self, header: FrameHeader) -> list[FrameSession]:
        """The sessions that the frame may belong to, one for each key."""
        return [FrameSession(name, header.sender, header.salt) for name in self._names]

    def _decrypt(self, header: FrameHeader, datagram: bytes) -> tuple[FrameSession, bytes]:
        sessions = self._sessions(header)
        if not self._keys:
            return sessions[0], datagram[HEADER_SIZE:]
        nonce = _NONCE.pack(0, header.counter)
        for session in sessions:
            cipher = self._ciphers.get(session) or self._cipher(session)
            try:
                payload = cipher.decrypt(nonce, datagram[HEADER_SIZE:], datagram[:HEADER_SIZE])
            except InvalidTag:
                continue
            put(self._ciphers, session, cipher, _CIPHERS)
            return session, payload
        raise FrameRefused("key")

    def _cipher(self, session: FrameSession) -> ChaCha20Poly1305:
        secret = self._keys[session.key].derive(f"frame {SEALED} of node {session.sender}", session.salt)
        return ChaCha20Poly1305(secret)
