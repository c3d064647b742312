"""Fields of a scenario by their full names, such as `radio.range` or `workload.publishers[0].rate`."""

import re
from collections.abc import Iterator
from typing import Any, Final

from roamcast.errors import ConfigError

_NAME: Final = re.compile(r"[\w-]+(\.[\w-]+|\[\d+\])*")
_STEP: Final = re.compile(r"([\w-]+)|\[(\d+)\]")


def is_field(name: str) -> bool:
    """Whether a name is well formed as a field's name; `scenario.check` knows whether there is such a field."""
    return _NAME.fullmatch(name) is not None


def put(raw: dict[str, Any], name: str, value: Any, source: str) -> None:  # noqa: ANN401  # any value of TOML
    """Sets a field of an unchecked scenario. Creates missing tables on the way; list entries must exist."""
    if not is_field(name):
        raise ConfigError(f"{source}: {name!r} is not a field: expected a name such as radio.range")
    place: Any = raw
    for match in _STEP.finditer(name):
        key, index = match.groups()
        fits = isinstance(place, dict) if key else isinstance(place, list) and int(index) < len(place)
        if not fits:
            raise ConfigError(f"{source}: {name}: there is no {name[: match.end()]} in the scenario")
        step = key or int(index)
        if match.end() == len(name):
            place[step] = value
        else:
            place = place.setdefault(step, {}) if key else place[step]


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # any value of TOML
    """The fields inside a table with their full names: the opposite of `put`."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        for number, part in enumerate(value):
            yield from leaves(part, f"{name}[{number}]")
    else:
        yield name, value
