"""Writing TOML: turns values that were read from a file, and maybe changed, back into a file. Comments are lost."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_file(values: Mapping[str, Any]) -> str:
    """The text of a whole file. Values must be of types that both TOML and JSON have."""
    return "\n".join(_table(values, "")).strip() + "\n"


def bare(value: Any) -> Any:  # noqa: ANN401  # any value of JSON
    """The value without fields that are None, which TOML cannot write; leaving one out means the same."""
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items() if one is not None}
    return [bare(one) for one in value] if isinstance(value, list | tuple) else value


def _table(values: Mapping[str, Any], name: str) -> Iterator[str]:
    for key, value in values.items():
        if not _is_part(value):
            yield f"{_key(key)} = {toml_value(value)}"
    for key, value in values.items():
        part = f"{name}.{_key(key)}" if name else _key(key)
        if isinstance(value, dict):
            yield from ("", f"[{part}]", *_table(value, part))
        elif _is_part(value):
            for one in value:
                yield from ("", f"[[{part}]]", *_table(one, part))


def _is_part(value: Any) -> bool:  # noqa: ANN401  # any value of TOML
    """Whether the value is written as one or more tables of its own."""
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
    )


def toml_value(value: Any) -> str:  # noqa: ANN401  # any value of TOML
    """A value on one line: as in JSON, except for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
