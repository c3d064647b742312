"""What protocols cost on the map: CPU ms per simulated second in two of its cells.

The first seconds count too: tables and trees are built then. For a comparison of two versions, run it in each in turn.
"""

import math
from pathlib import Path
from typing import Final

from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import check, read

SCENARIO: Final = Path(__file__).parent.parent / "studies" / "map" / "scenarios" / "map.toml"
CELLS: Final = ((1.0, 12), (5.0, 8))
"""Speed, m/s, and mean degree."""
DURATION: Final = 100.0


def cost(protocol: str, speed: float, degree: int) -> float:
    """CPU ms per simulated second."""
    raw = read(SCENARIO)
    side = math.sqrt(raw["nodes"] * math.pi * raw["radio"]["range"] ** 2 / degree)
    raw |= {
        "duration": DURATION,
        "warmup": 20.0,
        "cooldown": 20.0,
        "protocol": {"name": protocol},
        "area": {"width": side, "height": side},
        "movement": {**raw["movement"], "speed": [speed, speed]},
    }
    return 1000 * simulate(check(raw, "bench", Path()), MemorySink()).cpu / DURATION


def print_costs(*protocols: str) -> None:
    """One line for each; the core must be compiled."""
    print("  on the map, CPU ms per simulated second: " + ", ".join(f"{v:g} m/s degree {d}" for v, d in CELLS))
    for protocol in protocols:
        print(f"    {protocol:8}" + "".join(f"{cost(protocol, speed, degree):8.2f}" for speed, degree in CELLS))
