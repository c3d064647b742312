"""What MAODV and COMAN do differently: the strategy that a tree and its search are given (`maodv.py`, `coman.py`)."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import Grph, Mact, Rrep, Rreq

Handlers = Mapping[type[Message], Callable[[Time, Node, Any], None]]


class Reply(NamedTuple):
    """A way back to the tree."""

    via: Node
    message: Rrep


class Reverse(NamedTuple):
    """Where a request came from, and what it said."""

    sender: Node
    rank: int
    jumped: bool = False
    """COMAN: it left the subtree of its origin here."""


class Rules(Protocol):
    handlers: Handlers
    """For messages that only these rules know."""

    # --- In a search ------------------------------------------------------------------------------------------------

    def length(self, reply: Reply) -> tuple[int, ...]:
        """The reply that has the least is activated; of several, the first that came."""

    def hear_request(self, now: Time, sender: Node, request: Rreq) -> None:
        """A node of the tree has heard a request."""

    def request_of(self, reply: Rrep, *, down: bool) -> Reverse | None:
        """What is remembered of the request that a reply is for; `down`: it comes down the tree, from the parent."""

    def way_back(self, reply: Rrep, reverse: Reverse | None) -> Node | None:
        """Where a reply goes."""

    def pass_down(self, reply: Rrep, reverse: Reverse) -> Rrep | None:
        """What this node passes on of a reply that comes down the tree, keeping its own place; None: nothing."""

    def ends_here(self, sender: Node, join: Mact) -> bool:
        """Whether this node gives the place although another replied."""

    def leave_parent(self, now: Time, parent: Node) -> None:
        """Somebody else's repair has brought a better place."""

    def settled(self) -> None:
        """This node has a new parent, or leads."""

    # --- Merging ----------------------------------------------------------------------------------------------------

    def hear_foreign_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """A node of the tree has heard of another tree."""

    def hear_request_to_merge(self, now: Time, sender: Node, request: Rreq) -> None: ...

    def pass_merge(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse | None) -> bool:
        """Does what is to be done about the reply to a merge; False if it is passed on as any other."""

    def hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None: ...

    # --- What happens to the tree -----------------------------------------------------------------------------------

    def start(self, now: Time) -> None: ...

    def announce(self, cause: int) -> bool:
        """Whether a new leader has announced itself in a way of its own."""

    def hear_tree_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """A group hello that came along the tree."""

    def timer(self, now: Time, key: Hashable) -> None: ...

    def unreachable(self, now: Time, to: Node, message: Message) -> None: ...
