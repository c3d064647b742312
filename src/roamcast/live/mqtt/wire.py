"""The bytes of MQTT control packets, read and written without I/O.

Numbers in brackets: see `packets.py`. The rules this file owns:

* `Parser` gets bytes as they arrive and gives whole packets; an incomplete one waits. None is longer than `longest`.
* What is not a packet raises `PacketError` with the reason code of [4.13], and never anything else. After an error the
  stream cannot be read any more.
* `write` gives the shortest form; `Parser` reads back an equal packet.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, get_args

from roamcast.live.mqtt.packets import (
    NO_PROPERTIES,
    V5,
    V311,
    Acknowledgement,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketError,
    Pingreq,
    Pingresp,
    Properties,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    WantedTopic,
    Will,
)

MAX_REMAINING: Final = 268_435_455
"""[1.5.5]: four bytes of seven bits."""
_NUMBERS: Final[dict[type, int]] = {kind: number for number, kind in enumerate(get_args(Packet), 1)}
"""Packet types [2.1.2]."""
_KINDS: Final = {number: kind for kind, number in _NUMBERS.items()}
_FLAGGED: Final = (Pubrel, Subscribe, Unsubscribe)
"""Those whose flags are 0010 [2.1.3]; those of the others, except PUBLISH, are 0000."""

# --- Properties -----------------------------------------------------------------------------------------------------

_FOR_MESSAGES: Final = (Publish, Will)
_FOR_ALL: Final = (*(kind for kind in _NUMBERS if kind not in (Pingreq, Pingresp)), Will)
_WITH_REASON: Final = (Connack, Puback, Pubrec, Pubrel, Pubcomp, Suback, Unsuback, Disconnect, Auth)
_PROPERTIES: Final[dict[int, tuple[str, str, tuple[type, ...]]]] = {
    1: ("payload_format", "flag", _FOR_MESSAGES),
    2: ("message_expiry", "four", _FOR_MESSAGES),
    3: ("content_type", "text", _FOR_MESSAGES),
    8: ("response_topic", "text", _FOR_MESSAGES),
    9: ("correlation_data", "binary", _FOR_MESSAGES),
    11: ("subscription_identifier", "numbers", (Publish, Subscribe)),
    17: ("session_expiry", "four", (Connect, Connack, Disconnect)),
    18: ("assigned_client_id", "text", (Connack,)),
    19: ("server_keep_alive", "two", (Connack,)),
    21: ("authentication_method", "text", (Connect, Connack, Auth)),
    22: ("authentication_data", "binary", (Connect, Connack, Auth)),
    23: ("request_problem_information", "flag", (Connect,)),
    24: ("will_delay", "four", (Will,)),
    25: ("request_response_information", "flag", (Connect,)),
    26: ("response_information", "text", (Connack,)),
    28: ("server_reference", "text", (Connack, Disconnect)),
    31: ("reason_string", "text", _WITH_REASON),
    33: ("receive_maximum", "two", (Connect, Connack)),
    34: ("topic_alias_maximum", "two", (Connect, Connack)),
    35: ("topic_alias", "two", (Publish,)),
    36: ("maximum_qos", "flag", (Connack,)),
    37: ("retain_available", "flag", (Connack,)),
    38: ("user", "pairs", _FOR_ALL),
    39: ("maximum_packet_size", "four", (Connect, Connack)),
    40: ("wildcard_available", "flag", (Connack,)),
    41: ("subscription_identifiers_available", "flag", (Connack,)),
    42: ("shared_available", "flag", (Connack,)),
}
"""Number, name, kind of value, and the packets that may have it [2.2.2.2]."""
_CODES: Final = {name: (number, kind) for number, (name, kind, _) in _PROPERTIES.items()}
_NOT_ZERO: Final = ("receive_maximum", "maximum_packet_size", "topic_alias", "subscription_identifier")
"""[3.1.2.11.3], [3.1.2.11.4], [MQTT-3.3.2-8], [3.8.2.1.2]."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise _malformed("a packet ends within a field")
        self._at += count
        return self._data[self._at - count : self._at]

    def rest(self) -> bytes:
        return self.take(self.left)

    def byte(self) -> int:
        return self.take(1)[0]

    def two(self) -> int:
        return int.from_bytes(self.take(2))

    def four(self) -> int:
        return int.from_bytes(self.take(4))

    def flag(self) -> int:
        value = self.byte()
        if value > 1:
            raise PacketError(Reason.PROTOCOL_ERROR, f"a property that is 0 or 1 is {value}")
        return value

    def number(self) -> int:
        """A Variable Byte Integer [1.5.5]."""
        value = 0
        for place in range(4):
            byte = self.byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if place and not byte:
                    raise _malformed("a number is not in its shortest form")  # [MQTT-1.5.5-1]
                return value
        raise _malformed("a number has more than four bytes")

    def binary(self) -> bytes:
        return self.take(self.two())

    def text(self) -> str:
        try:
            text = self.binary().decode()  # refuses surrogates [MQTT-1.5.4-1]
        except UnicodeDecodeError:
            raise _malformed("text is not UTF-8") from None
        if "\0" in text:
            raise _malformed("text has a null character")  # [MQTT-1.5.4-2]
        return text

    def packet(self) -> int:
        """A Packet Identifier, which is not 0 [2.2.1]."""
        packet = self.two()
        if not packet:
            raise PacketError(Reason.PROTOCOL_ERROR, "a Packet Identifier is 0")
        return packet

    def properties(self, packet: type) -> Properties:
        inside = _Reader(self.take(self.number()))
        found: dict[str, Any] = {}
        while inside.left:
            number = inside.number()
            name, kind, packets = _PROPERTIES.get(number, ("", "", ()))
            if packet not in packets:
                raise _malformed(f"a {packet.__name__} has no property {number}")
            value = inside._value(kind)
            if not value and name in _NOT_ZERO:
                raise PacketError(Reason.PROTOCOL_ERROR, f"{name} is 0")
            if kind == "pairs" or (kind == "numbers" and packet is Publish):
                found[name] = (*found.get(name, ()), value)
            elif name in found:
                raise PacketError(Reason.PROTOCOL_ERROR, f"{name} is given twice")  # [2.2.2.2]
            else:
                found[name] = (value,) if kind == "numbers" else value
        return found or NO_PROPERTIES

    def _value(self, kind: str) -> Any:  # noqa: ANN401  # by the kind
        if kind == "pairs":
            return self.text(), self.text()
        return getattr(self, "number" if kind == "numbers" else kind)()


def _number(value: int) -> bytes:
    if not 0 <= value <= MAX_REMAINING:
        raise PacketError(Reason.TOO_LARGE, f"{value} does not fit into four bytes of seven bits")
    written = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        written.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(written)


def _binary(value: bytes) -> bytes:
    if len(value) > 0xFFFF:
        raise PacketError(Reason.TOO_LARGE, f"a field of {len(value)} bytes: the longest has 65535")
    return len(value).to_bytes(2) + value


def _text(value: str) -> bytes:
    return _binary(value.encode())


_WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "flag": lambda value: bytes((value,)),
    "two": lambda value: value.to_bytes(2),
    "four": lambda value: value.to_bytes(4),
    "text": _text,
    "binary": _binary,
    "numbers": _number,
    "pairs": lambda pair: _text(pair[0]) + _text(pair[1]),
}


def _properties(properties: Properties) -> bytes:
    written = bytearray()
    for name, value in properties.items():
        code, kind = _CODES[name]
        for single in value if kind in ("numbers", "pairs") else (value,):
            written += _number(code) + _WRITERS[kind](single)
    return _number(len(written)) + bytes(written)


# --- Reading --------------------------------------------------------------------------------------------------------


class Parser:
    """Packets from a stream of bytes."""

    def __init__(self, longest: int, version: int | None = None) -> None:
        """`longest` is in bytes. A server learns the version from CONNECT."""
        self.longest = longest
        self.version = version
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> Packet | None:
        """The next packet, or None if it has not arrived completely."""
        body = self._frame()
        if body is None:
            return None
        first, content = body
        kind = _KINDS.get(first >> 4)
        if kind is None:
            raise _malformed("packet type 0 is reserved")
        if kind is not Publish and first & 0x0F != (2 if kind in _FLAGGED else 0):
            raise _malformed(f"{kind.__name__} has wrong flags")  # [MQTT-2.1.3-1]
        reader = _Reader(content)
        packet = self._read(kind, first & 0x0F, reader)
        if reader.left:
            raise _malformed(f"{kind.__name__} is longer than its fields")
        return packet

    def _frame(self) -> tuple[int, bytes] | None:
        """The first byte and the content of the next packet."""
        if self.version is None and self._held and self._held[0] >> 4 != _NUMBERS[Connect]:
            raise PacketError(Reason.PROTOCOL_ERROR, "the first packet is not CONNECT")  # [MQTT-3.1.0-1]
        length = 0
        for place in range(4):
            if len(self._held) < place + 2:
                return None
            byte = self._held[place + 1]
            length |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                break
        else:
            raise _malformed("a packet's length has more than four bytes")
        begin = place + 2
        if begin + length > self.longest:
            raise PacketError(
                Reason.TOO_LARGE, f"a packet of {begin + length} bytes: the longest here has {self.longest}"
            )
        if len(self._held) < begin + length:
            return None
        first, content = self._held[0], bytes(self._held[begin : begin + length])
        del self._held[: begin + length]
        return first, content

    def _read(self, kind: type, flags: int, reader: _Reader) -> Packet:
        if kind is Publish:
            return self._publish(flags, reader)
        if kind is Connect:
            packet = _connect(reader)
            self.version = packet.version
            return packet
        if kind in (Puback, Pubrec, Pubrel, Pubcomp):
            # Reason and properties may be missing [3.4.2.1].
            return kind(reader.packet(), *self._reason(kind, reader))
        if kind in (Disconnect, Auth):
            if self.version != V5 and (kind is Auth or reader.left):
                raise _malformed("3.1.1 has no AUTH, and no reason in DISCONNECT")
            return kind(*self._reason(kind, reader))
        if kind is Connack:
            present = reader.byte()
            if present > 1:
                raise _malformed("CONNACK has wrong flags")  # [MQTT-3.2.2-1]
            return Connack(bool(present), reader.byte(), self._optional(Connack, reader))
        if kind in (Pingreq, Pingresp):
            return kind()
        return self._about_filters(kind, reader)

    def _about_filters(self, kind: type, reader: _Reader) -> Packet:
        number, properties = reader.packet(), self._optional(kind, reader)
        if kind in (Subscribe, Unsubscribe) and not reader.left:
            raise PacketError(Reason.PROTOCOL_ERROR, "no Topic Filter is given")  # [MQTT-3.8.3-2], [MQTT-3.10.3-2]
        if kind is Subscribe:
            wanted = []
            while reader.left:
                wanted.append(self._wanted(reader))
            return Subscribe(number, tuple(wanted), properties)
        if kind is Unsubscribe:
            filters = []
            while reader.left:
                filters.append(reader.text())
            return Unsubscribe(number, tuple(filters), properties)
        if kind is Unsuback and self.version != V5:
            return Unsuback(number)
        return kind(number, tuple(reader.rest()), properties)  # type: ignore[no-any-return]

    def _wanted(self, reader: _Reader) -> WantedTopic:
        text, options = reader.text(), reader.byte()
        if options & (0xC0 if self.version == V5 else 0xFC) or options & 3 == 3 or options & 0x30 == 0x30:
            raise _malformed("SUBSCRIBE has wrong options")  # [MQTT-3.8.3-5]
        return WantedTopic(text, options & 3, bool(options & 4), bool(options & 8), options >> 4)

    def _publish(self, flags: int, reader: _Reader) -> Publish:
        qos, dup = flags >> 1 & 3, bool(flags & 8)
        if qos == 3 or (dup and not qos):
            raise _malformed("PUBLISH has wrong flags")  # [MQTT-3.3.1-4], [MQTT-3.3.1-2]
        topic = reader.text()
        packet = reader.packet() if qos else 0
        properties = self._optional(Publish, reader)
        return Publish(topic, reader.rest(), qos, packet, dup, bool(flags & 1), properties)

    def _optional(self, kind: type, reader: _Reader) -> Properties:
        return reader.properties(kind) if self.version == V5 else NO_PROPERTIES

    def _reason(self, kind: type, reader: _Reader) -> tuple[int, Properties]:
        if self.version != V5 or not reader.left:
            return 0, NO_PROPERTIES
        reason = reader.byte()
        return reason, reader.properties(kind) if reader.left else NO_PROPERTIES


def _connect(reader: _Reader) -> Connect:
    name, version = reader.text(), reader.byte()
    if name != "MQTT" or version not in (V311, V5):
        raise PacketError(Reason.UNSUPPORTED_VERSION, "only MQTT 3.1.1 and 5 are spoken here")  # [MQTT-3.1.2-1]
    flags, keep_alive = reader.byte(), reader.two()
    if flags & 1:
        raise _malformed("CONNECT has its reserved flag set")  # [MQTT-3.1.2-3]
    properties = reader.properties(Connect) if version == V5 else NO_PROPERTIES
    client_id = reader.text()
    will = None
    if flags & 4:
        if flags >> 3 & 3 == 3:
            raise _malformed("the will has QoS 3")  # [MQTT-3.1.2-14]
        about = reader.properties(Will) if version == V5 else NO_PROPERTIES
        will = Will(reader.text(), reader.binary(), flags >> 3 & 3, bool(flags & 0x20), about)
    elif flags & 0x38:
        raise _malformed("CONNECT has flags of a will, and no will")  # [MQTT-3.1.2-11]
    if version == V311 and flags & 0xC0 == 0x40:
        raise _malformed("a password without a user name")  # 3.1.1: [MQTT-3.1.2-22]
    user = reader.text() if flags & 0x80 else None
    password = reader.binary() if flags & 0x40 else None
    return Connect(client_id, version, bool(flags & 2), keep_alive, user, password, will, properties)


def _malformed(words: str) -> PacketError:
    return PacketError(Reason.MALFORMED, words)


# --- Writing --------------------------------------------------------------------------------------------------------


def write(packet: Packet, version: int) -> bytes:
    """The bytes of a packet. Raises `PacketError` if a field is too long."""
    kind = type(packet)
    flags = 2 if kind in _FLAGGED else 0
    if isinstance(packet, Publish):
        flags = packet.dup << 3 | packet.qos << 1 | packet.retain
    content = _content(packet, version)
    return bytes((_NUMBERS[kind] << 4 | flags,)) + _number(len(content)) + content


def _content(packet: Packet, version: int) -> bytes:
    match packet:
        case Publish():
            number = packet.packet.to_bytes(2) if packet.qos else b""
            return _text(packet.topic) + number + _maybe(packet, version) + packet.payload
        case Acknowledgement():
            return packet.packet.to_bytes(2) + _reasoned(packet, version)
        case Disconnect() | Auth():
            return _reasoned(packet, version)
        case Connack():
            return bytes((packet.session_present, packet.reason)) + _maybe(packet, version)
        case Connect():
            return _connecting(packet)
        case Subscribe():
            options = b"".join(_text(wanted.filter) + bytes((_options(wanted),)) for wanted in packet.filters)
            return packet.packet.to_bytes(2) + _maybe(packet, version) + options
        case Unsubscribe():
            return packet.packet.to_bytes(2) + _maybe(packet, version) + b"".join(map(_text, packet.filters))
        case Suback() | Unsuback():
            reasons = packet.reasons if version == V5 or isinstance(packet, Suback) else ()
            return packet.packet.to_bytes(2) + _maybe(packet, version) + bytes(reasons)
    return b""


def _maybe(packet: Any, version: int) -> bytes:  # noqa: ANN401  # a packet with properties
    return _properties(packet.properties) if version == V5 else b""


def _reasoned(packet: Any, version: int) -> bytes:  # noqa: ANN401  # a packet with a reason
    if version != V5 or not (packet.reason or packet.properties):
        return b""
    return bytes((packet.reason,)) + (_properties(packet.properties) if packet.properties else b"")


def _options(wanted: WantedTopic) -> int:
    return wanted.qos | wanted.no_local << 2 | wanted.retain_as_published << 3 | wanted.retain_handling << 4


def _connecting(packet: Connect) -> bytes:
    will, flags = packet.will, packet.clean << 1
    rest = _text(packet.client_id)
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
        rest += _maybe(will, packet.version) + _text(will.topic) + _binary(will.payload)
    if packet.user is not None:
        flags |= 0x80
        rest += _text(packet.user)
    if packet.password is not None:
        flags |= 0x40
        rest += _binary(packet.password)
    head = _text("MQTT") + struct.pack(">BBH", packet.version, flags, packet.keep_alive)
    return head + _maybe(packet, packet.version) + rest
