"""Whatever people write wrongly, they read which field it is and what was expected, in no programming language.

What is checked for every source alike: the place, and that nothing of msgspec's own messages comes through.
"""

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from roamcast.campaign.define.experiment import Spec, experiment
from roamcast.config.errors import decode, decode_bytes, misfit, nearest, suggestion
from roamcast.config.words import expected, shown
from roamcast.errors import ConfigError, RoamcastError
from roamcast.live.control_messages import JSON, MSGPACK, EventForm, PollRequest, SubscribeRequest
from roamcast.live.control_messages import decode as decode_message
from roamcast.live.settings import parameters
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import Scenario, check

SCENARIO: dict[str, Any] = {"nodes": 3, "duration": 10, "area": {"width": 500, "height": 100}}
EXPERIMENT: dict[str, Any] = {"name": "tiny", "scenario": SCENARIO}
FOREIGN = re.compile(r"`|\$|Expected|Invalid|Object|\b(object|array|str|int|float|bool|dict|null|None|True|False)\b")
"""Words of msgspec and of Python."""


def is_plain(words: str) -> bool:
    return FOREIGN.search(words) is None


# --- A wrong scenario -----------------------------------------------------------------------------------------------

WRONG_SCENARIOS: dict[str, tuple[dict[str, Any], str]] = {
    "zero": ({"nodes": 0}, "nodes: expected a whole number from 1 to 100000; got 0"),
    "a part of a node": ({"nodes": 1.5}, "nodes: expected a whole number from 1 to 100000; got 1.5"),
    "true": ({"nodes": True}, "nodes: expected a whole number from 1 to 100000; got true"),
    "huge": ({"seed": 2**70}, f"seed: expected a whole number from 0 to {2**63 - 1}; got {2**70}, which is too large"),
    "text": ({"radio": {"range": "far"}}, "radio.range: expected a number, or a list of 2 numbers; got the text 'far'"),
    "three": ({"radio": {"range": [1, 2, 3]}}, "radio.range: expected a number, or a list of 2 numbers; got [1, 2, 3]"),
    "in a list": ({"radio": {"range": [1, "far"]}}, "radio.range[1]: expected a number; got the text 'far'"),
    "bounds": ({"radio": {"loss": 1}}, "radio.loss: expected a number of at least 0 and below 1; got 1"),
    "optional": ({"radio": {"indoor_range": 0}}, "radio.indoor_range: expected a number above 0; got 0"),
    "no table": ({"radio": 5}, "radio: expected a table; got 5"),
    "choice": (
        {"mac": {"model": "dfc"}},
        "mac.model: expected one of 'dcf', 'ideal'; got 'dfc'; did you mean 'dcf'?",
    ),
    "no choice": ({"mac": {"model": "aloha"}}, "mac.model: expected one of 'dcf', 'ideal'; got 'aloha'"),
    "model": (
        {"movement": {"model": "colum"}},
        "movement.model: expected one of 'random-waypoint', 'hot-spots', 'groups', 'streets', 'column', 'static', "
        "'buildings', 'recorded'; got 'colum'; did you mean 'column'?",
    ),
    "no model": (
        {"movement": {"positions": []}},
        "movement.model: is missing: expected one of 'random-waypoint', 'hot-spots', 'groups', 'streets', "
        "'column', 'static', 'buildings', 'recorded'",
    ),
    "of a model": (
        {"movement": {"model": "static", "positons": []}},
        "movement.positons: there is no such field; did you mean 'positions'?",
    ),
    "in two lists": (
        {"movement": {"model": "static", "positions": [[0, 0], [1, "x"]]}},
        "movement.positions[1][1]: expected a number; got the text 'x'",
    ),
    "in a table of a list": (
        {"workload": {"publishers": [{"count": 1, "rate": "often"}]}},
        "workload.publishers[0].rate: expected a number from 1e-06 to 1000000; got the text 'often'",
    ),
    "no list": (
        {"workload": {"publishers": {"count": 1}}},
        "workload.publishers: expected a list of tables; got a table with count",
    ),
    "yes": ({"record": {"frames": "yes"}}, "record.frames: expected true or false; got the text 'yes'"),
    "date": ({"name": date(2026, 11, 16)}, "name: expected text; got 2026-11-16"),
    "missing": ({"area": {"width": 3}}, "area.height: is missing: expected a number above 0 and at most 10000000"),
    "parameter": (
        {"protocol": {"name": "hint", "parameters": {"suppression": "covers"}}},
        "protocol.parameters.suppression: expected one of 'any', 'covered'; got 'covers'; did you mean 'covered'?",
    ),
}


@pytest.mark.parametrize("name", WRONG_SCENARIOS)
def test_a_wrong_scenario(name: str) -> None:
    change, words = WRONG_SCENARIOS[name]
    with pytest.raises(RoamcastError) as caught:
        check(SCENARIO | change, "file", Path())
    assert str(caught.value) == f"file: {words}"
    assert is_plain(words)


def test_a_scenario_that_is_no_table() -> None:
    with pytest.raises(RoamcastError, match=r"^file: the scenario: expected a table; got \[\]$"):
        check([], "file", Path())  # type: ignore[arg-type]


# --- A wrong experiment ---------------------------------------------------------------------------------------------

WRONG_EXPERIMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": "a/b"}, "name: expected text (letters, digits, - and _); got 'a/b'"),
    "seeds": ({"seeds": "many"}, "seeds: expected a whole number, or a list of whole numbers; got the text 'many'"),
    "a seed": ({"seeds": [1, "two"]}, "seeds[1]: expected a whole number; got the text 'two'"),
    "no value": (
        {"axes": [{"field": "nodes", "values": []}]},
        "axes[0].values: expected a list of one or more values; got []",
    ),
    "values": ({"axes": [{"field": "nodes"}]}, "axes[0].values: is missing: expected a list of one or more values"),
    "mode": ({"mode": "girds"}, "mode: expected one of 'grid', 'paired'; got 'girds'; did you mean 'grid'?"),
    "scenario": ({"scenario": 3}, "scenario: expected a table, or text; got 3"),
    "empty": ({"variants": [{"name": ""}]}, "variants[0].name: expected text that is not empty; got ''"),
    "in a table": (
        {"quick": {"duration": 3, "values": {"a b": 3}}},
        "quick.values.'a b': expected a list of values; got 3",
    ),
    "measures": ({"measures": "delivery"}, "measures: expected a list of texts; got the text 'delivery'"),
    "far from all": (
        {"axes": [{"colour": 1}]},
        "axes[0].colour: there is no such field; known are field, fields, label, puts, template, values",
    ),
}


@pytest.mark.parametrize("name", WRONG_EXPERIMENTS)
def test_a_wrong_experiment(name: str) -> None:
    change, words = WRONG_EXPERIMENTS[name]
    with pytest.raises(RoamcastError) as caught:
        experiment(EXPERIMENT | change, "file", Path())
    assert str(caught.value) == f"file: {words}"
    assert is_plain(words)


# --- A node and its control API -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "change", "words"),
    [
        ("flooding", "jitter=long", "jitter: expected a number from 0 to 60; got the text 'long'"),
        ("flooding", "jitter=61", "jitter: expected a number from 0 to 60; got 61"),
        ("flooding", "jitter=[]", "jitter: expected a number from 0 to 60; got []"),
        ("flooding", "jiter=1", "flooding has no parameter 'jiter'; did you mean 'jitter'?"),
        ("gossip", "p=true", "p: expected a number above 0 and at most 1; got true"),
        ("hint", "suppression=1", "suppression: expected one of 'any', 'covered'; got 1"),
        ("odmrp", "merge=no", "merge: expected true or false; got the text 'no'"),
        ("odmrp", "channels=['a', 1]", "channels[1]: expected text; got 1"),
    ],
)
def test_wrong_settings_of_a_node(protocol: str, change: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parameters(CATALOGUE[protocol], ["delivered=9", change])
    assert str(caught.value) == f"--set {change}: {words}"
    assert is_plain(words)


@pytest.mark.parametrize(
    ("shape", "text", "words"),
    [
        (EventForm, "", "this is not JSON"),
        (EventForm, '{"type": x}', "this is not JSON (byte 9)"),
        (EventForm, "[" * 4_000, "this is not JSON"),
        (EventForm, "[]", "expected a table; got []"),
        (EventForm, '{"type": 5}', "type: expected text; got 5"),
        (EventForm, '{"typ": "x"}', "typ: there is no such field; did you mean 'type'?"),
        (EventForm, '{"payload": "?"}', "payload: expected bytes (in JSON: text in base64); got the text '?'"),
        (EventForm, '{"lifetime": "long"}', "lifetime: expected a number; got the text 'long'"),
        (
            EventForm,
            '{"attributes": {"a": [1, null]}}',
            "attributes.a[1]: expected text, or a number, or true or false; got no value",
        ),
        (SubscribeRequest, '{"id": 1e40}', "id: expected a whole number; got 1e+40"),
        (PollRequest, "{}", "id: is missing: expected a whole number"),
        (SubscribeRequest, '{"filter": "true", "durable": 1}', "durable: expected true or false; got 1"),
    ],
)
def test_a_wrong_request(shape: type, text: str, words: str) -> None:
    with pytest.raises(RoamcastError) as caught:
        decode_message(text, shape, JSON)
    assert str(caught.value) == f"not understood: {words}"
    assert is_plain(words)


def test_a_request_that_would_build_too_much_is_refused_before_it_is_read() -> None:
    with pytest.raises(RoamcastError, match=r"^more than 4096 values, names and lists: too many$"):
        decode_message("[" * 100_000, EventForm, JSON)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xc1", "this is not MessagePack (byte 0)"),
        (msgspec.msgpack.encode({"type": b"x"}), "type: expected text; got 1 byte"),
        (msgspec.msgpack.encode({"attributes": {1: 2}}), "attributes: the name 1 is not text"),
        # MessagePack tells text from bytes; base64 is for JSON.
        (
            msgspec.msgpack.encode({"payload": "aaaa"}),
            "payload: expected bytes (in JSON: text in base64); got the text 'aaaa'",
        ),
    ],
)
def test_a_wrong_request_in_messagepack(content: bytes, words: str) -> None:
    with pytest.raises(RoamcastError) as caught:
        decode_message(content, EventForm, MSGPACK)
    assert str(caught.value) == f"not understood: {words}"


# --- Any wrong value ------------------------------------------------------------------------------------------------

LEAVES = st.sampled_from([0, -1, 2.5, 1e300, True, "far", "", None, 2**80, date(2026, 1, 1)])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), value=VALUES)
@pytest.mark.parametrize(("struct", "raw"), [(Scenario, SCENARIO), (Spec, EXPERIMENT)])
def test_any_value_in_any_field(
    struct: type[msgspec.Struct], raw: dict[str, Any], data: st.DataObject, value: object
) -> None:
    """What msgspec refuses is refused at the field that was changed, or inside it; what it takes is no misfit."""
    name = data.draw(st.sampled_from(struct.__struct_fields__))
    found = misfit(raw | {name: value}, struct)
    try:
        msgspec.convert(raw | {name: value}, struct)
    except msgspec.ValidationError:
        assert found is not None
        assert re.match(rf"{name}($|\.|\[)", found.path)
        assert is_plain(found.rule)
    else:
        assert found is None


# --- The words ------------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: float
    y: float


class Even(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ConfigError(f"{self.number} is odd")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (int | float, "a number"),
        (Point, "a list [x, y]"),
        (tuple[str, int], "a list [text, a whole number]"),
        (Annotated[list[int], Meta(min_length=2, max_length=2)], "a list of 2 whole numbers"),
        (Annotated[list[int], Meta(min_length=2, max_length=4)], "a list of 2 to 4 whole numbers"),
        (Annotated[list[str], Meta(max_length=4)], "a list of at most 4 texts"),
        (list[list[bool]], "a list of lists of true or false"),
        (list[Literal["a", "b"]], "a list of values, each one of 'a', 'b'"),
        (Literal["a"], "'a'"),
        (Annotated[str, Meta(min_length=2, max_length=4)], "text of at least 2 and at most 4 characters"),
        (Annotated[str, Meta(pattern="^a+$")], "text that fits the pattern ^a+$"),
        (dict[str, int] | None, "a table"),
    ],
)
def test_what_is_expected(shape: object, words: str) -> None:
    assert expected(shape) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (float("nan"), "nan"),
        (1e300, "1e+300"),
        ("a" * 61, repr("a" * 59 + "…")),
        ("a\nb", r"'a\nb'"),
        ({}, "{}"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "a table with a, b, c, …"),
        ([[1]], "a list of 1 value"),
        (list(range(99)), "a list of 99 values"),
    ],
)
def test_what_is_given(value: object, words: str) -> None:
    assert shown(value) == words


def test_a_number_of_any_length_is_shown_in_one_line() -> None:
    assert len(shown(7**100_000)) == 60


def test_a_rule_of_a_struct_is_told_in_its_own_words() -> None:
    with pytest.raises(ConfigError, match=r"^here: numbers\[1\]: 3 is odd$"):
        decode([{"number": 2}, {"number": 3}], list[Even], "here", ConfigError, path="numbers")


def test_what_fits_is_decoded() -> None:
    assert decode({"number": 2}, Even, "here", ConfigError) == Even(2)
    assert decode_bytes(b'{"number": 2}', Even, "here", ConfigError, "JSON") == Even(2)


def test_suggestions() -> None:
    assert nearest("rnage", ["radio", "range"]) == "range"
    assert nearest("xyzzy", ["radio", "range"]) is None
    assert suggestion("rnage", ["radio", "range"]) == "did you mean 'range'?"
    assert suggestion("xyzzy", ["radio", "range"]) == "known are radio, range"
    assert suggestion("xyzzy", ["radio"], "it has") == "it has radio"
    assert suggestion("xyzzy", []) == "known are none"
