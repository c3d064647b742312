"""The same work in ns-3: builds `flooding.cc` where ns-3 is installed, and runs it."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from roamcast.sim.mobility import export
from roamcast.sim.scenario.scenario import Scenario

SOURCE = Path(__file__).with_name("flooding.cc")
MODULES = ("ns3-wifi", "ns3-mobility", "ns3-propagation", "ns3-network", "ns3-core")


def found() -> str | None:
    """The version of ns-3, if it is installed with its headers, and a compiler with it; else says that it is not."""
    version = _version()
    if version is None:
        print("ns-3 is not installed here (Debian: apt-get install libns3-dev g++): nothing to compare with")
    return version


def _version() -> str | None:
    if not (shutil.which("pkg-config") and shutil.which("g++")):
        return None
    asked = subprocess.run(["pkg-config", "--modversion", *MODULES], capture_output=True, text=True, check=False)
    return asked.stdout.split()[0] if asked.returncode == 0 and asked.stdout.split() else None


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


def run(scenario: Scenario, load: Load, folder: Path) -> Done:
    """The nodes, movement, seed and duration are the scenario's."""
    options = {
        "nodes": scenario.nodes,
        "duration": scenario.duration,
        "movement": _movement(scenario, folder),
        **load._asdict(),
        "RngRun": scenario.seed,
    }
    words = [str(_program(folder)), *(f"--{key}={value}" for key, value in options.items())]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    cpu, sent, received = (float(word) / scenario.duration for word in answer.stdout.split())
    return Done(1000 * cpu, sent, received)


def _movement(scenario: Scenario, folder: Path) -> Path:
    """Our movement, as a file of ns-2. Drawn anew by ns-3, it would start with other distances between the nodes."""
    assert scenario.area is not None
    walks = scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder)
    file = folder / "movement.tcl"
    lines = export.ns2(export.taken(walks, scenario.end), scenario.end, export.ExportOptions())
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def _program(folder: Path) -> Path:
    program = folder / "flooding"
    if not program.exists():
        found = subprocess.run(["pkg-config", "--libs", *MODULES], capture_output=True, text=True, check=True)
        # Debian's files also name libraries of its build machine by their paths; ns-3's own are enough.
        libraries = dict.fromkeys(word for word in found.stdout.split() if word.startswith("-l"))
        subprocess.run(["g++", "-O2", "-std=c++17", "-o", str(program), str(SOURCE), *libraries], check=True)
    return program


def folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="roamcast-ns3-")
