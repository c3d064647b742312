"""Makes the screenshots of the documentation again, with a headless Chromium.

    .venv/bin/python docs/pictures/make.py                  all of them; takes a few minutes
    .venv/bin/python docs/pictures/make.py replay story     some

It runs what the pages say they show, in a temporary folder, opens the page that comes out, and takes its picture. Run
it after a change of the report or the replay, and look at what it made: it checks sizes, not beauty.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
MAX_SIZE: Final = 150_000
"""Bytes of a picture: a clone should stay small."""

sys.path.insert(0, str(ROOT / "tests"))
from report.chromium import Browser, find_chromium  # noqa: E402  # the tests' own driver

Taking = Callable[[Browser, Path], bytes]
"""Takes a picture with a browser, in a folder for what has to be run first."""


def roamcast(folder: Path, *words: str) -> None:
    """Runs in the folder, so that pictures show commands as a reader types them."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    subprocess.run([sys.executable, "-m", "roamcast", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def take(browser: Browser, page: Path, size: tuple[int, int], *scripts: str, scale: float = 1) -> bytes:
    browser.resize(*size)
    browser.open(page.resolve().as_uri())
    for script in scripts:
        browser.evaluate(script)
    return browser.screenshot(*size, scale)


READY: Final = """new Promise((done) => {
  const look = () => document.documentElement.dataset.ready ? done(true) : setTimeout(look, 20);
  look();
})"""


def watched(folder: Path) -> Path:
    """The run of docs/replay.md."""
    out = folder / "watched"
    if not out.exists():
        roamcast(folder, "run", "examples/flooding.toml", "--replay", "--quiet", "--out", str(out))
    return out / "replay.html"


def replay(browser: Browser, folder: Path) -> bytes:
    """A moment of the run, with frames on the air."""
    return take(browser, watched(folder), (900, 560), READY, "roamcast.seek(12.45)", "roamcast.draw()")


def story(browser: Browser, folder: Path) -> bytes:
    """The story of event 42:7, which docs/replay.md explains."""
    number = "[...roamcast.run.event.time].findIndex((time) => Math.abs(time - 12.440759) < 1e-6)"
    return take(browser, watched(folder), (1000, 620), READY, f"roamcast.chooseEvent({number})")


def report(browser: Browser, folder: Path) -> bytes:
    """The top of the report of the tutorial's campaign, with the seeds that decide."""
    roamcast(folder, "campaign", "examples/campaigns/range.toml", "--seeds", "20")
    return take(browser, folder / "out" / "ranges" / "report" / "index.html", (880, 720))


PICTURES: Final[dict[str, Taking]] = {"report": report, "replay": replay, "story": story}


def main(names: list[str]) -> None:
    program = find_chromium()
    if program is None:
        sys.exit("no Chromium on this machine: install one to make the pictures")
    unknown = set(names) - set(PICTURES)
    if unknown:
        sys.exit(f"no picture is named {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    with tempfile.TemporaryDirectory() as folder, Browser(program) as browser:
        for name in names or PICTURES:
            picture = PICTURES[name](browser, Path(folder))
            if len(picture) > MAX_SIZE:
                sys.exit(f"{name}: {len(picture)} bytes, more than {MAX_SIZE}: take less of the page")
            (HERE / f"{name}.png").write_bytes(picture)
            print(f"{name}.png: {len(picture)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
