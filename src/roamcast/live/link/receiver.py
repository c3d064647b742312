"""Turns received datagrams into messages, each handed up once, without a socket or a clock.

- A datagram must pass `Sealer.look`, its sender's rate limit, the seal and the replay window, in this order; a failure
  is counted under its name. Datagrams that are not authentic change no table, so strangers cannot fill one.
- The first frames of a session, and of a block of its counters, wait until the block is recorded on disk; no others
  wait for the disk. If that fails they are neither handed up nor acknowledged: a node with a full disk is deaf rather
  than open to replay. At most `MAX_HELD` wait.
- A sender whose frames this node may have accepted before its restart is told which counters we refuse, once a second.
- A message is acknowledged after it was handed up. If the node is killed in between, it may come again after the
  restart; brokers have their duplicate window for that. A repetition because of a lost acknowledgement is only
  acknowledged again.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from roamcast.bounded import put
from roamcast.live.link.frame import (
    ACK,
    ACK_REQUEST,
    BROADCAST_DATA,
    BUNDLE,
    FRAGMENT,
    SKIP,
    UNICAST_DATA,
    FrameBehind,
    FrameForeign,
    FrameRefused,
    OpenedFrame,
    Sealer,
)
from roamcast.live.link.limits import Allowance, Rate
from roamcast.live.link.neighbours import Address, Neighbour, Neighbours
from roamcast.live.link.payload import Ack, Fragment, Skip, read_ack, read_bundle, read_fragment, read_skip
from roamcast.live.link.reassembly import Reassembly
from roamcast.live.link.replay import FrameSession
from roamcast.live.link.settings import LinkSettings

MAX_HELD: Final = 1024
SKIP_INTERVAL: Final = 1.0
"""Seconds between two hints to one sender."""
_MAX_HINTED: Final = 1024
VOUCHING: Final = Rate(frames=100.0, octets=1e6)
"""How many messages of newcomers are looked at for a signature while the table of neighbours is full."""
_MAX_FOREIGN: Final = 64


class Receiver:
    def __init__(
        self,
        sealer: Sealer,
        settings: LinkSettings,
        counters: Counter[str],
        *,
        hand_up: Callable[[int, bytes], None],
        answer: Callable[[int, Address, Ack], None],
        answered: Callable[[float, int, Ack], bool],
        skip: Callable[[int, Skip], None],
        failed: Callable[[str, BaseException], None],
        vouch: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        """`hand_up` gets the messages; `answer` sends an acknowledgement of a message, or of some of its fragments, to
        a node at an address; `answered` gets acknowledgements from others, and returns whether one was useful; `skip`
        tells a node which of its counters we refuse; `failed` gets errors of the store; `vouch` is asked about a
        newcomer's message if there is no room for it: does it show a valid signature? None of them may raise."""
        self.neighbours = Neighbours(settings.neighbours, settings.neighbour_lifetime, settings.rate)
        self.reassembly = Reassembly(
            settings.partials, settings.partial_octets, settings.partial_lifetime, counters, settings.longest
        )
        self.foreign: dict[int, tuple[int, float]] = {}
        """Nodes that run another protocol: its number, and when they were last heard. Longest silent first."""
        self._sealer = sealer
        self._counters = counters
        self._deliver = hand_up
        self._answer = answer
        self._answered = answered
        self._skip = skip
        self._failed = failed
        self._vouch = vouch
        self._vouching = Allowance(VOUCHING, 0.0)
        self._held: dict[FrameSession, list[tuple[float, OpenedFrame, Neighbour]]] = {}
        self._holding = 0
        self._hinted: dict[FrameSession, float] = {}

    def take(self, now: float, batch: Iterable[tuple[bytes, Address]]) -> list[int]:
        """Handles datagrams with their source addresses; returns the senders of the authentic ones."""
        opened: list[tuple[float, OpenedFrame, Neighbour]] = []
        for datagram, address in batch:
            self._counters["received"] += 1
            if self._sealer.is_own(datagram):  # every broadcast comes back
                self._counters["self"] += 1
                continue
            try:
                opened.append((now, *self._open(now, datagram, address)))
            except FrameBehind as behind:
                self._counters[behind.reason] += 1
                self._hint(now, behind)
            except FrameForeign as foreign:
                self._counters[foreign.reason] += 1
                put(self.foreign, foreign.sender, (foreign.protocol, now), _MAX_FOREIGN)
            except FrameRefused as refused:
                self._counters[refused.reason] += 1
        new = False
        for item in opened:
            session = item[1].session
            if session not in self._held and self._sealer.replay.safe(session):
                self._handle(*item)
            else:
                new = True
                self._hold(item)
        if new:
            self._sealer.replay.secure(self._secured)
        return [frame.sender for _, frame, _ in opened]

    def _hold(self, item: tuple[float, OpenedFrame, Neighbour]) -> None:
        if self._holding >= MAX_HELD:
            self._counters["held-full"] += 1
            return
        self._held.setdefault(item[1].session, []).append(item)
        self._holding += 1

    def _secured(self, problem: BaseException | None) -> None:
        """The sessions are recorded on disk, or cannot be."""
        if problem is not None:
            self._counters["persist-failed"] += self._holding
            self._held.clear()
            self._holding = 0
            self._failed("heard sessions could not be written down", problem)
            return
        for session in [session for session in self._held if self._sealer.replay.safe(session)]:
            items = self._held.pop(session)
            self._holding -= len(items)
            for item in items:
                self._handle(*item)

    def _hint(self, now: float, behind: FrameBehind) -> None:
        last = self._hinted.get(behind.session)
        if last is None or now - last >= SKIP_INTERVAL:
            put(self._hinted, behind.session, now, _MAX_HINTED)
            self._skip(behind.session.sender, Skip(behind.session.salt, behind.upto))

    def _open(self, now: float, datagram: bytes, address: Address) -> tuple[OpenedFrame, Neighbour]:
        header = self._sealer.look(datagram)
        if self.neighbours.too_fast(now, header.sender):
            raise FrameRefused("rate")
        frame = self._sealer.unseal(header, datagram)
        self.foreign.pop(frame.sender, None)
        neighbour = self.neighbours.hear(now, frame.sender, address, len(datagram))
        if neighbour is None:
            neighbour = self._let_in(now, frame, address, len(datagram))
        if neighbour.session != frame.session:
            neighbour.session = frame.session
            neighbour.last_unicast = -1
        return frame, neighbour

    def _let_in(self, now: float, frame: OpenedFrame, address: Address, octets: int) -> Neighbour:
        """A newcomer that the table has no room for, if its frame has a whole message that shows a signature."""
        neighbour = None
        whole = frame.kind in (BROADCAST_DATA, UNICAST_DATA) and not frame.flags & (FRAGMENT | BUNDLE)
        if self._vouch is not None and whole and self._vouching.ready(now):
            self._vouching.charge(octets)
            if self._vouch(frame.sender, read_fragment(frame).octets):
                neighbour = self.neighbours.hear(now, frame.sender, address, octets, vouched=True)
        if neighbour is None:
            raise FrameRefused("crowded")
        return neighbour

    def _handle(self, now: float, frame: OpenedFrame, neighbour: Neighbour) -> None:
        try:
            self._read(now, frame, neighbour)
        except FrameRefused as refused:
            self._counters[refused.reason] += 1

    def _read(self, now: float, frame: OpenedFrame, neighbour: Neighbour) -> None:
        if frame.kind == SKIP:
            salt, upto = read_skip(frame)
            if not self._sealer.skip(salt, upto):
                raise FrameRefused("stale")
            return
        if frame.kind == ACK:
            if not self._answered(now, frame.sender, read_ack(frame)):
                raise FrameRefused("stale")
            return
        if frame.flags & BUNDLE:
            messages = read_bundle(frame)
            neighbour.allowance.charge(0, len(messages) - 1)
            for message in messages:
                self._hand_up(frame.sender, message)
            return
        fragment = read_fragment(frame)
        if frame.kind == BROADCAST_DATA:
            whole = self._assemble(now, frame, fragment)
            if whole is not None:
                self._hand_up(frame.sender, whole)
            return
        if fragment.message < neighbour.last_unicast:
            raise FrameRefused("stale")
        if fragment.message == neighbour.last_unicast:
            self._counters["duplicate"] += 1
            complete = True
        else:
            whole = self._assemble(now, frame, fragment)
            complete = whole is not None
            if whole is not None:
                neighbour.last_unicast = fragment.message
                self._hand_up(frame.sender, whole)
        if complete or frame.flags & ACK_REQUEST:
            have = (
                (1 << fragment.total) - 1
                if complete
                else self.reassembly.have(frame.sender, (frame.session, fragment.message))
            )
            self._answer(frame.sender, neighbour.address, Ack(fragment.message, fragment.attempt, have))

    def _assemble(self, now: float, frame: OpenedFrame, fragment: Fragment) -> bytes | None:
        if fragment.total == 1:
            return fragment.octets
        message = frame.session, fragment.message  # the next life of the sender may use the number again
        return self.reassembly.add(now, frame.sender, message, fragment.place, fragment.total, fragment.octets)

    def _hand_up(self, sender: int, payload: bytes) -> None:
        self._counters["handed-up"] += 1
        self._deliver(sender, payload)
