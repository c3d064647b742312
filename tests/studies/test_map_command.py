"""`python -m studies.map`: which campaigns a part of the map runs, and where."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from studies.map import __main__ as verb

from roamcast.campaign.define.plan import Experiment, Plan
from roamcast.cli.campaign_options import CampaignOptions


def test_settings_are_tried_in_a_folder_beside_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both campaigns refuse a folder that has other things than a campaign's in it. Each setting is shown only where it
    was best."""
    ran: list[tuple[str, Path]] = []
    shown: list[tuple[str, str]] = []
    best = {f"speed {speed}, degree {degree}": frozenset({"coman"}) for speed in (1, 20) for degree in (6, 12)}
    best["speed 20, degree 6"] = frozenset({"maodv"})

    def run(
        _options: CampaignOptions, experiments: list[Experiment], planned: Plan, out: Path, _command: str
    ) -> list[dict[str, Any]]:
        assert not out.exists(), f"{[file.name for file in out.iterdir()]} would be in the way"
        (out / "measures").mkdir(parents=True)
        ran.append((experiments[0].name, out))
        shown[:] = [(row["variant"], row["axes"]) for row in planned.rows]
        return []

    monkeypatch.setattr(CampaignOptions, "run", run)
    monkeypatch.setattr(verb, "read_cells", lambda _out, _name: [])
    monkeypatch.setattr(verb, "picks", lambda _cells: best)
    monkeypatch.setattr(verb, "_tell_cells", lambda _cells, _folder: None)
    monkeypatch.setattr(verb, "write_report", lambda out: out / "report")
    told = CliRunner().invoke(verb.map_networks, ["tuned", "--out", str(tmp_path / "tuned")])
    assert told.exit_code == 0, told.output
    assert ran == [("map-tuning", tmp_path / "tuned-tuning"), ("map-tuned", tmp_path / "tuned")]
    assert f"report: {tmp_path / 'tuned' / 'report'}" in told.output
    assert set(shown) == {
        ("coman", '{"speed": 1, "degree": 6}'),
        ("coman", '{"speed": 1, "degree": 12}'),
        ("coman", '{"speed": 20, "degree": 12}'),
        ("maodv", '{"speed": 20, "degree": 6}'),
    }
