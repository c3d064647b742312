"""Valid messages of a protocol with extreme contents, made from the types of its messages alone.

Mutated octets are mostly refused by the codec; these get through it. Numbers are at their bounds, lists as long as they
may be, texts long, filters as intricate as a frame allows. Whatever a protocol's types permit, a node with the key can
send: no message may raise, and none may take longer than its budget of CPU time.
"""

import enum
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import process_time
from typing import Any, Final

import msgspec
from msgspec import inspect

from roamcast.content.event import Event, event_id
from roamcast.content.filter import STRING_ONLY, Constraint, Filter, Operator
from roamcast.content.subscription import Subscription
from roamcast.content.text import parse_filter
from roamcast.errors import RoamcastError
from roamcast.protocols.codec import FrameError
from roamcast.protocols.entry import Entry
from roamcast.protocols.testing import RecordingPort
from roamcast.protocols.tree.broker import TreeBroker
from roamcast.units import SECOND

NODE: Final = 5
LONGEST: Final = 40_000
"""Octets of a message: a longer one is made shorter."""
TIMES: Final = 20
"""Inputs for each message that is made: it comes from other senders, at other moments, after other messages."""
POOL: Final = 500
"""Messages that may come again."""
TELLING: Final = (0, 1, 2, 5, 7, 63, 64, 255, 256, 2**31 - 1, 2**32 - 1, 2**63 - 1, -1, -(2**63))


class Maker:
    def __init__(self, entry: Entry, rng: random.Random) -> None:
        self._messages = entry.messages
        self._codec = entry.codec()
        self._rng = rng
        self._long = False
        self._room = 0  # values that the message at hand may still have

    def payload(self) -> bytes:
        """A message that the codec takes, encoded."""
        while True:
            self._long, self._room = self._rng.random() < 0.05, 3000
            kind = self._rng.choice(self._messages)
            try:
                payload = bytes((1,)) + msgspec.msgpack.encode(self._struct(kind, 0))
                self._codec.decode(payload)
            except (RoamcastError, FrameError, OverflowError, ValueError):
                continue
            if len(payload) <= LONGEST:
                return payload

    def _struct(self, kind: type, depth: int) -> Any:  # noqa: ANN401  # of any class of message
        if kind is Filter:
            return self._filter()
        if kind is Event:
            return self._event()
        return kind(**{field.name: self._value(field.type, depth + 1) for field in _fields(kind)})

    def _value(self, kind: inspect.Type, depth: int) -> Any:  # noqa: ANN401  # of any type that a message may have
        rng = self._rng
        self._room -= 1
        match kind:
            case inspect.IntType():
                low = kind.ge if kind.ge is not None else -(2**63)
                high = kind.le if kind.le is not None else 2**63 - 1
                near = (low, high, NODE, *TELLING, rng.randint(low, high), rng.randint(max(low, 0), max(low, 0) + 40))
                return rng.choice([number for number in near if low <= number <= high])
            case inspect.FloatType():
                return rng.choice((0.0, -0.0, 1.5, 1e308, -1e308, 5e-324, float("inf"), rng.random() * 1000))
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.StrType():
                return self._text(kind.max_length)
            case inspect.BytesType():
                return rng.randbytes(self._length(kind.max_length, 3000))
            case inspect.NoneType():
                return None
            case inspect.LiteralType():
                return rng.choice(kind.values)
            case inspect.EnumType():
                return rng.choice(list[enum.Enum](kind.cls))
            case inspect.UnionType():
                return self._value(rng.choice(kind.types), depth)
            case inspect.StructType():
                return self._struct(kind.cls, depth)
            case inspect.VarTupleType() | inspect.ListType() | inspect.SetType() | inspect.FrozenSetType():
                items = [self._value(kind.item_type, depth + 1) for _ in range(self._items(kind, depth))]
                made = {inspect.ListType: list, inspect.SetType: set, inspect.FrozenSetType: frozenset}
                return made.get(type(kind), tuple)(items)
            case inspect.TupleType():
                return tuple(self._value(item, depth + 1) for item in kind.item_types)
            case inspect.DictType():
                return {
                    self._value(kind.key_type, depth + 1): self._value(kind.value_type, depth + 1)
                    for _ in range(self._items(kind, depth))
                }
            case inspect.AnyType():
                return rng.choice((None, 1, "text"))
            case inspect.Metadata():
                return self._value(kind.type, depth)
        raise AssertionError(f"no value of {kind} can be made: teach {__name__}")

    def _items(self, kind: Any, depth: int) -> int:  # noqa: ANN401  # of the collections above
        wanted = self._length(kind.max_length, 300) if depth < 3 else self._rng.randint(0, 3)
        return max(kind.min_length or 0, min(wanted, self._room))

    def _length(self, longest: int | None, otherwise: int) -> int:
        most = otherwise if longest is None else longest
        return most if self._long and self._rng.random() < 0.25 else self._rng.randint(0, min(4, most))

    def _text(self, longest: int | None = None) -> str:
        letter = self._rng.choice(("a", "ab", "\0", "\U0010ffff", "x1"))
        return (letter * self._length(longest, 500))[: longest if longest is not None else 1000]

    def _scalar(self) -> Any:  # noqa: ANN401  # a scalar of an event
        return self._rng.choice(
            (self._rng.choice(TELLING), self._rng.random(), float("inf"), True, self._text(), self._rng.randint(0, 99))
        )

    def _event(self) -> Event:
        rng = self._rng
        count = min(200, max(0, self._room)) if self._long else rng.randint(0, 3)
        self._room -= count
        attributes = {f"a{n}": [self._scalar() for _ in range(rng.choice((1, 1, 3)))] for n in range(count)}
        return Event.of(
            self._text() or "t", attributes, rng.randbytes(count), event_id(rng.randrange(9), rng.randint(1, 9))
        )

    def _filter(self) -> Filter:
        rng = self._rng
        total = min(rng.choice((64, 256, 1024)), max(0, self._room)) if self._long else rng.randint(0, 4)
        self._room -= total
        each = rng.choice((1, 2, 8, total or 1))
        attributes = rng.choice((("a0",), ("a0", "a1"), tuple(f"a{n}" for n in range(64))))
        return Filter(
            tuple(
                tuple(self._constraint(attributes) for _ in range(min(each, total - start)))
                for start in range(0, total, each)
            )
        )

    def _constraint(self, attributes: tuple[str, ...]) -> Constraint:
        rng = self._rng
        operator = rng.choice(list(Operator))
        name = rng.choice(attributes)
        if operator is Operator.EXISTS:
            return Constraint(name, operator)
        if operator in STRING_ONLY or rng.random() < 0.4:
            return Constraint(name, operator, "".join(rng.choices("ab", k=self._length(None, 60))))
        return Constraint(name, operator, rng.randint(0, 10**6))


@cache
def _fields(kind: type) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found.fields


@dataclass
class Outcome:
    inputs: int = 0
    messages: int = 0
    """Different ones."""
    octets: int = 0
    slowest: float = 0.0
    """Seconds of CPU of the message that took longest."""
    slowest_payload: bytes = b""


def throw(entry: Entry, rng: random.Random, going_on: Callable[[int], bool]) -> Outcome:
    """Gives a broker messages from many senders, and timers in between; lets through whatever it raises."""
    port = RecordingPort(position=(10.0, 10.0))
    broker = entry.broker(NODE, entry.parameters(), port, random.Random(1))
    broker.start(0, {})
    for number, text in enumerate(('a0 > 5 and type = "t"', 'a0 *= "a"', "true")):
        broker.subscribe(0, Subscription(number + 1, parse_filter(text)))
    maker, codec, outcome, ringing = Maker(entry, rng), entry.codec(), Outcome(), list[Any]()
    pool: list[bytes] = []
    while going_on(outcome.inputs):
        if outcome.inputs % TIMES == 0 or len(pool) < POOL // TIMES:
            payload = maker.payload()
            outcome.messages += 1
            if len(pool) < POOL:
                pool.append(payload)
            else:
                pool[rng.randrange(POOL)] = payload
        else:
            payload = pool[rng.randrange(len(pool))]
        port.now += rng.choice((0, SECOND // 1000, SECOND // 10))
        sender = rng.choice((1, 2, 3, rng.randrange(6, 2000)))
        if isinstance(broker, TreeBroker):
            broker.routing.link_up(port.now, 1)  # routes of strangers are not read, and a link takes a conversation
        started = process_time()
        broker.receive(port.now, sender, codec.decode(payload))
        for sent in port.messages:
            codec.encode(sent)
        spent = process_time() - started
        if spent > outcome.slowest:
            outcome.slowest, outcome.slowest_payload = spent, payload
        outcome.inputs += 1
        outcome.octets += len(payload)
        ringing += [timer for timer in port.timers if timer not in ringing][:50]
        port.clear()
        due = [timer for timer in ringing if timer[0] <= port.now]
        ringing = [timer for timer in ringing if timer[0] > port.now][-500:]
        for _, key in sorted(due, key=lambda timer: timer[0])[:50]:
            broker.timer(port.now, key)
    return outcome
