"""Describes what a configuration may contain, from the structs that decode it, so that fields are listed only once.

A struct becomes a section, and so does every struct that it contains, headed as the table is written in TOML. A union
of structs, such as the movement models, becomes one section per struct, headed with the field that tells them apart.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from roamcast.config.words import description, options, plain, toml, values_of

_INDENT: Final = "    "


@dataclass(frozen=True)
class Field:
    """One field of a table."""

    path: str
    """Its full name, with `[]` after a list of tables."""
    values: str
    """Which values it takes."""
    default: str | None
    """As TOML writes it; None if the field must be given."""
    description: str


@dataclass(frozen=True)
class Section:
    """One table of a file; the heading is empty for the fields outside all tables."""

    heading: str
    descriptions: tuple[str, ...]
    """The description of the struct, and of the field that holds it, if it has one."""
    fields: tuple[Field, ...]


def explain(struct: type[msgspec.Struct], path: str = "") -> list[Section]:
    """The sections of a struct that is at `path` in a file."""
    return list(_sections(inspect.type_info(struct), _StructPlace(path, f"[{path}]" if path else "", "")))


def as_text(sections: list[Section], width: int) -> str:
    """The sections as text, for a screen of `width` columns."""
    return "\n\n".join("\n".join(_section_lines(section, width)) for section in sections)


# --- From types to words --------------------------------------------------------------------------------------------


class _StructPlace(NamedTuple):
    """Where a struct is in a file."""

    path: str
    heading: str
    description: str

    def inside(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def _sections(info: Any, place: _StructPlace) -> Iterator[Section]:  # noqa: ANN401  # any of msgspec's kinds of type
    tagged = f' with {info.tag_field} = "{info.tag}"' if info.tag_field else ""
    described = (" ".join((info.cls.__doc__ or "").split()), place.description)
    own = tuple(_field(field, place) for field in info.fields if not _is_table(field.type))
    yield Section(place.heading + tagged, tuple(filter(None, described)), own)
    for field in info.fields:
        for struct, inner in _structs(field, place):
            yield from _sections(struct, inner)


def _field(field: inspect.Field, place: _StructPlace) -> Field:
    return Field(place.inside(field.encode_name), values_of(field.type), _default(field), description(field.type))


def _is_table(info: Any) -> bool:  # noqa: ANN401
    """Whether a field is written as tables of its own, so that the table around it needs no line for it."""
    return all(
        isinstance(plain(option.item_type) if isinstance(option, inspect.VarTupleType) else option, inspect.StructType)
        for option in options(info)
    )


def _structs(field: inspect.Field, place: _StructPlace) -> Iterator[tuple[inspect.StructType, _StructPlace]]:
    """The structs in a field's type, each with its place in the file."""
    path = place.inside(field.encode_name)
    table = path.replace("[]", "")
    described = description(field.type) if _is_table(field.type) else ""
    inner: inspect.Type
    for option in options(field.type):
        match option:
            case inspect.StructType():
                inner, where = option, _StructPlace(path, f"[{table}]", described)
            case inspect.VarTupleType():
                inner, where = option.item_type, _StructPlace(f"{path}[]", f"[[{table}]]", described)
            case inspect.DictType():
                inner, where = option.value_type, _StructPlace(f"{path}.NAME", f"[{table}.NAME]", described)
            case _:
                continue
        yield from ((struct, where) for struct in options(inner) if isinstance(struct, inspect.StructType))


def _default(field: inspect.Field) -> str | None:
    if field.required:
        return None
    if field.default_factory is not msgspec.NODEFAULT:
        return toml(field.default_factory())
    return toml(field.default)


# --- From words to lines --------------------------------------------------------------------------------------------


def _section_lines(section: Section, width: int) -> Iterator[str]:
    if section.heading:
        yield section.heading
    for text in section.descriptions:
        yield from textwrap.wrap(text, width)
    for field in section.fields:
        default = "required" if field.default is None else f"default {field.default}"
        summary = f"{field.path}: {field.values}; {default}"
        yield from textwrap.wrap(summary, width, initial_indent=_INDENT, subsequent_indent=2 * _INDENT)
        yield from textwrap.wrap(field.description, width, initial_indent=2 * _INDENT, subsequent_indent=2 * _INDENT)
