"""What `roamcast watch` shows, as text for the terminal and as a page that renews itself.

The page is one file without a script. The browser loads it again every few seconds; the file is replaced as a whole, so
no reader gets half of it.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.report import tables
from roamcast.report.markup import Markup, asset, tag
from roamcast.report.numbers import ABSENT, estimate, number, value_text
from roamcast.report.page import key_list, page_head

_HEADS: Final = {
    "delivery": "delivery",
    "airtime_per_delivery": "air ms per delivery",
    "delay_mean": "delay (s)",
}
_MOST: Final = 20
"""Most errors and silent nodes that are listed."""


class Shown(NamedTuple):
    title: str
    key: dict[str, str]
    tables: list[tuple[str, list[str], list[list[str]]]]
    """A caption, heads and rows each."""
    note: str


def shown(snapshot: Mapping[str, Any]) -> Shown:
    """A snapshot of `roamcast.pipeline.watch` in words."""
    made = _campaign(snapshot) if snapshot["watched"] == "campaign" else _network(snapshot)
    as_of = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(snapshot["time"]))
    return made._replace(key={**made.key, "As of": as_of})


def _campaign(snapshot: Mapping[str, Any]) -> Shown:
    runs, since = snapshot["runs"], snapshot["runs"]["seconds_since_latest"]
    key = {
        "Runs done": f"{runs['done']} of {runs['planned']}",
        "Failed": str(runs["failed"]),
        "To do": str(runs["to_do"]),
        "Latest run": ABSENT if since is None else f"{_age(since)} ago",
    }
    made = []
    for name in dict.fromkeys(point["experiment"] for point in snapshot["points"]):
        points = [point for point in snapshot["points"] if point["experiment"] == name]
        labels = list(dict.fromkeys(label for point in points for label in point["axes"]))
        rows = [
            [
                point["variant"],
                *(value_text(point["axes"][label]) if label in point["axes"] else ABSENT for label in labels),
                f"{point['seeds_done']} of {point['seeds']}",
                *(_interval(point.get(measure)) for measure in _HEADS),
            ]
            for point in points
        ]
        made.append((name, ["variant", *labels, "seeds", *_HEADS.values()], rows))
    if snapshot["errors"]:
        made.append(("Errors", ["error"], [[text] for text in snapshot["errors"][:_MOST]]))
    note = "± is a 95 % confidence interval (Student’s t) over the seeds that are done."
    return Shown(f"Campaign {Path(snapshot['folder']).name}", key, made, note)


def _interval(measured: Mapping[str, Any] | None) -> str:
    return ABSENT if measured is None else estimate(measured["mean"], measured["low"], measured["high"])


def _network(snapshot: Mapping[str, Any]) -> Shown:
    nodes, events, measures = snapshot["nodes"], snapshot["events"], snapshot["measures"]
    silent, until = [node for node in nodes if node["silent"]], snapshot["watermark"]
    key = {
        "Nodes": str(len(nodes)),
        "Silent": str(len(silent)),
        "Events": f"{events['settled']} counted, {events['under_way']} under way",
        "Facts until": ABSENT if until is None else time.strftime("%H:%M:%S UTC", time.gmtime(until)),
    }
    if snapshot["islands"] is not None:
        key["Parts of the tree"] = str(snapshot["islands"])
    rows = [[CATALOGUE[name].title, number(value)] for name, value in measures.items()]
    window, wait = _age(snapshot["window_s"]), _age(snapshot["wait_s"])
    made = [(f"Events of the last {window}", ["measure", "value"], rows)]
    if silent:
        silent.sort(key=lambda node: -node["seconds_since_part"])
        about = []
        for node in silent[:_MOST]:
            name = ABSENT if node["node"] is None else str(node["node"])
            about.append([name, f"{_age(node['seconds_since_part'])} ago", node["folder"]])
        made.append((f"Silent nodes ({len(silent)})", ["node", "last facts", "folder"], about))
    note = f"An event counts when its lifetime is over, or {wait} after it was published if it has none."
    return Shown(f"Network of {len(nodes)} nodes", key, made, note)


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


# --- The page -------------------------------------------------------------------------------------------------------


def page(snapshot: Mapping[str, Any], every: float) -> str:
    """The whole file, which the browser loads again every so many seconds."""
    made, style = shown(snapshot), asset("page.css")
    head = page_head(made.title, style, Markup(""))
    again = tag("meta", http_equiv="refresh", content=str(max(1, round(every))))
    sections = (tag("section", tag("h2", caption), tables.table(head, rows, "")) for caption, head, rows in made.tables)
    main = tag("main", *sections, id="main")
    header, note = tag("header", tag("h1", made.title), key_list(made.key)), tag("p", made.note, class_="muted")
    body = tag("body", header, main, note)
    whole = tag("html", Markup(head.replace("</head>", f"{again}</head>")), body, lang="en")
    return f"<!doctype html>\n{whole}\n"
