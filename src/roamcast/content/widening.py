"""How long a filter in a frame may be: shorter than one that an application gives to its own node.

What a node does with a neighbour's filter, it does for free. So a frame with a filter of more than `MAX_IN_FRAME`
constraints is not listened to, and no honest node sends one: a longer filter is widened before it leaves.
"""

from typing import Final

import msgspec

from roamcast.content.covering import MIN_BUDGET, summarise
from roamcast.content.filter import EVERYTHING, Filter

MAX_IN_FRAME: Final = 256
"""Constraints; `content.filter.MAX_CONSTRAINTS` has those of a local one."""


def length(filter: Filter) -> int:
    """Constraints, or alternatives if these are more."""
    return max(sum(map(len, filter.alternatives)), len(filter.alternatives))


def too_long(filter: Filter) -> bool:
    return length(filter) > MAX_IN_FRAME


def widened(filter: Filter) -> Filter:
    """The filter, or one that covers it and may be sent."""
    budget = len(msgspec.msgpack.encode(filter))
    while too_long(filter):
        budget //= 2
        filter = summarise([filter], budget) if budget >= MIN_BUDGET else EVERYTHING
    return filter
