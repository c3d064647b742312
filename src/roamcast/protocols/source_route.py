"""Source routes: an answer travels back along the path of a broadcast.

A broadcast lists the nodes that have passed it on, its origin first; each node that passes it on adds the node it heard
it from. An answer lists the nodes that it still has to visit. The rules this file owns:

* A path or route has at most `MAX_LENGTH` valid node numbers, none twice; any other is ignored.
* If a hop cannot be reached, the answer is lost: there is no other route, and the next broadcast will find a new one.
"""

from typing import Annotated, Final

from msgspec import Meta

from roamcast.content.event import MAX_NODE

MAX_LENGTH: Final = 16

Path = Annotated[tuple[int, ...], Meta(max_length=MAX_LENGTH)]
"""The nodes that have sent a broadcast, the origin first; without the one that it was just heard from."""
Route = Annotated[tuple[int, ...], Meta(max_length=MAX_LENGTH)]
"""The nodes that an answer still has to visit after the next one; the last is its destination."""


def origin(path: Path, sender: int) -> int:
    """The node that first sent a broadcast."""
    return path[0] if path else sender


def plausible(path: Path | Route) -> bool:
    """Whether a path or route follows the rules."""
    return not path or (min(path) >= 0 and max(path) <= MAX_NODE and len(set(path)) == len(path))


def extended(path: Path, sender: int) -> Path | None:
    """The path in the copy that a node passes on; None if it would be too long or a loop."""
    if len(path) >= MAX_LENGTH or sender in path:
        return None
    return (*path, sender)


def back(path: Path, sender: int) -> tuple[int, Route]:
    """The next node towards a broadcast's origin, and the rest of the route."""
    return sender, path[::-1]


def onward(route: Route, node: int) -> tuple[int, Route] | None:
    """The node to send an answer to next, and the rest of the route; None if the route is not valid."""
    if not route or node in route or not plausible(route):
        return None
    return route[0], route[1:]
