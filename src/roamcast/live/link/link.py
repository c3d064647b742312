"""The link between a node and its neighbours: sends messages and receives theirs.

It does the I/O for modules that have none: `receiver` (incoming), `outbox` (queue) and `unicast` (retries). The rules
this file owns:

- `broadcast` and `unicast` only queue. `on_done` is called once for each message, later, never from within them;
  `close` calls it for all that are left. A message sent on a closed link fails on the next turn of the loop.
- A `promised` message is not dropped because the queue is full, and a promised broadcast waits for an interface that
  has disappeared.
- **Broadcasts that wait for each other go in one datagram**, up to `MAX_BUNDLE` whole ones as far as they fit: none of
  them waits for another to come. Not over an ether, where frames are as in the simulator.
- At most `BATCH` datagrams are read or broadcast before the loop gets its turn, so that a flood does not stop the
  clock. Nothing here helps against a flood that overruns the kernel's buffer.
- Exceptions of the host's callbacks or its store are counted and passed to the loop's exception handler; the link
  continues.
"""

import asyncio
import errno
import random
import socket
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from roamcast.content.event import MAX_NODE
from roamcast.live.link.frame import BROADCAST, MAX_DATAGRAM, Sealer
from roamcast.live.link.limits import LinkProblem, Rate
from roamcast.live.link.neighbours import Address
from roamcast.live.link.outbox import Letter, Outbox
from roamcast.live.link.payload import (
    BUNDLED,
    MAX_BUNDLE,
    Ack,
    Fragment,
    Skip,
    seal_ack,
    seal_bundle,
    seal_fragment,
    seal_skip,
)
from roamcast.live.link.reassembly import MAX_FRAGMENTS, count_fragments, cut_fragment
from roamcast.live.link.receiver import Receiver
from roamcast.live.link.settings import LinkSettings
from roamcast.live.link.sockets import interface_index, own_socket, resolve, shared_socket
from roamcast.live.link.unicast import UnicastSender

__all__ = ["Link", "LinkProblem", "LinkSettings", "Rate"]

BATCH: Final = 64
_GONE: Final = {
    errno.ENODEV,
    errno.ENXIO,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EADDRNOTAVAIL,
    errno.EBADF,
}
"""Errors of a socket whose interface or address has disappeared."""


class Link:
    def __init__(
        self,
        sealer: Sealer,
        settings: LinkSettings,
        *,
        on_message: Callable[[int, bytes], None],
        on_done: Callable[[Hashable, bool, int, int], None],
        clock: Callable[[], float] | None = None,
        rng: random.Random | None = None,
        vouch: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        """`on_message(sender, payload)`; `on_done(token, delivered, datagrams, octets)`; `vouch(sender, payload)`: does
        a newcomer's message show a valid signature of its sender? It is asked only if there is no room for newcomers.

        Deadlines use `clock` (seconds; the loop's if None), and the loop's timers wake the link for them.
        """
        self.counters: Counter[str] = Counter()
        """Datagrams `sent` (including acknowledgements) and `received`, and what was dropped, by reason."""
        self._sealer = sealer
        self._settings = settings
        self._on_message = on_message
        self._on_done = on_done
        self._clock = clock
        self._receiver = Receiver(
            sealer,
            settings,
            self.counters,
            hand_up=self._hand_up,
            answer=self._answer,
            answered=self._answered,
            skip=self._tell_skip,
            failed=self._failed,
            vouch=vouch,
        )
        self._outbox = Outbox(settings.queue, settings.queue_octets)
        self._unicast_sender = UnicastSender(
            self._outbox,
            settings.retries,
            settings.retry_interval,
            settings.retry_longest,
            random.Random() if rng is None else rng,
            send=self._send_fragments,
            done=self._finish,
        )
        self._saying: list[Letter] = []  # the broadcasts of the next datagram
        self._next: Letter | None = None  # the one after them, which did not fit
        self._ended: deque[tuple[Letter, bool]] = deque()
        self._fresh: dict[int, None] = {}  # lanes that got a message since the last pump
        self._pumping: asyncio.Handle | None = None
        self._reporting: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._own: socket.socket | None = None
        self._shared: socket.socket | None = None
        self._target: Address = ("", 0)
        self._interface_index: int | None = None
        self._gone = False
        """Whether a socket reported that its interface or address has disappeared, and has sent nothing since."""

    @property
    def neighbours(self) -> dict[int, float]:
        """When each neighbour was last heard, by the clock."""
        return self._receiver.neighbours.times()

    @property
    def foreign(self) -> dict[int, tuple[int, float]]:
        """Nodes heard in the last `neighbour_lifetime` that run another protocol: its number, and when, by the
        clock."""
        since = self._now() - self._settings.neighbour_lifetime
        return {node: heard for node, heard in self._receiver.foreign.items() if heard[1] >= since}

    @property
    def waiting(self) -> int:
        """The number of messages that are not done."""
        return len(self._outbox)

    @property
    def own_address(self) -> Address:
        """The address that datagrams are sent from."""
        if self._own is None:
            raise LinkProblem("a link that is not open has no address")
        host, port = self._own.getsockname()
        return host, port

    async def open(self) -> None:
        if self._loop is not None:
            raise LinkProblem("the link is open already")
        settings = self._settings
        self._target = await resolve(*(settings.air or (settings.address, settings.port)))
        self._open_sockets()
        self._loop = asyncio.get_running_loop()
        self._listen()
        assert self._own is not None
        if settings.air is not None:
            self._own.sendto(b"", self._target)  # an ether learns the node's address from its first datagram

    def _open_sockets(self) -> None:
        settings = self._settings
        self._interface_index = interface_index(settings.interface)
        self._own = own_socket(settings)
        if settings.air is None:
            try:
                self._shared = shared_socket(settings)
            except BaseException:
                self._own.close()
                self._own = None
                raise

    def _listen(self) -> None:
        assert self._loop is not None
        for each in (self._own, self._shared):
            if each is not None:
                self._loop.add_reader(each, self._readable, each)

    def _close_sockets(self) -> None:
        assert self._loop is not None
        for each in (self._own, self._shared):
            if each is not None:
                self._loop.remove_reader(each)
                self._loop.remove_writer(each)
                each.close()
        self._own = self._shared = None

    def check(self) -> None:
        """Reopens the sockets if they may be useless: a socket stays bound to the interface or address that existed
        when it was opened, and neither sends nor receives once that has gone, even if it comes back under the same
        name. To be called periodically."""
        if self._loop is None:
            return
        index = interface_index(self._settings.interface)
        if self._settings.interface is not None and index is None:
            return  # nothing can be done while the interface is missing
        if index == self._interface_index and self._own is not None and not self._gone:
            return
        self._close_sockets()
        try:
            self._open_sockets()
        except LinkProblem:
            self.counters["reopen-failed"] += 1
            self._interface_index = None
            return
        self.counters["reopened"] += 1
        self._gone = False
        self._listen()
        self._pumping = self._pumping or self._loop.call_soon(self._pump)

    async def close(self) -> None:
        """Sends the broadcasts that the socket accepts at once; everything else has failed."""
        if self._loop is None:
            return
        if self._own is not None:
            self._pump_broadcasts(len(self._outbox) * MAX_FRAGMENTS)
        self._close_sockets()
        self._loop = None
        for handle in (self._pumping, self._reporting, self._alarm):
            if handle is not None:
                handle.cancel()
        self._pumping = self._reporting = self._alarm = None
        self._unicast_sender.stop()
        self._saying, self._next = [], None
        left = [*self._ended, *((letter, False) for letter in self._outbox.drain())]
        self._ended.clear()
        self._fresh.clear()
        for letter, delivered in left:
            self._report_one(letter, delivered)

    def broadcast(self, payload: bytes, *, token: Hashable, urgent: bool = False, promised: bool = False) -> None:
        self._put(Letter(BROADCAST, payload, token, urgent, promised))

    def unicast(
        self, to: int, payload: bytes, *, token: Hashable, urgent: bool = False, promised: bool = False
    ) -> None:
        if not 0 <= to <= MAX_NODE:
            raise ValueError(f"a node has a number from 0 to {MAX_NODE}, not {to}")
        self._put(Letter(to, payload, token, urgent, promised))

    # Sending

    def _put(self, letter: Letter) -> None:
        count = count_fragments(letter.payload, self._settings.room)
        too_long = len(letter.payload) > self._settings.longest_message
        if self._loop is None or too_long:
            self.counters["too-long" if too_long else "closed"] += 1
            self._finish(letter, False)
            return
        letter.fragments = count
        letter.missing = (1 << count) - 1
        for pushed_out in self._outbox.put(letter):
            self.counters["queue-full"] += 1
            self._finish(pushed_out, False)
        self._fresh[letter.to] = None
        if self._pumping is None:
            self._pumping = self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = None
        now = self._now()
        fresh, self._fresh = self._fresh, {}
        # Broadcasts wait only for the socket, so they are sent quickly and go first.
        self._pump_broadcasts(BATCH)
        for to in fresh:
            if to != BROADCAST:
                self._unicast_sender.start(now, to)
        self._arm()

    def _pump_broadcasts(self, most: int) -> None:
        """Sends up to `most` datagrams; the rest when the socket accepts more, or on the next turn of the loop."""
        assert self._loop is not None
        if self._own is None:  # the interface is missing
            return
        for _ in range(most):
            letters = self._saying = self._saying or self._gather()
            if not letters:
                return
            try:
                self._broadcast(letters)
            except BlockingIOError:
                self._loop.add_writer(self._own, self._writable)
                return
            except OSError as problem:
                self._not_sent(problem)
                if self._gone and any(letter.promised for letter in letters):
                    return  # until `check` has opened the sockets again
                self._said(letters, False)
                continue
            if not letters[0].missing:
                self._said(letters, True)
        if self._pumping is None:
            self._pumping = self._loop.call_soon(self._pump)

    def _gather(self) -> list[Letter]:
        """The next broadcast, and those that wait behind it and fit into its datagram."""
        first, self._next = self._next or self._outbox.take(BROADCAST), None
        if first is None:
            return []
        letters, room = [first], self._settings.room - BUNDLED - len(first.payload)
        while first.fragments == 1 and self._settings.air is None and len(letters) < MAX_BUNDLE:
            letter = self._outbox.take(BROADCAST)
            if letter is None:
                break
            room -= BUNDLED + len(letter.payload)
            if room < 0:
                self._next = letter
                break
            letters.append(letter)
        return letters

    def _broadcast(self, letters: list[Letter]) -> None:
        """Sends the next fragment of a broadcast, or several broadcasts in one datagram."""
        first = letters[0]
        lowest = first.missing & -first.missing
        if len(letters) == 1:
            datagram = self._seal_fragment(first, lowest.bit_length() - 1, ask=False)
        else:
            datagram = seal_bundle(self._sealer, [letter.payload for letter in letters])
        self._post(first, datagram, self._target)
        first.missing ^= lowest
        for letter in letters[1:]:  # each counts its own octets, and the first the datagram and the rest of it
            letter.octets = BUNDLED + len(letter.payload)
            first.octets -= letter.octets

    def _said(self, letters: list[Letter], left: bool) -> None:
        self._saying = []
        for letter in letters:
            self._outbox.release(letter)
            self._finish(letter, left)

    def _writable(self) -> None:
        assert self._loop is not None
        assert self._own is not None
        self._loop.remove_writer(self._own)
        self._pump_broadcasts(BATCH)

    def _send_fragments(self, letter: Letter, indices: Sequence[int]) -> None:
        """Sends a burst of a unicast. What cannot be sent counts as lost: the unicast sender tries again."""
        try:
            for index in indices:
                self._post(letter, self._seal_fragment(letter, index, ask=index == indices[-1]), self._where(letter))
        except OSError as problem:
            self._not_sent(problem)

    def _where(self, letter: Letter) -> Address:
        """The neighbour's last known address. It changes with a restart, so every other late retry is broadcast."""
        neighbour = self._receiver.neighbours.get(letter.to)
        by_all = neighbour is None or self._settings.air is not None or (letter.tries > 2 and letter.tries % 2)
        return self._target if neighbour is None or by_all else neighbour.address

    def _seal_fragment(self, letter: Letter, index: int, *, ask: bool) -> bytes:
        if letter.message < 0 and (letter.fragments > 1 or letter.to != BROADCAST):
            letter.message = self._sealer.take()
        octets = cut_fragment(letter.payload, self._settings.room, index)
        fragment = Fragment(octets, max(0, letter.message), letter.attempt, index, letter.fragments)
        return seal_fragment(self._sealer, letter.to, fragment, ask=ask)

    def _post(self, letter: Letter, datagram: bytes, address: Address) -> None:
        if self._own is None:
            raise OSError(errno.ENETDOWN, "the interface is away")
        self._own.sendto(datagram, address)
        self._gone = False
        self.counters["sent"] += 1
        letter.datagrams += 1
        letter.octets += len(datagram)

    def _not_sent(self, problem: OSError) -> None:
        self._gone = problem.errno in _GONE
        self.counters["send-blocked" if isinstance(problem, BlockingIOError) else "send-failed"] += 1

    def _finish(self, letter: Letter, delivered: bool) -> None:
        self._ended.append((letter, delivered))
        if self._reporting is None:
            self._reporting = (self._loop or asyncio.get_running_loop()).call_soon(self._report)

    def _report(self) -> None:
        self._reporting = None
        ended, self._ended = self._ended, deque()
        for letter, delivered in ended:
            self._report_one(letter, delivered)

    def _report_one(self, letter: Letter, delivered: bool) -> None:
        try:
            self._on_done(letter.token, delivered, letter.datagrams, letter.octets)
        except Exception as problem:
            self._host_failed("on_done", problem)

    # Receiving

    def _readable(self, sock: socket.socket) -> None:
        batch = []
        for _ in range(BATCH):
            try:
                batch.append(sock.recvfrom(MAX_DATAGRAM + 1))
            except BlockingIOError:
                break
            except OSError as problem:
                self.counters["receive-failed"] += 1
                self._gone = self._gone or problem.errno in _GONE
                break
        self.datagrams(batch)

    def datagrams(self, batch: Iterable[tuple[bytes, Address]]) -> None:
        """Handles received datagrams with their source addresses."""
        for sender in self._receiver.take(self._now(), batch):
            self._unicast_sender.heard(sender)
        self._arm()

    def _hand_up(self, sender: int, payload: bytes) -> None:
        try:
            self._on_message(sender, payload)
        except Exception as problem:
            self._host_failed("on_message", problem)

    def _answer(self, to: int, address: Address, answer: Ack) -> None:
        self._send_own(seal_ack(self._sealer, to, answer), self._target if self._settings.air else address)

    def _tell_skip(self, to: int, skip: Skip) -> None:
        """Broadcast: the datagram from the neighbour's address may have been replayed by somebody else."""
        self.counters["skips"] += 1
        self._send_own(seal_skip(self._sealer, to, skip), self._target)

    def _send_own(self, datagram: bytes, address: Address) -> None:
        """Sends a frame of the link itself."""
        if self._own is None:
            return
        try:
            self._own.sendto(datagram, address)
        except OSError as problem:
            self._not_sent(problem)
            return
        self.counters["sent"] += 1
        self.counters["acknowledged"] += 1
        self.counters["acknowledged-octets"] += len(datagram)

    def _answered(self, now: float, sender: int, answer: Ack) -> bool:
        return self._unicast_sender.answered(now, sender, answer.message, answer.attempt, answer.have)

    # Time

    def _now(self) -> float:
        if self._clock is not None:
            return self._clock()
        return (self._loop or asyncio.get_running_loop()).time()

    def _arm(self) -> None:
        """Sets a timer for the next deadline. A timer that fires too early only sets the next one."""
        if self._loop is None:
            return
        times = [
            at for at in (self._unicast_sender.next_wake(), self._receiver.reassembly.next_expiry()) if at is not None
        ]
        if not times or (self._alarm is not None and self._alarm_at <= min(times)):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = min(times)
        self._alarm = self._loop.call_later(max(0.0, self._alarm_at - self._now()), self.wake)

    def wake(self) -> None:
        """Does what is due by the clock."""
        self._alarm = None
        now = self._now()
        self._receiver.reassembly.expire(now)
        self._unicast_sender.wake(now)
        self._arm()

    def _host_failed(self, call: str, problem: Exception) -> None:
        self.counters["host-failed"] += 1
        self._failed(f"{call} of a link raised", problem)

    def _failed(self, what: str, problem: BaseException) -> None:
        """Reports a bug in the host, or a full disk."""
        loop = self._loop or asyncio.get_running_loop()
        loop.call_exception_handler({"message": what, "exception": problem})
