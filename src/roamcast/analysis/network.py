"""The network of a run: its contacts, by the settings of its scenario.

The rules this file owns:

* A run with rows of `link`, or with `radio.propagation = "links"`, has its links; any other has positions and ranges.
* Where a range is drawn for every frame, measures of the network take the mean of the bounds, which half of the frames
  reach; what was *possible* takes the upper bound, which some frame may reach. A range drawn for each node is known.
"""

import numpy as np

from roamcast.analysis.contacts import READ, Contacts, DrawnRange, Reach, contacts
from roamcast.analysis.run import Run
from roamcast.sim.scenario.draw import own_range
from roamcast.sim.scenario.scenario import Scenario


def reach_of(scenario: Scenario) -> Reach | None:
    """The reach of a scenario; None: it has links."""
    radio = scenario.radio
    if radio.propagation == "links":
        return None
    outdoors: float | tuple[float, float] | np.ndarray[tuple[int], np.dtype[np.float64]] = radio.range
    if isinstance(radio.range, tuple) and radio.drawn == "node":
        outdoors = np.array([own_range(radio.range, scenario.seed, node) for node in range(scenario.nodes)])
    return Reach(outdoors, radio.indoor_range, radio.walls == "opaque", radio.ends == "both")


def network(run: Run, *, directed: bool = False, drawn: DrawnRange = "mean") -> Contacts | None:
    """The contacts of a run; None if its movement was not recorded."""
    reach = None if run.has("link") else reach_of(run.scenario)
    return contacts({name: run.table(name) for name in READ}, run.nodes, run.end, reach, directed=directed, drawn=drawn)
