"""Explains what is wrong with a value that a person wrote: the field, what was expected, what was given.

The rule this file owns: msgspec decides whether a value fits its type; this file says why it does not, from the same
types. Users never see msgspec's own messages, which are about Python types. To agree with msgspec, the search looks
for the smallest part of the value that msgspec refuses.
"""

import difflib
import re
import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from roamcast.config.words import expected, name_of, one_of, shown
from roamcast.errors import RoamcastError

_INT_LOW, _INT_HIGH = -(2**63), 2**64 - 1
"""The range of msgspec's whole numbers."""

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
        for part in _parts(value, shape, path):
            deeper = part if isinstance(part, Misfit) else _misfit(part.value, part.shape, part.path, native)
            if deeper is not None:
                return deeper
        if problem.__cause__ is not None:  # a rule of our own, from `__post_init__`
            return Misfit(path, str(problem.__cause__))
        return Misfit(path, f"expected {expected(shape)}; got {_given(value, shape)}")
    return None


class _Inner(NamedTuple):
    path: str
    value: Any
    shape: Any


def _parts(value: Any, shape: Any, path: str) -> Iterator[Misfit | _Inner]:  # noqa: ANN401
    """What a value consists of, and what is wrong with its names, as far as it is recognisably one of the shapes."""
    shapes = list(_shapes(shape))
    structs = [one for one in shapes if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if isinstance(value, dict):
        if len(structs) > 1:
            structs, problems = _tagged(value, structs, path)
            yield from problems
        for struct in structs[:1]:
            yield from _fields(value, struct, path)
        for one in shapes:
            if get_origin(one) is dict:
                yield from (Misfit(path, f"the name {shown(key)} is not text") for key in value if type(key) is not str)
                yield from (_Inner(_inside(path, name_of(key)), value[key], get_args(one)[1]) for key in value)
    elif isinstance(value, list | tuple):
        for one in shapes:
            if get_origin(one) in (tuple, list):
                inner = get_args(one)
                each = [inner[0]] * len(value) if inner[1:] in ((), (...,)) else inner
                if len(each) == len(value):
                    numbered = enumerate(zip(value, each, strict=True))
                    yield from (_Inner(f"{path}[{number}]", item, kind) for number, (item, kind) in numbered)


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


def _tagged(value: dict[str, Any], structs: list[Any], path: str) -> tuple[list[Any], list[Misfit]]:
    """The struct of a tagged union that the value's tag names, and what is wrong with the tag."""
    field = structs[0].__struct_config__.tag_field
    tags = {struct.__struct_config__.tag: struct for struct in structs}
    tag, place = value.get(field), _inside(path, name_of(field))
    if field not in value:
        return [], [Misfit(place, f"is missing: expected {one_of(tags)}")]
    if tag not in list(tags):  # which may have no hash
        return [], [Misfit(place, f"expected {one_of(tags)}; got {_given(tag, Literal[tuple(tags)])}")]
    return [tags[tag]], []


def _fields(value: dict[str, Any], struct: type[msgspec.Struct], path: str) -> Iterator[Misfit | _Inner]:
    config = struct.__struct_config__
    fields = msgspec.structs.fields(struct)
    known = [field.encode_name for field in fields]
    # Unknown names first: a mistyped field is also missing, and suggesting the right name helps more.
    for name in value if config.forbid_unknown_fields else ():
        if name not in known and name != config.tag_field:
            rule = f"there is no such field; {suggestion(str(name), sorted(known))}"
            yield Misfit(_inside(path, name_of(name)), rule)
    for field in fields:
        place = _inside(path, field.encode_name)
        if field.encode_name in value:
            yield _Inner(place, value[field.encode_name], field.type)
        elif field.required:
            yield Misfit(place, f"is missing: expected {expected(field.type)}")
    if config.tag_field is not None and value.get(config.tag_field, config.tag) != config.tag:
        place = _inside(path, name_of(config.tag_field))
        yield Misfit(place, f"expected {one_of([config.tag])}; got {shown(value[config.tag_field])}")


def _inside(path: str, name: str) -> str:
    return f"{path}{name}" if name.startswith("[") or not path else f"{path}.{name}"


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
