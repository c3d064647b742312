"""What comes in: from datagrams to messages that are handed up once, without a socket or a clock.

- A datagram passes `Sealer.look`, the rate of its sender, the seal and the replay window, in this order; whatever it
  fails at is counted under that name. Datagrams that are not authentic touch no table: there is nothing to fill.
- All datagrams of one wake-up are opened, then the replay marks are persisted, then they are handed up. If they cannot
  be persisted nothing is handed up or acknowledged: a node with a full disk is deaf rather than open to replay.
- A message is acknowledged after it was handed up. If the node is killed in between it may come again after the
  restart; brokers have their duplicate window for that. A repetition because of a lost acknowledgement is only
  acknowledged again.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from roamcast.live.link.frame import ACK, ASK, SAY, Frame, FrameRefused, Sealer
from roamcast.live.link.neighbours import Address, Neighbour, Neighbours
from roamcast.live.link.payload import Answer, Piece, read_answer, read_piece
from roamcast.live.link.reassembly import Reassembly
from roamcast.live.link.settings import LinkSettings


class Receiver:
    def __init__(
        self,
        sealer: Sealer,
        settings: LinkSettings,
        counters: Counter[str],
        *,
        hand_up: Callable[[int, bytes], None],
        answer: Callable[[int, Address, Answer], None],
        answered: Callable[[float, int, Answer], bool],
        failed: Callable[[str, Exception], None],
    ) -> None:
        """`hand_up` gets the messages; `answer` acknowledges one, or parts of it, to a node at an address; `answered`
        gets the acknowledgements of others, and says whether one was of use; `failed` hears of the store's troubles.
        None of them may raise."""
        self.heard = Neighbours(settings.neighbours, settings.neighbour_lifetime, settings.rate)
        self.reassembly = Reassembly(settings.partials, settings.partial_octets, settings.partial_lifetime, counters)
        self._sealer = sealer
        self._counters = counters
        self._deliver = hand_up
        self._answer = answer
        self._answered = answered
        self._failed = failed

    def take(self, now: float, batch: Iterable[tuple[bytes, Address]]) -> list[int]:
        """Datagrams with where they came from; gives the senders of those that were authentic."""
        opened = []
        for datagram, address in batch:
            self._counters["received"] += 1
            try:
                opened.append(self._open(now, datagram, address))
            except FrameRefused as refused:
                self._counters[refused.reason] += 1
        if not opened:
            return []
        try:
            self._sealer.replay.commit()
        except Exception as problem:
            self._counters["persist-failed"] += len(opened)
            self._failed("replay marks could not be persisted", problem)
            return []
        for frame, neighbour in opened:
            try:
                self._handle(now, frame, neighbour)
            except FrameRefused as refused:
                self._counters[refused.reason] += 1
        return [frame.sender for frame, _ in opened]

    def _open(self, now: float, datagram: bytes, address: Address) -> tuple[Frame, Neighbour]:
        header = self._sealer.look(datagram)
        if self.heard.too_fast(now, header.sender):
            raise FrameRefused("rate")
        frame = self._sealer.unseal(header, datagram)
        neighbour = self.heard.hear(now, frame.sender, address, len(datagram))
        if neighbour is None:
            raise FrameRefused("crowded")
        return frame, neighbour

    def _handle(self, now: float, frame: Frame, neighbour: Neighbour) -> None:
        if frame.kind == ACK:
            if not self._answered(now, frame.sender, read_answer(frame)):
                raise FrameRefused("stale")
            return
        piece = read_piece(frame)
        if frame.kind == SAY:
            whole = self._assemble(now, frame.sender, piece)
            if whole is not None:
                self._hand_up(frame.sender, whole)
            return
        if piece.message < neighbour.told:
            raise FrameRefused("stale")
        if piece.message == neighbour.told:
            self._counters["duplicate"] += 1
            complete = True
        else:
            whole = self._assemble(now, frame.sender, piece)
            complete = whole is not None
            if whole is not None:
                neighbour.told = piece.message
                self._hand_up(frame.sender, whole)
        if complete or frame.flags & ASK:
            have = (1 << piece.parts) - 1 if complete else self.reassembly.have(frame.sender, piece.message)
            self._answer(frame.sender, neighbour.address, Answer(piece.message, piece.attempt, have))

    def _assemble(self, now: float, sender: int, piece: Piece) -> bytes | None:
        if piece.parts == 1:
            return piece.octets
        return self.reassembly.add(now, sender, piece.message, piece.place, piece.parts, piece.octets)

    def _hand_up(self, sender: int, payload: bytes) -> None:
        self._counters["handed-up"] += 1
        self._deliver(sender, payload)
