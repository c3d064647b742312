"""Which of the parameters that a scenario sets make no difference: by a short trial with each, and without.

The rule this file owns: a parameter has no effect if a run that ends `SECONDS` after all have begun has the same facts,
whether it is as the scenario sets it or as it is by default. That is a hint, not a proof: it may matter later.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check, parameters

SECONDS: Final = 60.0
_TABLES: Final = ("deliver", "transmit", "series", "note")


def without_effect(scenario: Scenario, source: str, folder: Path) -> list[str]:
    """The names of such parameters."""
    given = scenario.protocol.parameters
    defaults = msgspec.to_builtins(type(parameters(scenario, source, folder))())
    set_ = [name for name, value in given.items() if name in defaults and defaults[name] != value]
    if not set_:
        return []
    as_set = _facts(scenario, given, source, folder)
    return [
        name
        for name in set_
        if _facts(scenario, {key: value for key, value in given.items() if key != name}, source, folder) == as_set
    ]


def _facts(scenario: Scenario, given: dict[str, Any], source: str, folder: Path) -> list[pa.Table]:
    raw = msgspec.to_builtins(scenario)
    raw["protocol"]["parameters"] = given
    groups = (*scenario.workload.subscribers, *scenario.workload.publishers)
    raw["duration"] = min(scenario.duration, SECONDS + max((group.start for group in groups), default=0.0))
    raw["warmup"] = raw["cooldown"] = 0.0
    sink = MemorySink()
    run(check(raw, source, folder), sink, folder=folder)
    return [sink.table(name) for name in _TABLES]
