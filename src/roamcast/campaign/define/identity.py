"""Names a run by a hash of everything that its facts depend on.

The rule this file owns: a run is named by a hash of its checked scenario with all defaults (the seed is in it, its
`name` for people is not), of roamcast's own sources that this run executes (`sources.py`), of every file from outside
that it reads (a protocol of someone's own, a recorded movement), and of the versions of Python, numpy and numba.
Runs with equal names have equal facts, so one of them is enough. An edited run gets another name, and so never shows
old numbers.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from roamcast.campaign.define.inputs import Files, Input, Sources, digest
from roamcast.campaign.define.sources import digests_of, executed, imports
from roamcast.errors import RoamcastError
from roamcast.sim.mobility.recorded import Recorded
from roamcast.sim.scenario.scenario import Scenario, parameters

_DIGITS: Final = 16

PROTOCOL: Final = "protocol"
MOVEMENT: Final = "movement"
LINKS: Final = "links"
INSTALLED: Final = "installed protocol"

VERSIONS: Final = {
    "python": platform.python_version(),
    **{name: importlib.metadata.version(name) for name in ("numpy", "numba")},
}
"""What, besides its code, could change a bit of a run's facts."""

_S = TypeVar("_S", bound=msgspec.Struct)


def canonical_hash(value: Any) -> str:  # noqa: ANN401  # any value of JSON
    """A hash of a value, independent of how it is written."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def completed(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with the defaults of its protocol's parameters filled in, and every number in its field's type:
    for a range in metres, 2 and 2.0 are the same value, whether given or by default."""
    whole = msgspec.to_builtins(_decoded(parameters(scenario, scenario.name, folder)))
    protocol = msgspec.structs.replace(scenario.protocol, parameters=whole)
    return _decoded(msgspec.structs.replace(scenario, protocol=protocol))


def _decoded(struct: _S) -> _S:
    return msgspec.convert(msgspec.to_builtins(struct), type(struct))


def find_files(scenario: Scenario, folder: Path, sources: Sources | None = None) -> dict[str, Input]:
    """The files that the scenario reads, by their role in it; `sources` remembers where they are."""
    files = {}
    for what, name in _file_names(scenario):
        path = folder / name
        try:
            modules = tuple(imports(path.read_bytes())) if what == PROTOCOL else ()
            files[what] = Input(path.name, digest(path), modules)
            if sources is not None:
                sources.add(files[what], path)
        except OSError as problem:
            raise RoamcastError(f"{what} file {path}: cannot be read: {problem.strerror}") from None
    return files


def relocated(scenario: Scenario, files: Files) -> Scenario:
    """The scenario with the names of its files in the folder of stored inputs."""
    changes: dict[str, Any] = {}
    for what, _ in _file_names(scenario):
        place = files[what].place
        if what in (MOVEMENT, LINKS):
            changes[what] = msgspec.structs.replace(getattr(scenario, what), file=place)
        else:
            entry = scenario.protocol.name.rpartition(":")[2]
            changes[what] = msgspec.structs.replace(scenario.protocol, name=f"{place}:{entry}")
    return msgspec.structs.replace(scenario, **changes)


def run_id(scenario: Scenario, files: Files) -> str:
    """The name of the run of a completed scenario."""
    said = msgspec.to_builtins(scenario)
    del said["name"]
    inputs = {what: one.digest for what, one in files.items()} | _installed(scenario)
    return canonical_hash([said, code(scenario, files), inputs, VERSIONS])[:_DIGITS]


def code(scenario: Scenario, files: Files) -> dict[str, str]:
    """Digests of roamcast's own modules that the run executes, by name."""
    if PROTOCOL in files:
        first = files[PROTOCOL].imports
    else:
        broker = scenario.entry(Path()).broker
        first = (broker.__module__,) if _is_ours(broker) else tuple(imports(_source(broker)))
    return _digests_from(first)


@functools.cache
def _digests_from(first: tuple[str, ...]) -> dict[str, str]:
    return digests_of(executed(first))


def _file_names(scenario: Scenario) -> Iterator[tuple[str, str]]:
    file, colon, _ = scenario.protocol.name.rpartition(":")
    if colon:
        yield PROTOCOL, file
    if isinstance(scenario.movement, Recorded):
        yield MOVEMENT, scenario.movement.file
    if scenario.links is not None and scenario.links.file is not None:
        yield LINKS, scenario.links.file


def _installed(scenario: Scenario) -> dict[str, str]:
    """The source of a protocol that another installed package provides."""
    if ":" in scenario.protocol.name:
        return {}
    broker = scenario.entry(Path()).broker
    return {} if _is_ours(broker) else {INSTALLED: hashlib.sha256(_source(broker)).hexdigest()}


def _is_ours(broker: type) -> bool:
    return broker.__module__.partition(".")[0] == __name__.partition(".")[0]


def _source(broker: type) -> bytes:
    file = inspect.getsourcefile(broker)
    assert file is not None, f"{broker} has no source"
    return Path(file).read_bytes()
