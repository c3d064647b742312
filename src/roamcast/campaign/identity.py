"""Which run is which: a name that follows from everything a run's facts follow from.

The rule this file owns: a run is named by a hash of its checked scenario with all defaults (the seed is in it, its
`name` for people is not), of roamcast's own sources that a run executes, and of every file from outside that it reads:
a protocol of someone's own, a recorded movement. Runs of equal names have equal facts, so one of them is enough; what
is edited gets another name, and so never old numbers.
"""

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

import roamcast
from roamcast.errors import RoamcastError
from roamcast.sim.mobility.recorded import Recorded
from roamcast.sim.scenario import Scenario, parameters

_ROOT: Final = Path(roamcast.__file__).parent
_EXECUTED: Final = ("content", "protocols", "facts", "sim")
"""What of the package decides what a run records."""
_DIGITS: Final = 16

PROTOCOL: Final = "protocol"
MOVEMENT: Final = "movement"
INSTALLED: Final = "installed protocol"

_S = TypeVar("_S", bound=msgspec.Struct)

Files = Mapping[str, bytes]
"""Contents of the files that a run reads beside its scenario, by what they are to it: PROTOCOL, MOVEMENT."""


def canonical_hash(value: Any) -> str:  # noqa: ANN401  # any value of JSON
    """Of what a value says, not of how it is written."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def digests(files: Files) -> dict[str, str]:
    return {what: hashlib.sha256(content).hexdigest() for what, content in files.items()}


def executed_sources() -> list[Path]:
    """The package's files that a run executes."""
    places = [_ROOT / part for part in _EXECUTED]
    return sorted(path for place in places for path in ([place] if place.is_file() else place.rglob("*.py")))


def _code_version() -> str:
    sources = executed_sources()
    return canonical_hash(digests({path.relative_to(_ROOT).as_posix(): path.read_bytes() for path in sources}))


# When this is imported, and not when it is asked for: then it is of the code that this process has loaded, and not of
# what someone has edited since.
CODE_VERSION: Final = _code_version()


def completed(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with the defaults of its protocol's parameters written out, and every number of its field's type:
    2 and 2.0, given or by default, are one value for a range in metres."""
    whole = msgspec.to_builtins(_decoded(parameters(scenario, scenario.name, folder)))
    protocol = msgspec.structs.replace(scenario.protocol, parameters=whole)
    return _decoded(msgspec.structs.replace(scenario, protocol=protocol))


def _decoded(struct: _S) -> _S:
    return msgspec.convert(msgspec.to_builtins(struct), type(struct))


def read_files(scenario: Scenario, folder: Path) -> dict[str, bytes]:
    """What has to go with the scenario to wherever it runs."""
    files = {}
    for what, name in _file_names(scenario):
        try:
            files[what] = (folder / name).read_bytes()
        except OSError as problem:
            raise RoamcastError(f"{what} file {folder / name}: cannot be read: {problem.strerror}") from None
    return files


def write_files(scenario: Scenario, files: Files, folder: Path) -> None:
    """Writes the files to where `relocated` looks for them."""
    for what, name in _file_names(scenario):
        place = folder / what / Path(name).name
        place.parent.mkdir()
        place.write_bytes(files[what])


def relocated(scenario: Scenario) -> Scenario:
    """The scenario that finds its files where `write_files` has put them."""
    changes: dict[str, Any] = {}
    for what, name in _file_names(scenario):
        place = f"{what}/{Path(name).name}"
        if what == MOVEMENT:
            changes[what] = msgspec.structs.replace(scenario.movement, file=place)  # type: ignore[type-var]
        else:
            entry = scenario.protocol.name.rpartition(":")[2]
            changes[what] = msgspec.structs.replace(scenario.protocol, name=f"{place}:{entry}")
    return msgspec.structs.replace(scenario, **changes)


def run_id(scenario: Scenario, files: Files) -> str:
    """The name of the run of a completed scenario."""
    said = msgspec.to_builtins(scenario)
    del said["name"]
    return canonical_hash([said, CODE_VERSION, digests(files) | _installed(scenario)])[:_DIGITS]


def _file_names(scenario: Scenario) -> Iterator[tuple[str, str]]:
    file, colon, _ = scenario.protocol.name.rpartition(":")
    if colon:
        yield PROTOCOL, file
    if isinstance(scenario.movement, Recorded):
        yield MOVEMENT, scenario.movement.file


def _installed(scenario: Scenario) -> dict[str, str]:
    """The source of a protocol that another installed package offers."""
    if ":" in scenario.protocol.name:
        return {}
    broker = scenario.entry(Path()).broker
    if broker.__module__.partition(".")[0] == roamcast.__name__:
        return {}
    source = inspect.getsourcefile(broker)
    assert source is not None, f"{broker} has no source"
    return {INSTALLED: hashlib.sha256(Path(source).read_bytes()).hexdigest()}
