"""Drawing the replay: milliseconds per picture, with 200 nodes and 100,000 frames, in a headless Chromium.

Two numbers for each picture. The *script*: finding where every node is and which links hold, and giving the drawing
orders; in real time, since a page cannot read its own CPU time. And *all of it*: the CPU time of the page's thread,
with filling the bitmap, which is the thread's work where there is no graphics card, with laying the page out, and with
the order to draw that comes from here; what such an order costs when it draws nothing is printed too.

Each picture is drawn three times, and the least counts: other programs empty the caches, which doubles the CPU time of
a drawing here and there. The 95th percentile of all drawings stands beside it. The page is played at several speeds,
each picture a sixtieth of a second after the one before.

Besides: what opening the page costs, the memory that it takes, and how long a click on a node, the choice of an event
and a jump in time take.

`python -m bench replay --large` has 1,000 nodes and a million frames, `python -m bench.replay 500 50000` as many as it
says. The goal of 8 ms is for 200 nodes and 100,000 frames; a large page shall still be usable: 30 pictures a second.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from roamcast.campaign.folder.recorded import RecordedRun, run_in
from roamcast.facts.sinks import ParquetSink
from roamcast.report.replay import write_replay
from roamcast.sim.run import run as simulate
from roamcast.sim.scenario.scenario import check

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from report.chromium import Browser, find_chromium  # the tests' own driver

LIMIT_MS: Final = 8.0
USABLE_MS: Final = 33.0
"""Of a picture of a large run: 30 a second."""
SPEEDS: Final = (0.01, 1, 20, 1000)
PICTURES: Final = 100
REPEATS: Final = 3
"""Drawings of one picture."""
_NEXT: Final = """(() => {
  const { clock } = roamcast;
  clock.playing = true;
  clock.setSpeed(SPEED);
  clock.seek(clock.end * 0.3 + (NUMBER * clock.speed) / 60 % (clock.end * 0.7));
  const begin = performance.now();
  roamcast.draw();
  roamcast.controls.showTime(clock);
  const waited = performance.now() - begin;
  document.getElementById("stage").getContext("2d").getImageData(0, 0, 1, 1);
  clock.playing = false;
  return waited;
})()"""
_ACTIONS: Final = {
    "a jump in time": "roamcast.seek(roamcast.clock.end * ((NUMBER * 0.37) % 1))",
    "a click on a node": "roamcast.chooseNode((NUMBER * 37) % roamcast.run.nodes)",
    "the choice of an event": "roamcast.chooseEvent((NUMBER * 37) % roamcast.run.event.time.length)",
}
_ACTS: Final = 20
"""How often each is done."""


def run_large() -> None:
    run(1000, 1_000_000)


def run(nodes: int = 200, frames: int = 100_000) -> None:
    program = find_chromium()
    print(f"replay: {nodes} nodes, {frames:,} frames, {PICTURES} pictures at each speed")
    if program is None:
        print("  no Chromium on this machine: not measured")
        return
    with tempfile.TemporaryDirectory(prefix="roamcast-bench-") as folder, Browser(program, 1280, 800) as browser:
        made = record(Path(folder), nodes, frames)
        begin = time.process_time()
        page = write_replay(made, place=Path(folder) / "replay.html")
        taken, most = time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  written in {taken:.1f} CPU s, {page.stat().st_size / 1e6:.1f} MB; memory at most {most:.0f} MB")
        opened(browser, page)
        empty = ranked([timed(browser, "0")[1] for _ in range(PICTURES)])
        print(f"  an order that draws nothing: {empty[0]:.1f} / {empty[1]:.1f} ms of CPU (50 / 95 %)")
        worst = [max(column) for column in zip(*(percentiles(browser, speed) for speed in SPEEDS), strict=True)]
        for name, order in _ACTIONS.items():
            times = ranked([timed(browser, f"{order.replace('NUMBER', str(i))}, 0")[1] for i in range(_ACTS)])
            print(f"  {name}: {times[0]:.1f} / {times[1]:.1f} ms of CPU (50 / 95 %)")
    limit = LIMIT_MS if nodes <= 200 and frames <= 100_000 else USABLE_MS
    for what, found in zip(("the script", "all of it, without a graphics card"), worst, strict=True):
        verdict = "holds" if found <= limit else "does not hold"
        print(f"  95th percentile at most {limit:g} ms, {what}: {verdict}, {found:.1f} ms")
    print(f"  {os.getloadavg()[0]:.0f} programs shared the {os.cpu_count()} cores meanwhile")


def opened(browser: Browser, page: Path) -> None:
    """Opens the page, and prints what that costs."""
    begin = time.monotonic()
    browser.ask("Performance.enable")
    browser.open(page.as_uri())
    while not browser.evaluate("document.documentElement.dataset.ready || ''"):
        time.sleep(0.05)
    there = browser.evaluate("[roamcast.run.nodes, roamcast.run.frame.start.length]")
    print(
        f"  opened in {time.monotonic() - begin:.1f} s, {spent(browser):.1f} s of CPU in the page's thread, with"
        f" {there[0]} nodes and {there[1]:,} frames"
    )
    now, most = (browser.memory(which) / 1e6 for which in ("VmRSS", "VmHWM"))
    print(f"  memory of the page's process: {now:.0f} MB, {most:.0f} MB at most while it opened", flush=True)


def percentiles(browser: Browser, speed: float) -> tuple[float, float]:
    """The 95th, ms, of the script alone, and of a picture's least CPU time in the page's thread."""
    scripts: list[float] = []
    least: list[float] = []
    times: list[float] = []
    for number in range(PICTURES):
        order = _NEXT.replace("SPEED", str(speed)).replace("NUMBER", str(number))
        waited, spent_here = zip(*(timed(browser, order) for _ in range(REPEATS)), strict=True)
        scripts.append(min(waited))
        least.append(min(spent_here))
        times += spent_here
    script, whole, every = ranked(scripts), ranked(least), ranked(times)
    part = f"the script alone {script[0]:.1f} / {script[1]:.1f} ms"
    print(
        f"  speed {speed:>6g}: {whole[0]:.1f} / {whole[1]:.1f} ms of CPU (50 / 95 %), of all drawings"
        f" {every[0]:.1f} / {every[1]:.1f}; {part}",
        flush=True,
    )
    return script[1], whole[1]


def timed(browser: Browser, order: str) -> tuple[float, float]:
    """What an order gave, and its CPU time in the page's thread, ms."""
    before = spent(browser)
    return browser.evaluate(order), 1000 * (spent(browser) - before)


def ranked(times: list[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    times = sorted(times)
    return times[len(times) // 2], times[-(-95 * len(times) // 100) - 1]


def spent(browser: Browser) -> float:
    """CPU seconds of the page's thread so far."""
    metrics = browser.ask("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "ThreadTime")


def record(folder: Path, nodes: int, frames: int) -> RecordedRun:
    """A run with about so many frames: floods among nodes that have ten neighbours each."""
    side = 150 * (nodes * 3.14159 / 10) ** 0.5
    duration = max(2.0, frames / nodes / 5)
    raw: dict[str, Any] = {
        "name": "bench",
        "nodes": nodes,
        "duration": duration,
        "area": {"width": side, "height": side},
        "radio": {"range": 150},
        "workload": {
            "subscribers": [{"count": nodes // 10}],
            "publishers": [{"count": 5, "rate": 1.0}],
        },
        "record": {"frames": True, "decisions": True},
    }
    scenario = check(raw, "bench", Path())
    sink = ParquetSink(folder)
    simulate(scenario, sink)
    sink.close()
    return run_in(folder, scenario)


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
