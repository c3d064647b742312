"""The interface between routing and the layer above it, and plain ODMRP's side of it.

The paper calls this interface its key contribution. Routing knows groups: numbers for which it builds meshes. An
`Extension` defines what a group means. Routing asks it six things:

* which groups an event goes to;
* what a Join Request for one of them says (*attach to a Join Request*);
* whether this node belongs to the group of a Join Request that says this (*compare*);
* what this node wants (*attach to a Join Table*);
* one attachment for many, when a forwarder speaks for the members downstream (*merge*);
* whether a member with this attachment wants an event (*compare*).

Plain ODMRP attaches nothing. Its groups are predefined channels, each with a filter; with one channel the filter is
`true`.
"""

import abc
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from roamcast.content.covering import covers
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.text import parse_filter


class GroupOffer(NamedTuple):
    """A group that an event goes to."""

    group: int
    filter: Filter | None = None
    """What its members want, if the group was made for a filter."""
    elements: frozenset[int] | None = None
    """The keys of the elements that count, if the group was made by some of them."""


Known = Callable[[], Sequence[bytes]]
"""Gives what the members of this source's groups have attached, each attachment once; collected when called."""


class Extension(abc.ABC):
    memory: int = 1
    """For how many times `timeout` what a member has attached is `Known`."""

    @abc.abstractmethod
    def change(self, filters: Sequence[Filter]) -> None:
        """The node's own subscriptions have changed to these."""

    @abc.abstractmethod
    def offers(self, event: Event, known: Known) -> list[GroupOffer]:
        """The groups that an event goes to."""

    def about(self, event: Event, offer: GroupOffer, known: Known) -> bytes:
        """What a Join Request for the event and one of its groups says."""
        return b""

    @abc.abstractmethod
    def joins(self, group: int, about: bytes) -> bool:
        """Whether this node belongs to a group."""

    def wanted(self) -> bytes:
        """What this node wants, for a Join Table; empty: nothing to attach."""
        return b""

    def merge(self, wanted: Iterable[bytes]) -> bytes:
        """One attachment that covers all of these. An empty one says nothing, so that anything may be wanted."""
        return b""

    def wants(self, wanted: bytes, event: Event) -> bool:
        """Whether a member with this attachment may want the event."""
        return True


class Channels(Extension):
    """Predefined groups: an event goes to every channel whose filter matches it."""

    def __init__(self, filters: Sequence[str]) -> None:
        self._channels = _parsed(tuple(filters)) if filters else ONE_CHANNEL
        self._joined: frozenset[int] = frozenset()

    def change(self, filters: Sequence[Filter]) -> None:
        self._joined = frozenset(channel for filter in filters for channel in self._channels_for(filter))

    def _channels_for(self, wanted: Filter) -> list[int]:
        """One channel for the filter, or one for each of its alternatives; to be sure all of them if one has none."""
        whole = self._channel_for(wanted)
        if whole is not None:
            return [whole]
        parts = [self._channel_for(Filter((conjunction,))) for conjunction in wanted.alternatives]
        found = [channel for channel in parts if channel is not None]
        return found if len(found) == len(parts) else list(self._channels)

    def _channel_for(self, wanted: Filter) -> int | None:
        """The channel with the same filter; otherwise one that covers it."""
        same = (channel for channel, filter in self._channels.items() if filter == wanted)
        wider = (channel for channel, filter in self._channels.items() if covers(filter, wanted))
        return next(itertools.chain(same, wider), None)

    def offers(self, event: Event, known: Known) -> list[GroupOffer]:
        return [GroupOffer(channel) for channel, filter in self._channels.items() if filter.matches(event)]

    def joins(self, group: int, about: bytes) -> bool:
        return group in self._joined


@functools.lru_cache(maxsize=64)
def _parsed(texts: tuple[str, ...]) -> dict[int, Filter]:
    """The channels, numbered from 1. All brokers of a simulation share them."""
    return {number: parse_filter(text) for number, text in enumerate(texts, 1)}


ONE_CHANNEL: Final = {1: EVERYTHING}
