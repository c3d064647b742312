"""The systemd unit: systemd understands it, and it starts the node with options that there are."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from roamcast.cli.node import node

UNIT = Path(__file__).parents[1] / "deploy/roamcast@.service"
PROGRAM = "/opt/roamcast/bin/roamcast"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(PROGRAM, "/bin/true"))  # which must be there
    verified = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_the_unit_starts_a_node_with_options_that_there_are() -> None:
    (line,) = (line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart="))
    program, verb, *words = shlex.split(line.removeprefix("ExecStart="))
    assert (program, verb) == (PROGRAM, "node")
    known = {name for option in node.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_nodes_on_one_machine_have_sockets_of_their_own() -> None:
    text = UNIT.read_text()
    assert "--api unix:/run/roamcast-%i/node.sock" in text
    assert "RuntimeDirectory=roamcast-%i\n" in text
