"""Warnings about subscriptions that nothing will match, found before anything is run.

The rule this file owns: events are drawn from each publisher as in a run, `_EVENTS` of each. A filter that matches none
of them, or a group whose subscriptions are over before anybody publishes, is most likely a mistake of writing; it is
said and not refused, since a rare event may still come.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

from roamcast.content.event import Event, event_id
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.scenario.workload import PublisherGroup, SubscriberGroup

_EVENTS: Final = 500
"""Events that are drawn from each group of publishers."""


def unheard(scenario: Scenario) -> Iterator[str]:
    """A sentence for each filter or group of subscribers that gets nothing."""
    workload = scenario.workload
    for number, group in enumerate(workload.subscribers):
        place = f"workload.subscribers[{number}]"
        during = [one for one in workload.publishers if _overlap(scenario, group, one)]
        if not during:
            yield f"{place}: gets nothing: nobody publishes while it is subscribed"
            continue
        events = [event for one in during for event in _drawn(one)]
        silent = [
            text
            for text, wanted in zip(group.texts, group.wanted, strict=True)
            if not any(wanted.matches(event) for event in events)
        ]
        field = "filter" if group.xpath is None else "xpath"
        for text in silent:
            yield f"{place}.{field}: {text!r} matches none of {len(events)} events drawn from the publishers"
        if silent and len(silent) == len(group.texts) > 1:
            yield f"{place}: gets nothing: none of its filters matches an event"


def _overlap(scenario: Scenario, group: SubscriberGroup, publisher: PublisherGroup) -> bool:
    """Whether events of a publisher come while a group is subscribed."""
    end = scenario.duration
    published = min(end - scenario.cooldown, end if publisher.stop is None else publisher.stop)
    subscribed = end if group.stop is None else group.stop
    return publisher.start < min(published, subscribed) and group.start < published


def _drawn(publisher: PublisherGroup) -> Iterator[Event]:
    rng = Random("unheard")
    return (publisher.event(rng, event_id(0, serial)) for serial in range(1, _EVENTS + 1))
