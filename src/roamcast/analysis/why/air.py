"""What was on the air at a receiver while it lost a frame.

The rule this file owns: a frame was heard there if the receiver was within the distance at which its sender's frames
interfere, `sense` ranges; with links, if the link was there. At the receiver itself, its own frames are what it sent.
"""

from typing import NamedTuple

import numpy as np

from roamcast.analysis.why.explain import Lost
from roamcast.analysis.why.record import RunRecord, SentFrame, at


class OtherFrame(NamedTuple):
    """Another frame at the same time."""

    frame: SentFrame
    distance: float | None
    """From its sender to the receiver, m; None with links."""


def heard_beside(record: RunRecord, lost: Lost) -> list[OtherFrame]:
    """The frames that were on the air at the receiver while the lost one was, the nearest first."""
    found = []
    for frame in record.on_air(lost.frame):
        distance = record.distance(frame.sender, lost.node, frame.start)
        if frame.sender == lost.node or _interferes(record, frame, lost.node, distance):
            found.append(OtherFrame(frame, distance))
    return sorted(found, key=lambda heard: (heard.distance or 0.0, heard.frame.number))


def _interferes(record: RunRecord, frame: SentFrame, node: int, distance: float | None) -> bool:
    radio = record.run.scenario.radio
    if distance is not None and record.reach is not None:
        ranges = record.reach.by_node(record.run.nodes, "possible")
        return distance <= float(ranges[frame.sender]) * (radio.sense if radio.propagation == "two-ray" else 1.0)
    network = record.contacts
    if network is None:
        return False
    there = at(network, frame.start) & (network.sender == frame.sender) & (network.receiver == node)
    return bool(np.any(there))
