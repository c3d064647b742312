"""How long a filter in a frame may be: shorter than one that an application gives to its own node.

A node's work on a neighbour's filter costs the neighbour nothing. So nodes ignore a frame with a filter of more than
`MAX_IN_FRAME` constraints, and no honest node sends one: a longer filter is widened before it is sent.
"""

from functools import lru_cache
from typing import Final

import msgspec

from roamcast.content.covering import MIN_BUDGET, summarise
from roamcast.content.filter import EVERYTHING, Filter

MAX_IN_FRAME: Final = 256
"""Constraints; `content.filter.MAX_CONSTRAINTS` is the limit for a local filter."""
MAX_OCTETS: Final = 8192
"""Bytes of the encoding of a filter that an application's is widened to."""


def length(filter: Filter) -> int:
    """The number of constraints, or of alternatives if that is larger."""
    return max(sum(map(len, filter.alternatives)), len(filter.alternatives))


def too_long(filter: Filter) -> bool:
    return length(filter) > MAX_IN_FRAME


@lru_cache(maxsize=1024)
def is_widened(filter: Filter) -> bool:
    """Whether `widened` gives another filter: one that lets through more."""
    return too_long(filter) or len(msgspec.msgpack.encode(filter)) > MAX_OCTETS


def widened(filter: Filter) -> Filter:
    """The filter, or one that covers it and is short enough to send."""
    budget = len(msgspec.msgpack.encode(filter))
    while too_long(filter) or budget > MAX_OCTETS:
        budget = min(budget // 2, MAX_OCTETS)
        filter = summarise([filter], budget) if budget >= MIN_BUDGET else EVERYTHING
    return filter
