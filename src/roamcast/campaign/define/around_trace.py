"""Makes a scenario around a recorded trace, for users who have only the trace; and moves scenarios between folders.

The rules for a scenario around a trace: the seed draws a window of the trace, since one movement says nothing about
others; it also draws the nodes, as many as every window has but at most a hundred, so that no window has too few; a
fifth of the nodes want everything, and a twentieth publish 256 bytes every 5 s.
"""

import copy
import os
from pathlib import Path
from typing import Any, Final

from roamcast.sim.mobility import ScenarioError
from roamcast.sim.mobility.trace import TraceDescription, least_present, read_about

MOST_NODES: Final = 100
LONGEST: Final = 300.0
"""The longest run, in seconds."""
_SHARE_OF_WINDOW: Final = 0.8
"""The window is shorter than the trace, or every seed would draw the same one."""
_INDEPENDENT: Final = 10
"""If this many windows fit into the trace, those of different seeds have little in common."""
_RATE: Final = 0.2
_SIZE: Final = 256


def around_trace(trace: Path) -> dict[str, Any]:
    """The scenario, as read from a file in the folder of the trace."""
    about = read_about(trace)
    window = round(min(LONGEST, about.span * _SHARE_OF_WINDOW), 1)
    nodes = min(least_present(trace, window), MOST_NODES)
    if nodes < 2:
        raise ScenarioError(
            f"{trace}: some {window:g} s of it have only {nodes} of its {about.nodes} nodes, too few for a network: "
            "import a busier part (--from, --to), or write a scenario with the trace"
        )
    workload = {
        "subscribers": [{"count": max(1, nodes // 5), "filter": "true"}],
        "publishers": [{"count": max(1, nodes // 20), "rate": _RATE, "size": _SIZE}],
    }
    return {
        "name": trace.stem,
        "nodes": nodes,
        "duration": window,
        "warmup": round(window / 5, 1),
        **_movement(about, {"file": trace.name, "window": window, "subset": "drawn"}),
        "workload": workload,
    }


def _movement(about: TraceDescription, drawn: dict[str, Any]) -> dict[str, Any]:
    if about.kind == "contacts":
        return {"radio": {"propagation": "links"}, "mac": {"model": "ideal"}, "links": drawn}
    width, height = (max(1, -int(-side // 1)) for side in (about.width, about.height))
    return {"area": {"width": width, "height": height}, "movement": {"model": "recorded", **drawn}}


def in_words(scenario: dict[str, Any], trace: Path) -> str:
    """Describes what `around_trace` made, why it has no more nodes, and what the seeds do not vary."""
    about = read_about(trace)
    subscribers, publishers = (scenario["workload"][role][0]["count"] for role in ("subscribers", "publishers"))
    nodes, window = scenario["nodes"], scenario["duration"]
    limit = "the most that are taken" if nodes == MOST_NODES else f"as many as any {window:g} s of it have"
    words = (
        f"each seed draws {window:g} s of {trace} and {nodes} of its {about.nodes} nodes ({limit}); "
        f"{subscribers} want everything, {publishers} publish {_SIZE} bytes every {1 / _RATE:g} s"
    )
    if about.span >= _INDEPENDENT * window:
        return words
    return f"{words}. The trace has only {about.span:g} s: seeds overlap, and intervals say little about other days"


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
