"""A scenario from a file and the changes that `--set` makes to it."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario import Scenario, check


def read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        raise ScenarioError(f"{file}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ScenarioError(f"{file}: is not TOML: {problem}") from None


def changed(text: str, file: Path, changes: Sequence[str]) -> Scenario:
    """The scenario that the text and the changes give; errors name both."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ScenarioError(f"{file}: is not TOML: {problem}") from None
    for change in changes:
        apply(change, raw)
    source = " --set ".join((f"{file} with", *changes)) if changes else str(file)
    return check(raw, source, file.parent)


def apply(change: str, raw: dict[str, Any]) -> None:
    """Makes one change, `FIELD=VALUE`. Tables on the way are made; entries of lists must be there."""
    field, equals, value = change.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+|\[\d+\])*", field):
        raise ScenarioError(f"--set {change}: expected FIELD=VALUE, such as radio.range=100")
    place: Any = raw
    for match in re.finditer(r"([\w-]+)|\[(\d+)\]", field):
        name, index = match.groups()
        fits = isinstance(place, dict) if name else isinstance(place, list) and int(index) < len(place)
        if not fits:
            raise ScenarioError(f"--set {change}: there is no {field[: match.end()]}")
        step = name or int(index)
        if match.end() == len(field):
            place[step] = _value(value)
        else:
            place = place.setdefault(step, {}) if name else place[step]


def _value(text: str) -> Any:  # noqa: ANN401  # any value of TOML
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text
