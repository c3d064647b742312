"""MQTT control packets of versions 3.1.1 and 5.0: what they say. `wire.py` has their bytes.

Numbers in brackets are sections and statements of the OASIS standards: MQTT Version 5.0 (7 March 2019), unless 3.1.1
(29 October 2014) is named. In 3.1.1 there are neither properties nor reasons: they are empty and 0 there.
"""

from collections.abc import Container, Mapping
from enum import IntEnum
from typing import Any, Final

import msgspec

from roamcast.errors import RoamcastError

V311: Final = 4
V5: Final = 5
"""Protocol levels, as in CONNECT [3.1.2.2]."""
NEVER: Final = 0xFFFFFFFF
"""A Session Expiry Interval that does not end [3.1.2.11.2]."""


class Reason(IntEnum):
    """Reason codes that are used here [2.4]."""

    SUCCESS = 0x00
    NO_SUBSCRIPTION = 0x11
    UNSPECIFIED = 0x80
    MALFORMED = 0x81
    PROTOCOL_ERROR = 0x82
    REFUSED_HERE = 0x83
    UNSUPPORTED_VERSION = 0x84
    BAD_CLIENT_ID = 0x85
    BAD_PASSWORD = 0x86
    SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    TAKEN_OVER = 0x8E
    BAD_FILTER = 0x8F
    BAD_TOPIC = 0x90
    PACKET_NOT_FOUND = 0x92
    BAD_ALIAS = 0x94
    TOO_LARGE = 0x95
    QUOTA_EXCEEDED = 0x97
    QOS_NOT_SUPPORTED = 0x9B
    NO_SHARED_SUBSCRIPTIONS = 0x9E


class PacketError(RoamcastError):
    """Bytes that are not a packet, or a packet that is not allowed."""

    def __init__(self, reason: Reason, words: str) -> None:
        super().__init__(words)
        self.reason = reason


Properties = Mapping[str, Any]
"""By name. `user` is a tuple of pairs, `subscription_identifier` a tuple of numbers; they are never empty."""
NO_PROPERTIES: Final[Properties] = {}


class Will(msgspec.Struct, frozen=True):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NO_PROPERTIES


class Connect(msgspec.Struct, frozen=True):
    client_id: str
    version: int = V5
    clean: bool = True
    keep_alive: int = 0
    user: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = NO_PROPERTIES


class Connack(msgspec.Struct, frozen=True):
    session_present: bool = False
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Publish(msgspec.Struct, frozen=True):
    topic: str
    payload: bytes = b""
    qos: int = 0
    packet: int = 0
    """Its Packet Identifier; 0 with QoS 0."""
    dup: bool = False
    retain: bool = False
    properties: Properties = NO_PROPERTIES


class Acknowledgement(msgspec.Struct, frozen=True):
    """A step of the exchange that follows a PUBLISH with QoS 1 or 2."""

    packet: int
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Puback(Acknowledgement, frozen=True):
    pass


class Pubrec(Acknowledgement, frozen=True):
    pass


class Pubrel(Acknowledgement, frozen=True):
    pass


class Pubcomp(Acknowledgement, frozen=True):
    pass


class WantedTopic(msgspec.Struct, frozen=True):
    """One Topic Filter of a SUBSCRIBE, with its options [3.8.3.1]."""

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(msgspec.Struct, frozen=True):
    packet: int
    filters: tuple[WantedTopic, ...]
    properties: Properties = NO_PROPERTIES


class Suback(msgspec.Struct, frozen=True):
    packet: int
    reasons: tuple[int, ...]
    properties: Properties = NO_PROPERTIES


class Unsubscribe(msgspec.Struct, frozen=True):
    packet: int
    filters: tuple[str, ...]
    properties: Properties = NO_PROPERTIES


class Unsuback(msgspec.Struct, frozen=True):
    packet: int
    reasons: tuple[int, ...] = ()
    properties: Properties = NO_PROPERTIES


class Pingreq(msgspec.Struct, frozen=True):
    pass


class Pingresp(msgspec.Struct, frozen=True):
    pass


class Disconnect(msgspec.Struct, frozen=True):
    reason: int = 0
    properties: Properties = NO_PROPERTIES


class Auth(msgspec.Struct, frozen=True):
    reason: int = 0
    properties: Properties = NO_PROPERTIES


Packet = (
    Connect
    | Connack
    | Publish
    | Puback
    | Pubrec
    | Pubrel
    | Pubcomp
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)
"""In the order of their numbers."""


def free_identifier(last: int, taken: Container[int]) -> int:
    """The next Packet Identifier after the last one that is not taken; the last one's again if all are."""
    following = (number % 65535 + 1 for number in range(last, last + 65535))
    return next((packet for packet in following if packet not in taken), last)
