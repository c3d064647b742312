"""How nodes move: models as data, and the walks that follow from them. `base` has the rules of a walk."""

from roamcast.sim.mobility.base import FOREVER, Area, Leg, Model, ScenarioError, position
from roamcast.sim.mobility.buildings import Building, Buildings
from roamcast.sim.mobility.column import Column
from roamcast.sim.mobility.groups import Groups
from roamcast.sim.mobility.hotspots import HotSpots
from roamcast.sim.mobility.recorded import Recorded
from roamcast.sim.mobility.static import Static
from roamcast.sim.mobility.streets import Streets
from roamcast.sim.mobility.waypoint import RandomWaypoint

Movement = RandomWaypoint | HotSpots | Groups | Streets | Column | Static | Buildings | Recorded
"""Any of the models, told apart by `model` when decoded."""

__all__ = [
    "FOREVER",
    "Area",
    "Building",
    "Buildings",
    "Column",
    "Groups",
    "HotSpots",
    "Leg",
    "Model",
    "Movement",
    "RandomWaypoint",
    "Recorded",
    "ScenarioError",
    "Static",
    "Streets",
    "position",
]
