"""The same work in ns-3: builds `flooding.cc` where ns-3 is installed, and runs it."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from roamcast.sim.mobility import export
from roamcast.sim.scenario import Scenario

SOURCE = Path(__file__).with_name("flooding.cc")
MODULES = ("ns3-wifi", "ns3-mobility", "ns3-propagation", "ns3-network", "ns3-core")
OPTIONS_OF: Final[dict[str, dict[str, float]]] = {
    "A": {"publishers": 2, "beacons": 0.2},
    "B": {"publishers": 75, "beacons": 0},
}
"""What `simulator.scenario_a` and `scenario_b` send."""


def version() -> str | None:
    """Of ns-3, if it is installed with its headers, and a compiler with it."""
    if not (shutil.which("pkg-config") and shutil.which("g++")):
        return None
    asked = subprocess.run(["pkg-config", "--modversion", *MODULES], capture_output=True, text=True, check=False)
    return asked.stdout.split()[0] if asked.returncode == 0 and asked.stdout.split() else None


def cost(name: str, scenario: Scenario, size: int, folder: Path) -> tuple[float, float]:
    """CPU ms per simulated second, and transmissions per simulated second. A flooded message has `size` bytes."""
    options = {
        **OPTIONS_OF[name],
        "nodes": scenario.nodes,
        "duration": scenario.duration,
        "size": size,
        "movement": _movement(name, scenario, folder),
    }
    words = [str(_program(folder)), *(f"--{key}={value}" for key, value in options.items())]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    cpu, sent = answer.stdout.split()
    return 1000 * float(cpu) / scenario.duration, int(sent) / scenario.duration


def _movement(name: str, scenario: Scenario, folder: Path) -> Path:
    """Our movement, as a file of ns-2. Drawn anew by ns-3, it would start with other distances between the nodes."""
    file = folder / f"{name}.tcl"
    if not file.exists():
        assert scenario.area is not None
        walks = scenario.moving.walks(scenario.area, scenario.nodes, scenario.seed, folder)
        lines = export.ns2(export.taken(walks, scenario.end), scenario.end, export.How())
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
