"""Values as people type them on a command line: TOML values, and anything else is text."""

import tomllib
from typing import Any


def typed_value(text: str) -> Any:  # noqa: ANN401  # any value of TOML
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text
