"""Valid messages of a protocol with extreme contents, made from the types of its messages.

Mutated octets are mostly refused by the codec; these get through it. Numbers are at their bounds, or such as the broker
itself has used; lists are as long as they may be, texts long, filters as intricate as a frame allows; some messages
have as many bytes and elements as their kind may have, and some more. Where a message
has bytes that mean something, as ODMRP's attachments and the pieces of a document, they are made of that something.
Whatever a protocol's types permit, a node with the key can send.
"""

import enum
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from roamcast.content.event import MAX_VALUES, Event, event_id
from roamcast.content.filter import STRING_ONLY, Constraint, Filter, Operator
from roamcast.content.summary.digest import EventDigest
from roamcast.content.summary.params import SummaryParams
from roamcast.content.summary.summary import Summary
from roamcast.errors import ContentError, RoamcastError
from roamcast.protocols.codec import FrameError
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_PIECES, Message
from roamcast.protocols.odmrp.content import About, MemberWish
from roamcast.protocols.odmrp.messages import JoinEvent, JoinRequest, Member
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import Header, Piece
from roamcast.protocols.pieces import Cut

NODE: Final = 5
HUGE: Final = 0.01
"""Share of messages that are as long as their kind may be."""
MOST_LEARNED: Final = 12
"""Messages of the broker whose numbers are used."""
ATTACHED: Final[dict[tuple[type, str], type]] = {
    (JoinRequest, "about"): About,
    (JoinEvent, "about"): About,
    (Member, "wanted"): MemberWish,
}
"""What is encoded in a field of bytes."""
TELLING: Final = (0, 1, 2, 5, 7, 63, 64, 255, 256, 2**31 - 1, 2**32 - 1, 2**63 - 1, -1, -(2**63))


class Maker:
    def __init__(self, entry: Entry, rng: random.Random) -> None:
        self._messages = entry.messages
        self._codec = entry.codec()
        self._rng = rng
        self._long = False
        self._room = 0  # values that the message at hand may still have
        self._learned: list[dict[str, int]] = [{}]
        self._echo: dict[str, int] = {}  # of these, what the message at hand is about
        self._numbers = [NODE]
        self._document = Document(Event("t", {}))
        self._makers: dict[type, Callable[[], Any]] = {
            Filter: self._filter,
            Event: self.event,
            EventDigest: lambda: EventDigest.of(self.event()),
            Summary: self._summary,
            Piece: self._piece,
        }

    def learn(self, message: Message) -> None:
        """Takes note of the numbers in a message that the broker has sent: an attacker hears them too."""
        values = [(name, getattr(message, name)) for name in message.__struct_fields__]
        learned = {name: value for name, value in values if type(value) is int}
        if len(self._learned) < MOST_LEARNED:
            self._learned.append(learned)
        else:
            self._learned[self._rng.randrange(MOST_LEARNED)] = learned

    def payload(self) -> bytes:
        """A message that the codec takes, encoded; or, one time in twenty, one that is too long for it."""
        while True:
            huge = self._rng.random() < HUGE
            self._long, self._room = huge or self._rng.random() < 0.05, 30_000 if huge else 3000
            self._echo = self._rng.choice(self._learned)
            self._numbers = [NODE, *self._echo.values()]
            kind = self._rng.choice(self._messages)
            try:
                payload = bytes((1,)) + msgspec.msgpack.encode(self._struct(kind, 0))
            except (RoamcastError, OverflowError, ValueError):
                continue
            try:
                self._codec.decode(payload)
            except FrameError:
                if self._rng.random() >= 0.05:
                    continue
            return payload

    def _struct(self, kind: type, depth: int) -> Any:  # noqa: ANN401  # of any class of message
        if kind in self._makers:
            return self._makers[kind]()
        return kind(**{field.name: self._field(kind, field, depth + 1) for field in _fields(kind)})

    def _field(self, kind: type, field: inspect.Field, depth: int) -> Any:  # noqa: ANN401  # as above
        if field.name in self._echo and self._rng.random() < 0.5:
            return self._echo[field.name]
        attached = ATTACHED.get((kind, field.name))
        if attached is None or self._rng.random() < 0.05:
            return self._value(field.type, depth)
        return msgspec.msgpack.encode(self._struct(attached, depth))

    def _value(self, kind: inspect.Type, depth: int) -> Any:  # noqa: ANN401  # of any type that a message may have
        rng = self._rng
        self._room -= 1
        match kind:
            case inspect.IntType():
                return self._int(kind)
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

    def _int(self, kind: inspect.IntType) -> int:
        rng = self._rng
        low, high, telling = _bounds(kind.ge, kind.le)
        choice = rng.random()
        if choice < 0.25:
            learned = rng.choice(self._numbers)
            return learned if low <= learned <= high else low
        if choice < 0.45:
            return min(high, max(low, 0) + int(rng.random() * 40))
        return rng.randint(low, high) if choice < 0.5 else rng.choice(telling)

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

    def event(self) -> Event:
        rng = self._rng
        values = min(rng.choice((200, MAX_VALUES)), max(0, self._room)) if self._long else rng.randint(0, 3)
        self._room -= values
        each = rng.choice((1, 1, 3, MAX_VALUES)) if self._long else rng.choice((1, 1, 3))
        attributes = {
            f"a{n}": [self._scalar() for _ in range(min(each, values - start))]
            for n, start in enumerate(range(0, values, each))
        }
        octets = rng.choice((0, 100, 200_000)) if self._room > 20_000 else values
        name, number = self._text() or "t", event_id(rng.randrange(9), rng.randint(1, 9))
        try:
            return Event.of(name, attributes, rng.randbytes(octets), number)
        except ContentError:  # more text than an event may have
            return Event.of(
                "t", {"a0": ["ab" * 15 for _ in range(min(values, 500)) or (0,)]}, rng.randbytes(octets), number
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

    def _summary(self) -> Summary:
        rng = self._rng
        few = SummaryParams(bits=rng.choice((8, 256, 8192)), association=rng.random() < 0.5, budget=65536)
        return Summary.of([self._filter() for _ in range(rng.randint(0, 4))], few)

    def _piece(self) -> Piece:
        """Of a document, the same for some pieces in a row; its other numbers are anything."""
        rng = self._rng
        if rng.random() < 0.3:
            self._document = Document(self.event())
        document = self._document
        any_piece = {field.name: self._value(field.type, 1) for field in _fields(Header)}
        size = rng.choice((document.length, -(-document.length // 2), 64, 1250))
        cut = Cut(document.length, size)
        place = rng.randrange(cut.pieces)
        chunk, number = divmod(place, MAX_PIECES)
        sent = (1 << min(MAX_PIECES, cut.pieces - chunk * MAX_PIECES)) - 1
        named = {"document": document.id, "length": document.length, "size": size, "chunk": chunk, "sent": sent}
        kept = named if rng.random() < 0.9 else {}
        return Piece(Header(**(any_piece | kept)), number, document.octets(*cut.span(place)))


@cache
def _bounds(least: int | None, greatest: int | None) -> tuple[int, int, tuple[int, ...]]:
    """The least, the greatest, and numbers in between that have tripped somebody."""
    low = least if least is not None else -(2**63)
    high = greatest if greatest is not None else 2**63 - 1
    return low, high, tuple(number for number in (low, high, NODE, *TELLING) if low <= number <= high)


@cache
def _fields(kind: type) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found.fields
