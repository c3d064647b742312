"""The recordings that a scenario reads, opened before anything runs.

A recording that is missing, damaged, too small or too short is refused when a scenario is checked or a campaign is
planned, not hours later when a run needs it. What a run draws from its seed (a window, a subset of the nodes) is tried
with the scenario's own seed only.
"""

from pathlib import Path

from roamcast.errors import RoamcastError
from roamcast.sim.mobility import Recorded, ScenarioError
from roamcast.sim.mobility.trace import link_changes
from roamcast.sim.scenario.scenario import Scenario


def check_recordings(scenario: Scenario, source: str, folder: Path) -> None:
    """Raises `ScenarioError`, naming `source` and the field, for a recording that cannot be used."""
    movement, links = scenario.movement, scenario.links
    field = "movement.file"
    try:
        if isinstance(movement, Recorded) and scenario.area is not None:
            movement.walks(scenario.area, scenario.nodes, scenario.seed, folder)
        field = "links.file"
        if links is not None and links.file is not None:
            link_changes(folder / links.file, scenario.nodes, scenario.seed, links.window, links.subset)
    except RoamcastError as problem:
        raise ScenarioError(f"{source}: {field}: {problem}") from None
