"""ODMRP (Chiang et al. 1999) extended by content (Yoneki, Bacon 2004): a mesh of forwarders for each group.

The rules this file owns:

1. **Join Request.** A source that has an event for a group floods a Join Request with the event inside, if its last
   one for that group was `refresh` ago. Every node, receivers included, passes on the first copy it hears, after a
   random wait, and remembers the sender as its upstream for (source, group). Chance decides between equal neighbours.
   A source without events floods nothing; when it stops, everything that it built expires.
2. **Join Table.** A node that belongs to the group answers with a Join Table: for each source the upstream node, and
   what it wants. A node that is named in one sets its flag for the group, and sends a Join Table of its own, with the
   members it has learned of; and so on up to the source. Those within `gather` are sent as one, and nothing is said
   twice in answer to one Join Request. Each step names the Join Request it was learned from. Requests only get newer on
   the way, and steps of the same request lead strictly towards the source, so no Join Table can loop.
3. **Change.** When its subscriptions change, a node sends Join Tables to all sources it has heard of within `timeout`
   whose groups it now belongs to. There is no message for leaving.
4. **Data.** Between Join Requests a source broadcasts events as Data. A node that hears the first copy delivers it, and
   passes it on if its flag is set. A node that belongs to the group but has no flag only listens.
5. **Soft state.** Routes, flags and members last for `timeout`. A source knows its members and what they want; an event
   that none of them wants is not sent. A Join Table without members does not say what is wanted: anything may be.
6. **New groups.** For `settle` after the first Join Request of a group, and while no member is known, there is no route
   for Data. Events wait; with `unknown = "hold"` until a member is known, but no longer than `refresh`.

An `Extension` defines what a group means; plain ODMRP is the same code with fixed channels.
"""

from collections.abc import Hashable, Mapping
from random import Random
from typing import Final

from roamcast.bounded import put
from roamcast.content.event import Event
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.api import Broker, Node, Port, Time
from roamcast.protocols.entry import Entry
from roamcast.protocols.messages import MAX_HOPS, Message
from roamcast.protocols.odmrp.content import Content
from roamcast.protocols.odmrp.extension import Channels, Extension, GroupOffer
from roamcast.protocols.odmrp.messages import (
    MAX_MEMBERS,
    MAX_ROWS,
    GroupData,
    JoinEvent,
    JoinRequest,
    JoinTable,
    Member,
    Row,
    cause_of,
    one,
)
from roamcast.protocols.odmrp.parameters import Odmrp
from roamcast.protocols.odmrp.tables import (
    Flags,
    GroupMembers,
    HeldEvent,
    MeshChanged,
    PendingTable,
    Route,
    RoutesBack,
    Sending,
)
from roamcast.protocols.window import DuplicateWindow
from roamcast.units import seconds

_LIVES: Final = "odmrp/lives"
"""Key of the kept number of starts: a node's Join Requests must differ from those before a restart."""

MAX_KNOWN: Final = 512
"""Members' attachments that are looked at for an event."""


class OdmrpBroker(Broker[Odmrp]):
    def __init__(self, node: Node, params: Odmrp, port: Port, rng: Random) -> None:
        super().__init__(node, params, port, rng)
        self._refresh, self._timeout, self._settle, self._gather = map(
            seconds, (params.refresh, params.timeout, params.settle, params.gather)
        )
        self._extension: Extension = (
            Content(node, params, port.spend) if params.mode == "extended" else Channels(params.channels)
        )
        self._sequence = 0
        self._routes = RoutesBack(self._timeout, params.table)
        self._flags = Flags(port, self._timeout, params.table)
        self._members = GroupMembers(self._timeout, params.table, self._extension.merge)
        self._sending: dict[int, Sending] = {}
        self._pending: dict[int, PendingTable] = {}
        self._requests = DuplicateWindow(params.window, lambda request: self._forget(request, JoinRequest, JoinEvent))
        # (group, event): an event may go to several groups
        self._events = DuplicateWindow(params.window, lambda event: self._forget(event, GroupData))
        port.withhold(GroupData, "duplicate", once=True)
        if params.upstream == "first":  # else further copies tell of further ways
            port.withhold(JoinRequest, once=True)
            port.withhold(JoinEvent, "duplicate", once=True)

    def start(self, now: Time, kept: Mapping[str, bytes]) -> None:
        super().start(now, kept)
        lives = int.from_bytes(kept.get(_LIVES, b""), "big")
        self.port.keep(_LIVES, (lives + 1).to_bytes(4, "big"))
        self._sequence = (lives & 0x7FFFFFFF) << 32

    def subscribe(self, now: Time, subscription: Subscription) -> None:
        super().subscribe(now, subscription)
        self._change(now)

    def unsubscribe(self, now: Time, subscription_id: int) -> None:
        super().unsubscribe(now, subscription_id)
        self._change(now)

    def _change(self, now: Time) -> None:
        self._extension.change(self.local.filters)
        self._report_all(now)

    def receive(self, now: Time, sender: Node, message: Message) -> None:
        if isinstance(message, JoinRequest):
            self._hear_request(now, sender, message)
        elif isinstance(message, JoinTable):
            self._hear_table(now, sender, message)
        elif isinstance(message, GroupData):
            self._hear_data(now, message)

    def _forget(self, subject: int, *kinds: type[Message]) -> None:
        for kind in kinds:
            self.port.know(kind, subject, False)

    def timer(self, now: Time, key: Hashable) -> None:
        match key:
            case ("table", int(group)):
                self._send_table(now, group)
            case ("flag", int(group)):
                self._flags.check(now, group)
            case ("held", int(group)):
                self._release(now, group)

    # --- Join Requests ----------------------------------------------------------------------------------------------

    def _request(self, now: Time, sending: Sending, offer: GroupOffer, event: Event, inside: bool) -> None:
        self._sequence += 1
        sending.latest, sending.due = now, now + self._varied()
        about = self._extension.about(event, offer, lambda: self._known(now))
        self._requests.add(one(self.node, self._sequence))
        head = self.node, offer.group, self._sequence, 0, about
        if inside:
            self.port.decide(event.id, "forwarded")
            self.port.broadcast(JoinEvent(*head, event))
        else:
            self.port.broadcast(JoinRequest(*head))

    def _hear_request(self, now: Time, sender: Node, message: JoinRequest) -> None:
        source, group = message.source, message.group
        if not self._requests.add(one(source, message.sequence)):
            self._hear_copy(now, sender, message)
            return
        if source == self.node:
            return  # from before a restart, or forged
        known = self._routes.get(now, source, group)
        if known is None or known.sequence < message.sequence:  # else a later one has overtaken it
            self._routes.set(source, group, Route(message.sequence, message.hops, [sender], message.about, now))
            if self._extension.joins(group, message.about):
                self._report(now, source, group)
        self._pass_on(message)

    def _hear_copy(self, now: Time, sender: Node, message: JoinRequest) -> None:
        if isinstance(message, JoinEvent):
            self.port.note("duplicate")
        route = self._routes.get(now, message.source, message.group)
        if (
            self.params.upstream == "all"
            and route is not None
            and (message.sequence == route.sequence and message.hops <= route.hops)
        ):
            route.add(sender)

    def _pass_on(self, message: JoinRequest) -> None:
        hops = min(message.hops + 1, MAX_HOPS)
        head = message.source, message.group, message.sequence, hops, message.about
        if isinstance(message, JoinEvent):
            if self._events.add(one(message.group, message.event.id)):
                self.local.deliver(message.event, hops, "join_event")
            self.port.decide(message.event.id, "forwarded")
            self.port.broadcast(JoinEvent(*head, message.event), self._jitter())
        else:
            self.port.broadcast(JoinRequest(*head), self._jitter())

    # --- Join Tables ------------------------------------------------------------------------------------------------

    def _report_all(self, now: Time) -> None:
        """Schedules a Join Table for every group that this node belongs to."""
        for source, group, route in self._routes.live(now):
            if self._extension.joins(group, route.about):
                self._report(now, source, group)

    def _report(self, now: Time, source: Node, group: int, below: bool = False) -> PendingTable:
        pending = self._pending.get(group)
        if pending is None:
            pending = PendingTable()
            put(self._pending, group, pending, self.params.table)
            self.port.set_timer(now + seconds(self.rng.random() * self.params.gather), ("table", group))
        put(pending.sources, source, below or pending.sources.get(source, False), MAX_ROWS)
        return pending

    def _send_table(self, now: Time, group: int) -> None:
        pending = self._pending.pop(group, None)
        if pending is None:
            return
        members, own, live = pending.members, self._extension.wanted(), dict[Node, Route]()
        for source, below in pending.sources.items():
            route = self._routes.get(now, source, group)
            joins = route is not None and self._extension.joins(group, route.about)
            if joins and own:
                members[self.node] = own
            if route is not None and (joins or below):
                live[source] = route
        if members and self._answers_for_all(now, group, members):
            # It replaces what this node said before, so it includes what was heard since the refresh before this one.
            earlier = self._members.since(now - 2 * self._refresh - self._gather, group)
            members = {self.node: self._extension.merge([*members.values(), *earlier])}
        rows: list[Row] = []
        told: dict[Node, bytes] = {}
        for source, route in live.items():
            news = route.news(members)
            if news is not None:
                rows += [Row(source, node, route.sequence) for node in route.upstream]
                told.update(news)
                route.tell(news)
        if rows:
            listed = tuple(Member(node, wanted) for node, wanted in told.items())
            self.port.broadcast(JoinTable(group, tuple(rows[:MAX_ROWS]), listed))

    def _answers_for_all(self, now: Time, group: int, members: dict[Node, bytes]) -> bool:
        """Whether the members below this node go by its own name: they are merged, or too many to be named."""
        return self.params.merge or len(members) > MAX_MEMBERS or len(self._members.of(now, group)) > MAX_MEMBERS

    def _hear_table(self, now: Time, sender: Node, message: JoinTable) -> None:
        group = message.group
        named = [row for row in message.rows if row.next_hop == self.node and self._leads_on(now, group, row)]
        if not named:
            return
        others = [member for member in message.members if member.node != self.node]
        if message.members and not others:
            return  # nobody but this node
        for member in others or (Member(sender, b""),):
            self._members.hear(now, group, member.node, member.wanted)
        for row in named:
            if row.source == self.node:
                self._release(now, group)
            else:
                self._flags.set(now, group, cause_of(row.source, row.sequence))
                pending = self._report(now, row.source, group, below=True)
                for member in others:  # of more than can be named, `_members` has all
                    put(pending.members, member.node, member.wanted, MAX_MEMBERS + 1)

    def _leads_on(self, now: Time, group: int, row: Row) -> bool:
        """Whether this node is the row's source, or knows a route there that is at least as new as the row."""
        if row.source == self.node:
            return group in self._sending
        route = self._routes.get(now, row.source, group)
        return route is not None and row.sequence <= route.sequence

    # --- Events -----------------------------------------------------------------------------------------------------

    def publish(self, now: Time, publication: Publication) -> None:
        event = publication.event
        self.local.deliver(event, 0, "local")
        offers = self._extension.offers(event, lambda: self._known(now))
        if not offers:
            self.port.decide(event.id, "not wanted")
        for offer in offers:
            self._events.add(one(offer.group, event.id))
            self._send(now, offer, event)

    def _known(self, now: Time) -> list[bytes]:
        """What the members of this source's groups attached, each once; only of the latest groups if too many."""
        wishes: dict[bytes, None] = {}
        since = now - self._extension.memory * self._timeout
        for group in reversed(self._sending):
            wishes.update(dict.fromkeys(self._members.since(since, group)))
            if len(wishes) > MAX_KNOWN:
                break
        return [wanted for wanted in wishes if wanted]

    def _send(self, now: Time, offer: GroupOffer, event: Event) -> None:
        sending = self._sending.get(offer.group)
        if sending is None or now - sending.latest > self._timeout:
            sending = Sending(now, now, now)
            put(self._sending, offer.group, sending, self.params.table)
        if now >= sending.due:
            inside = self.params.request != "advertisement"
            self._request(now, sending, offer, event, inside)
            if inside:
                return
        held = HeldEvent(event, offer, now + self._refresh)
        if not self._try(now, sending, held):
            self._hold(now, sending, held)

    def _try(self, now: Time, sending: Sending, held: HeldEvent) -> bool:
        """Sends an event between two Join Requests, or decides against it; False: it must wait."""
        if now < sending.started + self._settle:
            return False
        event, group = held.event, held.offer.group
        members = self._members.of(now, group)
        if members and not any(self._extension.wants(wanted, event) for wanted in members):
            self.port.decide(event.id, "not wanted")
        elif members or self.params.unknown == "data":
            self.port.decide(event.id, "forwarded")
            self.port.broadcast(GroupData(group, event, 0))
        elif now >= held.until:
            self.port.decide(event.id, "no route")
        else:
            return False
        return True

    def _hold(self, now: Time, sending: Sending, held: HeldEvent) -> None:
        group = held.offer.group
        oldest = put(sending.held, held.event.id, held, self.params.held)
        if oldest is not None:
            self.port.decide(oldest, "no route")
        settled = sending.started + self._settle
        if now < settled:
            self.port.set_timer(settled, ("held", group))
        self.port.set_timer(held.until, ("held", group))

    def _release(self, now: Time, group: int) -> None:
        """Tries waiting events again: a member is known now, or time has passed."""
        sending = self._sending.get(group)
        if sending is None:
            return
        for held in list(sending.held.values()):
            if self._try(now, sending, held):
                del sending.held[held.event.id]

    def _hear_data(self, now: Time, message: GroupData) -> None:
        group, event = message.group, message.event
        if not self._events.add(one(group, event.id)):
            self.port.note("duplicate")
            return
        hops = min(message.hops + 1, MAX_HOPS)
        self.local.deliver(event, hops, "data")
        if not self._flags.is_set(now, group):
            self.port.decide(event.id, "no route")
        elif not self._is_wanted_below(now, group, event):
            self.port.decide(event.id, "not wanted")
        else:
            self.port.decide(event.id, "forwarded")
            self.port.broadcast(GroupData(group, event, hops), self._jitter())

    def _is_wanted_below(self, now: Time, group: int, event: Event) -> bool:
        if self.params.forwarding == "flag":
            return True
        members = self._members.of(now, group)
        return not members or any(self._extension.wants(wanted, event) for wanted in members)

    # --- Chance -----------------------------------------------------------------------------------------------------

    def _jitter(self) -> Time:
        return seconds(self.rng.random() * self.params.jitter)

    def _varied(self) -> Time:
        """`refresh`, varied at random, so that nodes do not synchronise."""
        return round(self._refresh * (1 + self.params.spread * (2 * self.rng.random() - 1)))

    def tables(self) -> dict[str, int]:
        return {
            **super().tables(),
            "routes": len(self._routes),
            "flags": len(self._flags),
            "members": len(self._members),
            "sending": len(self._sending),
            "held": sum(len(sending.held) for sending in self._sending.values()),
            "pending": len(self._pending),
            "requests": len(self._requests),
            "seen": len(self._events),
        }


ENTRY: Final = Entry(
    "odmrp",
    "a mesh of forwarders for each content, kept by floods (Yoneki, Bacon 2004), or for fixed channels",
    Odmrp,
    OdmrpBroker,
    (JoinRequest, JoinEvent, JoinTable, GroupData),
    (MeshChanged,),
    compared=({"mode": "extended"}, {"mode": "one-channel"}),
)
