"""How far the estimates of a run's time are off, and the costs that fit best (`campaign/define/estimate.py`).

python -m bench estimates     each protocol in some scenarios: CPU s, estimate, ratio; then the fitted costs
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roamcast.campaign.define.estimate import COSTS, UnitCosts, estimated, features
from roamcast.facts.sinks import ParquetSink
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import Scenario, check

_PLACED = {"width": 100, "height": 100, "around": "node"}
_BASE: dict[str, Any] = {
    "nodes": 60,
    "duration": 120,
    "area": {"width": 800, "height": 800},
    "movement": {"model": "random-waypoint", "speed": [1.0, 5.0]},
    "radio": {"range": 150},
}
_VARIATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("base", {}),
    ("20 nodes", {"nodes": 20}),
    ("150 nodes", {"nodes": 150}),
    ("range 80 m", {"radio": {"range": 80}}),
    ("range 250 m", {"radio": {"range": 250}}),
    ("no events", {"rate": 0.001}),
    ("4 events/s", {"rate": 2.0}),
)
_LARGE = ("20 KiB", {"size": 20480})


def run() -> None:
    print("estimates: CPU s of a run, beside what was estimated")
    print(f"{'protocol':<14} {'scenario':<24} {'CPU s':>8} {'estimate':>9} {'ratio':>6}")
    _cpu(next(_grid("flooding"))[1])  # compiled code is loaded
    for protocol in COSTS:
        rows = []
        for name, scenario in _grid(protocol):
            cpu = _cpu(scenario)
            rows.append((features(scenario), cpu))
            print(f"{protocol:<14} {name:<24} {cpu:8.2f} {estimated(scenario):9.2f} {cpu / estimated(scenario):6.2f}")
        print(f"{'':14} fits best: {_fitted(rows)}", flush=True)


def _grid(protocol: str) -> Iterator[tuple[str, Scenario]]:
    for name, change in (*_VARIATIONS, *([_LARGE] if protocol == "opportunistic" else [])):
        changes = dict(change)
        rate, size = changes.pop("rate", 0.5), changes.pop("size", 256)
        publisher: dict[str, Any] = {"count": 2, "rate": rate, "size": size}
        subscriber: dict[str, Any] = {"count": 10}
        if protocol == "context":
            publisher |= {"relevance": _PLACED, "lifetime": 10}
            subscriber |= {"interest": _PLACED, "lifetime": 30, "every": 30}
        workload = {"publishers": [publisher], "subscribers": [subscriber]}
        raw = {**_BASE, **changes, "workload": workload, "protocol": {"name": protocol}}
        yield name, check(raw, name, Path())


def _cpu(scenario: Scenario) -> float:
    """CPU seconds of a run with its facts written, as in a campaign."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(ParquetSink(Path(folder))) as sink:
        return simulate(scenario, sink).cpu


def _fitted(rows: list[tuple[UnitCosts, float]]) -> str:
    """Costs, none below 0, with the least sum of squared relative errors."""
    counts = np.array([row[0] for row in rows]) / np.array([row[1] for row in rows])[:, None]
    kept = list(range(len(UnitCosts._fields)))
    while True:
        found = np.linalg.lstsq(counts[:, kept], np.ones(len(rows)), rcond=None)[0]
        if (found >= 0).all():
            break
        kept.pop(int(found.argmin()))
    costs = dict(zip(kept, found, strict=True))
    return f"UnitCosts({', '.join(f'{costs.get(place, 0.0):.2g}' for place in range(len(UnitCosts._fields)))})"
