"""What MAODV and COMAN do differently: the strategy of a tree and its search (`maodv.py`, `coman.py`)."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import Grph, Mact, Rrep, Rreq

Handlers = Mapping[type[Message], Callable[[Time, Node, Any], None]]


class Reply(NamedTuple):
    """An offered path to the tree."""

    via: Node
    message: Rrep


class Reverse(NamedTuple):
    """Where a request came from, and its content."""

    sender: Node
    rank: int
    jumped: bool = False
    """COMAN: it left the subtree of its origin here."""


class Rules(Protocol):
    handlers: Handlers
    """For messages that only these rules know."""

    # --- In a search ------------------------------------------------------------------------------------------------

    def length(self, reply: Reply) -> tuple[int, ...]:
        """The sort key of replies: the least is activated; of equals, the first that came."""

    def hear_request(self, now: Time, sender: Node, request: Rreq) -> None:
        """A node of the tree has received a request."""

    def request_of(self, reply: Rrep, *, down: bool) -> Reverse | None:
        """What is remembered about a reply's request; `down`: the reply comes down the tree, from the parent."""

    def way_back(self, reply: Rrep, reverse: Reverse | None) -> Node | None:
        """The next node for a reply."""

    def pass_down(self, reply: Rrep, reverse: Reverse) -> Rrep | None:
        """The reply to pass on when one comes down the tree and this node keeps its position; None: nothing."""

    def ends_here(self, sender: Node, join: Mact) -> bool:
        """Whether this node adopts the child although another node replied."""

    def leave_parent(self, now: Time, parent: Node) -> None:
        """Another node's repair has brought a better parent."""

    def settled(self) -> None:
        """This node has a new parent, or leads."""

    # --- Merging ----------------------------------------------------------------------------------------------------

    def hear_foreign_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """A node of the tree has heard of another tree."""

    def hear_request_to_merge(self, now: Time, sender: Node, request: Rreq) -> None: ...

    def pass_merge(self, now: Time, sender: Node, reply: Rrep, reverse: Reverse | None) -> bool:
        """Handles the reply to a merge; returns False if it is to be passed on like any other."""

    def hear_own_merge(self, now: Time, sender: Node, reply: Rrep) -> None: ...

    # --- What happens to the tree -----------------------------------------------------------------------------------

    def start(self, now: Time) -> None: ...

    def announce(self, cause: int) -> bool:
        """Announces a new leader in its own way; returns False if the rules have none."""

    def hear_tree_hello(self, now: Time, sender: Node, hello: Grph) -> None:
        """A group hello that came along the tree."""

    def timer(self, now: Time, key: Hashable) -> None: ...

    def unreachable(self, now: Time, to: Node, message: Message) -> None: ...
