"""The lab: a scenario on real node processes, with an emulated air between them, in real time.

The rules this file owns:

* Every node is a process of `roamcast node`, with its own store, key file, facts and control socket; the lab uses it
  through a `Client`, as any application would.
* The run starts when all nodes are ready and all acts of time 0 are done, at a whole second of the nodes' time, so that
  their seconds are the run's. Before the start the air is as at time 0.
* If a node dies, the report says so, and the others continue.
* However it ends, no process is left behind (see `processes`).
"""

import asyncio
import contextlib
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from roamcast.config.toml_file import toml_value
from roamcast.facts.recorder import Sink
from roamcast.facts.schema import tables_of
from roamcast.lab import netns
from roamcast.lab.air import TableRow, air_of, away_times, mesh_facts, world_facts
from roamcast.lab.driver import Driver, Watch
from roamcast.lab.ether import Ether
from roamcast.lab.feeder import Feeder
from roamcast.lab.gather import Names, gather
from roamcast.lab.processes import LabError, Process, Processes
from roamcast.live.client import Client
from roamcast.live.key import NetworkKey
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario.away import Switch
from roamcast.sim.scenario.scenario import Scenario
from roamcast.units import SECOND

PATIENCE: Final = 60.0
"""Seconds that all nodes together may take to be ready, or to end."""
_AHEAD: Final = SECOND // 5
"""The least time between the last preparation and the start."""
_MAX_PATH: Final = 107 - len("/100000/api")
_PORT: Final = 17_000
"""The broadcast port in namespaces, where nothing else uses it."""


@dataclass(frozen=True)
class Death:
    """A node that ended unexpectedly."""

    node: int
    time: int
    """ns since the start; negative before it."""
    status: int
    last_words: str

    def __str__(self) -> str:
        how = f"by {signal.Signals(-self.status).name}" if self.status < 0 else f"with status {self.status}"
        when = f"after {self.time / SECOND:.1f} s" if self.time >= 0 else "before the start"
        return f"node {self.node} ended {how} {when}: {self.last_words}"


@dataclass
class LabReport:
    """How a lab run went; the results are in its facts."""

    setting_up: float = 0.0
    """Seconds until all nodes were ready."""
    deaths: list[Death] = field(default_factory=list)
    stubborn: list[int] = field(default_factory=list)
    """Nodes that had to be killed at the end."""
    refused: list[str] = field(default_factory=list)
    """Requests of applications that their nodes refused."""
    missed: int = 0
    """Events that nodes dropped before their application read them."""
    latest: float = 0.0
    """The greatest delay of an act, in seconds."""
    air: Counter[str] = field(default_factory=Counter)
    """The ether's counters."""

    @property
    def whole(self) -> bool:
        return not (self.deaths or self.stubborn or self.refused)

    def problems(self) -> Iterator[str]:
        yield from map(str, self.deaths)
        yield from (f"node {node} did not end when asked and was killed" for node in self.stubborn)
        yield from self.refused


class Lab:
    """The nodes of a scenario, running. An async context manager; `work` is a folder with a short name."""

    def __init__(self, scenario: Scenario, folder: Path, work: Path, *, in_namespaces: bool = False) -> None:
        if scenario.service is not None:
            raise ScenarioError("service: real nodes take their own time to compute: leave it out")
        for number, group in enumerate(scenario.away):
            if (group.events, group.timers) != ("deferred", "fire"):
                raise ScenarioError(
                    f"away[{number}]: a real node that was stopped publishes on waking, and its timers fire at once: "
                    "leave out events and timers"
                )
        self.scenario = scenario
        self.report = LabReport()
        self.names = Names()
        self.clients: list[Client] = []
        self.processes: list[Process] = []
        self._folder = folder
        self._work = work
        self._in_namespaces = in_namespaces
        self._epoch = time.time_ns()
        self._mono = time.monotonic_ns()
        self._start: int | None = None
        self._lives = [0] * scenario.nodes
        self._resources = contextlib.AsyncExitStack()
        self._nodes = Processes(in_namespaces=in_namespaces, on_death=self._died)
        self._ether: Ether | None = None

    @property
    def now(self) -> int:
        """ns since the start; negative before it, and -1 while the start is not set."""
        return -1 if self._start is None else time.monotonic_ns() - self._mono - self._start

    async def __aenter__(self) -> "Lab":
        began = time.monotonic()
        try:
            await self._resources.enter_async_context(self._nodes)
            NetworkKey.new().save(self._work / "key")
            if not self._in_namespaces:
                self._open_ether()
        except BaseException:
            await self._resources.aclose()
            raise
        self.report.setting_up = time.monotonic() - began
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._resources.aclose()

    def _open_ether(self) -> None:
        scenario = self.scenario
        air = air_of(scenario, self._folder)
        self._ether = Ether(scenario.nodes, air, lambda: self.now, seed=scenario.seed)
        self._ether.open()
        self._resources.callback(self._ether.close)

    # --- Nodes ------------------------------------------------------------------------------------------------------

    async def populate(self, watch: Watch | None = None) -> None:
        """Starts every node; returns when all are ready and have a client."""
        began = time.monotonic()
        nodes = self.scenario.nodes
        for node in range(nodes):
            (self._work / str(node)).mkdir()
            self.processes.append(await self._launch(node))
        for node in range(nodes):
            await self._until_ready(node)
            if watch is not None:
                watch("nodes", node + 1, nodes)
        for node in range(nodes):
            self.clients.append(await self._connect(node))
        self.report.setting_up += time.monotonic() - began

    async def _launch(self, node: int) -> Process:
        address = netns.address_of(node) if self._in_namespaces else ""
        self._lives[node] += 1
        return await self._nodes.start(f"node {node}", self._arguments(node), self._work / str(node) / "log", address)

    async def _until_ready(self, node: int) -> None:
        process = self.processes[node]
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.shield(process.ready)
                while self._ether is not None and not self._ether.knows(node):
                    await asyncio.sleep(0.001)  # until its first datagram arrives
        except TimeoutError:
            raise LabError(f"{process.name} is not ready after {PATIENCE:g} s: {process.last_words()}") from None

    async def _connect(self, node: int) -> Client:
        return await self._resources.enter_async_context(Client(self._control(node)))

    def _control(self, node: int) -> str:
        return f"unix:{self._work / str(node) / 'api'}"

    def _facts(self, node: int, life: int) -> Path:
        return self._work / str(node) / f"facts-{life}"

    def _arguments(self, node: int) -> list[str]:
        mine = self._work / str(node)
        protocol = self.scenario.protocol
        file, colon, name = protocol.name.rpartition(":")
        args = ["node", "--id", str(node), "--seed", str(self.scenario.seed), "--epoch", str(self._epoch)]
        # "normal" survives `kill -9`, which is what a lab does; the nodes share one disk.
        args += ["--sync", "normal", "--log", "warning"]
        args += ["--protocol", f"{(self._folder / file).resolve()}:{name}" if colon else protocol.name]
        entry = self.scenario.entry(self._folder)
        # What differs on devices by default is here as in the simulator: the two are compared.
        usual = {name: getattr(entry.parameters(), name) for name in entry.on_devices}
        for parameter, value in (usual | protocol.parameters).items():
            if value is not None:  # None is always the default: a file cannot set it
                args += ["--set", f"{parameter}={toml_value(value)}"]
        args += ["--key", str(self._work / "key"), "--store", str(mine / "store")]
        args += ["--facts", str(self._facts(node, self._lives[node])), "--api", self._control(node)]
        if self.scenario.record.decisions:
            args += ["--decisions"]
        if not self.scenario.workload.signed:
            args += ["--unsigned"]
        if self._ether is None:
            return [*args, "--interface", netns.INTERFACE, "--address", netns.BROADCAST, "--port", str(_PORT)]
        host, port = self._ether.address(node)
        return [*args, "--air", f"{host}:{port}"]

    def _died(self, process: Process) -> None:
        node = int(process.name.removeprefix("node "))
        self.report.deaths.append(Death(node, self.now, process.ended.result(), process.last_words()))

    async def kill(self, node: int) -> None:
        """Kills a node, as a power cut would."""
        process = self.processes[node]
        process.wanted = False
        self._nodes.signal(process, signal.SIGKILL)
        await process.wait()

    async def revive(self, node: int) -> None:
        """Starts a killed node again, with its store and a new client."""
        if self._ether is not None:
            self._ether.forget(node)
        self.processes[node] = await self._launch(node)
        await self._until_ready(node)
        self.clients[node] = await self._connect(node)

    # --- The run ----------------------------------------------------------------------------------------------------

    async def drive(self, watch: Watch | None = None) -> None:
        """Plays the whole workload in real time, then stops all nodes."""
        scenario = self.scenario
        switches = away_times(scenario, self._folder)
        # In the simulator subscriptions survive a restart; a real node keeps only durable ones.
        durable = any(switch.restart for switch in switches)
        driver = Driver(self.clients, self.names, lambda: self.now, self._folder, durable=durable)
        feeder = Feeder(scenario, self._folder, self.clients, lambda: self.now)
        around: list[asyncio.Task[None]] = []
        try:
            await feeder.prepare()
            await driver.prepare(scenario)
            self.begin()
            around = [
                asyncio.create_task(feeder.run()),
                asyncio.create_task(self._switch_all(switches, feeder)),
            ]
            await driver.run(scenario, watch)
        finally:
            for task in around:
                task.cancel()
            await asyncio.gather(*around, return_exceptions=True)
            self._wake_all()
            await driver.close()
            self.report.refused += driver.refused
            self.report.missed += driver.missed
            self.report.latest = max(self.report.latest, driver.latest)
        await self.stop()

    async def _switch_all(self, switches: Sequence[Switch], feeder: Feeder) -> None:
        """Makes nodes go away and come back: kills and restarts them, or stops and continues them."""
        for switch in switches:
            while (left := switch.time - self.now) > 0:
                await asyncio.sleep(left / SECOND)
            process = self.processes[switch.node]
            if not switch.restart:
                self._nodes.signal(process, signal.SIGSTOP if switch.away else signal.SIGCONT)
            elif switch.away:
                await self.kill(switch.node)
            else:
                await self.revive(switch.node)
                await feeder.tell_again(switch.node)

    def _wake_all(self) -> None:
        """Continues all stopped processes: a stopped one could not end."""
        for process in self.processes:
            self._nodes.signal(process, signal.SIGCONT)

    def begin(self) -> None:
        """Sets the start: the next whole second of the nodes' time, at least `_AHEAD` from now."""
        since = time.monotonic_ns() - self._mono
        self._start = -(-(since + _AHEAD) // SECOND) * SECOND

    async def stop(self) -> None:
        """Stops every node cleanly, with its facts written."""
        alive = [process for process in self.processes if process.alive]
        late = await self._nodes.stop(alive, PATIENCE)
        self.report.stubborn += [int(process.name.removeprefix("node ")) for process in late]
        if self._ether is not None:
            self.report.air += self._ether.counters

    def gather(self, sink: Sink) -> None:
        """Writes the facts of the run."""
        assert self._start is not None
        scenario = self.scenario
        folders = {
            node: [self._facts(node, life) for life in range(1, lives + 1)] for node, lives in enumerate(self._lives)
        }
        air: Iterable[TableRow] = (
            mesh_facts(scenario.nodes) if self._in_namespaces else world_facts(scenario, self._folder)
        )
        tables = tables_of(scenario.entry(self._folder).facts)
        gather(folders, self.names, self._start, scenario.end, air, sink, tables)


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """A temporary folder for the nodes' files; its path must be short. It is removed afterwards."""
    # `roamcast watch` may be writing its state there.
    with tempfile.TemporaryDirectory(prefix="roamcast-lab-", ignore_cleanup_errors=True) as place:
        if len(place) > _MAX_PATH:
            raise LabError(
                f"{place}: the name is too long for the nodes' sockets in it, which have room for 107 characters: name "
                "a shorter folder for temporary files by TMPDIR"
            )
        yield Path(place)


async def run_lab(
    scenario: Scenario,
    sink: Sink,
    *,
    folder: Path = Path(),
    in_namespaces: bool = False,
    watch: Watch | None = None,
) -> LabReport:
    """Runs a checked scenario on real nodes to its end. `folder` is where its relative file names start."""
    with work_folder() as work:
        async with Lab(scenario, folder, work, in_namespaces=in_namespaces) as lab:
            await lab.populate(watch)
            await lab.drive(watch)
        lab.gather(sink)
    return lab.report
