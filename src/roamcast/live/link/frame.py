"""One datagram: a header in the clear, and a payload sealed with the network's key.

```
version u8 | kind u8 | flags u8 | sender u32 | receiver u32 | counter u64 | payload, sealed (and 16 octets longer)
```
The seal is ChaCha20-Poly1305; the header is its associated data, so that sender, receiver, kind and counter cannot be
changed. All numbers are big-endian. A counter is below 2^63, so that every store can hold it.

**No nonce is used twice.** The nonce is (sender, counter), under one key for the whole network. Different nodes have
different numbers, so directions never meet. Within a node all kinds of frames share one counter, which `take` only
moves forward. Across a restart: `reserve(upto)` must have stored `upto` *durably* (in SQLite, synchronous=FULL: a power
failure counts too) before the first counter below it is used, and a restart begins at the stored `upto`; `kill -9`
wastes counters but repeats none. A node whose store is lost would begin again, so a new store begins at
`first_counter`, the microseconds of the wall clock: above all earlier ones unless the node sent a million frames a
second, or its clock went back. A frame is sealed anew for each retry. Two nodes that were given the same number do
repeat nonces, which lays the payloads of both open and lets others forge frames: a node that hears an authentic frame
of its own number that it has not sent counts it as `twin`, and its host should say so loudly.

**What this protects.** Without the key nobody can read a payload, make a frame, change one, or have a receiver take
one twice (`replay.py`). **What it does not.** Who sends to whom, when and how much is visible. There is no forward
secrecy: whoever gets the key reads what he recorded. An attacker can jam, and can carry true frames to where they
would not be heard. Above all, everybody with the key is an insider: he can pose as any other node, and by using up its
counters have it refused from then on. A node that is lost to an enemy means a new key for all others.

Without a key (`key=None`) the format is the same but for the seal, under another version: the two never mix, and
nothing above is promised.
"""

import struct
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from roamcast.content.event import MAX_NODE
from roamcast.errors import RoamcastError
from roamcast.live.key import NetworkKey
from roamcast.live.link.replay import Replay, Verdict

SEALED: Final = 1
OPEN: Final = 0x81
"""The versions, with and without a key."""

SAY: Final = 1
"""A broadcast, or a part of one."""
TELL: Final = 2
"""A unicast, or a part of one."""
ACK: Final = 3

PART: Final = 1
"""Flag: the payload is a part of a longer message."""
ASK: Final = 2
"""Flag: the receiver of this part is asked what it has."""
_FLAGS: Final = {SAY: PART, TELL: PART | ASK, ACK: 0}

BROADCAST: Final = 2**32 - 1
MAX_COUNTER: Final = 2**63 - 1
MAX_DATAGRAM: Final = 9000
"""Octets; longer ones are refused unread."""

_HEADER: Final = struct.Struct(">BBBIIQ")
_NONCE: Final = struct.Struct(">IQ")
HEADER_SIZE: Final = _HEADER.size
TAG_SIZE: Final = 16
BLOCK: Final = 65536
"""Counters reserved at once: a restart wastes at most as many, of 2^63."""

REASONS: Final = (
    "short",  # shorter than a header and a seal
    "long",  # longer than MAX_DATAGRAM
    "version",  # another version, or sealed where we are not, or the reverse
    "malformed",  # a header, or an authentic payload, that says nothing sensible
    "self",  # our own, heard back
    "twin",  # authentic and of our number, but not ours
    "others",  # to somebody else
    "stale",  # a unicast or an acknowledgement that was overtaken by what followed
    "replay",  # taken before, or too old to tell
    "crowded",  # from one sender more than there is room for
    "rate",  # its sender is too fast
    "key",  # not sealed with our key
)
"""Why a frame may be refused; each is a counter of the link."""


class FrameRefused(RoamcastError):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NoCounter(RoamcastError):
    """No counter could be had for another frame: the store has failed, or all are used up."""


class Header(NamedTuple):
    version: int
    kind: int
    flags: int
    sender: int
    receiver: int
    counter: int


class Frame(NamedTuple):
    kind: int
    flags: int
    sender: int
    receiver: int
    counter: int
    payload: bytes


def first_counter(wall_ns: int | None = None) -> int:
    """Where the counters of a new store begin, by the wall clock (ns since 1970)."""
    return max(0, (time.time_ns() if wall_ns is None else wall_ns) // 1000)


class Sealer:
    def __init__(
        self,
        key: NetworkKey | None,
        node: int,
        next_counter: int,
        reserve: Callable[[int], None],
        *,
        replay: Replay | None = None,
        block: int = BLOCK,
    ) -> None:
        if not 0 <= node <= MAX_NODE:
            raise ValueError(f"a node has a number from 0 to {MAX_NODE}, not {node}")
        if not 0 <= next_counter <= MAX_COUNTER:
            raise ValueError(f"counters go from 0 to {MAX_COUNTER}; {next_counter} cannot be the next")
        if block < 1:
            raise ValueError(f"at least one counter is reserved at a time, not {block}")
        self.node = node
        self.replay = Replay() if replay is None else replay
        self._aead = None if key is None else ChaCha20Poly1305(key.derive("frame 1"))
        self._version = OPEN if key is None else SEALED
        self._reserve = reserve
        self._block = block
        self._next = next_counter
        self._reserved = next_counter
        self.overhead = HEADER_SIZE + (0 if key is None else TAG_SIZE)
        """Octets that a frame has beyond its payload."""

    @property
    def sealed(self) -> bool:
        return self._aead is not None

    def take(self) -> int:
        """A number that no frame of this node has had or will have."""
        if self._next == self._reserved:
            upto = min(self._reserved + self._block, MAX_COUNTER + 1)
            if upto == self._reserved:
                raise NoCounter(f"node {self.node} has used all its {upto} counters: the network needs a new key")
            try:
                self._reserve(upto)
            except Exception as problem:
                raise NoCounter(f"counters up to {upto} could not be reserved: {problem}") from problem
            self._reserved = upto
        taken = self._next
        self._next += 1
        return taken

    def seal(self, kind: int, receiver: int, payload: bytes, *, flags: int = 0) -> bytes:
        """A datagram, with a counter of its own."""
        if len(payload) + self.overhead > MAX_DATAGRAM:
            raise ValueError(f"{len(payload)} octets of payload do not fit into {MAX_DATAGRAM}")
        counter = self.take()
        header = _HEADER.pack(self._version, kind, flags, self.node, receiver, counter)
        if self._aead is None:
            return header + payload
        return header + self._aead.encrypt(_NONCE.pack(self.node, counter), payload, header)

    def open(self, datagram: bytes) -> Frame:
        return self.unseal(self.look(datagram), datagram)

    def look(self, datagram: bytes) -> Header:
        """Everything that can be refused without the key; who it is from is only claimed yet."""
        if len(datagram) < self.overhead:
            raise FrameRefused("short")
        if len(datagram) > MAX_DATAGRAM:
            raise FrameRefused("long")
        if datagram[0] != self._version:
            raise FrameRefused("version")
        header = Header._make(_HEADER.unpack_from(datagram))
        _, kind, flags, sender, receiver, counter = header
        # A broadcast is a broadcast and nothing else is; flags mean something with this kind.
        if kind not in _FLAGS or flags & ~_FLAGS[kind] or (kind == SAY) != (receiver == BROADCAST):
            raise FrameRefused("malformed")
        if sender > MAX_NODE or counter > MAX_COUNTER:
            raise FrameRefused("malformed")
        if sender == self.node:
            if counter >= self._next:
                self._decrypt(header, datagram)
                raise FrameRefused("twin")
            raise FrameRefused("self")
        if receiver not in (self.node, BROADCAST):
            raise FrameRefused("others")
        self._must_be_new(header)
        return header

    def unseal(self, header: Header, datagram: bytes) -> Frame:
        payload = self._decrypt(header, datagram)
        self._must_be_new(header)  # the same datagram may have been looked at twice before it was unsealed
        self.replay.accept(header.sender, header.counter)
        return Frame(header.kind, header.flags, header.sender, header.receiver, header.counter, payload)

    def _must_be_new(self, header: Header) -> None:
        verdict = self.replay.judge(header.sender, header.counter)
        if verdict is not Verdict.NEW:
            raise FrameRefused("replay" if verdict is Verdict.SEEN else "crowded")

    def _decrypt(self, header: Header, datagram: bytes) -> bytes:
        if self._aead is None:
            return datagram[HEADER_SIZE:]
        nonce = _NONCE.pack(header.sender, header.counter)
        try:
            return self._aead.decrypt(nonce, datagram[HEADER_SIZE:], datagram[:HEADER_SIZE])
        except InvalidTag:
            raise FrameRefused("key") from None
