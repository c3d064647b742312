"""Source routes: an answer goes back the way that a broadcast came.

A broadcast lists the nodes that have passed it on, its origin first; whoever passes it on adds the node that it heard
it from. An answer lists the nodes that it still has to pass. The rules this file owns:

* A path or route has at most `MAX_LENGTH` nodes, all of them numbers that a node can have, and none twice; what says
  otherwise leads nowhere.
* A hop that cannot be reached ends the answer: there is no other way, and the next broadcast will find a new one.
"""

from typing import Annotated, Final

from msgspec import Meta

from roamcast.content.event import MAX_NODE

MAX_LENGTH: Final = 16

Path = Annotated[tuple[int, ...], Meta(max_length=MAX_LENGTH)]
"""The nodes that have sent a broadcast, the origin first; without the one that it was just heard from."""
Route = Annotated[tuple[int, ...], Meta(max_length=MAX_LENGTH)]
"""The nodes that an answer still has to pass after the one that gets it next, the last being for whom it is."""


def origin(path: Path, sender: int) -> int:
    """Who sent a broadcast first."""
    return path[0] if path else sender


def plausible(path: Path | Route) -> bool:
    """Whether a path or route can be one."""
    return not path or (min(path) >= 0 and max(path) <= MAX_NODE and len(set(path)) == len(path))


def extended(path: Path, sender: int) -> Path | None:
    """The path in the copy that a node passes on; None if it would be too long or run in a circle."""
    if len(path) >= MAX_LENGTH or sender in path:
        return None
    return (*path, sender)


def back(path: Path, sender: int) -> tuple[int, Route]:
    """The next node on the way to a broadcast's origin, and the rest of the way."""
    return sender, path[::-1]


def onward(route: Route, node: int) -> tuple[int, Route] | None:
    """Where a node sends an answer next, and the rest of the way; None if the way is none."""
    if not route or node in route or not plausible(route):
        return None
    return route[0], route[1:]
