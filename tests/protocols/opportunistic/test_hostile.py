"""What somebody with the key can say that is as bad as a frame allows: nothing raises, and nothing takes long."""

import itertools
import random
from time import process_time

from protocols.opportunistic.test_broker import A, B, lonely, news
from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, Constraint, Filter, Operator
from roamcast.content.subscription import Subscription
from roamcast.protocols.messages import MAX_PIECES, Message
from roamcast.protocols.opportunistic.broker import ENTRY
from roamcast.protocols.opportunistic.documents import Descriptor
from roamcast.protocols.opportunistic.messages import MAX_CHUNKS, MAX_LISTED, Announce, Header, Piece, Request
from roamcast.protocols.relays import MAX_CLAIMED
from roamcast.protocols.source_route import MAX_LENGTH

BUDGET = 1.5
"""Seconds of CPU that one message may take, on a machine that is busy with other things."""
HUGE = 2**63 - 1


def announces() -> list[Announce]:
    listed = tuple(Descriptor(Event.of("t", {"n": n}, id=n + 1), n % 7 * 1000) for n in range(MAX_LISTED))
    wide = Filter(tuple((Constraint("n", Operator.GE, n), Constraint("x", Operator.NE, n)) for n in range(500)))
    nodes = tuple(range(MAX_CLAIMED))
    return [
        Announce(HUGE, HUGE, HUGE, (), nodes, wide, nodes, nodes, listed, (HUGE,) * MAX_LISTED, (HUGE,) * MAX_LISTED),
        Announce(1, 0, 2, tuple(range(5, 5 + MAX_LENGTH)), (A,), EVERYTHING, (), (), listed, (), (0,)),
        Announce(2, 0, 2, (HUGE,), (A,), EVERYTHING, (), (), listed, (), ()),
        Announce(3, 0, 0, (7, 7), (A,), None, (A,), (A,), listed, (1,), ()),
    ]


def pieces() -> list[Piece]:
    def header(**changes: int) -> Header:
        fields = {"length": 5000, "size": 1250, "chunk": 0, "sent": 0b1111, "age": HUGE, "life": HUGE, "hops": HUGE}
        whole = {**fields, **changes}
        return Header(9, HUGE, HUGE, (A,), 77, *(whole[name] for name in fields))

    return [
        Piece(header(), 0, bytes(1250)),
        Piece(header(), 3, bytes(1250)),
        Piece(header(length=HUGE, size=1), 0, b"x"),
        Piece(header(chunk=HUGE), 0, bytes(1250)),
        Piece(header(sent=HUGE), 0, bytes(1250)),
        Piece(header(), HUGE, b""),
        Piece(header(length=MAX_CHUNKS * MAX_PIECES, size=1, chunk=MAX_CHUNKS - 1), 0, b"x"),
        Piece(header(length=0, sent=1), 0, b""),
    ]


def requests(ids: tuple[int, ...]) -> list[Request]:
    everything: dict[int, tuple[int, ...]] = dict.fromkeys(ids, (HUGE,) * MAX_CHUNKS)
    return [
        Request((), ids, 1250, everything),
        Request((), ids, HUGE, everything),
        Request((), tuple(range(MAX_LISTED)), 1250, {}),
        Request((HUGE,), ids, 1250, {}),
        Request((5, 5), ids, 1250, {}),
        Request((A,), ids, 1250, {}),
    ]


def test_no_message_raises_or_takes_long() -> None:
    broker, port = lonely(scope=3)
    broker.subscribe(0, Subscription(1, EVERYTHING))
    ids = tuple(event_id(A, number) for number in range(1, 1001))
    for number in range(1, 1001):
        broker.publish(port.now, news(number, size=10))
    said: list[Message] = [*announces(), *pieces(), *requests(ids)]
    rng = random.Random(1)
    for sender, message in itertools.product((B, 2**31 - 1), said * 2):
        started = process_time()
        broker.receive(port.now, sender, message)
        broker.timer(port.now, "announce")
        for bulk in port.bulks[-1:]:
            broker.left(port.now, bulk[1])
        assert process_time() - started < BUDGET, type(message).__name__
        port.now += rng.randrange(10**9)
    codec = ENTRY.codec()
    for message in port.messages:
        assert codec.decode(codec.encode(message)) == message
