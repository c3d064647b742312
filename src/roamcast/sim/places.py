"""Where nodes will be: the run's walks, read ahead, for a workload that places regions around nodes."""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from roamcast.content.geometry import Point
from roamcast.sim.mobility import Leg, position
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.scenario.workload import Act, acts


class Places:
    """The nodes' positions. Legs are made on demand and kept, so that times may come in any order."""

    def __init__(self, walks: list[Iterator[Leg]]) -> None:
        self._walks = walks
        self._legs: list[list[Leg]] = [[] for _ in walks]

    def leg(self, node: int, time: int) -> Leg:
        """The leg that a node is on."""
        legs = self._legs[node]
        while not legs or legs[-1].end <= time:
            leg = next(self._walks[node], None)
            if leg is None:
                break
            legs.append(leg)
        if legs[-1].start <= time:
            return legs[-1]
        return legs[bisect_right(legs, time, key=lambda leg: leg.start) - 1]

    def here(self, node: int, time: int) -> Point:
        return position(self.leg(node, time), time)


def scenario_acts(scenario: Scenario, folder: Path) -> Iterator[Act]:
    """Everything the applications of a scenario do, in order of time."""
    workload, area, here = scenario.workload, scenario.area, None
    if area is not None and workload.placed:
        here = Places(scenario.moving.walks(area, scenario.nodes, scenario.seed, folder)).here
    return acts(workload, scenario.nodes, scenario.seed, scenario.end, area, here, stop=scenario.stop)
