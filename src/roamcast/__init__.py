"""Content-based publish/subscribe for mobile ad hoc networks.

The names below are all that most people need; docs/python.md shows them at work. They are imported when they are first
used: every module of the package imports this one, and a device has neither numpy nor Spark.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from roamcast.analysis.measures.measure import Measure, family, measure
    from roamcast.analysis.run import Run
    from roamcast.content.event import Event
    from roamcast.content.filter import Filter
    from roamcast.content.text import parse_filter
    from roamcast.front import Experiment, Scenario, experiment, load, run, run_campaign, scenario
    from roamcast.live.client import Client
    from roamcast.protocols.api import Broker, Parameters, Port
    from roamcast.protocols.entry import Entry
    from roamcast.protocols.messages import Message

_MODULES: Final = {
    "analysis.measures.measure": ("Measure", "family", "measure"),
    "analysis.run": ("Run",),
    "content.event": ("Event",),
    "content.filter": ("Filter",),
    "content.text": ("parse_filter",),
    "front": ("Experiment", "Scenario", "experiment", "load", "run", "run_campaign", "scenario"),
    "live.client": ("Client",),
    "protocols.api": ("Broker", "Parameters", "Port"),
    "protocols.entry": ("Entry",),
    "protocols.messages": ("Message",),
}
_HOME: Final = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "Broker",
    "Client",
    "Entry",
    "Event",
    "Experiment",
    "Filter",
    "Measure",
    "Message",
    "Parameters",
    "Port",
    "Run",
    "Scenario",
    "experiment",
    "family",
    "load",
    "measure",
    "parse_filter",
    "run",
    "run_campaign",
    "scenario",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever has that name
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
