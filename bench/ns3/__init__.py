"""The same work in ns-3: builds `flooding.cc` against the installed ns-3 or one given by path, and runs it.

How an ns-3 was built matters: with its logs, as Debian's, it is up to 1.3 times slower than without. So it is told.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from roamcast.sim.mobility import export
from roamcast.sim.scenario.scenario import Scenario

SOURCE = Path(__file__).with_name("flooding.cc")
MODULES = ("ns3-wifi", "ns3-mobility", "ns3-propagation", "ns3-network", "ns3-core")
_TRACES: Final = (("logs", b"_ZN3ns312LogComponentC"), ("asserts", b"assert failed. cond="))
"""What a library that was built with these has in it: the constructor of `LogComponent`, what a failed assert says."""


class Load(NamedTuple):
    """What the nodes send."""

    publishers: int
    """So many nodes flood messages."""
    rate: float
    """Of each of these, per second."""
    size: int
    """Bytes of a flooded message."""
    beacons: float = 0.0
    """Of every node, per second."""


class Done(NamedTuple):
    """What a run of ns-3 took and did, per simulated second."""

    cpu: float
    """ms"""
    sent: float
    """Frames."""
    received: float
    """Copies of them."""


class Ns3:
    """One ns-3 on this machine."""

    def __init__(self, prefix: Path | None, version: str) -> None:
        """`prefix` is where it was installed; None: where the compiler looks."""
        self._prefix = prefix
        self.version = version

    def run(self, scenario: Scenario, load: Load, folder: Path) -> Done:
        """The nodes, movement, seed and duration are the scenario's."""
        options = {
            "nodes": scenario.nodes,
            "duration": scenario.duration,
            "movement": _movement(scenario, folder),
            **load._asdict(),
            "RngRun": scenario.seed,
        }
        words = [str(self._program(folder)), *(f"--{key}={value}" for key, value in options.items())]
        answer = subprocess.run(words, capture_output=True, text=True, check=True, env=self._environment())
        cpu, sent, received = (float(word) / scenario.duration for word in answer.stdout.split())
        return Done(1000 * cpu, sent, received)

    def built(self, folder: Path) -> str:
        """How the library that the program loads was built."""
        words = ["ldd", str(self._program(folder))]
        answer = subprocess.run(words, capture_output=True, text=True, check=True, env=self._environment())
        (library,) = (line.split(" => ")[1].split()[0] for line in answer.stdout.splitlines() if "-wifi" in line)
        return f"{library}, {told(Path(library).read_bytes())}"

    def _program(self, folder: Path) -> Path:
        program = folder / "flooding"
        if not program.exists():
            words = ["pkg-config", "--libs", *MODULES]
            found = subprocess.run(words, capture_output=True, text=True, check=True, env=self._environment())
            # Debian's files also name libraries of its build machine by their paths; ns-3's own are enough.
            libraries = dict.fromkeys(word for word in found.stdout.split() if word.startswith("-l"))
            at = [] if self._prefix is None else [f"-I{self._prefix / 'include'}", f"-L{self._prefix / 'lib'}"]
            command = ["g++", "-O2", "-std=c++17", "-o", str(program), str(SOURCE), *at, *libraries]
            subprocess.run(command, check=True)
        return program

    def _environment(self) -> dict[str, str]:
        return environment(self._prefix)


def environment(prefix: Path | None) -> dict[str, str]:
    """With which pkg-config and the loader find an ns-3."""
    if prefix is None:
        return {**os.environ}
    return {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib")}


def told(library: bytes) -> str:
    """Whether a library was built with logs and asserts."""
    return ", ".join(f"built with{'' if trace in library else 'out'} {name}" for name, trace in _TRACES)


def found(prefix: str | None = None) -> Ns3 | None:
    """The ns-3 at a path, or the installed one, if it has its headers and a compiler is here; else says what lacks."""
    at = None if prefix is None else Path(prefix).absolute()
    version = _version(at)
    if version is not None:
        return Ns3(at, version)
    if prefix is not None:
        print(f"no ns-3 with lib/pkgconfig is in {prefix}, or pkg-config or g++ are missing: nothing to compare with")
    else:
        print("ns-3 is not installed here (Debian: apt-get install libns3-dev g++): nothing to compare with")
    return None


def _version(prefix: Path | None) -> str | None:
    if not (shutil.which("pkg-config") and shutil.which("g++")):
        return None
    if prefix is not None and not list((prefix / "lib" / "pkgconfig").glob("ns3-*.pc")):
        return None  # else pkg-config takes the installed one
    words = ["pkg-config", "--modversion", *MODULES]
    asked = subprocess.run(words, capture_output=True, text=True, check=False, env=environment(prefix))
    return asked.stdout.split()[0] if asked.returncode == 0 and asked.stdout.split() else None


def _movement(scenario: Scenario, folder: Path) -> Path:
    """Our movement, as a file of ns-2. Drawn anew by ns-3, it would start with other distances between the nodes."""
    assert scenario.area is not None
    walks = scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder)
    file = folder / "movement.tcl"
    lines = export.ns2(export.taken(walks, scenario.end), scenario.end, export.ExportOptions())
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="roamcast-ns3-")
