"""Writing TOML: turns values that were read from a file, and maybe changed, back into a file. Comments are lost."""

from collections.abc import Mapping
from typing import Any

import tomlkit


def toml_file(values: Mapping[str, Any]) -> str:
    """The text of a whole file."""
    return tomlkit.dumps(values)


def bare(value: Any) -> Any:  # noqa: ANN401  # any value of JSON
    """The value without fields that are None, which TOML cannot write; leaving one out means the same."""
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items() if one is not None}
    return [bare(one) for one in value] if isinstance(value, list | tuple) else value


def toml_value(value: Any) -> str:  # noqa: ANN401  # any value of TOML
    """A value on one line, tables too: as it is written in a list."""
    written = tomlkit.array()
    written.append(value)
    return written.as_string()[1:-1]
