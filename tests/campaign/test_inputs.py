"""The files that runs read: stored once, whole, and as they were when the campaign was planned."""

from pathlib import Path

import pytest

from roamcast.campaign.define import inputs
from roamcast.campaign.define.inputs import FILES, Input, Sources, digest
from roamcast.errors import RoamcastError


@pytest.fixture
def walk(tmp_path: Path) -> Path:
    file = tmp_path / "walk.csv"
    file.write_text("as planned")
    return file


def test_a_small_file_may_be_edited_after_planning(walk: Path, tmp_path: Path) -> None:
    sources, known = Sources(), Input("walk.csv", digest(walk))
    sources.add(known, walk)
    walk.write_text("edited")
    sources.store(tmp_path / "out")
    assert (tmp_path / "out" / FILES / known.place).read_text() == "as planned"


def test_a_large_file_that_changes_after_planning_is_refused(
    walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_SMALL", 0)
    sources, known = Sources(), Input("walk.csv", digest(walk))
    sources.add(known, walk)
    walk.write_text("edited, to another length")
    with pytest.raises(RoamcastError, match=r"^walk.csv: has changed since the campaign was planned: start it again"):
        sources.store(tmp_path / "out")
    assert not (tmp_path / "out" / FILES / known.place).exists()
    walk.write_text("as planned")
    sources.store(tmp_path / "out")
    before = (tmp_path / "out" / FILES / known.place).stat().st_mtime_ns
    walk.unlink()
    sources.store(tmp_path / "out")  # it is there
    assert (tmp_path / "out" / FILES / known.place).stat().st_mtime_ns == before
