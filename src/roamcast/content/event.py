"""An event: a type name, typed attributes, an opaque payload and an id.

The rules this file owns, for every value that an event or a constraint may hold:

* A value is a str, a bool, an int of 64 bits (signed) or a float. NaN is refused, since nothing compares with it;
  infinities are ordinary numbers, above and below all others.
* A str is any sequence of Unicode scalar values, empty and control characters included. Lone surrogates are refused:
  they have no UTF-8 form, so they could neither be sent nor stored. Nothing is normalised.
* An attribute has a non-empty name and one or more values, of any mixture of types.
* Every constraint on an attribute may have to look at all of its values, so an event has at most `MAX_VALUES` values,
  and at most `MAX_TEXT` characters in its type, names and values. What is longer belongs into the payload.

An event may carry its author's signature beside its payload (`signed.py`). It changes neither the id nor what matches.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from roamcast.content.signed import Signed
from roamcast.errors import ContentError

type_ = type  # `type` is a field's name below

Scalar = str | int | float | bool

EventId = int
"""A 64-bit integer, unique in a network: `event_id(node, serial)`. 0 means "not named yet"."""

TYPE: Final = ""
"""The attribute name that stands for an event's type, so that the type is matched like any attribute.

No attribute can have it: names are not empty. In text it is written `type`.
"""

MAX_VALUES: Final = 512
"""Values of all attributes of an event together."""
MAX_TEXT: Final = 16 * 1024
"""Characters of its type, its attributes' names and their values together."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1

MAX_NODE: Final = 2**31 - 1
"""The largest node number: with 32 bits for a serial, an event's id is a positive int64."""


def event_id(node: int, serial: int) -> EventId:
    """The id of the `serial`-th event (from 1) that `node` publishes."""
    if not (0 <= node <= MAX_NODE and 0 < serial < 2**32):
        raise ContentError(f"an event id needs a node in 0..2^31-1 and a serial in 1..2^32-1, not {node} and {serial}")
    return node << 32 | serial


def event_name(event: EventId) -> str:
    """How people name an event: its publisher and the serial number there, such as `3:7`."""
    return f"{event >> 32}:{event & 0xFFFFFFFF}"


def check_text(text: str, what: str, name: str | None = None) -> None:
    if not isinstance(text, str):
        raise ContentError(f"{_named(what, name)} must be a str, not {text!r}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise ContentError(f"{_named(what, name)} has a lone surrogate at {problem.start}: {text!r}") from None


def check_name(name: str, what: str = "an attribute's name") -> None:
    check_text(name, what)
    if not name:
        raise ContentError(f"{what} is empty")


def _named(what: str, name: str | None) -> str:
    return what if name is None else f"{what} {name!r}"


def plain(value: Scalar) -> Scalar:
    """The plain value of an instance of a subclass (an enum's member, numpy's float64)."""
    for base in (bool, int, float, str):
        if isinstance(value, base):
            return base(value)
    return value  # `check_scalar` refuses it by name


def check_scalar(value: Scalar, what: str, name: str | None = None) -> None:
    """Raises `ContentError`, naming `what` and its `name`, unless an event or a constraint may hold `value`.

    They become one text only for an error: a name may be long, and have many values.
    """
    kind = type_(value)
    if kind is str:
        check_text(cast(str, value), what, name)
    elif kind is int:
        if not INT_MIN <= cast(int, value) <= INT_MAX:
            raise ContentError(f"{_named(what, name)} is an integer beyond 64 bits: {value}")
    elif kind is float:
        if math.isnan(cast(float, value)):
            raise ContentError(f"{_named(what, name)} is NaN, which no comparison can match")
    elif kind is not bool:
        raise ContentError(f"{_named(what, name)} must be a str, int, float or bool, not {value!r}")


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One event. `Event.of` takes attributes in the friendly form; this is the canonical one."""

    type: str
    attributes: dict[str, tuple[Scalar, ...]] = {}
    body: bytes | Signed = b""
    """The payload, alone or signed: an event without a signature takes no byte more for it."""
    id: EventId = 0

    def __post_init__(self) -> None:
        check_text(self.type, "an event's type")
        held, text = 0, len(self.type)
        for name, values in self.attributes.items():
            check_text(name, "an attribute's name")
            if name == TYPE:
                raise ContentError("an attribute's name is empty")
            if not isinstance(values, tuple) or not values:
                raise ContentError(f"attribute {name!r} needs a tuple of one or more values, not {values!r}")
            held, text = held + len(values), text + len(name)
            if held > MAX_VALUES:
                raise ContentError(f"an event may have {MAX_VALUES} values in all its attributes, not more")
            for value in values:
                check_scalar(value, "attribute", name)
                if type_(value) is str:
                    text += len(value)
        if text > MAX_TEXT:
            raise ContentError(
                f"an event's type and attributes may have {MAX_TEXT} characters, not {text}: "
                "what is longer belongs into its payload"
            )
        if not isinstance(self.body, bytes | Signed):
            raise ContentError(f"an event's payload must be bytes, not {type_(self.body).__name__}")
        if not INT_MIN <= self.id <= INT_MAX:
            raise ContentError(f"an event's id is an integer beyond 64 bits: {self.id}")

    @classmethod
    def of(
        cls,
        type: str,
        attributes: Mapping[str, Scalar | Sequence[Scalar]] | None = None,
        payload: bytes = b"",
        id: EventId = 0,
    ) -> "Event":
        """An event from attributes that are single values or sequences of values."""
        if attributes is not None and not isinstance(attributes, Mapping):
            raise ContentError(f"attributes are given by name, such as {{'price': 12.5}}, not as {attributes!r}")
        named = {
            name: (plain(value),) if isinstance(value, str | int | float) else tuple(map(plain, value))
            for name, value in (attributes or {}).items()
        }
        return cls(type, named, payload, id)

    def values(self, attribute: str) -> tuple[Scalar, ...]:
        """The values of an attribute, none if the event lacks it. `TYPE` gives the type."""
        if attribute == TYPE:
            return (self.type,)
        return self.attributes.get(attribute, ())

    @property
    def payload(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else self.body.payload

    @property
    def signed(self) -> Signed | None:
        """Its author's signature, if it has one."""
        return None if isinstance(self.body, bytes) else self.body

    @property
    def author(self) -> int:
        """The number of the node that published it, as its id says."""
        return self.id >> 32

    @property
    def held(self) -> int:
        """How many values all its attributes have together, and its type."""
        return 1 + sum(map(len, self.attributes.values()))

    @property
    def size(self) -> int:
        """Bytes of the event's encoding: what it adds to a message that carries it."""
        return len(msgspec.msgpack.encode(self))
