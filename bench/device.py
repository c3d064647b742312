"""What a device needs: the room of `pip install roamcast` in an empty environment, and the memory of an idle node.

The environment is made and thrown away; it needs the package index, or a folder of wheels in `PIP_FIND_LINKS`. Room is
what `pip` adds, bytecode included; memory is VmRSS of a node with nothing to do, `RssAnon` what is not shared with
other programs.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep
from typing import Final

ROOT: Final = Path(__file__).parent.parent
LIBRARIES: Final = 12
"""As many of the largest are shown."""
SETTLE: Final = 3.0
"""Seconds before a node's memory is read."""


def _size(folder: Path) -> int:
    """Bytes on disk, as `du` counts them."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _room(environment: Path) -> Path:
    """Installs the package; prints what that takes, and gives the command."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    before = _size(environment)
    words = [f"{environment}/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", str(ROOT)]
    subprocess.run(words, check=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""})
    print(f"pip install roamcast: {(_size(environment) - before) / 1e6:.0f} MB")
    sizes = {path.name: _size(path) for path in packages.iterdir() if path.is_dir() and not path.name.startswith("pip")}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:LIBRARIES]
    print("  " + ", ".join(f"{name} {sizes[name] / 1e6:.1f}" for name in largest))
    return environment / "bin" / "roamcast"


def _memory(command: Path, folder: Path, protocol: str) -> None:
    words = [str(command), "node", "--id", "7", "--protocol", protocol, "--key", f"{folder}/key", "--log", "error"]
    words += ["--store", f"{folder}/{protocol}.store", "--api", f"unix:{folder / 'api'}", "--air", "127.0.0.1:9"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as node:
        try:
            assert node.stdout is not None
            json.loads(node.stdout.readline())
            sleep(SETTLE)
            status = Path(f"/proc/{node.pid}/status").read_text()
        finally:
            node.terminate()
    resident, own = (int(re.findall(rf"{name}:\s+(\d+)", status)[0]) / 1024 for name in ("VmRSS", "RssAnon"))
    print(f"an idle node, {protocol}: {resident:.0f} MiB, of which {own:.0f} are its own")


def run() -> None:
    print("device: an empty environment, and a node with nothing to do")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = _room(folder / "environment")
        subprocess.run([command, "key", "new", folder / "key"], check=True, stdout=subprocess.DEVNULL)
        for protocol in ("flooding", "hint", "opportunistic"):
            _memory(command, folder, protocol)


if __name__ == "__main__":
    run()
