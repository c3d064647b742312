"""The rows of what applications asked for, as the tables `subscribe` and `publish` have them.

Contexts are told as their text, which reads back as an equal context.
"""

from typing import Any

from roamcast.content.context.expression import Context
from roamcast.content.subscription import Publication, Subscription


def subscribe_row(time: int, node: int, subscription: Subscription) -> tuple[Any, ...]:
    """A subscription has begun."""
    wanted, contexts = str(subscription.filter), (subscription.interest, subscription.publication_domain)
    return time, node, subscription.id, True, wanted, subscription.lifetime, *map(_text, contexts)


def unsubscribe_row(time: int, node: int, subscription: int) -> tuple[Any, ...]:
    """A subscription is over."""
    return time, node, subscription, False, None, None, None, None


def publish_row(time: int, node: int, publication: Publication) -> tuple[Any, ...]:
    event, contexts = publication.event, (publication.relevance, publication.subscription_domain)
    return time, node, event.id, event.type, event.size, publication.lifetime, *map(_text, contexts)


def _text(context: Context | None) -> str | None:
    return None if context is None else str(context)
