"""Counting what an encoding would build: the same as building it and counting, and cheap."""

from time import process_time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.content.structure import MAX_DEPTH, SHORT, Decoder, Limits, check, check_json, count
from roamcast.errors import ContentError

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=60)


def elements(value: object) -> int:
    """By walking through what was built."""
    if isinstance(value, dict):
        return 1 + sum(1 + elements(inner) for inner in value.values())
    return 1 + (sum(map(elements, value)) if isinstance(value, list) else 0)


@given(VALUES)
def test_the_count_is_that_of_what_is_built(value: object) -> None:
    assert count(msgspec.msgpack.encode(value), 10**6) == elements(value)


@pytest.mark.parametrize("length", [15, 16, 255, 256, 65535, 65536])
def test_lengths_around_the_limits_of_the_format(length: int) -> None:
    for value in ("x" * length, bytes(length), [0] * length, {str(n): n for n in range(length)}):
        assert count(msgspec.msgpack.encode([value, 7]), 10**6) == elements([value, 7])
    assert count(msgspec.msgpack.encode(msgspec.msgpack.Ext(5, bytes(length))), 9) == 1


@given(st.binary(max_size=200))
def test_any_bytes_are_counted_and_none_raises_anything_else(octets: bytes) -> None:
    assert 0 <= count(octets, 100) <= 101


def test_it_stops_at_the_limit() -> None:
    octets = msgspec.msgpack.encode([1] * 2_000_000)
    started = process_time()
    assert count(octets, 1000) == 1001
    assert process_time() - started < 0.02


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\x00" * 1


def test_depth() -> None:
    assert count(nested(MAX_DEPTH), 1000) == MAX_DEPTH + 1
    with pytest.raises(ContentError, match="128 deep"):
        count(nested(MAX_DEPTH + 1), 1000)
    assert count(msgspec.msgpack.encode([[[1]]] * 1000), 10_000) == 3001  # beside each other, not within


def test_what_is_short_needs_no_counting() -> None:
    check(b"\x01" * SHORT, Limits(10**6, 1))
    with pytest.raises(ContentError, match="more than 1 values"):
        check(b"\x01" * (SHORT + 1), Limits(10**6, 1))
    with pytest.raises(ContentError, match="4097 bytes: at most 4096 are allowed"):
        check(b"\x01" * (SHORT + 1), Limits(4096))


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_never_taken_for_less_than_it_is(value: object) -> None:
    encoded = msgspec.json.encode(value) + b" " * SHORT
    check_json(encoded, Limits(10**9, 2 * elements(value) + 1))
    if elements(value) > 2:
        with pytest.raises(ContentError):
            check_json(encoded, Limits(10**9, elements(value) // 2))


def test_commas_in_a_text_are_not_values() -> None:
    check_json(msgspec.json.encode({"text": ',"[{\\' * 5000}), Limits(10**6, 10))
    with pytest.raises(ContentError, match="too many"):
        check_json(msgspec.json.encode([1] * 5000), Limits(10**6, 4096))


@pytest.mark.parametrize("octets", [b"", b"\xc1", b"\x91", b"\x05", nested(5000)])
def test_a_decoder_refuses_everything_else_with_one_error(octets: bytes) -> None:
    decoder: Decoder[Any] = Decoder(Event, Limits(10**6))
    with pytest.raises(ContentError):
        decoder.decode(octets)
