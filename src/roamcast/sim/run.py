"""Running a scenario: `run(scenario, sink)` writes its facts."""

import time
from dataclasses import dataclass
from pathlib import Path

from roamcast.facts.recorder import Recorder, Sink
from roamcast.facts.schema import tables_of
from roamcast.sim import collector
from roamcast.sim.raised import ProtocolRaised, describe_raise
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.world import CoreMaker, OnTime, World


@dataclass(frozen=True)
class RunReport:
    """The cost of a run; its results are in its facts."""

    simulated: float
    """Seconds."""
    cpu: float
    """Seconds of this process."""


def compiled_core() -> CoreMaker:
    """The fast core, imported only on demand: loading its compiled code takes half a second."""
    from roamcast.sim.core import kernel

    return kernel.Core


def run(
    scenario: Scenario,
    sink: Sink,
    *,
    folder: Path = Path(),
    make_core: CoreMaker | None = None,
    progress: OnTime | None = None,
    through_codec: bool = False,
) -> RunReport:
    """Runs a checked scenario to its end. Its file names are relative to `folder`; the core may be `reference.Core`."""
    started = time.process_time()
    recorder = Recorder(sink, tables_of(scenario.entry(folder).facts))
    make_core = make_core or compiled_core()
    with collector.paused():
        world = World(scenario, recorder, make_core, folder, through_codec=through_codec)
    try:
        with collector.seldom():
            world.run(progress)
    except OSError:  # of the sink: a full disk is not the fault of the protocol whose call hits it
        raise
    except (Exception, SystemExit) as problem:
        words = describe_raise(problem)
        if words is None:
            raise
        raise ProtocolRaised(words) from problem
    recorder.close()
    return RunReport(scenario.duration, time.process_time() - started)
