"""A headless Chromium, driven over a pipe: what the pages are tested and measured in.

The DevTools protocol as Chromium speaks it on file descriptors 3 and 4: JSON objects, each ended by a zero byte. Only
what is needed here: open a page, ask it something, take its picture. Nothing is fetched from a network.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from roamcast.errors import RoamcastError

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ANSWER_S: Final = 60.0
"""The longest wait for one answer; a machine under load starts a browser slowly."""

_FLAGS: Final = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
)
_LAUNCHER: Final = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes where Chromium expects them; in this process those numbers are taken."""


class BrowserError(RoamcastError):
    """Chromium did not do what it was asked."""


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser(AbstractContextManager["Browser"]):
    """One browser with one page, of a given width and height in CSS pixels."""

    def __init__(self, program: str, width: int = 1200, height: int = 900) -> None:
        self.complaints: list[str] = []
        """What the page wrote on its console, and what it raised."""
        self._serial = 0
        self._session: str | None = None
        self._unread = b""
        self._events: list[dict[str, Any]] = []
        self._size = (width, height)
        with ExitStack() as stack:
            profile = stack.enter_context(tempfile.TemporaryDirectory(prefix="roamcast-", ignore_cleanup_errors=True))
            self._start(program, profile, stack)
            self._open_page()
            self._cleanup = stack.pop_all()

    def __exit__(self, *problem: object) -> None:
        self._cleanup.close()

    def open(self, url: str) -> None:
        """Shows a page and waits until it is complete."""
        self._events.clear()
        answer = self.ask("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: Chromium cannot open it: {answer['errorText']}")
        deadline = time.monotonic() + ANSWER_S
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._note(self._receive(deadline))

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401  # any value of JSON
        """The value of a JavaScript expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: raises {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def screenshot(self, width: float, height: float, scale: float = 1) -> bytes:
        """A PNG of the page from its top left corner."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        answer = self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def memory(self, which: str) -> int:
        """Bytes of the largest process of a page, as Linux counts them: `VmRSS` now, `VmHWM` at most so far."""
        session, self._session = self._session, None  # only the browser as a whole knows its processes
        processes = self.ask("SystemInfo.getProcessInfo")["processInfo"]
        self._session = session
        sizes = []
        for process in processes:
            if process["type"] == "renderer":
                status = Path(f"/proc/{process['id']}/status").read_text()
                sizes += [1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith(which)]
        return max(sizes)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401  # any value of JSON
        """One request of the protocol and its answer."""
        self._serial += 1
        message = {"id": self._serial, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        deadline = time.monotonic() + ANSWER_S
        try:
            os.write(self._to, json.dumps(message).encode() + b"\0")
        except OSError as problem:
            raise BrowserError(f"Chromium is gone: {problem.strerror}") from problem
        while (answer := self._receive(deadline)).get("id") != self._serial:
            self._note(answer)
        if "error" in answer:
            raise BrowserError(f"Chromium refuses {method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _start(self, program: str, profile: str, stack: ExitStack) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        for end in (self._to, self._from):
            stack.callback(os.close, end)
        # Chromium's own sandbox refuses to run as root, as containers do.
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        arguments = (program, *_FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank")
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(theirs_in), str(theirs_out), *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        stack.callback(self._stop, process)

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """Asked first, since a killed browser leaves files behind; then the whole group that we started."""
        self._session = None
        with suppress(BrowserError):
            self.ask("Browser.close")
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _open_page(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.resize(*self._size)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"Chromium has not answered for {ANSWER_S:g} s")
            if not (chunk := os.read(self._from, 1 << 16)):
                raise BrowserError("Chromium is gone: it closed the pipe")
            self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(event["params"]))
