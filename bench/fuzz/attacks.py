"""Messages of a member that once kept a node busy for seconds, each against the broker that it was made for.

`python -m bench.fuzz.attacks` prints the CPU time of the slowest single call of each.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import process_time
from typing import Any, Final

import msgspec

from roamcast.content.event import Event, event_id
from roamcast.content.filter import Constraint, Filter, Operator
from roamcast.content.region import MAX_CORNERS
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.codec import FrameError
from roamcast.protocols.messages import MAX_PIECES
from roamcast.protocols.opportunistic.messages import Announce, Header, Piece
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.broker import TreeBroker
from roamcast.protocols.tree.forwarding_messages import Routes
from roamcast.protocols.tree.position import MAX_CHILDREN
from roamcast.units import SECOND

NODE: Final = 5
LONGEST: Final = 255 * 9000
"""Octets: all that the link can reassemble."""

Input = tuple[str, Callable[[], object]]
"""One call of a broker, with its name."""


class Node:
    """A broker alone, and the way from octets to it."""

    def __init__(self, protocol: str, settings: Mapping[str, Any] | None = None, wanted: str | None = "a > 5") -> None:
        entry = CATALOGUE[protocol]
        self.port = RecordingPort(position=(10.0, 10.0))
        params = msgspec.convert(dict(settings or {}), entry.parameters)
        self.broker = entry.broker(NODE, params, self.port, random.Random(1))
        self.codec = entry.codec()
        self.broker.start(0, {})
        if wanted is not None:
            self.broker.subscribe(0, Subscription(1, parse_filter(wanted)))

    def hear(self, sender: int, payload: bytes) -> None:
        """As a host does: a frame that is not a message changes nothing."""
        try:
            message = self.codec.decode(payload)
        except FrameError:
            return
        self.broker.receive(self.port.now, sender, message)
        self.send()

    def hears(self, sender: int, payload: bytes) -> Input:
        return "hear", lambda: self.hear(sender, payload)

    def send(self) -> None:
        for message in self.port.messages:
            self.codec.encode(message)
        self.port.clear()


def framed(message: object) -> bytes:
    return b"\x01" + msgspec.msgpack.encode(message)


def polygons() -> Iterator[Input]:
    """`context`: an `or` of as many polygons as fit, each a comb with as many corners as it may have."""
    corners = [[n, 2 + n % 2] for n in range(MAX_CORNERS - 2)] + [[MAX_CORNERS, 0], [0, 0]]
    polygon = ["within", ["polygon", corners]]
    parts = LONGEST // (len(msgspec.msgpack.encode(polygon)) + 1) - 4
    event = ["t", {}, b"", event_id(1, 1)]
    item = [1, event, SECOND, [["or", [polygon] * parts]], None, 1, None]
    node = Node("context")
    yield node.hears(1, framed(["event", [[None, None, {}], None], None, 0, item]))


def _contains(number: int, count: int) -> list[object]:
    return [[["a", "*=", f"{number:03d}{n:03d}"]] for n in range(count)]


def routes() -> Iterator[Input]:
    """`coman`: 256 filters of 256 `contains` each, from a neighbour in the tree."""
    node = Node("coman")
    assert isinstance(node.broker, TreeBroker)
    node.broker.routing.link_up(0, 1)
    node.broker.routing.link_up(0, 2)
    filters = [[_contains(number, 256)] for number in range(256)]
    yield node.hears(1, framed(["routes", 1, 1, 0, True, False, False, filters, []]))


def many_routes(links: int = 12) -> Iterator[Input]:
    """`coman`: as many filters as the table takes, in messages of an honest length; then a new neighbour, an event."""
    node = Node("coman")
    assert isinstance(node.broker, TreeBroker)
    routing = node.broker.routing
    for neighbour in range(1, links + 1):
        routing.link_up(0, neighbour)
    rng = random.Random(1)
    for neighbour in range(1, 4):
        for serial in range(1, 11):
            texts = ["".join(rng.choices("ab", k=12)) for _ in range(200)]
            filters = tuple(Filter(((Constraint("a", Operator.CONTAINS, text),),)) for text in texts)
            message = Routes(1, serial, 0, serial == 1, True, False, filters, ())
            yield node.hears(neighbour, framed(message))
    yield "link up", lambda: routing.link_up(0, 99)
    event = Event.of("t", {"a": ["ba" * 15 for _ in range(500)]}, id=event_id(1, 1))
    yield node.hears(1, framed(["routed", event, 0, []]))
    yield "link down", lambda: routing.link_down(0, 1)
    timers = [key for _, key in node.port.timers if isinstance(key, tuple) and key[0] == "forget"]
    for key in timers:
        yield "forget", partial(routing.timer, 0, key)


def many_links() -> Iterator[Input]:
    """The same with as many children as a node may have, and then again with those that come when routes are there."""
    yield from many_routes(MAX_CHILDREN)
    node = Node("coman")
    assert isinstance(node.broker, TreeBroker)
    routing = node.broker.routing
    for neighbour in range(1, 5):
        routing.link_up(0, neighbour)
        for serial in range(1, 11):
            filters = tuple(
                Filter(((Constraint("a", Operator.PREFIX, f"{neighbour} {serial} {n}"),),)) for n in range(200)
            )
            yield node.hears(neighbour, framed(Routes(1, serial, 0, serial == 1, True, False, filters, ())))
    everything = Filter(((Constraint("a", Operator.PREFIX, ""),),))
    yield node.hears(4, framed(Routes(1, 11, 0, False, True, False, (everything,), ())))  # covers all of them
    for neighbour in range(5, MAX_CHILDREN + 1):
        yield "link up", partial(routing.link_up, 0, neighbour)
    yield node.hears(4, framed(Routes(1, 12, 0, False, True, False, (), (everything,))))


def constraints() -> Iterator[Input]:
    """`coman`: filters of 1,024 constraints, four times as many as a frame may have."""
    node = Node("coman")
    filters = [[_contains(number, 1024)] for number in range(150)]
    yield node.hears(1, framed(["routes", 1, 1, 0, True, False, False, filters, []]))


def values() -> Iterator[Input]:
    """`flooding`: an attribute of as many values as fit."""
    node = Node("flooding")
    yield node.hears(1, framed(["data", ["t", {"a": [1] * (LONGEST - 64)}, b"", event_id(1, 1)], 0]))


def long_name() -> Iterator[Input]:
    """`flooding`: an attribute with a long name and many values."""
    node = Node("flooding")
    name = "n" * (LONGEST // 2)
    yield node.hears(1, framed(["data", ["t", {name: [1] * (LONGEST // 2 - 64)}, b"", event_id(1, 1)], 0]))


def announces() -> Iterator[Input]:
    """`opportunistic`: 256 invented neighbours with 64 profiles, and the announce that matches them with 1,000
    documents."""
    node = Node("opportunistic", wanted="true")
    for serial in range(1, 1001):
        event = Event.of("t", {f"a{n}": [serial, *range(6)] for n in range(64)}, id=event_id(NODE, serial))
        node.broker.publish(0, Publication(event))
    for neighbour in range(6, 262):
        filter = Filter(
            tuple((Constraint(f"a{n % 64}", Operator.EQ, -1 - n - 256 * (neighbour % 64)),) for n in range(256))
        )
        message = Announce(1, 0, 1, (), (), filter, (), (), (), (), ())
        yield node.hears(neighbour, framed(message))
    for _turn in range(3):
        yield "announce", lambda: node.broker.timer(node.port.now, "announce")
    node.send()


def head() -> Iterator[Input]:
    """`opportunistic`: a document whose head of 2 MB fails at its last attribute, and then piece after piece."""
    node = Node("opportunistic", {"partial_octets": 2**23}, wanted="true")
    described = msgspec.msgpack.encode(["t", {**{f"a{n}": [1] for n in range(200_000)}, "": [1]}])
    octets = len(described).to_bytes(4, "big") + described + bytes(100_000)
    size = 2000
    pieces = -(-len(octets) // size)
    for number in range(min(pieces - 1, 1200)):
        chunk, place = divmod(number, MAX_PIECES)
        sent = (1 << min(MAX_PIECES, pieces - chunk * MAX_PIECES)) - 1
        header = Header(1, 1, 1, (), event_id(1, 1), len(octets), size, chunk, sent, 0, None, 0)
        yield node.hears(1, framed(Piece(header, place, octets[number * size : (number + 1) * size])))


ATTACKS: Final = (polygons, routes, many_routes, many_links, constraints, values, long_name, announces, head)


def slowest(attack: Callable[[], Iterator[Input]], times: int = 1) -> tuple[float, str]:
    """CPU seconds of the slowest call of an attack, and its name; of several times, in the fastest."""
    return min(_slowest(attack) for _ in range(times))


def _slowest(attack: Callable[[], Iterator[Input]]) -> tuple[float, str]:
    most = 0.0, ""
    for name, call in attack():
        started = process_time()
        call()
        most = max(most, (process_time() - started, name))
    return most


if __name__ == "__main__":
    for attack in [attack for attack in ATTACKS if attack.__name__ in sys.argv[1:]] or ATTACKS:
        spent, call = slowest(attack)
        print(f"{attack.__name__:<14}{spent * 1000:>10.1f} ms  {call}", flush=True)
