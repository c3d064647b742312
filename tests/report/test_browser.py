"""The page in a real browser: it renders, fits a phone, answers to mouse and keys, prints, and fetches nothing."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.chromium import Browser, BrowserError, find_chromium
from report.folders import CAMPAIGN, EXPERIMENT, ROWS, evil_folder, write_folder
from roamcast.report import write_report

PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine: the page is not tested in one")

WIDE, PHONE = (1280, 900), (400, 850)
CUT = """[...document.querySelectorAll("h1, h2, h3, p, li, table, td, th, figure, .chart text, .legend, .sketch")]
  .filter((e) => e.checkVisibility() && e.getClientRects().length)
  .filter((e) => {
    const box = e.getBoundingClientRect(), room = e.closest("figure, section, header, body").getBoundingClientRect();
    const scrolls = e instanceof HTMLElement && e.scrollWidth > e.clientWidth + 1;
    return scrolls || box.left < room.left - 1 || box.right > room.right + 1;
  }).map((e) => e.tagName + ": " + e.textContent.slice(0, 40))"""
"""What is cut, scrolls sideways or leaves the box that it belongs to; code may scroll."""
LONG = "a-name-of-a-variant-that-is-far-longer-than-any-phone-is-wide-and-has-no-space-to-break-it-at"


CAUSES = [
    ("credits", variant, 0, axes, f"cause_{cause}", 3, share, None, None, None)
    for variant, axes in (("hint", '{"credits": 0}'), ("hint", '{"credits": 1}'), ("gossip", "{}"))
    for cause, share in (("collision", 0.2), ("no_path", 0.1))
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(str(PROGRAM)) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """With a name, a command and an error that are wider than a phone."""
    experiment = {**EXPERIMENT, "variants": [*EXPERIMENT["variants"], {"name": LONG}]}
    campaign = {**CAMPAIGN, "command": f"roamcast campaign {LONG}.toml", "experiments": [experiment]}
    rows = [*ROWS, ("credits", LONG, 1, '{"credits": 1}', "delivery", 3, 0.4, 0.02, 0.35, 0.45), *CAUSES]
    out = tmp_path_factory.mktemp("report") / "out"
    return write_report(write_folder(out, campaign=campaign, rows=rows, error=f"ValueError: {LONG}")).as_uri()


def open_at(browser: Browser, url: str, size: tuple[int, int]) -> None:
    browser.complaints.clear()
    browser.ask("Emulation.setEmulatedMedia", media="", features=[])
    browser.resize(*size)
    browser.open(url)


def shades(png: bytes) -> int:
    """How many different values the bytes of an image take; of an empty page, a few."""
    data, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return len(set(zlib.decompress(data)))


def tip(browser: Browser) -> Any:  # noqa: ANN401  # text, or None while it is hidden
    return browser.evaluate("document.getElementById('tip').hidden ? null : document.getElementById('tip').textContent")


def middle(browser: Browser, selector: str) -> dict[str, float]:
    """Of an element, scrolled into view."""
    place: dict[str, float] = browser.evaluate(
        f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
        " const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
    )
    return place


def press(browser: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=key)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_renders_fits_and_fetches_nothing(browser: Browser, page: str, size: tuple[int, int], scheme: str) -> None:
    open_at(browser, page, size)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for everything in ("false", "true"):
        browser.evaluate(f"document.querySelectorAll('details').forEach((part) => part.open = {everything})")
        assert browser.evaluate("document.documentElement.scrollWidth") == size[0]
        assert browser.evaluate(CUT) == []
    height = browser.evaluate("document.documentElement.scrollHeight")
    assert shades(browser.screenshot(size[0], height)) > 60
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
    assert browser.complaints == []


def test_an_empty_page_has_few_shades(browser: Browser) -> None:
    open_at(browser, "about:blank", PHONE)
    assert shades(browser.screenshot(*PHONE)) < 10


def test_labels_can_be_read_on_a_phone(browser: Browser, page: str) -> None:
    open_at(browser, page, PHONE)
    heights = browser.evaluate(
        "[...document.querySelectorAll('.chart text:not([hidden] *)')].map((t) => t.getBoundingClientRect().height)"
    )
    assert len(heights) > 8
    assert min(heights) >= 11


def test_a_point_says_its_value_when_pointed_at(browser: Browser, page: str) -> None:
    open_at(browser, page, WIDE)
    assert tip(browser) is None
    place = middle(browser, "[data-curve='0'] .point:nth-of-type(2) .mark")
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", **place)
    assert tip(browser) == "hint\ncredits: 1\ndelivery (share of interested subscribers): 0.750 ± 0.050\nn = 3"
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert tip(browser) is None


def test_arrow_keys_move_along_and_between_curves(browser: Browser, page: str) -> None:
    open_at(browser, page, WIDE)
    assert browser.evaluate("document.querySelector('.chart').querySelectorAll('.point[tabindex=\"0\"]').length") == 1
    browser.evaluate("document.querySelector('.chart .point[tabindex=\"0\"]').focus()")
    heard = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"):
        press(browser, key)
        heard.append(tip(browser).split("\n")[:2])
    assert [name for name, _ in heard] == ["hint", "hint", "hint", "gossip", "hint", "hint"]
    assert [place for _, place in heard[:3]] == ["credits: 1", "credits: 4", "credits: 4"]
    press(browser, "Escape")
    assert tip(browser) is None


def test_the_legend_hides_and_shows_a_curve(browser: Browser, page: str) -> None:
    open_at(browser, page, WIDE)
    displayed = "getComputedStyle(document.querySelector(\"[data-curve='0']\")).display !== 'none'"
    seen = [browser.evaluate(displayed)]
    for _ in range(2):
        browser.evaluate("document.querySelector('[data-toggles=\"0\"]').click()")
        seen.append(browser.evaluate(displayed))
        seen.append(browser.evaluate("document.querySelector('[data-toggles=\"0\"]').ariaPressed") == "true")
        # The Tab key finds a point that can be seen.
        stop = "document.querySelector('.point[tabindex=\"0\"]').parentNode.dataset.curve"
        assert browser.evaluate(stop) == ("0" if seen[-1] else "1")
    assert seen == [True, False, False, True, True]


def test_the_switch_changes_the_axis_and_keeps_what_is_hidden(browser: Browser, page: str) -> None:
    open_at(browser, page, WIDE)
    figure = "document.querySelector('figure')"
    shown = (
        f"[...{figure}.querySelectorAll('[data-view]')].filter((v) => v.checkVisibility()).map((v) => v.dataset.view)"
    )
    ticks = f"[...{figure}.querySelectorAll('[data-view]:not([hidden]) .tick.end')].map((t) => t.textContent)"
    pressed = f"[...{figure}.querySelectorAll('[data-shows][aria-pressed=true]')].map((b) => b.textContent)"
    # Means from 0.4 to 0.9, intervals from 0.35 to 0.95.
    wanted = {"Fit": ["0.2", "0.4", "0.6", "0.8", "1"], "0–1": ["0", "0.2", "0.4", "0.6", "0.8", "1"]}
    assert browser.evaluate(shown) == ["Fit"]
    browser.evaluate(f"{figure}.querySelector('[data-toggles=\"0\"]').click()")
    for name in ("0–1", "Log", "Fit"):
        place = middle(browser, f"figure [data-shows='{name}']")
        for kind in ("mousePressed", "mouseReleased"):
            browser.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)
        assert browser.evaluate(shown) == browser.evaluate(pressed) == [name]
        assert browser.evaluate(ticks) == wanted.get(name, ["0.3", "0.4", "0.5", "0.6", "0.8", "1"])
        hidden = f"getComputedStyle({figure}.querySelector('[data-view]:not([hidden]) [data-curve=\"0\"]')).display"
        assert browser.evaluate(hidden) == "none"
    assert browser.complaints == []


def test_print_has_every_curve_and_table_and_no_controls(browser: Browser, page: str) -> None:
    open_at(browser, page, WIDE)
    browser.evaluate("document.querySelector('[data-toggles=\"0\"]').click()")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    shown = "(s) => [...document.querySelectorAll(s)].map((e) => e.getClientRects().length > 0)"
    assert set(browser.evaluate(f"({shown})('nav, .files, .screen')")) == {False}
    visible = "[data-view]:not([hidden]) .chart, table, [data-view]:not([hidden]) .point"
    assert all(browser.evaluate(f"({shown})('{visible}')"))
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate("document.querySelectorAll('details[open]').length") == 0


def test_names_do_not_run(browser: Browser, tmp_path: Path) -> None:
    """Whatever became a script or an image would be stopped by the page's policy, and that is a complaint."""
    url = write_report(evil_folder(tmp_path / "out")).as_uri()
    open_at(browser, url, WIDE)
    browser.evaluate("document.querySelector('.point').focus()")
    assert "<script>" in tip(browser)
    assert browser.evaluate("document.scripts.length + document.images.length") == 1
    assert browser.complaints == []


def test_what_is_wrong_in_a_page_is_noticed(browser: Browser) -> None:
    open_at(browser, "data:text/html,<script>console.log(1); undefined.x</script>", WIDE)
    assert len(browser.complaints) == 2
    with pytest.raises(BrowserError, match="raises"):
        browser.evaluate("undefined.x")
    with pytest.raises(BrowserError, match="cannot open it: net::ERR_FILE_NOT_FOUND"):
        browser.open("file:///nowhere.html")
