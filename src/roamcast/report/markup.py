"""HTML and SVG that stay well-formed whatever text they contain.

The rule this file owns: text becomes markup only through `tag`, which escapes it. A name with `<script>` in it, from an
experiment's file or an error, is shown and never run.
"""

import html
import re
from importlib import resources
from typing import Final

_VOID: Final = frozenset({"meta", "br", "link", "input"})
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that neither HTML nor XML may contain; programs' error messages may have terminal escapes."""


class Markup(str):
    """Text that is markup already: made by `tag`, or one of the package's own files."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """The text as markup; markup stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. In names of attributes `_` stands for `-`, at their end for nothing; None and False leave one out."""
    # By identity: 0 is a value.
    there = {key: value for key, value in attributes.items() if value is not None and value is not False}
    written = "".join(_attribute(key, value) for key, value in there.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*parts: object) -> Markup:
    """The parts one after the other, without None."""
    return Markup("".join(escape(part) for part in parts if part is not None))


def asset(name: str, package: str = "roamcast.report") -> Markup:
    """A file of the package, as it is."""
    return Markup((resources.files(package) / "assets" / name).read_text(encoding="utf-8"))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
