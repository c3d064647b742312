"""Experiments of a second or less, protocols that misbehave, and what a campaign's folder holds."""

import copy
from pathlib import Path
from typing import Any

from roamcast.campaign.define.experiment import experiment
from roamcast.campaign.define.plan import Experiment, Plan, plan
from roamcast.campaign.folder.packs import read_packs

RAW: dict[str, Any] = {
    "name": "tiny",
    "seeds": 3,
    "scenario": {
        "nodes": 20,
        "duration": 5,
        "warmup": 1,
        "area": {"width": 400, "height": 400},
        "radio": {"range": 120},
        "workload": {"subscribers": [{"count": 5}], "publishers": [{"count": 2, "rate": 1}]},
    },
    "variants": [
        {"name": "flooding"},
        {"name": "gossip", "set": {"protocol.name": "gossip", "protocol.parameters.p": 0.5}},
    ],
}

# Flooding that does something else first: on node 0, when it starts.
_PROTOCOL = """
import os, signal, time
from pathlib import Path
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Flooding, FloodingBroker
from roamcast.protocols.flooding import Data

class Odd(FloodingBroker):
    def start(self, now, kept):
        if self.node == 0:
            {first}

ENTRY = Entry("odd", "flooding, after something else", Flooding, Odd, (Data,))
"""


def raw(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  # any value of TOML
    return copy.deepcopy(RAW) | changes


def made(folder: Path, **changes: Any) -> Experiment:  # noqa: ANN401
    return experiment(raw(**changes), "tiny.toml", folder)


def planned(folder: Path, **changes: Any) -> Plan:  # noqa: ANN401
    return plan([made(folder, **changes)])


def odd(folder: Path, first: str) -> dict[str, Any]:
    """Changes of the experiment: one variant, with a protocol of our own that executes `first`."""
    (folder / "odd.py").write_text(_PROTOCOL.format(first=first))
    return {"variants": [{"name": "odd", "set": {"protocol.name": "odd.py:ENTRY"}}]}


def results(out: Path) -> dict[str, bytes]:
    """What must not depend on how a campaign went: its facts and its manifest, byte by byte."""
    files = [out / "manifest.parquet", *(out / "facts").rglob("*.parquet")]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def done(out: Path) -> int:
    waiting = {path.stem for path in (out / "done").glob("*.run")}
    return len(waiting.union(*(one.runs for one in read_packs(out).values())))
