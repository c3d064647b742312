"""A scenario around a recorded trace, for those who have nothing but the trace; and scenarios in another folder.

The rules of the former: at most a hundred of the trace's nodes, drawn by the seed; a window of it, drawn too, since one
movement says nothing about others; a fifth of the nodes want everything, and a twentieth publish 256 bytes every 5 s.
"""

import copy
import os
from pathlib import Path
from typing import Any, Final

from roamcast.sim.mobility.trace import read_about

MOST_NODES: Final = 100
LONGEST: Final = 300.0
"""Seconds of a run."""
_SHARE_OF_WINDOW: Final = 0.8
"""A shorter window than the trace: else the seed could draw only one."""


def around_trace(trace: Path) -> dict[str, Any]:
    """The scenario, as read from a file in the folder of the trace."""
    about = read_about(trace)
    nodes = min(about.nodes, MOST_NODES)
    window = round(min(LONGEST, about.span * _SHARE_OF_WINDOW), 1)
    drawn = {"file": trace.name, "window": window, "subset": "drawn"}
    world: dict[str, Any]
    if about.kind == "contacts":
        world = {"radio": {"propagation": "links"}, "mac": {"model": "ideal"}, "links": drawn}
    else:
        width, height = (max(1, -int(-side // 1)) for side in (about.width, about.height))
        world = {"area": {"width": width, "height": height}, "movement": {"model": "recorded", **drawn}}
    workload = {
        "subscribers": [{"count": max(1, nodes // 5), "filter": "true"}],
        "publishers": [{"count": max(1, nodes // 20), "rate": 0.2, "size": 256}],
    }
    return {"name": trace.stem, "nodes": nodes, "duration": window, "warmup": round(window / 5, 1), **world} | {
        "workload": workload
    }


def moved(scenario: dict[str, Any], folder: Path, to: Path) -> dict[str, Any]:
    """The scenario with its file names as seen from another folder."""

    def seen(name: str) -> str:
        return os.path.relpath(folder / name, to)

    found = copy.deepcopy(scenario)
    for table in (found.get("movement"), found.get("links")):
        if isinstance(table, dict) and "file" in table:
            table["file"] = seen(table["file"])
    protocol = found.get("protocol", {})
    if ".py:" in protocol.get("name", ""):
        protocol["name"] = seen(protocol["name"])
    for group in found.get("workload", {}).get("publishers", ()):
        documents = group.get("documents", ())
        if documents:
            group["documents"] = [seen(name) if (folder / name).is_file() else name for name in map(str, documents)]
        if isinstance(group.get("schema"), str) and (folder / group["schema"]).is_file():
            group["schema"] = seen(group["schema"])
    return found
