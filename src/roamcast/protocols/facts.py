"""Facts that a broker can record: typed rows that the world writes with the time and the node.

A fact is a frozen struct declared beside the protocol that records it, and listed in the protocol's `Entry`. Its class
is a table: `table` is its name, the fields are its columns, after `time` and `node`. Schema, recorder, live facts and
the lab's gathering follow from the declaration; docs/facts.md lists the tables of our own protocols.
"""

from typing import ClassVar, Literal

import msgspec

from roamcast.content.event import EventId

Decided = Literal[
    "forwarded",
    "suppressed",
    "not chosen",
    "no route",
    "not wanted",
    "cache full",
    "expired",
    "given up",
]
"""What a broker may decide about an event:

* `forwarded`: it passes the event on (to `to`, or to all nodes in range);
* `suppressed`: it would have, but heard somebody else do so;
* `not chosen`: a random choice decided against it, or it is no nearer to the event's destination;
* `no route`: it knows no one to pass it on to;
* `not wanted`: it knows its neighbours, and none of them wants it;
* `cache full`: it could not keep it, or had to drop it for another;
* `expired`: the event's lifetime is over;
* `given up`: it tried to send it to `to`, who could not be reached.
"""


class Fact(msgspec.Struct, frozen=True):
    """The base of all facts. Fields are ints, floats, bools, strings (each may be None) or tuples of ints."""

    table: ClassVar[str]
    """The name of its table: letters, digits and underscores."""
    lasting: ClassVar[bool] = False
    """Whether a row describes a state that lasts until the next row: then the last row from before a run's start holds
    at its start. Otherwise a row is about one instant."""


class Decision(Fact, frozen=True):
    """What a broker decided about an event. Recorded on request, through `Port.decide`."""

    table: ClassVar[str] = "decision"

    event: EventId
    decision: Decided
    to: int | None = None
    """The neighbour that the decision is about, if any."""
