"""Topics and content: which event an MQTT message is, which message an event is, and what a Topic Filter asks for.

The rules this file owns, both ways:

* `TYPE/LEVEL/LEVEL…`: the first level of a topic is the event's type, the others are its attributes `level1`, `level2`…
  An event without a type and without levels has the topic `event`. In types and levels that no topic can have, `/`,
  `+`, `#`, the null character and a leading `$` are shown as `%2F` and so on.
* A payload that is a JSON object gives its fields as attributes: those that are values or lists of values, as far as
  they fit (`MAX_FIELDS`, `MAX_FIELD_TEXT`). Any other payload that is JSON or short text is the attribute `value`.
* **User properties are attributes**, and go before fields of the same name. A number or `true` in its usual spelling
  becomes one, so that it compares as one.
* An event's payload is a message's; an event that has none shows its attributes as a JSON object. Attributes that its
  payload does not show are user properties.
* What that would not give back exactly (QoS 0, RETAIN, an empty payload, other properties of MQTT 5) travels in the
  attribute `mqtt`, as JSON. So a message arrives as it was published: `message_of(event_of(message)) == message`.
* A Topic Filter is a content filter that accepts at least its topics; `matches` says which ones exactly, since there is
  no negation to say that no further level follows. `$filter/TEXT`, percent-encoded, is a content filter itself.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from roamcast.content.event import TYPE, Scalar, check_scalar, check_text
from roamcast.content.filter import Constraint, Filter, Operator
from roamcast.content.structure import Limits, check_json
from roamcast.content.text import parse_filter
from roamcast.errors import ContentError, RoamcastError
from roamcast.live.control_messages import DeliveredEvent, EventForm
from roamcast.live.mqtt.packets import PacketError, Properties, Publish, Reason, Will

MAX_TOPIC: Final = 1024
"""Characters of a topic or a plain Topic Filter."""
MAX_LEVELS: Final = 32
MAX_FIELDS: Final = 256
MAX_FIELD_TEXT: Final = 8 * 1024
"""Values, and characters of names and texts, that a JSON payload may give as attributes."""
MAX_VALUE: Final = 256
"""Characters of a payload that is text."""
CONTENT: Final = "$filter/"
_NO_TYPE: Final = "event"
_EXTRA: Final = "mqtt"
_VALUE: Final = "value"
_LEVEL: Final = re.compile(r"level[1-9][0-9]?")
_NUMBER: Final = re.compile(r"-?[0-9]")
_ESCAPES: Final = {"/": "%2F", "+": "%2B", "#": "%23", "\0": "%00"}
_ESCAPED: Final = re.compile("%2F|%2B|%23|%00|%24")

Attributes = dict[str, tuple[Scalar, ...]]
Pairs = tuple[tuple[str, str], ...]


_FIELDS: Final = {
    "payload_format": "text",
    "message_expiry": "expiry",
    "content_type": "content_type",
    "response_topic": "response_topic",
    "correlation_data": "correlation_data",
    "user": "user",
}
"""Properties of MQTT 5, and the fields that have them here."""


class _Traits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    qos: int = 1
    retain: bool = False
    text: bool = False
    """Its Payload Format Indicator."""
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    expiry: int | None = None
    """Seconds from its publication."""

    @property
    def traits(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _Traits.__struct_fields__}


class ApplicationMessage(_Traits, frozen=True, omit_defaults=False):
    """An Application Message, apart from how it travels on one connection."""

    topic: str
    payload: bytes = b""
    user: Pairs = ()

    @classmethod
    def of(cls, packet: Publish | Will, topic: str) -> "ApplicationMessage":
        given = {field: packet.properties[name] for name, field in _FIELDS.items() if name in packet.properties}
        given["text"] = bool(given.get("text"))
        return cls(topic, packet.payload, qos=min(packet.qos, 1), retain=packet.retain, **given)

    def properties(self) -> Properties:
        """Its properties in MQTT 5."""
        given = {name: getattr(self, field) for name, field in _FIELDS.items()}
        given |= {"payload_format": 1 if self.text else None, "user": self.user or None}
        return {name: value for name, value in given.items() if value is not None}


class _Extra(_Traits, frozen=True):
    """What an event does not say about its message, and that the usual message would not have: the attribute `mqtt`."""

    empty: bool = False
    user: Pairs | None = None


# --- Messages to events ---------------------------------------------------------------------------------------------


def event_of(message: ApplicationMessage) -> EventForm:
    """The event of a message that a client publishes. Raises `PacketError` if its topic cannot be one."""
    check_topic(message.topic)
    first, *levels = message.topic.split("/")
    attributes: Attributes = {f"level{number}": (level,) for number, level in enumerate(levels, 1)}
    attributes |= fields_of(message.payload)
    given: Attributes = {}
    for name, text in message.user:
        if name and not _reserved(name):
            given[name] = (*given.get(name, ()), _typed(text))
    attributes |= given
    usual = message_of(EventForm(first, dict(attributes), message.payload))
    extra = _Extra(
        not message.payload and bool(usual.payload),
        None if message.user == usual.user else message.user,
        **message.traits,
    )
    if extra != _Extra():
        attributes[_EXTRA] = (msgspec.json.encode(extra).decode(),)
    return EventForm(first, dict(attributes), message.payload)


def check_topic(topic: str) -> None:
    """Raises `PacketError` unless clients may publish under this topic."""
    if not topic or "+" in topic or "#" in topic or "\0" in topic:  # [MQTT-3.3.2-2], [MQTT-4.7.3-1]
        raise PacketError(Reason.BAD_TOPIC, "a topic is not empty and has neither + nor #")
    if topic.startswith("$"):
        raise PacketError(Reason.BAD_TOPIC, "topics that begin with $ belong to the node")  # [4.7.2]
    _check_length(topic, Reason.BAD_TOPIC)


def _check_length(text: str, reason: Reason) -> None:
    if len(text) > MAX_TOPIC or text.count("/") >= MAX_LEVELS:
        raise PacketError(reason, f"a topic has at most {MAX_TOPIC} characters and {MAX_LEVELS} levels here")


def fields_of(payload: bytes) -> Attributes:
    """The attributes that a payload shows."""
    try:
        check_json(payload, Limits(len(payload)))
        content = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RoamcastError, UnicodeDecodeError):
        content = payload.decode(errors="replace")
        if not content or len(content) > MAX_VALUE or "\ufffd" in content:
            return {}
    found: Attributes = {}
    values = text = 0
    for name, value in content.items() if isinstance(content, dict) else ((_VALUE, content),):
        listed = tuple(value) if isinstance(value, list) else (value,)
        if not name or _reserved(name) or not listed or not _are_values(name, listed):
            continue
        length = len(name) + sum(len(one) for one in listed if isinstance(one, str))
        if values + len(listed) <= MAX_FIELDS and text + length <= MAX_FIELD_TEXT:
            found[name] = listed
            values, text = values + len(listed), text + length
    return found


def _are_values(name: str, values: Iterable[Any]) -> bool:
    try:
        check_text(name, "a name")
        for value in values:
            check_scalar(value, "a value")
    except ContentError:
        return False
    return True


def _reserved(name: str) -> bool:
    return name == _EXTRA or _LEVEL.fullmatch(name) is not None


def _typed(text: str) -> Scalar:
    """A user property's value: a number or a truth value if that is how it is usually written."""
    value: Scalar = text
    if text in ("true", "false"):
        value = text == "true"
    elif _NUMBER.match(text) and len(text) < 40:
        for kind in (int, float):
            try:
                value = kind(text)
                check_scalar(value, "a number")
            except (ValueError, ContentError):
                continue
            if _shown(value) == text:
                return value
        return text
    return value


def _shown(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


# --- Events to messages ---------------------------------------------------------------------------------------------


def message_of(form: EventForm | DeliveredEvent) -> ApplicationMessage:
    """The message of an event, as it was published if it came from MQTT."""
    attributes = _tuples(form.attributes)
    rest = {name: values for name, values in attributes.items() if not _reserved(name)}
    extra = _extra_of(attributes.get(_EXTRA))
    payload, user = form.payload, extra.user
    if not payload and not extra.empty and rest:
        shown = {name: values[0] if len(values) == 1 else values for name, values in rest.items()}
        payload = msgspec.json.encode(shown)
        user = user or ()
    if user is None:
        fields = fields_of(payload)
        user = tuple(
            (name, _shown(one)) for name, values in rest.items() if fields.get(name) != values for one in values
        )
    return ApplicationMessage(topic_of(form.type, attributes), payload, user, **extra.traits)


def topic_of(type: str, attributes: Mapping[str, tuple[Scalar, ...]]) -> str:
    levels = [type]
    while (values := attributes.get(f"level{len(levels)}")) is not None and isinstance(values[0], str):
        levels.append(values[0])
    if levels == [""]:
        return _NO_TYPE
    topic = "/".join(_escaped(level) for level in levels)
    return f"%24{topic[1:]}" if topic.startswith("$") else topic


def _escaped(level: str) -> str:
    for character, shown in _ESCAPES.items():
        level = level.replace(character, shown)
    return level


def _tuples(attributes: Mapping[str, Scalar | tuple[Scalar, ...]]) -> Attributes:
    return {name: values if isinstance(values, tuple) else (values,) for name, values in attributes.items()}


def _extra_of(values: tuple[Scalar, ...] | None) -> _Extra:
    """What `mqtt` says. It may come from a stranger: what is not understood is as if it were not there."""
    try:
        extra = msgspec.json.decode(str(values[0]), type=_Extra) if values else _Extra()
    except msgspec.MsgspecError:
        return _Extra()
    texts = [
        extra.content_type or "",
        extra.response_topic or "",
        *(text for pair in extra.user or () for text in pair),
    ]
    if extra.qos not in (0, 1) or not 0 <= (extra.expiry or 0) < 2**32 or any("\0" in text for text in texts):
        return _Extra()
    return extra


# --- Topic Filters --------------------------------------------------------------------------------------------------


def filter_of(topic_filter: str) -> Filter:
    """The content that a Topic Filter asks for, or more. Raises `PacketError` if it is not one."""
    if topic_filter.startswith(CONTENT):
        return _by_content(topic_filter.removeprefix(CONTENT))
    if not topic_filter:
        raise PacketError(Reason.BAD_FILTER, "a Topic Filter is not empty")  # [MQTT-4.7.3-1]
    if topic_filter.startswith("$share/"):
        raise PacketError(Reason.NO_SHARED_SUBSCRIPTIONS, "there are no shared subscriptions here")
    _check_length(topic_filter, Reason.BAD_FILTER)
    levels = topic_filter.split("/")
    for place, level in enumerate(levels):
        wild = "#" in level or "+" in level
        if wild and (len(level) > 1 or (level == "#" and place + 1 < len(levels))):  # [MQTT-4.7.1-1], [MQTT-4.7.1-2]
            raise PacketError(Reason.BAD_FILTER, "# is the last level, and # and + are whole levels")
    return Filter(tuple(_alternatives(levels)))


def _alternatives(levels: list[str]) -> Iterable[tuple[Constraint, ...]]:
    first, *others = levels
    constraints = []
    for number, level in enumerate(others, 1):
        if level == "#":
            break
        # What is escaped may stand for two levels: `matches` decides.
        known = level != "+" and not _ESCAPED.search(level)
        constraint = (Operator.EQ, level) if known else (Operator.EXISTS, None)
        constraints.append(Constraint(f"level{number}", *constraint))
    if first in ("+", "#") or _ESCAPED.search(first):
        yield tuple(constraints)
        return
    for type in (first, "") if first == _NO_TYPE else (first,):
        yield Constraint(TYPE, Operator.EQ, type), *constraints


def _by_content(text: str) -> Filter:
    if "+" in text or "#" in text:
        raise PacketError(Reason.BAD_FILTER, f"write + as %2B and # as %23 after {CONTENT}")
    try:
        return parse_filter(unquote(text, errors="strict"))
    except (RoamcastError, UnicodeDecodeError) as problem:
        raise PacketError(Reason.BAD_FILTER, str(problem)) from None


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a topic is one of a plain Topic Filter [4.7]."""
    if topic_filter.startswith(CONTENT):
        return True
    if topic.startswith("$") and topic_filter[0] in "+#":  # [MQTT-4.7.2-1]
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":  # the parent level is included [4.7.1.2]
        wanted.pop()
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(one in ("+", level) for one, level in zip(wanted, levels, strict=True))
