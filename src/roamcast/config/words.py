"""Types and values in words: which values a field takes, and what was given, as a person would say it."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec import inspect

_MAX_SHOWN: Final = 60
"""The most characters of a value that a message shows."""
_PLAIN_NAME: Final = re.compile(r"[\w-]+")
_KINDS: Final[dict[Any, tuple[str, str]]] = {
    inspect.IntType: ("a whole number", "whole numbers"),
    inspect.FloatType: ("a number", "numbers"),
    inspect.StrType: ("text", "texts"),
    inspect.BoolType: ("true or false", "true or false"),
    inspect.BytesType: ("bytes (in JSON: text in base64)", "values"),
    inspect.DictType: ("a table", "tables"),
    inspect.StructType: ("a table", "tables"),
    **dict.fromkeys(
        (inspect.TupleType, inspect.NamedTupleType, inspect.VarTupleType, inspect.ListType), ("a list", "lists")
    ),
}
"""What one is called, and several."""


# --- Types ----------------------------------------------------------------------------------------------------------


def expected(shape: Any) -> str:  # noqa: ANN401
    """Which values a type takes: `a whole number of at least 1`."""
    info = inspect.type_info(shape)
    return values_of(info, description(info))


def values_of(info: Any, about: str = "") -> str:  # noqa: ANN401
    """The same of msgspec's description of a type; `about` says in words which texts fit a pattern."""
    return ", or ".join(dict.fromkeys(_words(one, 0, about) for one in _merged(info)))


def _merged(info: Any) -> list[Any]:  # noqa: ANN401
    found = options(info)
    # A whole number is a number.
    if any(isinstance(one, inspect.FloatType) for one in found):
        found = [one for one in found if not isinstance(one, inspect.IntType)]
    return found


def _words(info: Any, several: int, about: str = "") -> str:  # noqa: ANN401
    """The words for one value, or (1) for several."""
    if isinstance(info, inspect.LiteralType):
        return f"values, each {one_of(info.values)}" if several else one_of(info.values)
    kind = _KINDS.get(type(info), ("another value", "values"))[several]
    match info:
        case inspect.IntType() | inspect.FloatType():
            return f"{kind}{_bounds(info)}"
        case inspect.StrType() if not several:
            return f"{kind}{_text(info, about)}"
        case inspect.TupleType() | inspect.NamedTupleType() | inspect.VarTupleType() | inspect.ListType():
            return f"{kind}{_contents(info)}"
        case _:
            return kind


def _many(info: Any) -> str:  # noqa: ANN401
    return " or ".join(dict.fromkeys(_words(one, 1) for one in _merged(info)))


def _contents(info: Any) -> str:  # noqa: ANN401
    """What a list contains."""
    if isinstance(info, inspect.NamedTupleType):
        return f" [{', '.join(field.name for field in info.fields)}]"
    if isinstance(info, inspect.TupleType):
        kinds = list(dict.fromkeys(map(_many, info.item_types)))
        if len(kinds) == 1:
            return f" of {len(info.item_types)} {kinds[0]}"
        return f" [{', '.join(values_of(one) for one in info.item_types)}]"
    low, high = info.min_length, info.max_length
    many = _many(info.item_type)
    if low is not None and high is not None:
        return f" of {low} {many}" if low == high else f" of {low} to {high} {many}"
    if low is not None:
        return f" of one or more {many}" if low == 1 else f" of at least {low} {many}"
    return f" of {many}" if high is None else f" of at most {high} {many}"


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {toml(info.ge)} to {toml(info.le)}"
    limits = (("of at least", info.ge), ("above", info.gt), ("at most", info.le), ("below", info.lt))
    bounds = [f"{word} {toml(limit)}" for word, limit in limits if limit is not None]
    return f" {' and '.join(bounds)}" if bounds else ""


def _text(info: inspect.StrType, about: str) -> str:
    if info.pattern is not None:  # the field's description is for people, the pattern for programs
        return f" ({about})" if about else f" that fits the pattern {info.pattern}"
    low, high = info.min_length, info.max_length
    if low == 1 and high is None:
        return " that is not empty"
    limits = (("at least", low), ("at most", high))
    bounds = [f"{word} {limit}" for word, limit in limits if limit is not None]
    return f" of {' and '.join(bounds)} characters" if bounds else ""


def one_of(values: Iterable[Any]) -> str:
    values = [shown(value) for value in values]
    return values[0] if len(values) == 1 else f"one of {', '.join(values)}"


def plain(info: Any) -> Any:  # noqa: ANN401
    return info.type if isinstance(info, inspect.Metadata) else info


def options(info: Any) -> list[Any]:  # noqa: ANN401
    """The members of a union, or the type itself. None is not among them: TOML has no such value."""
    info = plain(info)
    options = [plain(option) for option in info.types] if isinstance(info, inspect.UnionType) else [info]
    return [option for option in options if not isinstance(option, inspect.NoneType)]


def description(info: Any) -> str:  # noqa: ANN401
    extra = info.extra_json_schema if isinstance(info, inspect.Metadata) else None
    return str((extra or {}).get("description", ""))


# --- Values ---------------------------------------------------------------------------------------------------------


def toml(value: Any) -> str:  # noqa: ANN401
    """A value as TOML writes it; None, which TOML lacks, as the word none."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(int(value)) if value == value // 1 else str(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case dict():
            return f"{{{', '.join(f'{key} = {toml(item)}' for key, item in value.items())}}}"
        case _:
            return f"[{', '.join(map(toml, value))}]"


def shown(value: Any) -> str:  # noqa: ANN401
    """A value as people write it, shortened if it is long."""
    match value:
        case None:
            return "no value"
        case bool():
            return str(value).lower()
        case int() | float():
            if isinstance(value, float) and (not math.isfinite(value) or abs(value) >= 1e15):
                return f"{value:g}"
            text = hex(value) if isinstance(value, int) and value.bit_length() > 1000 else toml(value)
            return _cut(text)
        case str():
            return repr(value) if len(value) <= _MAX_SHOWN else repr(value[: _MAX_SHOWN - 1] + "…")
        case bytes() | bytearray() | memoryview():
            return _count(len(value), "byte")
        case dict():
            return (
                f"a table with {', '.join(map(name_of, list(value)[:3]))}{', …' * (len(value) > 3)}" if value else "{}"
            )
        case list() | tuple():
            flat = all(isinstance(part, str | int | float) for part in value[:_MAX_SHOWN])
            text = f"[{', '.join(map(shown, value[:_MAX_SHOWN]))}]"
            return text if flat and len(text) <= _MAX_SHOWN else f"a list of {_count(len(value), 'value')}"
        case _:
            return _cut(str(value))  # dates and times


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def name_of(key: Any) -> str:  # noqa: ANN401
    """The name of a field, quoted where TOML would quote it."""
    return key if isinstance(key, str) and _PLAIN_NAME.fullmatch(key) and len(key) <= _MAX_SHOWN else shown(key)
