"""All subscriptions that came through the API, with their mailboxes."""

from collections.abc import Iterable, Iterator
from typing import Final

from roamcast.content.event import Event
from roamcast.content.subscription import Subscription
from roamcast.content.widening import is_widened
from roamcast.errors import RoamcastError
from roamcast.live.admission import Authorship
from roamcast.live.control_messages import DeliveredEvent, SubscriberMessage
from roamcast.live.mailbox import Mailbox, Pool, QueuedDelivery

MAX_SUBSCRIPTIONS: Final = 1024
"""Subscriptions of one node; each has a mailbox."""


class Subscribers:
    """All subscriptions that came through the API."""

    def __init__(self, node: int, made: int, pool: Pool) -> None:
        """`made` is how many subscriptions were numbered here before."""
        self._node = node
        self.made = made
        self.pool = pool
        self._mailboxes: dict[int, Mailbox] = {}

    def __iter__(self) -> Iterator[Mailbox]:
        return iter(self._mailboxes.values())

    def __len__(self) -> int:
        return len(self._mailboxes)

    def get(self, number: int) -> Mailbox | None:
        return self._mailboxes.get(number)

    @property
    def next_number(self) -> int:
        """A number for a subscription without one, unique in the network."""
        return self._node << 32 | (self.made + 1)

    def add(self, subscription: Subscription, durable: bool) -> Mailbox:
        """A new subscription."""
        if len(self._mailboxes) >= MAX_SUBSCRIPTIONS:
            raise RoamcastError(f"this node has {MAX_SUBSCRIPTIONS} subscriptions, and takes no more")
        if subscription.id == self.next_number:
            self.made += 1
        former = self._mailboxes.pop(subscription.id, None)
        if former is not None:
            former.end()
        mailbox = Mailbox(subscription, durable, self.pool)
        self._mailboxes[subscription.id] = mailbox
        return mailbox

    def remove(self, number: int) -> None:
        mailbox = self._mailboxes.pop(number, None)
        if mailbox is not None:
            mailbox.end()

    def restore(self, waiting: Iterable[tuple[int, int, int]]) -> None:
        """Restores the deliveries that wait in the store: subscription, number and size of each, oldest first."""
        known: dict[int, QueuedDelivery] = {}
        for subscription, number, size in waiting:
            mailbox = self._mailboxes.get(subscription)
            if mailbox is not None:
                mailbox.put(known.setdefault(number, QueuedDelivery(None, size, number)))
        self.pool.make_room(self)

    def wanted(self, event: Event, subscriptions: tuple[int, ...]) -> tuple[int, ...]:
        """The subscriptions whose exact filter matches the event: the broker may have a wider one."""
        boxes = ((number, self._mailboxes.get(number)) for number in subscriptions)
        return tuple(
            number
            for number, box in boxes
            if box is None or not is_widened(box.subscription.filter) or box.subscription.filter.matches(event)
        )

    def prepare(
        self, event: Event, subscriptions: tuple[int, ...], hops: int, via: str, authorship: Authorship
    ) -> list[QueuedDelivery]:
        """The deliveries of an event; those for durable subscriptions are queued for the store."""
        author, verified, published = authorship
        message = SubscriberMessage(
            event=DeliveredEvent.of(event), hops=hops, via=via, author=author, verified=verified, published=published
        )
        boxes = [self._mailboxes[number] for number in subscriptions if number in self._mailboxes]
        durable = tuple(box.subscription.id for box in boxes if box.durable)
        made = [self.pool.new(message, durable)] if durable else []
        return made if len(durable) == len(boxes) else [*made, self.pool.new(message, ())]

    def deliver(self, deliveries: Iterable[QueuedDelivery], subscriptions: tuple[int, ...]) -> None:
        """Puts prepared deliveries into mailboxes, once they are on disk."""
        # A subscriber that has left meanwhile gets nothing.
        boxes = [self._mailboxes[number] for number in subscriptions if number in self._mailboxes]
        for delivery in deliveries:
            self.pool.hold(delivery)
            getting = [mailbox for mailbox in boxes if mailbox.durable == bool(delivery.number)]
            for mailbox in getting:
                mailbox.put(delivery)
            if delivery.number and not any(mailbox.listening for mailbox in getting):
                self.pool.drop_copy(delivery)
            self.pool.release(delivery, None)
        self.pool.make_room(self)
