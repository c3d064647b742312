"""The network of a run: its contacts, by the settings of its scenario.

The rules this file owns:

* A run with rows of `link`, or with `radio.propagation = "links"`, has its links; any other has positions and ranges.
* Where a range is drawn for every frame, measures of the network take the mean of the bounds, which half of the frames
  reach; what was *possible* takes the upper bound, which some frame may reach. A range drawn for each node is known.
"""

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa

from roamcast.facts.contacts import Contacts, Drawn, Reach, contacts
from roamcast.facts.why.record import Record, Settings
from roamcast.sim.draw import own_range
from roamcast.sim.scenario import Radio, Scenario
from roamcast.units import SECOND


class _Scenario(msgspec.Struct):
    """The part of a scenario that is read here."""

    seed: int = 1
    radio: Radio = Radio()


def reach_of(scenario: str, nodes: int) -> Reach | None:
    """The reach of a scenario (JSON); None: it has links."""
    read = msgspec.json.decode(scenario, type=_Scenario)
    radio = read.radio
    if radio.propagation == "links":
        return None
    outdoors: float | tuple[float, float] | np.ndarray[tuple[int], np.dtype[np.float64]] = radio.range
    if isinstance(radio.range, tuple) and radio.drawn == "node":
        outdoors = np.array([own_range(radio.range, read.seed, node) for node in range(nodes)])
    return Reach(outdoors, radio.indoor_range, radio.walls == "opaque", radio.ends == "both")


def network_of(
    facts: Mapping[str, pa.Table],
    nodes: int,
    end: int,
    scenario: str,
    *,
    directed: bool = False,
    drawn: Drawn = "mean",
) -> Contacts | None:
    """The contacts of a run, from its tables `leg`, `link` and `away`; None if its movement was not recorded."""
    reach = None if facts["link"].num_rows else reach_of(scenario, nodes)
    return contacts(facts, nodes, end, reach, directed=directed, drawn=drawn)


def record_of(facts: Mapping[str, pa.Table], scenario: Scenario) -> Record:
    """A run's facts, prepared to explain why an event did not arrive. All tables that every run has must be there."""
    encoded, nodes, end = msgspec.json.encode(scenario).decode(), scenario.nodes, scenario.end
    settings = Settings(
        nodes=nodes,
        start=round(scenario.warmup * SECOND),
        end=end,
        mtu=scenario.mac.mtu,
        reach=None if facts["link"].num_rows else reach_of(encoded, nodes),
        sense=scenario.radio.sense if scenario.radio.propagation == "two-ray" else 1.0,
        decisions=scenario.record.decisions,
    )
    return Record(facts, settings, network_of(facts, nodes, end, encoded, directed=True, drawn="possible"))
