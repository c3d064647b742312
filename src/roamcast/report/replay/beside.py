"""Two runs in one page: checks that they can be played in step, and labels them by how they differ."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.config.fields import leaves
from roamcast.errors import RoamcastError
from roamcast.sim.scenario.scenario import Scenario

_ASIDE: Final = ("name", "record.", "protocol.")
"""Fields whose differences are not labelled; the protocol is named separately."""
_MOST: Final = 3
"""Most settings in a label."""


def refuse_other_movement(run: RecordedRun, other: RecordedRun) -> None:
    """Raises unless both runs have the same nodes on the same legs, or the same links, for the same time."""
    for name, values in (
        ("nodes", (run.scenario.nodes, other.scenario.nodes)),
        ("duration", (run.scenario.duration, other.scenario.duration)),
    ):
        if values[0] != values[1]:
            differ = f"{name} = {values[1]:g} there, {values[0]:g} here"
            raise RoamcastError(f"{_name(other)}: cannot be watched beside {_name(run)}: {differ}")
    if any(run.tables[table] != other.tables[table] for table in ("leg", "link")):
        raise RoamcastError(
            f"{_name(other)}: cannot be watched beside {_name(run)}: their nodes move differently; "
            "give both scenarios the same area, movement and seed, or links"
        )


def labels_of(scenarios: list[Scenario]) -> list[str]:
    """What each run is called beside the others: its protocol, and if that is the same, the settings that differ."""
    protocols = [scenario.protocol.name for scenario in scenarios]
    if len(set(protocols)) == len(protocols):
        return protocols
    settings = [dict(_settings(scenario)) for scenario in scenarios]
    differing = [
        name
        for name in dict.fromkeys(name for one in settings for name in one)
        if len({str(one.get(name)) for one in settings}) > 1
    ]
    return [
        ", ".join(
            [protocol, *(f"{name.rpartition('.')[2]} = {one[name]}" for name in differing[:_MOST] if name in one)]
        )
        for protocol, one in zip(protocols, settings, strict=True)
    ]


def _settings(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    """Every field with its value, parameters of the protocol first."""
    whole = msgspec.to_builtins(scenario)
    yield from leaves(whole["protocol"]["parameters"], "parameters")
    for name, value in leaves(whole):
        if not name.startswith(_ASIDE):
            yield name, value


def _name(run: RecordedRun) -> str:
    return str(run.place if run.id is None else run.place / run.id)
