"""msgspec's descriptions of types: shared by explaining a configuration and explaining an error in one."""

import json
from typing import Any

from msgspec import inspect


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
