"""Where a node is and what it knows of itself: from a file, a command, or nobody."""

import json
import sys
from pathlib import Path

import pytest

from live.nodes import run, until
from roamcast.errors import ConfigError
from roamcast.live import senses as module
from roamcast.live.senses import Senses


def test_a_place_that_never_changes() -> None:
    assert Senses("3,-4.5", None, 1).here == (3.0, -4.5)


@pytest.mark.parametrize("source", ["3", "3,", "3,4,5", "nan,1", "inf,1", "here.json", "http://x", ""])
def test_what_is_no_source(source: str) -> None:
    with pytest.raises(ConfigError, match="--here"):
        Senses(source, None, 1)
    with pytest.raises(ConfigError, match="--attributes"):
        Senses(None, source, 1)


def test_a_file_is_read_again_and_again(tmp_path: Path) -> None:
    here, attributes = tmp_path / "here", tmp_path / "attributes"
    here.write_text("[1, 2]")
    attributes.write_text('{"role": "medic"}')

    async def test() -> None:
        senses = Senses(f"file:{here}", f"file:{attributes}", 0.01)
        await senses.start()
        assert (senses.here, senses.attributes) == ((1.0, 2.0), {"role": "medic"})
        here.write_text('{"x": 5, "y": 6}')
        await until(lambda: senses.here == (5.0, 6.0))
        here.write_text("null")
        await until(lambda: senses.here is None)
        with pytest.raises(ConfigError, match="here comes from 'file:"):
            senses.set_here([1, 1])
        await senses.close()

    run(test)


def test_a_source_that_fails_leaves_the_value_as_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = tmp_path / "here"
    here.write_text("[1, 2]")

    async def test() -> None:
        senses = Senses(f"file:{here}", None, 0.01)
        await senses.start()
        here.write_text("[1, 2")
        await until(lambda: senses.failures["here"] >= 3)
        assert senses.here == (1.0, 2.0)
        await senses.close()

    run(test)
    assert [record.getMessage() for record in caplog.records] == ["a sense failed"]  # once, not every time


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("print([7, 8])", (7.0, 8.0)),
        ("print([7, 8]); raise SystemExit(1)", None),
        ("print('x' * 70000)", None),
        ("", None),
        ("import time; time.sleep(60)", None),
    ],
)
def test_commands(program: str, place: tuple[float, float] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.5 if "sleep" in program else 10.0)

    async def test() -> None:
        senses = Senses(f"command:{sys.executable} -c {json.dumps(program)}", None, 60)
        await senses.start()
        assert senses.here == place
        assert senses.failures["here"] == (place is None)
        await senses.close()

    run(test)


def test_a_command_that_is_not_there_is_a_failure() -> None:
    async def test() -> None:
        for command in ("no-such-command-anywhere", "", "'unclosed"):
            senses = Senses(None, f"command:{command}", 60)
            await senses.start()
            assert senses.failures["attributes"] == 1
            await senses.close()

    run(test)
