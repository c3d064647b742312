"""MQTT packets: the octets of the standard, what is written is read back, and nothing else is read."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.live.mqtt import wire
from roamcast.live.mqtt.packets import (
    V5,
    V311,
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketError,
    Pingreq,
    Pingresp,
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
from roamcast.live.mqtt.wire import Parser, write

LONGEST = 1000


def read(data: bytes, version: int | None = V5) -> Packet | None:
    parser = Parser(LONGEST, version)
    parser.feed(data)
    return parser.next()


# --- The octets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packet", "version", "octets"),
    [
        # The variable header of the standard's example of a CONNECT, in section 3.1.2.
        (
            Connect("", V5, True, 10, "u", b"p", Will("w", b"", 1), {"session_expiry": 10}),
            V5,
            "10 1e 0004 4d515454 05 ce 000a 05 11 0000000a 0000 00 0001 77 0000 0001 75 0001 70",
        ),
        (Connect("a", V311, False, 60), V311, "10 0d 0004 4d515454 04 00 003c 0001 61"),
        # Section 3.3.2 of both: topic a/b, Packet Identifier 10.
        (Publish("a/b", b"", 1, 10), V311, "32 07 0003 61 2f 62 000a"),
        (Publish("a/b", b"", 1, 10), V5, "32 08 0003 61 2f 62 000a 00"),
        (Publish("a/b", b"!", 2, 10, True, True), V311, "3d 08 0003 61 2f 62 000a 21"),
        (Puback(10), V5, "40 02 000a"),
        (Puback(10, 0x97), V5, "40 03 000a 97"),
        (Pubrel(10), V311, "62 02 000a"),
        # Section 3.8.3: a/b with QoS 1 and c/d with QoS 2.
        (Subscribe(10, (WantedTopic("a/b", 1), WantedTopic("c/d", 2))), V311, "82 0e 000a 0003612f62 01 0003632f64 02"),
        (
            Subscribe(10, (WantedTopic("a", 1, True, True, 2),), {"subscription_identifier": (128,)}),
            V5,
            "82 0a 000a 03 0b 80 01 0001 61 2d",
        ),
        (Suback(10, (1, 0x80)), V311, "90 04 000a 01 80"),
        (Unsubscribe(10, ("a/b",)), V311, "a2 07 000a 0003612f62"),
        (Unsuback(10), V311, "b0 02 000a"),
        (Unsuback(10, (0x11,)), V5, "b0 04 000a 00 11"),
        (Pingreq(), V5, "c0 00"),
        (Pingresp(), V311, "d0 00"),
        (Disconnect(), V5, "e0 00"),
        (Disconnect(0x8E), V5, "e0 01 8e"),
        (Connack(True, 0), V311, "20 02 01 00"),
        (Connack(False, 0, {"maximum_qos": 1}), V5, "20 05 00 00 02 24 01"),
    ],
)
def test_packets_have_the_octets_of_the_standard(packet: Packet, version: int, octets: str) -> None:
    assert write(packet, version) == bytes.fromhex(octets)
    assert read(bytes.fromhex(octets), None if isinstance(packet, Connect) else version) == packet


@pytest.mark.parametrize(("number", "octets"), [(127, "7f"), (128, "8001"), (16383, "ff7f"), (16384, "808001")])
def test_lengths_are_those_of_table_1_1(number: int, octets: str) -> None:
    text = write(Publish("a", bytes(number - 3)), V311)
    assert text[1:].startswith(bytes.fromhex(octets))


# --- What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "version", "reason"),
    [
        ("00 00", V5, Reason.MALFORMED),  # type 0
        ("c1 00", V5, Reason.MALFORMED),  # flags
        ("60 02 000a", V5, Reason.MALFORMED),  # PUBREL needs 0010 [MQTT-3.6.1-1]
        ("36 05 0001 61 000a", V5, Reason.MALFORMED),  # QoS 3
        ("38 03 0001 61", V311, Reason.MALFORMED),  # DUP with QoS 0
        ("32 05 0001 61 0000", V311, Reason.PROTOCOL_ERROR),  # Packet Identifier 0
        ("30 04 0002 c328", V311, Reason.MALFORMED),  # not UTF-8
        ("30 05 0003 eda080", V311, Reason.MALFORMED),  # a surrogate
        ("30 03 0001 00", V311, Reason.MALFORMED),  # a null character
        ("30 ff ff ff ff 01", V5, Reason.MALFORMED),  # a length of five bytes
        ("30 e9 07", V5, Reason.TOO_LARGE),  # 1001 bytes: refused before they have come
        ("30 06 0001 61 02 23 00", V5, Reason.MALFORMED),  # a property that ends too early
        ("30 07 0001 61 03 23 0000", V5, Reason.PROTOCOL_ERROR),  # Topic Alias 0
        ("30 06 0001 61 02 01 02", V5, Reason.PROTOCOL_ERROR),  # Payload Format Indicator 2
        ("30 08 0001 61 04 01 01 01 01", V5, Reason.PROTOCOL_ERROR),  # twice
        ("30 06 0001 61 02 24 01", V5, Reason.MALFORMED),  # a property of CONNACK
        ("30 05 0001 61 80 00", V5, Reason.MALFORMED),  # a number not in its shortest form
        ("82 02 000a", V311, Reason.PROTOCOL_ERROR),  # nothing is subscribed
        ("82 06 000a 0001 61 03", V311, Reason.MALFORMED),  # QoS 3
        ("82 06 000a 0001 61 04", V311, Reason.MALFORMED),  # 3.1.1 has no options
        ("82 07 000a 00 0001 61 30", V5, Reason.MALFORMED),  # Retain Handling 3
        ("e0 01 00", V311, Reason.MALFORMED),  # 3.1.1 has no reason
        ("f0 00", V311, Reason.MALFORMED),  # nor AUTH
        ("c0 01 00", V5, Reason.MALFORMED),  # longer than its fields
        ("c0 00", None, Reason.PROTOCOL_ERROR),  # before CONNECT
        ("10 0d 0004 4d515454 03 00 003c 0001 61", None, Reason.UNSUPPORTED_VERSION),
        ("10 0d 0004 4d515454 04 01 003c 0001 61", None, Reason.MALFORMED),  # reserved
        ("10 0d 0004 4d515454 04 08 003c 0001 61", None, Reason.MALFORMED),  # QoS of no will
        ("10 10 0004 4d515454 04 40 003c 0001 61 0001 61", None, Reason.MALFORMED),  # a password and no user
    ],
)
def test_what_the_standard_forbids_is_refused(octets: str, version: int | None, reason: Reason) -> None:
    with pytest.raises(PacketError) as refused:
        read(bytes.fromhex(octets), version)
    assert refused.value.reason == reason


# --- Properties -----------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(1, 0xFFFF)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.integers(0, 1),
    "two": NUMBER,
    "four": st.integers(1, 0xFFFFFFFF),
    "text": TEXT,
    "binary": st.binary(max_size=20),
    "pairs": st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3).map(tuple),
    "numbers": st.lists(st.integers(1, wire.MAX_REMAINING), min_size=1, max_size=1).map(tuple),
}


def properties(kind: type, version: int) -> st.SearchStrategy[dict[str, Any]]:
    allowed = {name: VALUES[value] for name, value, kinds in wire._PROPERTIES.values() if kind in kinds}
    return st.fixed_dictionaries({}, optional=allowed) if version == V5 else st.just({})


def messages(kind: type[Any], version: int) -> st.SearchStrategy[Any]:
    about, bits, reason = properties(kind, version), st.booleans(), st.integers(0, 255)
    if kind is Publish:
        return st.builds(Publish, TEXT, st.binary(max_size=50), st.just(0), st.just(0), st.just(False), bits, about) | (
            st.builds(Publish, TEXT, st.binary(max_size=50), st.integers(1, 2), NUMBER, bits, bits, about)
        )
    if kind is Connect:
        will = (
            st.builds(Will, TEXT, st.binary(max_size=20), st.integers(0, 2), bits, properties(Will, version))
            | st.none()
        )
        secret = st.binary(max_size=20)
        who = st.tuples(TEXT, secret | st.none()) | st.tuples(st.none(), st.none() if version == V311 else secret)
        return st.builds(
            lambda name, clean, alive, who, will, about: Connect(
                name, version, clean, alive, who[0], who[1], will, about
            ),
            TEXT,
            bits,
            NUMBER,
            who,
            will,
            about,
        )
    if kind in (Puback, Pubrec, Pubrel, Pubcomp):
        return st.builds(kind, NUMBER, reason if version == V5 else st.just(0), about)
    if kind is Subscribe:
        five = bits if version == V5 else st.just(False)
        wanted = st.builds(
            WantedTopic, TEXT, st.integers(0, 2), five, five, st.integers(0, 2) if version == V5 else st.just(0)
        )
        return st.builds(Subscribe, NUMBER, st.lists(wanted, min_size=1, max_size=3).map(tuple), about)
    if kind is Unsubscribe:
        return st.builds(Unsubscribe, NUMBER, st.lists(TEXT, min_size=1, max_size=3).map(tuple), about)
    if kind in (Suback, Unsuback):
        several = st.lists(reason, max_size=4).map(tuple)
        return st.builds(kind, NUMBER, several if version == V5 or kind is Suback else st.just(()), about)
    if kind is Connack:
        return st.builds(Connack, bits, reason, about)
    if kind is Disconnect:
        return st.builds(Disconnect, reason if version == V5 else st.just(0), about)
    return st.builds(kind)


KINDS: tuple[type, ...] = (Connect, Connack, Publish, Puback, Pubrec, Pubrel, Pubcomp, Subscribe, Suback, Unsubscribe)
KINDS = (*KINDS, Unsuback, Pingreq, Pingresp, Disconnect)
ANY = st.sampled_from([V311, V5]).flatmap(
    lambda version: st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(version), messages(kind, version)))
)


@given(ANY, st.integers(1, 40))
def test_what_is_written_is_read_back_in_whatever_pieces_it_comes(made: tuple[int, Packet], piece: int) -> None:
    version, packet = made
    octets = write(packet, version)
    parser = Parser(10_000, None if isinstance(packet, Connect) else version)
    for at in range(0, len(octets), piece):
        assert parser.next() is None
        parser.feed(octets[at : at + piece])
    assert parser.next() == packet
    assert parser.next() is None
    assert parser.version == version


def _changed(octets: bytes, change: Callable[[bytearray], None]) -> bytes:
    changed = bytearray(octets)
    change(changed)
    return bytes(changed)


@given(ANY, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
def test_a_changed_packet_is_read_or_refused_by_name(
    made: tuple[int, Packet], changes: list[tuple[int, int]], known: bool
) -> None:
    version, packet = made

    def change(octets: bytearray) -> None:
        for place, value in changes:
            octets[place % len(octets)] = value

    parser = Parser(10_000, version if known else None)
    parser.feed(_changed(write(packet, version), change))
    with contextlib.suppress(PacketError):
        while (found := parser.next()) is not None:
            assert write(found, parser.version or V5)


@given(st.binary(max_size=60), st.sampled_from([None, V311, V5]))
def test_garbage_is_read_or_refused_by_name(garbage: bytes, version: int | None) -> None:
    parser = Parser(LONGEST, version)
    parser.feed(garbage)
    with contextlib.suppress(PacketError):
        while parser.next() is not None:
            pass
