"""What `make wheel` builds: complete, with true metadata, and enough for an empty environment."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel and an sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [str(Path(sys.executable).parent / "hatchling"), "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def test_the_wheel_has_every_file_of_the_package(built: tuple[Path, Path]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "src/roamcast"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    wanted = {name.removeprefix("src/") for name in tracked.stdout.splitlines() if (ROOT / name).exists()}
    with zipfile.ZipFile(built[0]) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == wanted
    assert {"roamcast/py.typed", "roamcast/live/page/index.html", "roamcast/live/page/roamcast.js"} <= packed


def test_the_sdist_can_build_and_test_itself(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "src/roamcast/py.typed",
        "tests/conftest.py",
    } <= names
    assert not [name for name in names if name.startswith((".venv", "out/", "dist/"))]


def test_the_metadata_is_true(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        told = message_from_string(wheel.read(name).decode())
    version = re.search(r'^version = "(.*)"', PROJECT, re.MULTILINE)
    assert version is not None
    assert told["Version"] == version[1]
    # One place for the version: nothing in the package repeats it.
    assert not [path for path in (ROOT / "src").rglob("*.py") if f'"{version[1]}"' in path.read_text()]
    assert told["License-Expression"] == "Apache-2.0"
    classifiers = told.get_all("Classifier")
    assert classifiers is not None
    assert "Operating System :: POSIX :: Linux" in classifiers
    assert f"Programming Language :: Python :: {sys.version_info.major}.{sys.version_info.minor}" in classifiers


def test_the_changelog_has_the_version_or_says_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0].startswith(("Unreleased", "0."))


@pytest.mark.slow
def test_the_wheel_is_enough_for_an_empty_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    """It is downloaded what a device needs, and a node starts with it; what is left out is named with its remedy."""
    venv.create(tmp_path / "env", with_pip=True)
    program = tmp_path / "env/bin"
    quiet = [str(program / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    installed = subprocess.run([*quiet, str(built[0])], capture_output=True, text=True, check=False, cwd=tmp_path)
    if "Connection" in installed.stderr or "No matching distribution" in installed.stderr:
        pytest.skip(f"the packages cannot be downloaded here: {installed.stderr[-300:]}")
    assert installed.returncode == 0, installed.stderr
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    def roamcast(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(program / "roamcast"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)

    assert roamcast("--version").stdout.startswith("roamcast, version ")
    told = {each["what"]: each for each in json.loads(roamcast("doctor", "--json").stdout)}
    assert told["extra sim"]["remedy"] == "pip install 'roamcast[sim]'"
    table = roamcast("doctor").stdout
    assert all(name in table for name in told)
    words = [str(program / "roamcast"), "node", "--id", "7", "--insecure", "--air", "127.0.0.1:9"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path, env=environment, text=True) as node:
        assert node.stdout is not None
        assert json.loads(node.stdout.readline())["ready"] is True
        assert re.fullmatch(r"7:\d+\n", roamcast("pub", "--quiet", "--type", "offer", "price=12.5").stdout)
        node.terminate()
    assert node.returncode == 0
