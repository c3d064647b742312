"""A scenario: everything that defines a run but the code, from one TOML file.

Decoded into frozen structs; what is unknown, out of range or contradictory is refused with the file, the field, the
value and the rule, before anything runs. `roamcast scenario --explain` prints the descriptions below.
"""

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roamcast.config.errors import decode
from roamcast.content.context.expression import Context
from roamcast.content.context.text import parse_context
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import RoamcastError
from roamcast.protocols.api import Parameters
from roamcast.protocols.catalogue import find
from roamcast.protocols.entry import Entry
from roamcast.sim.core.interface import FIRST_HOST_KIND, Settings
from roamcast.sim.mobility import Area, Buildings, Movement, RandomWaypoint, Recorded, ScenarioError
from roamcast.sim.scenario.attributes import Attributes
from roamcast.sim.scenario.away import Away
from roamcast.sim.scenario.documents import with_contents
from roamcast.sim.scenario.draw import choices
from roamcast.sim.scenario.links import ScriptedLinks
from roamcast.sim.scenario.workload import PublisherGroup, SubscriberGroup, Workload
from roamcast.sim.service import Service
from roamcast.units import SECOND

MAX_FLOOD_NODES = 3000
"""Background floods remember, for each pair of nodes, what was seen: 8 bytes per pair."""
RATES = (1, 2, 5.5, 11)


class ScenarioTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Radio(ScenarioTable, frozen=True, kw_only=True):
    """Who hears whom."""

    propagation: Annotated[
        Literal["two-ray", "unit-disk", "links"],
        Meta(description="two-ray: frames interfere beyond the range; unit-disk: they do not; links: as [links] says"),
    ] = "two-ray"
    # No bounds on the parts: beside a tuple of fixed length, msgspec 0.22 corrupts memory. `problems` checks them.
    range: Annotated[
        float | tuple[float, float],
        Meta(description="how far a frame is received, m, above 0; or [least, greatest], drawn uniformly"),
    ] = 250.0
    drawn: Annotated[
        Literal["frame", "node"],
        Meta(description="with two bounds: whether the range is drawn for each frame, or once for each node"),
    ] = "frame"
    ends: Annotated[
        Literal["sender", "both"],
        Meta(description="whose range counts: the sender's, or the lesser of both ends', so that links are two-way"),
    ] = "sender"
    indoor_range: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="the range inside buildings, m; none: the same as outside"),
    ] = None
    walls: Annotated[
        Literal["none", "opaque"],
        Meta(description="opaque: nodes notice each other only in the same building, or both outdoors"),
    ] = "none"
    sense: Annotated[
        float, Meta(ge=1, description="how far a frame is sensed and interferes, as a multiple of the range (two-ray)")
    ] = 2.2
    collisions: Annotated[
        Literal["capture", "overlap"],
        Meta(description="capture: a frame survives if it is stronger by `threshold`; overlap: all are lost"),
    ] = "capture"
    threshold: Annotated[
        float, Meta(ge=0, le=100, description="how much stronger than all interference a frame must be to survive, dB")
    ] = 10.0
    loss: Annotated[float, Meta(ge=0, lt=1, description="probability that a received frame is lost all the same")] = 0.0

    @property
    def longest(self) -> float:
        """The longest range that can occur, m."""
        return max(self.range) if isinstance(self.range, tuple) else self.range


class Mac(ScenarioTable, frozen=True, kw_only=True):
    """How nodes share the medium: IEEE 802.11 DCF, or not at all."""

    model: Annotated[Literal["dcf", "ideal"], Meta(description="ideal: no contention, no collisions, no queue")] = "dcf"
    rate: Annotated[float, Meta(description="bit rate of unicast frames, Mb/s: 1, 2, 5.5 or 11")] = 2
    basic_rate: Annotated[
        float | None,
        Meta(description="bit rate of broadcasts and acknowledgements, Mb/s; none: 2, or `rate` if that is less"),
    ] = None
    header: Annotated[int, Meta(ge=0, le=1000, description="bytes of headers per frame: MAC, LLC, IPv4, UDP")] = 64
    mtu: Annotated[
        int, Meta(ge=64, le=65535, description="longest message in one frame, bytes; longer ones are sent as fragments")
    ] = 1472
    cca: Annotated[
        float, Meta(ge=0, le=100, description="from the start of a frame until others sense it (CCA), µs; 0: at once")
    ] = 4.0
    queue: Annotated[int, Meta(ge=1, description="messages that can wait at a node; further ones are dropped")] = 50
    retries: Annotated[int, Meta(ge=0, le=100, description="how often an unacknowledged frame is repeated")] = 7


class Background(ScenarioTable, frozen=True, kw_only=True):
    """Traffic that only loads the network: made, passed on and received inside the core."""

    rate: Annotated[float, Meta(ge=1e-6, le=1e6, description="messages per second and node")]
    size: Annotated[int, Meta(ge=1, le=1 << 20, description="bytes per message")] = 256
    reach: Annotated[
        Literal["network", "neighbours"],
        Meta(description="network: nodes that hear a message pass it on; neighbours: they do not"),
    ] = "network"
    jitter: Annotated[float, Meta(ge=0, le=3600, description="longest random wait before passing on, s")] = 0.01


class ProtocolChoice(ScenarioTable, frozen=True, kw_only=True):
    """Which protocol the brokers run."""

    name: Annotated[
        str, Meta(description="a protocol of `roamcast protocols`, or file.py:name for one of your own")
    ] = "flooding"
    parameters: Annotated[dict[str, Any], Meta(description="see `roamcast protocols`; each has a default")] = {}


class RecordOptions(ScenarioTable, frozen=True, kw_only=True):
    """What the facts contain beyond the usual."""

    frames: Annotated[bool, Meta(description="every transmission and what became of it at each node")] = False
    movement: Annotated[bool, Meta(description="every leg of every node")] = True
    decisions: Annotated[
        bool, Meta(description="what each broker decided about each event, and why an event went no farther")
    ] = False


class Scenario(ScenarioTable, frozen=True, kw_only=True):
    """One run."""

    name: Annotated[str, Meta(description="a name for reports; it changes nothing")] = "unnamed"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="seed of all random numbers")] = 1
    nodes: Annotated[int, Meta(ge=1, le=100_000, description="number of nodes; they are numbered from 0")]
    duration: Annotated[float, Meta(gt=0, le=1e7, description="simulated time, s, with warm-up and cooldown")]
    warmup: Annotated[
        float, Meta(ge=0, description="recorded but not measured, s: events that are published in it do not count")
    ] = 0.0
    cooldown: Annotated[
        float,
        Meta(
            ge=0,
            description="at the end, s: publishers have stopped, and what arrives still counts; of what is sent, only "
            "messages that carry events do",
        ),
    ] = 0.0
    area: Area | None = None
    movement: Movement | None = None
    links: ScriptedLinks | None = None
    radio: Radio = Radio()
    mac: Mac = Mac()
    background: Background | None = None
    service: Annotated[Service | None, Meta(description="how long nodes compute; none: no time")] = None
    attributes: Annotated[tuple[Attributes, ...], Meta(description="attributes of nodes, such as their kind")] = ()
    away: Annotated[tuple[Away, ...], Meta(description="nodes that are not always there")] = ()
    workload: Workload = Workload()
    protocol: ProtocolChoice = ProtocolChoice()
    record: RecordOptions = RecordOptions()

    def __str__(self) -> str:
        return f"{self.name}: {self.protocol.name}, {self.nodes} nodes, {self.duration:g} s, seed {self.seed}"

    @property
    def end(self) -> int:
        return round(self.duration * SECOND)

    @property
    def stop(self) -> int:
        """The end of the measured time, ns, where the cooldown begins: nothing is published from then on."""
        return round((self.duration - self.cooldown) * SECOND)

    def entry(self, folder: Path) -> Entry:
        return find(self.protocol.name, folder)

    def settings(self, kinds: int = 0, *, overhears: bool = False) -> Settings:
        """The core's configuration; `kinds` is how many kinds of messages the protocol has, `overhears` whether its
        brokers ask which nodes they heard in background traffic."""
        radio, mac, noise = self.radio, self.mac, self.background
        drawn_per_frame = isinstance(radio.range, tuple) and radio.drawn == "frame"
        low, high = radio.range if isinstance(radio.range, tuple) and drawn_per_frame else (0.0, 0.0)
        return Settings(
            nodes=self.nodes,
            seed=self.seed,
            kinds=FIRST_HOST_KIND + kinds,
            record=self.record.frames,
            links=radio.propagation == "links",
            width=self.area.width if self.area else 1.0,
            height=self.area.height if self.area else 1.0,
            sense=radio.sense if radio.propagation == "two-ray" else 1.0,
            range_low=low,
            range_high=high,
            surroundings=radio.indoor_range is not None or radio.ends == "both",
            capture=radio.collisions == "capture" and radio.propagation != "links",
            threshold=10 ** (radio.threshold / 10),
            loss=radio.loss,
            ideal=mac.model == "ideal",
            kbps=round(mac.rate * 1000),
            basic_kbps=round((mac.basic_rate or min(mac.rate, 2)) * 1000),
            header=mac.header,
            mtu=mac.mtu,
            cca=round(mac.cca * 1000),
            queue=mac.queue,
            retries=mac.retries,
            background_interval=round(SECOND / noise.rate) if noise else 0,
            background_size=noise.size if noise else 0,
            background_flood=noise is not None and noise.reach == "network",
            background_jitter=round(noise.jitter * SECOND) if noise else 0,
            overhear=noise is not None and overhears,
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        """The rules that the scenario breaks although each value alone is fine: (field, rule with the values)."""
        if self.warmup >= self.duration:
            yield "warmup", f"{self.warmup:g} s of a run of {self.duration:g} s leave nothing to measure"
        elif self.warmup + self.cooldown >= self.duration:
            both = f"{self.cooldown:g} s, with a warm-up of {self.warmup:g} s"
            yield "cooldown", f"{both}, of a run of {self.duration:g} s leave nothing to measure"
            return
        if self.radio.propagation == "links":
            yield from self._link_problems()
        else:
            yield from self._place_problems()
        for field, rate in (("rate", self.mac.rate), ("basic_rate", self.mac.basic_rate)):
            if rate is not None and rate not in RATES:
                yield f"mac.{field}", f"{rate:g} Mb/s: 802.11b has 1, 2, 5.5 and 11"
        if isinstance(self.radio.range, tuple):
            if not 0 < self.radio.range[0] <= self.radio.range[1]:
                yield "radio.range", f"{list(self.radio.range)}: the least must be above 0 and not above the greatest"
        elif not self.radio.range > 0:
            yield "radio.range", f"{self.radio.range:g} m: it must be above 0"
        if self.radio.indoor_range is not None and isinstance(self.radio.range, tuple):
            yield (
                "radio.indoor_range",
                "cannot be combined with a range drawn between two bounds: give one range outside",
            )
        if self.radio.ends == "both" and isinstance(self.radio.range, tuple) and self.radio.drawn == "frame":
            yield (
                "radio.ends",
                'both: a receiver has no range of its own if one is drawn for each frame; use drawn = "node"',
            )
        if self.radio.walls == "opaque" and not isinstance(self.movement, Buildings):
            yield "radio.walls", 'opaque walls need movement.model = "buildings"'
        if self.background and self.background.reach == "network" and self.nodes > MAX_FLOOD_NODES:
            yield "background.reach", f"floods among {self.nodes} nodes: at most {MAX_FLOOD_NODES} are supported"
        for field, rule in self.workload.problems(self.nodes, self.duration, self.area, self.cooldown):
            yield f"workload.{field}", rule
        for number, attributes in enumerate(self.attributes):
            yield from ((f"attributes[{number}].{field}", rule) for field, rule in attributes.problems(self.nodes))
        if self.service is not None and self.away:
            yield "service", "cannot be combined with [[away]]"
        taken: set[int] = set()
        for number, away in enumerate(self.away):
            yield from ((f"away[{number}].{field}", rule) for field, rule in away.problems(self.nodes))
            for node in sorted(set(away.members(self.nodes)) & taken):
                yield f"away[{number}].nodes", f"node {node} is in an earlier group too"
            taken |= set(away.members(self.nodes))
            if away.where is not None and not isinstance(self.movement, Buildings):
                yield f"away[{number}].where", 'needs movement.model = "buildings"'

    def _link_problems(self) -> Iterator[tuple[str, str]]:
        if self.links is None:
            yield "links", 'radio.propagation is "links", but there is no table [links]'
        else:
            for field, rule in self.links.problems(self.nodes):
                yield f"links.{field}", rule
        if self.movement is not None:
            yield "movement", 'cannot be combined with radio.propagation = "links": links have no positions'
        if self.radio.loss:
            yield "radio.loss", "with links, the loss is a link's: links.loss"

    def _place_problems(self) -> Iterator[tuple[str, str]]:
        if self.links is not None:
            yield "links", f'needs radio.propagation = "links", not {self.radio.propagation!r}'
        if self.area is None:
            yield "area", f"is missing: {self.radio.propagation} needs positions ([area] with width and height in m)"
        else:
            for field, rule in self.moving.problems(self.area, self.nodes):
                yield f"movement.{field}", rule

    @property
    def moving(self) -> Movement:
        return self.movement or RandomWaypoint()


def load(path: Path) -> Scenario:
    """Reads and checks a scenario file."""
    return check(read(path), str(path), path.parent)


def read(path: Path) -> dict[str, Any]:
    """The contents of a TOML file, unchecked."""
    return parse(read_text(path), str(path))


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ScenarioError(f"{path}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ScenarioError(f"{path}: is not TOML: byte {problem.start} is not text in UTF-8") from None


def parse(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ScenarioError(f"{source}: is not TOML: {problem}") from None


def check(raw: dict[str, Any], source: str, folder: Path) -> Scenario:
    """Decodes a scenario and refuses what cannot run; errors name it `source`."""
    refuse_experiment(raw, source)
    for field, value in _not_finite(raw):
        raise ScenarioError(f"{source}: {field} = {value}: must be finite")
    scenario = _with_documents(decode(raw, Scenario, source, ScenarioError, whole="the scenario"), source, folder)
    broken = [f"{source}: {field}: {rule}" for field, rule in scenario.problems()]
    if isinstance(scenario.movement, Recorded) and scenario.movement.is_trace(folder) and scenario.away:
        broken.append(f"{source}: away: the trace already says when nodes are away: leave [[away]] out")
    if broken:
        raise ScenarioError("\n".join(broken))
    parameters(scenario, source, folder)
    broken = [f"{source}: {field}: {rule}" for field, rule in unsupported(scenario, scenario.entry(folder))]
    if broken:
        raise ScenarioError("\n".join(broken))
    return scenario


def refuse_experiment(raw: dict[str, Any], source: str) -> None:
    """Refuses an experiment file where a scenario is expected, naming the command that takes it."""
    if "scenario" in raw and "nodes" not in raw:
        raise ScenarioError(f"{source}: this is an experiment, not a scenario: roamcast campaign {source}")


def _with_documents(scenario: Scenario, source: str, folder: Path) -> Scenario:
    """The scenario with the contents of the files that its publishers take events from."""
    publishers = []
    for number, group in enumerate(scenario.workload.publishers):
        try:
            documents = with_contents(group.documents, folder)
            schema = None if group.schema is None else with_contents((group.schema,), folder)[0]
        except ScenarioError as problem:
            raise ScenarioError(f"{source}: workload.publishers[{number}]: {problem}") from None
        publishers.append(msgspec.structs.replace(group, documents=documents, schema=schema))
    workload = msgspec.structs.replace(scenario.workload, publishers=tuple(publishers))
    return msgspec.structs.replace(scenario, workload=workload)


def unsupported(scenario: Scenario, entry: Entry) -> Iterator[tuple[str, str]]:
    """What the scenario needs and its protocol cannot do: (field, rule)."""
    groups: tuple[tuple[str, tuple[SubscriberGroup | PublisherGroup, ...]], ...] = (
        ("subscribers", scenario.workload.subscribers),
        ("publishers", scenario.workload.publishers),
    )
    for name, some in groups:
        for number, group in enumerate(some):
            if group.lifetime is not None and "lifetimes" not in entry.understands:
                yield f"workload.{name}[{number}].lifetime", f"{entry.name} does not understand lifetimes: leave it out"
            yield from (
                (f"workload.{name}[{number}].{field}", rule) for field, rule in _refused(scenario, entry, group)
            )
    if "positions" in entry.needs and scenario.radio.propagation == "links":
        yield "radio.propagation", f'{entry.name} needs positions, which "links" do not have: use two-ray or unit-disk'
    asks = _parameters_of(scenario, entry)
    if asks is not None and asks.overhears and scenario.background and scenario.nodes > MAX_FLOOD_NODES:
        yield (
            "protocol.parameters",
            f"listen to background traffic among {scenario.nodes} nodes: at most {MAX_FLOOD_NODES}",
        )
    if "attributes" in entry.needs and not scenario.attributes:
        yield "attributes", f"{entry.name} needs attributes of its nodes: give [[attributes]]"


def _parameters_of(scenario: Scenario, entry: Entry) -> Parameters | None:
    """The protocol's parameters; None if they are wrong, which `parameters` reports."""
    try:
        return msgspec.convert(scenario.protocol.parameters, entry.parameters)
    except msgspec.ValidationError:
        return None


def _refused(scenario: Scenario, entry: Entry, group: SubscriberGroup | PublisherGroup) -> Iterator[tuple[str, str]]:
    """Contexts of a group that the protocol refuses, each tried as one of the group's nodes would use it."""
    params = _parameters_of(scenario, entry)
    if params is None:
        return
    contexts = group.contexts
    place = contexts.draw_place(0, 0, Random(0), scenario.area, lambda node, time: (0.0, 0.0))
    asked: list[tuple[str, Context | None, Context | None]] = [(contexts.place_field, place, None)]
    asked += [(contexts.domain_field, None, parse_context(text)) for text in choices(contexts.domain)]
    for name, one, other in asked:
        sample: Publication | Subscription
        if isinstance(group, PublisherGroup):
            sample = Publication(Event(group.type, id=1), None, one, other)
        else:
            sample = Subscription(1, EVERYTHING, None, one, other)
        yield from ((name, refusal) for refusal in entry.refusals(sample, params))


def _not_finite(value: Any, path: str = "") -> Iterator[tuple[str, float]]:  # noqa: ANN401  # it is TOML
    """Fields that are inf or nan: TOML has both, and bounds let nan through, but no scenario means either."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _not_finite(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _not_finite(part, f"{path}[{number}]")


def parameters(scenario: Scenario, source: str, folder: Path) -> Parameters:
    """The protocol's parameters, decoded."""
    try:
        entry = scenario.entry(folder)
    except RoamcastError as problem:
        raise ScenarioError(f"{source}: protocol.name: {problem}") from problem
    return decode(scenario.protocol.parameters, entry.parameters, source, ScenarioError, path="protocol.parameters")
