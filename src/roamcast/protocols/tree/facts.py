"""The facts of trees of brokers."""

from typing import ClassVar

from roamcast.protocols.facts import Fact


class TreeChanged(Fact, frozen=True):
    """A node's position in a tree after it changed. docs/facts.md lists the changes."""

    table: ClassVar[str] = "tree"
    lasting: ClassVar[bool] = True

    change: str
    cause: int
    """The repair or merge that the change belongs to; 0: none."""
    parent: int | None
    """None at a root."""
    children: tuple[int, ...]
    leader: int | None
    """None if unknown."""
