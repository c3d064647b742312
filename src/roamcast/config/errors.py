"""Explains what is wrong with a value that a person wrote: the field, what was expected, what was given.

The rule this file owns: msgspec decides whether a value fits its type; this file says why it does not, from the same
types. Users never see msgspec's own messages, which are about Python types. To agree with msgspec, the search looks
for the smallest part of the value that msgspec refuses.
"""

import difflib
import math
import re
import types
from collections.abc import Generator, Iterable, Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from roamcast.config.shapes import description, options, toml
from roamcast.errors import RoamcastError

_MAX_SHOWN: Final = 60
"""The most characters of a value that a message shows."""
_INT_LOW, _INT_HIGH = -(2**63), 2**64 - 1
"""The range of msgspec's whole numbers."""
_PLAIN_NAME: Final = re.compile(r"[\w-]+")

T = TypeVar("T")
_Native = tuple[type, ...]


class Misfit(NamedTuple):
    """Why a value does not fit its type."""

    path: str
    """As people write it: `workload.publishers[0].rate`; empty for the whole value."""
    rule: str

    def under(self, path: str) -> "Misfit":
        """The same problem, for a value at `path`."""
        return Misfit(_inside(path, self.path) if self.path else path, self.rule)


def decode(raw: Any, shape: type[T], source: str, error: type[RoamcastError], *, path: str = "", whole: str = "") -> T:  # noqa: ANN401  # any value of TOML or JSON
    """The value as `shape`, or an `error` that begins with `source`.

    `path` is where the value is in the source. Without a path, `whole` names the value in messages about all of it.
    """
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError:
        raise refusal(raw, shape, source, error, path=path, whole=whole) from None


def decode_bytes(
    data: bytes, shape: type[T], source: str, error: type[RoamcastError], encoding: Literal["JSON", "MessagePack"]
) -> T:
    """The same for an encoded value."""
    codec: Any = msgspec.json if encoding == "JSON" else msgspec.msgpack
    try:
        found: T = codec.decode(data, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    else:
        return found
    # Only a refused value is decoded a second time: the message must show it.
    try:
        raw = codec.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        if "out of range" in str(problem):
            raise error(f"{source}: a number is too large for {encoding}: at most about 1.8e308") from None
        place = re.search(r" \(byte \d+\)", str(problem))
        raise error(f"{source}: this is not {encoding}{place[0] if place else ''}") from None
    # MessagePack has a type for bytes; JSON has text in base64.
    raise refusal(raw, shape, source, error, native=() if encoding == "JSON" else (bytes,))


def refusal(
    raw: Any,  # noqa: ANN401
    shape: Any,  # noqa: ANN401
    source: str,
    error: type[RoamcastError],
    *,
    path: str = "",
    whole: str = "",
    native: _Native = (),
) -> RoamcastError:
    """The error that `decode` raises, for a value that is known not to fit."""
    found = misfit(raw, shape, native) or Misfit("", f"expected {expected(shape)}; got {shown(raw)}")
    place, rule = found.under(path)
    return error(": ".join(filter(None, (source, place or whole, rule))))


def misfit(raw: Any, shape: Any, native: _Native = ()) -> Misfit | None:  # noqa: ANN401
    """The first part of a value that does not fit, or None. `native` are types that the encoding has without text."""
    return _misfit(raw, shape, "", native)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str], otherwise: str = "known are") -> str:
    """`did you mean 'range'?`, or the list of known names if none is close."""
    known = list(known)
    close = nearest(name, known)
    return f"{otherwise} {', '.join(known) or 'none'}" if close is None else f"did you mean {close!r}?"


# --- Where it does not fit ------------------------------------------------------------------------------------------


def _misfit(value: Any, shape: Any, path: str, native: _Native) -> Misfit | None:  # noqa: ANN401
    try:
        msgspec.convert(value, shape, builtin_types=native)
    except msgspec.ValidationError as problem:
        deeper = next(_deeper(value, shape, path, native), None)
        if deeper is not None:
            return deeper
        if problem.__cause__ is not None:  # a rule of our own, from `__post_init__`
            return Misfit(path, str(problem.__cause__))
        return Misfit(path, f"expected {expected(shape)}; got {_given(value, shape)}")
    return None


def _deeper(value: Any, shape: Any, path: str, native: _Native) -> Iterator[Misfit]:  # noqa: ANN401
    """What is wrong inside a value, if the value as a whole is recognisably one of the shapes."""
    inner = list(_shapes(shape))
    if isinstance(value, dict):
        structs = [one for one in inner if _is_struct(one)]
        if len(structs) > 1:
            structs = yield from _tagged(value, structs, path)
        for struct in structs[:1]:
            yield from _fields(value, struct, path, native)
        for one in inner:
            if get_origin(one) is dict:
                yield from (Misfit(path, f"the name {shown(key)} is not text") for key in value if type(key) is not str)
                inner_shape = get_args(one)[1]
                names = list(value)
                wrong = _first_wrong(list(value.values()), inner_shape, native)
                if wrong is not None:
                    name = names[wrong]
                    yield from filter(None, [_misfit(value[name], inner_shape, _inside(path, _name(name)), native)])
    elif isinstance(value, list | tuple):
        for one in inner:
            yield from _items(value, one, path, native)


def _shapes(shape: Any) -> Iterator[Any]:  # noqa: ANN401
    """The members of a union, or the type itself, without annotations."""
    origin = get_origin(shape)
    if origin is Annotated:
        yield from _shapes(get_args(shape)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(shape):
            yield from _shapes(member)
    else:
        yield shape


def _is_struct(shape: Any) -> bool:  # noqa: ANN401
    return isinstance(shape, type) and issubclass(shape, msgspec.Struct)


def _tagged(value: dict[str, Any], structs: list[Any], path: str) -> Generator[Misfit, None, list[Any]]:
    """The struct of a tagged union that the value's tag names, if the tag can be read."""
    config = structs[0].__struct_config__
    tags = [struct.__struct_config__.tag for struct in structs]
    place = _inside(path, _name(config.tag_field))
    if config.tag_field not in value:
        yield Misfit(place, f"is missing: expected {_one_of(tags)}")
        return []
    tag = value[config.tag_field]
    if tag not in tags:
        yield Misfit(place, f"expected {_one_of(tags)}; got {_given(tag, Literal[tuple(tags)])}")
    return [struct for struct in structs if struct.__struct_config__.tag == tag]


def _fields(value: dict[str, Any], struct: type[msgspec.Struct], path: str, native: _Native) -> Iterator[Misfit]:
    config = struct.__struct_config__
    fields = msgspec.structs.fields(struct)
    known = [field.encode_name for field in fields]
    # Unknown names first: a mistyped field is also missing, and suggesting the right name helps more.
    if config.forbid_unknown_fields:
        for name in value:
            if name not in known and name != config.tag_field:
                yield Misfit(
                    _inside(path, _name(name)), f"there is no such field; {suggestion(str(name), sorted(known))}"
                )
    for field in fields:
        place = _inside(path, field.encode_name)
        if field.encode_name in value:
            found = _misfit(value[field.encode_name], field.type, place, native)
            if found is not None:
                yield found
        elif field.required:
            yield Misfit(place, f"is missing: expected {expected(field.type)}")
    if config.tag_field is not None and value.get(config.tag_field, config.tag) != config.tag:
        place = _inside(path, _name(config.tag_field))
        yield Misfit(place, f"expected {_one_of([config.tag])}; got {shown(value[config.tag_field])}")


def _items(value: list[Any] | tuple[Any, ...], shape: Any, path: str, native: _Native) -> Iterator[Misfit]:  # noqa: ANN401
    if get_origin(shape) not in (tuple, list):
        return
    inner = get_args(shape)
    if inner[1:] in ((), (...,)):
        wrong = _first_wrong(list(value), inner[0], native)
        numbered = [] if wrong is None else [(wrong, inner[0])]
    else:
        numbered = list(enumerate(inner)) if len(inner) == len(value) else []
    for number, one in numbered:
        yield from filter(None, [_misfit(value[number], one, f"{path}[{number}]", native)])


def _first_wrong(parts: list[Any], shape: Any, native: _Native) -> int | None:  # noqa: ANN401
    """The index of the first part that does not fit, by bisection: one of 100 000 may be wrong."""

    def fit(some: list[Any]) -> bool:
        try:
            msgspec.convert(some, list[shape], builtin_types=native)
        except msgspec.ValidationError:
            return False
        return True

    if fit(parts):
        return None
    low, high = 0, len(parts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(parts[low:middle]) else (low, middle)
    return low


def _inside(path: str, name: str) -> str:
    return f"{path}{name}" if name.startswith("[") or not path else f"{path}.{name}"


def _name(key: Any) -> str:  # noqa: ANN401
    """The name of a field, quoted where TOML would quote it."""
    return key if isinstance(key, str) and _PLAIN_NAME.fullmatch(key) and len(key) <= _MAX_SHOWN else shown(key)


# --- What was expected ----------------------------------------------------------------------------------------------


def expected(shape: Any) -> str:  # noqa: ANN401
    """Which values a type takes: `a whole number of at least 1`."""
    info = inspect.type_info(shape)
    about = description(info)
    return ", or ".join(dict.fromkeys(_words(one, about) for one in _merged(info)))


class _Table(NamedTuple):
    """Stands for all structs of a union, which a person sees as one table."""


def _merged(info: Any) -> list[Any]:  # noqa: ANN401
    found = [_Table() if isinstance(one, inspect.StructType) else one for one in options(info)]
    # A whole number is a number.
    if any(isinstance(one, inspect.FloatType) for one in found):
        found = [one for one in found if not isinstance(one, inspect.IntType)]
    return found


def _words(info: Any, about: str = "") -> str:  # noqa: ANN401
    match info:
        case inspect.IntType():
            return f"a whole number{_bounds(info)}"
        case inspect.FloatType():
            return f"a number{_bounds(info)}"
        case inspect.StrType():
            return f"text{_text(info, about)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return _one_of(info.values)
        case inspect.BytesType():
            return "bytes (in JSON: text in base64)"
        case inspect.TupleType() | inspect.NamedTupleType() | inspect.VarTupleType() | inspect.ListType():
            return f"a list{_contents(info)}"
        case inspect.DictType() | _Table():
            return "a table"
        case _:
            return "another value"


def _many(info: Any) -> str:  # noqa: ANN401
    """The same in the plural."""
    kinds = []
    for one in _merged(info):
        match one:
            case inspect.IntType():
                kinds.append(f"whole numbers{_bounds(one)}")
            case inspect.FloatType():
                kinds.append(f"numbers{_bounds(one)}")
            case inspect.StrType():
                kinds.append("texts")
            case inspect.DictType() | _Table():
                kinds.append("tables")
            case inspect.TupleType() | inspect.NamedTupleType() | inspect.VarTupleType() | inspect.ListType():
                kinds.append(f"lists{_contents(one)}")
            case inspect.BoolType():
                kinds.append("true or false")
            case inspect.LiteralType():
                kinds.append(f"values, each {_one_of(one.values)}")
            case _:
                kinds.append("values")
    return " or ".join(dict.fromkeys(kinds))


def _contents(info: Any) -> str:  # noqa: ANN401
    """What a list contains."""
    if isinstance(info, inspect.NamedTupleType):
        return f" [{', '.join(field.name for field in info.fields)}]"
    if isinstance(info, inspect.TupleType):
        kinds = list(dict.fromkeys(map(_many, info.item_types)))
        if len(kinds) == 1:
            return f" of {len(info.item_types)} {kinds[0]}"
        return f" [{', '.join(', or '.join(map(_words, _merged(one))) for one in info.item_types)}]"
    low, high = info.min_length, info.max_length
    many = _many(info.item_type)
    if low is not None and high is not None:
        return f" of {low} {many}" if low == high else f" of {low} to {high} {many}"
    if low is not None:
        return f" of at least {low} {'value' if low == 1 and many == 'values' else many}"
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


def _one_of(values: Iterable[Any]) -> str:
    values = [shown(value) for value in values]
    return values[0] if len(values) == 1 else f"one of {', '.join(values)}"


# --- What was given -------------------------------------------------------------------------------------------------


def _given(value: Any, shape: Any) -> str:  # noqa: ANN401
    """The value as the message shows it: text is called text if something else was expected, close words are named."""
    choices = [one for part in _shapes(shape) if get_origin(part) is Literal for one in get_args(part)]
    if isinstance(value, str) and choices:
        close = nearest(value, [one for one in choices if isinstance(one, str)])
        return f"{shown(value)}; did you mean {close!r}?" if close else shown(value)
    if isinstance(value, str) and str not in _shapes(shape):
        return f"the text {shown(value)}"
    if isinstance(value, int) and not _INT_LOW <= value <= _INT_HIGH:
        return f"{shown(value)}, which is too large"
    return shown(value)


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
            return f"a table with {', '.join(map(_name, list(value)[:3]))}{', …' * (len(value) > 3)}" if value else "{}"
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
