"""The nodes of a running world that are away, and what waits for their return; `scenario/away.py` has the rules."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

from roamcast.content.subscription import Publication
from roamcast.facts.recorder import Recorder
from roamcast.sim.core.interface import Core
from roamcast.sim.mobility import Leg, Recorded
from roamcast.sim.scenario.away import Switch
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.schedule import Priority, Schedule


class Absence(NamedTuple):
    """Of a node that is away."""

    restart: bool
    skips_events: bool
    """Whether what its applications would publish meanwhile is never published."""
    timers: list[tuple[int, Hashable]]
    """Timers whose clock has stopped: how much time was left, ns, and their keys."""
    waiting: list[Callable[[], None]]
    """What the node does when it is back, in order."""


class Absences:
    """`restart` is called for a node whose broker begins again."""

    def __init__(
        self, scenario: Scenario, facts: Recorder, agenda: Schedule, core: Core, restart: Callable[[int], None]
    ) -> None:
        self.away: dict[int, Absence] = {}
        self._facts = facts
        self._agenda = agenda
        self._core = core
        self._restart = restart
        self._begun: dict[int, int] = {}  # when a node last restarted
        self._groups = {node: group for group in scenario.away for node in group.members(scenario.nodes)}
        movement = scenario.movement
        self._by_trace = movement.absence if isinstance(movement, Recorded) and not scenario.away else None

    def follow(self, node: int, leg: Leg) -> None:
        """Plans the switch of a node that is away by where it is, or by its trace, when a leg begins."""
        group = self._groups.get(node)
        if group is not None and group.where:
            away, restart = group.applies_on(leg), group.mode == "restart"
        elif self._by_trace is not None:
            away, restart = leg.absent, self._by_trace == "restart"
        else:
            return
        if away != (node in self.away):
            self._agenda.plan(leg.start, Priority.AWAY, node, Switch(leg.start, node, away, restart))

    def switch(self, node: int, switch: Switch) -> None:
        restart, now = switch.restart, self._core.now
        self._facts.add("away", *switch)
        if switch.away:
            group = self._groups.get(node)  # None: a trace says when it is away
            stopped = self._agenda.take_timers(node, now) if restart or (group and group.timers == "wait") else []
            skips = restart or (group is not None and group.events == "skipped")
            self.away[node] = Absence(restart, skips, [] if restart else stopped, [])
            self._core.set_on(node, False, not restart)
            return
        absence = self.away.pop(node)
        self._core.set_on(node, True, True)
        if restart:
            self._begun[node] = now
            self._restart(node)
        for left, key in absence.timers:
            self._agenda.plan(now + left, Priority.TIMER, node, key)
        for action in absence.waiting:
            action()

    def put_off(self, node: int, priority: Priority, action: Callable[[int, Any], None], data: Any) -> None:  # noqa: ANN401  # as the priority says
        """Postpones what is due at a node that is away until its return; what it cannot do then is dropped."""
        absence = self.away[node]
        lost = absence.skips_events if isinstance(data, Publication) else absence.restart and priority is Priority.TIMER
        if not lost:
            absence.waiting.append(partial(action, node, data))

    def when_there(self, node: int, action: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401  # the action's
        """Tells a broker the fate of a message that it sent: at once, when it is awake again, or never."""
        absence = self.away.get(node)
        if absence is None:
            action(*arguments)
        elif not absence.restart:
            absence.waiting.append(partial(action, *arguments))

    def knows(self, node: int, since: int) -> bool:
        """Whether a node's broker has not restarted since a time."""
        return since >= self._begun.get(node, 0)
