"""`roamcast doctor`: what it finds, and when a node lacks something."""

import importlib.metadata
import json
import shutil
import socket
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from roamcast.cli import doctor as module
from roamcast.cli.main import main

Usage = namedtuple("Usage", "total used free")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words])


def found(*words: str) -> dict[str, dict[str, Any]]:
    return {each["what"]: each for each in json.loads(run("--json", *words).stdout)}


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that a node can run on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setattr(module, "_clock_state", lambda: 0)
    monkeypatch.setattr(socket.socket, "sendto", lambda *_: 0)


def test_a_table_and_json_say_the_same() -> None:
    result = run()
    assert result.exit_code == 0
    told = found()
    others = [name for name in told if not name.startswith("extra ")]
    assert others == ["Python", "Java", "port", "broadcast", "clock", "disk", "open files"]
    assert {"extra sim", "extra spark"} <= set(told)
    assert all(name in result.stdout for name in told)
    assert {each["state"] for each in told.values()} == {"ok"}


def test_a_port_that_is_taken_is_missing() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = str(taken.getsockname()[1])
        result = run("--port", port)
        assert (result.exit_code, found("--port", port)["port"]["state"]) == (1, "missing")


def test_no_broadcast_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket.socket, "sendto", refuse)
    assert run().exit_code == 1
    assert found()["broadcast"]["found"] == "cannot be sent: Network is unreachable"


def test_a_full_disk_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2**40, 2**40, 255 * 2**20))
    assert run().exit_code == 1
    assert found()["disk"]["found"].startswith("255 MiB free in ")


def test_a_clock_that_is_wrong_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_clock_state", lambda: 5)
    assert run().exit_code == 0
    assert found()["clock"]["state"] == "optional"
    assert module._clock(lambda: 0.0).found == "says 1970-01-01"


def test_an_extra_that_is_not_installed_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.metadata.version

    def version(package: str) -> str:
        if package == "numba":
            raise importlib.metadata.PackageNotFoundError(package)
        return there(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert run().exit_code == 0
    told = found()["extra sim"]
    assert (told["state"], told["found"], told["remedy"]) == (
        "optional",
        "without numba",
        "pip install 'roamcast[sim]'",
    )
