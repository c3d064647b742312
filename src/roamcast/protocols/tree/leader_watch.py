"""COMAN's part D: a missing leader is replaced by the one node that cannot reach its upstream.

Mottola, Cugola, Picco, section III-D. A node that has heard no group hello along the tree for too long asks its parent
(CHK_UP) whether it is still its child. If it is not, or if nobody answers, it is the topmost of its part, and leads.
A parent that has not answered may still have it as a child, and is told that it is not.
"""

from collections.abc import Hashable

from roamcast.protocols.api import Node, Time
from roamcast.protocols.messages import Message
from roamcast.protocols.tree.messages import Ack, ChkUp, cause_of
from roamcast.protocols.tree.parameters import Coman
from roamcast.protocols.tree.tree import HELLO, Tree
from roamcast.units import seconds


class LeaderWatch:
    def __init__(self, tree: Tree, params: Coman) -> None:
        self._position = tree.position
        self._search = tree.search
        self._port = tree.port
        self._on = params.election
        self._patience = seconds(params.patience * params.group_hello)
        self._led: Time = 0  # when the leader was last heard along the tree, or this node got a new parent
        self._checking: int | None = None  # the cause of the check in progress
        self._checks = 0

    def hear_leader(self, now: Time) -> None:
        self._led = now

    def settled(self) -> None:
        """This node has a new parent, or leads."""
        self._checking = None

    def timer(self, now: Time, key: Hashable) -> None:
        if key == HELLO:
            self._check_leader(now)
        elif (
            self._checking is not None and self._position.parent is not None and key == ("tree", "check", self._checks)
        ):
            self._give_up(now, self._position.parent, self._checking)

    def _check_leader(self, now: Time) -> None:
        parent = self._position.parent
        if not self._on or parent is None:
            self._led = now
        elif now - self._led > self._patience and self._checking is None:
            self._checks += 1
            self._checking = cause_of(self._position.node, self._search.next_serial())
            self._port.unicast(parent, ChkUp(self._checking))
            self._port.set_timer(now + self._search.retry_wait, ("tree", "check", self._checks))

    def hear_check(self, now: Time, sender: Node, check: ChkUp) -> None:
        self._port.unicast(sender, Ack(check.repair, sender in self._position.children))

    def hear_answer(self, now: Time, sender: Node, message: Ack) -> None:
        if message.repair == self._checking and sender == self._position.parent:
            self._led = now
            if message.child:
                self._checking = None
            else:
                self._replace_leader(now, message.repair)

    def unreachable(self, now: Time, to: Node, message: Message) -> None:
        if isinstance(message, ChkUp) and message.repair == self._checking and to == self._position.parent:
            self._give_up(now, to, message.repair)

    def _give_up(self, now: Time, parent: Node, cause: int) -> None:
        self._position.end_link(parent)
        self._replace_leader(now, cause)

    def _replace_leader(self, now: Time, cause: int) -> None:
        """As after a failed repair: a member becomes the leader, a forwarder asks a child to."""
        if self._position.member:
            self._search.lead(now, "elected", cause)
        else:
            self._checking = None
            self._position.drop_parent(now)
            self._search.hand_over(now)
