"""Values as people type them on a command line: as in TOML, and what is none is text."""

import tomllib
from typing import Any


def typed_value(text: str) -> Any:  # noqa: ANN401  # any value of TOML
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text
