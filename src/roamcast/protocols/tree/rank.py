"""Ranks: why parent pointers never form a cycle, whatever is lost, late or out of date.

Every node has a rank, a number that never falls, not even when the node begins anew. The one rule: **a node's rank
stays below what its parent told it of its own**. The parent's rank has not fallen since, so ranks rise strictly from
every node to its parent, and a walk along parents cannot come back to where it began. Distances and lists of ancestors
may be out of date; they decide which path is chosen, never whether it is safe.

What makes the rule easy to keep: a leader has nobody above it and may rise at will, which is what the group sequence
number is for (`leader_rank`), and between two ranks there is room (`between`). So a path back to the tree is prepared
from its top: who passes a reply on first rises above the node that asked, below the one that told it.
"""

from typing import Final

MAX_SEQUENCE: Final = 2**30
MAX_RANK: Final = MAX_SEQUENCE << 32
STEP: Final = 1 << 24
"""What a level of the tree takes of the room below its leader: 256 levels fit, with room between them."""


def leader_rank(sequence: int) -> int:
    """The rank of a leader whose group sequence number that is."""
    return min(sequence, MAX_SEQUENCE) << 32


def sequence_above(rank: int) -> int:
    """The least group sequence number with which a leader has a higher rank; there may be none left."""
    return (rank >> 32) + 1


def between(low: int, high: int) -> int | None:
    """A rank above `low` and below `high`, near the upper end: there may be a long path below. None: no room."""
    if high - low < 2:
        return None
    return high - max(1, (high - low) // 8)
