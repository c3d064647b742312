"""The replay of a run: one self-contained page that plays it.

Python packs the facts as columns; the page (`assets/`) draws them. Nothing is fetched, and the content-security policy
lets nothing run but the page's own script.
"""

from pathlib import Path
from typing import Final

from roamcast.campaign.folder.recorded import RecordedRun
from roamcast.files import write_file, writing
from roamcast.report.markup import Markup, asset, tag
from roamcast.report.page import page_head
from roamcast.report.replay.beside import labels_of, refuse_other_movement
from roamcast.report.replay.events import add_events, numbered
from roamcast.report.replay.links import add_links
from roamcast.report.replay.pack import ColumnPack
from roamcast.report.replay.scene import add_scene
from roamcast.report.replay.traffic import add_traffic

__all__ = ["write_replay"]

SCRIPTS: Final = (
    *("columns", "numbers", "spans", "movement", "run", "story", "palette", "camera", "clock", "lines", "sprites"),
    "room",
    *("transmissions", "stage", "timeline", "chart", "panel", "node_panel", "event_panel", "side", "controls"),
    *("player", "main"),
)
"""The script's files, in the order of their dependencies; together they are one script."""


def write_replay(run: RecordedRun, beside: RecordedRun | None = None, *, place: Path | None = None) -> Path:
    """Writes the page into the run's folder, or to `place`; returns its path. `beside` has the same movement."""
    runs = [run] if beside is None else [run, beside]
    if beside is not None:
        refuse_other_movement(run, beside)
    target = place or run.page(
        "replay" if beside is None else f"replay-with-{beside.id or beside.place.resolve().name}"
    )
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_file(target, page(runs))
    return target


def page(runs: list[RecordedRun]) -> str:
    """The whole file, for one run or two."""
    style, body = asset("replay.css", __name__), asset("replay.html", __name__)
    scripts = "\n".join(asset(f"{name}.js", __name__) for name in SCRIPTS)
    script = Markup('"use strict";\n(() => {\n' + scripts + "\n})();\n")
    names = dict.fromkeys(run.scenario.name for run in runs)
    head = page_head(f"{' and '.join(names)}: replay", style, script)
    labels = labels_of([run.scenario for run in runs])
    data = [
        tag("script", Markup(_data(run, label)), type="application/octet-stream", class_="data")
        for run, label in zip(runs, labels, strict=True)
    ]
    return f"<!doctype html>\n{tag('html', head, tag('body', body, *data, tag('script', script)), lang='en')}\n"


def _data(run: RecordedRun, label: str) -> str:
    pack, scenario = ColumnPack(), run.scenario
    event_number = numbered(run)
    about = {
        "name": scenario.name,
        "label": label,
        "protocol": scenario.protocol.name,
        "seed": scenario.seed,
        "nodes": scenario.nodes,
        "duration": scenario.duration,
        "warmup": scenario.warmup,
        "missing": run.record.missing,
        **add_scene(pack, run, event_number),
        **add_traffic(pack, run, event_number),
        **add_events(pack, run, event_number),
    }
    add_links(pack, run, event_number)
    return pack.encode(about)
