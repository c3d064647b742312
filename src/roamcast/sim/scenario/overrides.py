"""A scenario from a file and the changes that `--set` makes to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roamcast.config.fields import is_field, put
from roamcast.config.values import typed_value
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario.scenario import Scenario, check, parse


def changed(text: str, file: Path, changes: Sequence[str]) -> Scenario:
    """The scenario from the text with the changes applied; errors name both."""
    raw = parse(text, str(file))
    for change in changes:
        apply(change, raw)
    source = " --set ".join((f"{file} with", *changes)) if changes else str(file)
    return check(raw, source, file.parent)


def apply(change: str, raw: dict[str, Any]) -> None:
    """Makes one change, `FIELD=VALUE`."""
    field, equals, value = change.partition("=")
    if not equals or not is_field(field):
        raise ScenarioError(f"--set {change}: expected FIELD=VALUE, such as radio.range=100")
    put(raw, field, typed_value(value), f"--set {change}")
