"""The systemd unit and the image: systemd understands the unit, and both start a node with options that there are."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from roamcast.cli.main import VERBS
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


# --- The image ------------------------------------------------------------------------------------------------------

CONTAINERFILE = UNIT.parent / "Containerfile"


def instructions() -> list[tuple[str, str]]:
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_image_copies_files_that_there_are_and_uses_only_these() -> None:
    """What can be checked without building it: a wheel needs no other file than these."""
    copied = [words.split()[:-1] for name, words in instructions() if name == "COPY" and not words.startswith("--from")]
    sources = [source for each in copied for source in each]
    assert sources == ["pyproject.toml", "README.md", "LICENSE", "src"]
    assert all((UNIT.parents[1] / source).exists() for source in sources)


def test_the_image_starts_a_node_with_options_that_there_are_and_not_as_root() -> None:
    told = dict(instructions())
    entry = json.loads(told["ENTRYPOINT"])
    known = {name for option in node.params for name in option.opts}
    assert entry[:2] == ["roamcast", "node"]
    assert {word for word in entry if word.startswith("--")} <= known
    assert told["USER"] == "roamcast"
    health = json.loads(told["HEALTHCHECK"].partition("CMD ")[2])
    assert health[0] == "roamcast"
    assert health[1] in VERBS
    names = [name for name, _ in instructions()]
    assert set(names) <= {*("FROM", "COPY", "RUN", "USER", "ENV", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT")}
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")
