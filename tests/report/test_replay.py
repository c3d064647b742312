"""The replay page in a real browser: it plays, scrubs, steps, follows, and tells a node's and an event's story."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from report.chromium import Browser
from report.test_browser import PHONE, PROGRAM, WIDE, middle, open_at, press, shades
from roamcast.campaign.folder.recorded import open_run
from roamcast.cli.main import main

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine: the page is not tested in one")

SCENARIO = """
name = "a line that <b>moves</b>"
nodes = 4
duration = 10
[area]
width = 1000
height = 400
[movement]
model = "recorded"
file = "walk.tcl"
[radio]
range = 250
[mac]
model = "ideal"
[protocol.parameters]
jitter = 0
[[workload.subscribers]]
nodes = [2, 3]
[[workload.publishers]]
nodes = [0]
rate = 1
"""
WALK = """
$node_(0) set X_ 100.0
$node_(0) set Y_ 100.0
$node_(1) set X_ 300.0
$node_(1) set Y_ 100.0
$node_(2) set X_ 500.0
$node_(2) set Y_ 100.0
$node_(3) set X_ 900.0
$node_(3) set Y_ 100.0
$ns_ at 2.0 "$node_(1) setdest 300.0 300.0 50.0"
"""
"""Node 1 leaves the line at 2 s, at 50 m/s; node 3 is never in range."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(str(PROGRAM)) as browser:
        yield browser


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    (folder / "walk.tcl").write_text(WALK)
    (folder / "line.toml").write_text(SCENARIO)
    out = folder / "out"
    arguments = ["run", str(folder / "line.toml"), "--replay", "--reference", "--quiet", "--out", str(out)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert f"replay: {out / 'replay.html'}" in result.output
    return out


@pytest.fixture
def page(browser: Browser, run_folder: Path) -> Browser:
    return shown(browser, run_folder)


def shown(browser: Browser, folder: Path, size: tuple[int, int] = WIDE, name: str = "replay.html") -> Browser:
    open_at(browser, (folder / name).as_uri(), size)
    deadline = time.monotonic() + 30
    while not browser.evaluate("document.documentElement.dataset.ready || ''"):
        assert time.monotonic() < deadline, browser.complaints
    return browser


def text(browser: Browser, selector: str) -> Any:  # noqa: ANN401  # text
    return browser.evaluate(f"document.querySelector({selector!r}).innerText")


def click(browser: Browser, x: float, y: float) -> None:
    for kind in ("mousePressed", "mouseReleased"):
        browser.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, buttons=1)


def now(browser: Browser) -> float:
    return float(browser.evaluate("roamcast.clock.time"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_renders_fits_and_fetches_nothing(
    browser: Browser, run_folder: Path, size: tuple[int, int], scheme: str
) -> None:
    shown(browser, run_folder, size)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for tab in ("run", "event", "node"):
        browser.evaluate(f"roamcast.panel.show('{tab}')")
        assert browser.evaluate("document.documentElement.scrollWidth") == size[0]
    assert text(browser, "h1") == "a line that <b>moves</b>"
    assert shades(browser.screenshot(*size)) > 60
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
    assert browser.complaints == []


def test_nodes_are_exactly_where_their_legs_say(page: Browser) -> None:
    page.evaluate("roamcast.seek(4)")
    place = page.evaluate("[roamcast.run.movement.x[1], roamcast.run.movement.y[1]]")
    assert place == pytest.approx([300, 200], abs=1e-6)  # 2 s at 50 m/s
    page.evaluate("roamcast.seek(1)")  # and back
    assert page.evaluate("[roamcast.run.movement.x[1], roamcast.run.movement.y[1]]") == [300, 100]


def test_it_begins_at_the_first_event_so_slowly_that_one_sees_it_spread(page: Browser) -> None:
    """Flooding takes milliseconds, so at a fiftieth. What takes 20 s is shown in 4."""
    assert now(page) == page.evaluate("roamcast.run.event.time[0]") > 0
    assert text(page, "#speed-text") == "1/50×"
    page.evaluate("roamcast.run.deliver.time[0] = roamcast.run.event.time[0] + 20, roamcast._begin()")
    assert page.evaluate("roamcast.clock.speed") == 5


def test_numbers_of_crowded_nodes_cover_neither_each_other_nor_nodes(page: Browser) -> None:
    """Four nodes in a row, 5 m from each other: there is not room for all numbers but that of the node pointed at."""
    found = page.evaluate("""(() => {
        const { stage, view } = roamcast.sides[0], { x, y } = roamcast.run.movement, shown = [];
        stage._sprites.label = (context, node, px, py) => shown.push([node, px, py]);
        for (let node = 0; node < 4; node++) [x[node], y[node]] = [500 + 5 * node, 200];
        view.hovered = 3;
        stage._numbers();
        const { camera } = roamcast;
        return { shown, dots: [...x].map((at, node) => [camera.screenX(at), camera.screenY(y[node])]) };
    })()""")
    shown, dots = found["shown"], found["dots"]
    assert shown[0][0] == 3
    assert 2 <= len(shown) < 4
    apart = [abs(x - other) >= 7 or abs(y - up) >= 10 for (_, x, y), (_, other, up) in itertools.combinations(shown, 2)]
    assert all(apart)
    assert all(abs(x - across) >= 9 or abs(y - up) >= 11 for _, x, y in shown for across, up in dots)


def test_it_plays_pauses_and_changes_its_speed(page: Browser) -> None:
    begin = now(page)
    press(page, " ")
    deadline = time.monotonic() + 20
    while now(page) == begin and time.monotonic() < deadline:
        pass
    assert now(page) > begin
    press(page, " ")
    stopped = now(page)
    assert page.evaluate("new Promise((done) => setTimeout(() => done(roamcast.clock.time), 50))") == stopped
    for key, times in (("ArrowUp", 20), ("ArrowDown", 40)):
        for _ in range(times):
            press(page, key)
        assert text(page, "#speed-text") == {"ArrowUp": "1000×", "ArrowDown": "1/100×"}[key]


def test_dragging_along_the_time_axis_goes_there(page: Browser) -> None:
    click(page, **middle(page, "#timeline"))
    assert now(page) == pytest.approx(5, abs=0.05)
    assert text(page, "#clock").startswith("0:0")


def test_it_steps_from_frame_to_frame(page: Browser) -> None:
    starts = page.evaluate("[...roamcast.run.frame.start.slice(0, 3)]")
    press(page, "Home")
    for start in starts:
        press(page, "ArrowRight")
        assert now(page) == start
    assert text(page, "#frame").startswith("data of node 2 to all · event 0:1")
    press(page, "ArrowLeft")
    assert now(page) == starts[1]
    assert text(page, "#frame") == "data of node 1 to all · event 0:1 · 264 bytes · received 2"


def test_a_click_on_a_node_tells_about_it(page: Browser) -> None:
    page.evaluate("roamcast.seek(1.5)")
    place = page.evaluate("[roamcast.camera.screenX(500), roamcast.camera.screenY(100)]")
    corner = page.evaluate("(({x, y}) => [x, y])(document.getElementById('stage').getBoundingClientRect())")
    click(page, corner[0] + place[0], corner[1] + place[1])
    told = text(page, "#about-node")
    for words in ("Node 2", "500.0 m, 100.0 m", "250 m", "true", "1: 1"):
        assert words in told
    press(page, "f")
    page.evaluate("roamcast.draw()")
    assert page.evaluate("[roamcast.camera.x, roamcast.camera.y]") == [500, 100]
    press(page, "Escape")
    assert "Click a node" in text(page, "#about-node") or page.evaluate("roamcast.panel.shown") == "run"


def test_what_is_pressed_or_typed_while_it_plays_stays(page: Browser) -> None:
    """The panel is refreshed five times a second: a button replaced while it is pressed would not be clicked."""
    page.evaluate("roamcast.panel.show('node')")
    page.evaluate("document.querySelector('#about-node input').value = '3'")
    page.evaluate("roamcast.seek(1)")
    assert page.evaluate("document.querySelector('#about-node input').value") == "3"
    page.evaluate("roamcast.chooseNode(1)")
    page.evaluate("window.before = [...document.querySelectorAll('#about-node button')]")
    page.evaluate("roamcast.seek(1.5)")
    kept = "[...document.querySelectorAll('#about-node button')].map((button, i) => button === before[i])"
    assert page.evaluate(kept) == [True, True, True, True]  # follow, close, and the neighbours 0 and 2
    page.evaluate("roamcast.seek(9)")
    assert text(page, "#about-node").count("Neighbours") == 1
    assert "300.0 m, 300.0 m" in text(page, "#about-node")


def test_the_clock_carries_over_into_minutes(page: Browser) -> None:
    """Without digits after the point, as at high speeds, 59.9 s are a minute."""
    shown_as = "(s, digits) => { roamcast.clock.time = s; roamcast.clock.playing = true; roamcast.clock.speed = digits"
    show = (
        "roamcast.controls.showTime(roamcast.clock); roamcast.clock.playing = false; return roamcast.controls._time; }"
    )
    told = [page.evaluate(f"({shown_as}; {show})({s}, {speed})") for s, speed in ((59.4, 5), (59.9, 5), (59.9, 1))]
    assert told == ["0:59", "1:00", "0:59.90"]


def test_zoom_keeps_the_place_under_the_pointer(page: Browser) -> None:
    there = "[roamcast.camera.screenX(300), roamcast.camera.screenY(100), roamcast.camera.scale]"
    x, y, scale = page.evaluate(there)
    page.evaluate(f"roamcast.zoom(2, {x}, {y})")
    assert page.evaluate(there) == pytest.approx([x, y, 2 * scale])
    press(page, "0")
    assert page.evaluate(there) == pytest.approx([x, y, scale])


def test_an_event_has_its_story(page: Browser) -> None:
    page.evaluate("document.querySelector('[data-shows=event]').click()")
    assert "10 events" in text(page, "#about-event")
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", **middle(page, ".events button"))
    page.evaluate("document.querySelector('.events button').click()")
    told = text(page, "#about-event")
    for words in (
        *("Event 0:1", "Delivered to 1 of 2", "Missed, and why", "node 3", "no path"),
        *("No path led there, neither at that moment nor over time.", "0 → 1", "1 → 2", "one node had it already"),
    ):
        assert words in told
    story = page.evaluate("(({from, heard}) => [[...from], [...heard].map(Number.isFinite)])(roamcast.view.story)")
    assert story == [[-1, 0, 1, -1], [True, True, True, False]]
    hops = page.evaluate("roamcast.view.story.hops.map((hop) => [...hop.senders, hop.fresh, hop.repeated, hop.lost])")
    assert hops == [[0, 1, 0, 0], [1, 1, 1, 0], [2, 0, 1, 0]]  # the line 0, 1, 2; each hears its successor's copy again
    wide = page.evaluate(
        "[...document.querySelectorAll('.copies')].map((bar) => [...bar.children].map((i) => i.style.width))"
    )
    assert wide == [["50%", "0%", "0%"], ["50%", "50%", "0%"], ["0%", "50%", "0%"]]


def test_who_left_the_line_is_named_in_later_events(page: Browser) -> None:
    page.evaluate("roamcast.chooseEvent(9)")
    assert "no path" in text(page, "#about-event")
    assert page.evaluate("roamcast.view.story.missed.length") == 2
    press(page, "E")
    assert page.evaluate("roamcast.view.story.event") == 8


# --- Two runs side by side -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair_page(run_folder: Path) -> Path:
    """Beside flooding, gossip that all but never passes anything on: nobody but node 1 gets an event."""
    silent = run_folder.parent / "silent"
    run_again(run_folder, silent, 'protocol={name="gossip",parameters={p=1e-9,jitter=0}}')
    result = CliRunner().invoke(main, ["replay", str(run_folder), str(silent)])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{run_folder / 'replay-with-silent.html'}\n"
    return run_folder / "replay-with-silent.html"


def run_again(run_folder: Path, out: Path, change: str) -> None:
    scenario = str(run_folder.parent / "line.toml")
    changes = ["--set", change, "--set", "record.frames=true", "--set", "record.decisions=true"]
    result = CliRunner().invoke(main, ["run", scenario, *changes, "--reference", "--quiet", "--out", str(out)])
    assert result.exit_code == 0, result.output


@pytest.fixture
def pair(browser: Browser, pair_page: Path) -> Browser:
    return shown(browser, pair_page.parent, name=pair_page.name)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_two_runs_fit_and_are_named(browser: Browser, pair_page: Path, size: tuple[int, int]) -> None:
    shown(browser, pair_page.parent, size, pair_page.name)
    named = browser.evaluate("[...document.querySelectorAll('#stages figcaption')].map((one) => one.innerText)")
    assert named == ["flooding", "gossip"]
    assert browser.evaluate("document.documentElement.scrollWidth") == size[0]
    assert browser.complaints == []


def test_two_runs_are_at_the_same_time_and_place(pair: Browser) -> None:
    pair.evaluate("roamcast.seek(4)")
    pair.evaluate("roamcast.chooseNode(1)")
    pair.evaluate("roamcast.zoom(2, 100, 100)")
    there = "roamcast.sides.map(({ run, view }) => [run.movement.y[1], view.node])"
    for place, node in pair.evaluate(there):
        assert (place, node) == (pytest.approx(200), 1)


def test_an_event_is_told_for_both(pair: Browser) -> None:
    pair.evaluate("document.querySelector('[data-shows=event]').click()")
    assert "flooding: missed by 1 of 2" in text(pair, ".events button")
    assert "gossip: missed by 2 of 2" in text(pair, ".events button")
    pair.evaluate("document.querySelector('.events button').click()")
    told = text(pair, "#about-event")
    assert "Delivered to 1 of 2" in told
    assert "Delivered to 0 of 2" in told
    assert pair.evaluate("roamcast.sides.map(({ view }) => [...view.story.from])") == [[-1, 0, 1, -1], [-1, 0, -1, -1]]


def test_steps_go_through_the_frames_of_both(pair: Browser) -> None:
    pair.evaluate("roamcast.chooseEvent(0)")
    pair.evaluate("roamcast.seek(0)")
    senders = []
    for _ in range(5):
        press(pair, "ArrowRight")
        senders.append(text(pair, "#frame").partition(" to all")[0])
    # Both publish at one time; then only flooding goes on, and after the last frame nothing moves.
    silent, flooded = "gossip: data of node 0", "flooding: data of node"
    assert senders == [f"{flooded} 0", silent, f"{flooded} 1", f"{flooded} 2", f"{flooded} 2"]
    for _ in range(3):
        press(pair, "ArrowLeft")
    assert text(pair, "#frame").startswith(f"{flooded} 0 to all")


def test_runs_that_move_differently_are_refused(run_folder: Path) -> None:
    for name, change, said in (
        ("longer", "duration=11", "duration = 11 there, 10 here"),
        ("elsewhere", 'movement={model="static"}', "their nodes move differently"),
    ):
        other = run_folder.parent / name
        run_again(run_folder, other, change)
        result = CliRunner().invoke(main, ["replay", str(run_folder), str(other)])
        assert (result.exit_code, said in result.stderr) == (2, True), result.output


# --- Regions ----------------------------------------------------------------------------------------------------------

REGIONS = """
nodes = 2
duration = 10
[area]
width = 400
height = 400
[movement]
model = "static"
positions = [[50, 200], [150, 200]]
[protocol]
name = "context"
parameters = { reach = 250 }
[[workload.subscribers]]
nodes = [1]
[[workload.publishers]]
nodes = [0]
rate = 5
relevance = "within(rect(200, 100, 380, 300))"
"""
"""Fifty events about one place, in which nobody is."""


def test_a_place_that_many_events_are_about_is_tinted_once(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "place.toml").write_text(REGIONS)
    arguments = [
        "run",
        str(tmp_path / "place.toml"),
        "--replay",
        "--reference",
        "--quiet",
        "--out",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    page = shown(browser, tmp_path / "out")
    pixel = (
        "(([x, y]) => [...document.getElementById('stage').getContext('2d').getImageData(x, y, 1, 1).data])"
        "([roamcast.camera.screenX(300), roamcast.camera.screenY(200)].map(Math.round))"
    )
    seen = []
    for at in (0.01, 1.5, 9.9):  # before the first event, and with a few and with many of them in force
        page.evaluate(f"roamcast.seek({at})")
        seen.append(page.evaluate(pixel))
    assert page.evaluate("roamcast.run.about.regions.length") == 50
    assert seen[0] != seen[1] == seen[2]


# --- The command ------------------------------------------------------------------------------------------------------


def test_what_was_not_recorded_is_said(run_folder: Path) -> None:
    scenario = run_folder.parent / "line.toml"
    out = run_folder.parent / "bare"
    bare = ["--set", "record.movement=false", "--reference", "--quiet", "--out", str(out)]
    assert CliRunner().invoke(main, ["run", str(scenario), *bare]).exit_code == 0
    result = CliRunner().invoke(main, ["replay", str(out)])
    assert (result.exit_code, result.stdout) == (0, f"{out / 'replay.html'}\n")
    assert "--set record.movement=true --set record.frames=true --set record.decisions=true" in result.stderr
    assert open_run(run_folder).record.missing == []


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not a run: name the folder that `roamcast run` or `roamcast lab` made" in result.stderr


def test_why_on_the_command_line(run_folder: Path) -> None:
    told = CliRunner().invoke(main, ["why", str(run_folder), "0:1", "3"])
    assert told.exit_code == 0, told.output
    assert "Cause: no path" in told.output
    summed = CliRunner().invoke(main, ["why", str(run_folder), "--missed"])
    assert "no path" in summed.output
    for wrong, said in (
        (["0:99", "3"], "was not published in this run; there are 0:1, 0:2"),
        (["0:1", "9"], "the run has 4 nodes, numbered from 0"),
        (["x", "3"], "expected PUBLISHER:SERIAL"),
        ([], "give EVENT and NODE, or --missed"),
    ):
        result = CliRunner().invoke(main, ["why", str(run_folder), *wrong])
        assert (result.exit_code, said in result.stderr) == (2, True), result.output
