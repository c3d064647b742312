"""Who had an event, since when and from whom.

The rules this file owns:

* The publisher has an event from its publication on.
* A node has it when a message with it arrived there whole. A message of several fragments is whole when the node
  received them all; of a unicast one, when it received the last, since each is acknowledged before the next.
* What a node did counts too: it delivered the event, passed it on, decided about it, or took it into its cache.
* That alone counts where a frame received is not an event taken: where nodes keep caches, since documents come in
  pieces; and on trees, whose broadcasts name their receivers.
"""

from typing import NamedTuple

import numpy as np

from roamcast.analysis.why.record import NOBODY, PublishedEvent, RunRecord, SentFrame

_WITHOUT_IT = ("given up", "cache full")
"""What a node may decide about an event that it never had whole."""


class Copy(NamedTuple):
    """A node's first copy of an event."""

    node: int
    time: int
    sender: int
    """Who it came from; `NOBODY`: the publisher's own, or not recorded."""
    frame: int
    """In which frame; `NOBODY`."""


def copies(record: RunRecord, published: PublishedEvent, frames: list[SentFrame]) -> dict[int, Copy]:
    """By node, in the order of time; `frames` are those that carry the event."""
    event = published.event
    had: dict[int, int] = {published.node: published.time}
    for node, time in record.delivered.get(event, {}).items():
        _earlier(had, node, time)
    for frame in frames:
        _earlier(had, frame.sender, frame.start)
    cached = bool(record.tables.get("cache"))
    for decided in record.decided.get(event, ()):
        if not (cached and decided.decision in _WITHOUT_IT):
            _earlier(had, decided.node, decided.time)
    for node, changes in record.kept.get(event, {}).items():
        for time, entered, _ in changes:
            if entered:
                _earlier(had, node, time)
    arrived = _arrivals(record, frames)
    if not (cached or record.has_tree):
        for node, (time, _, _) in arrived.items():
            _earlier(had, node, time)
    found = []
    for node, time in had.items():
        came, sender, number = arrived.get(node, (0, NOBODY, NOBODY))
        known = node in arrived and came <= time and node != published.node
        found.append(Copy(node, time, sender if known else NOBODY, number if known else NOBODY))
    return {copy.node: copy for copy in sorted(found, key=lambda copy: (copy.time, copy.node))}


def _earlier(had: dict[int, int], node: int, time: int) -> None:
    had[node] = min(time, had.get(node, time))


def _arrivals(record: RunRecord, frames: list[SentFrame]) -> dict[int, tuple[int, int, int]]:
    """By node: when a message was there whole for the first time, from whom, and its last frame."""
    if not frames:
        return {}
    whole = [message for message in messages(frames, record.run.scenario.mac.mtu) if not record.cut_off(message[-1])]
    if not whole:
        return {}
    nodes = record.run.nodes
    place, node, outcome = record.outcomes([frame for message in whole for frame in message])
    of_place = np.repeat(np.arange(len(whole)), [len(message) for message in whole])
    needed = np.array([1 if message[-1].to != NOBODY else len(message) for message in whole])
    received = outcome == record.received
    keys, count = np.unique(of_place[place[received]] * nodes + node[received], return_counts=True)
    complete = keys[count >= needed[keys // nodes]] if len(keys) else keys
    found: dict[int, tuple[int, int, int]] = {}
    for which, one in zip(*(column.tolist() for column in divmod(complete, nodes)), strict=True):
        last = whole[which][-1]
        if one not in found or last.end < found[one][0]:
            found[one] = last.end, last.sender, last.number
    return found


def messages(frames: list[SentFrame], mtu: int) -> list[list[SentFrame]]:
    """Frames grouped by the message that they are fragments of; a unicast fragment is its last alone."""
    open_: dict[tuple[int, int, str], list[SentFrame]] = {}
    done: list[list[SentFrame]] = []
    for frame in frames:
        key = frame.sender, frame.to, frame.kind
        part = open_.setdefault(key, [])
        part.append(frame)
        if frame.size < mtu:
            done.append(part if frame.to == NOBODY else [frame])
            del open_[key]
    return done + [part for part in open_.values() if part]
