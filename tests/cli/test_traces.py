"""`roamcast traces`, where it needs no Spark."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from roamcast.cli.main import main

SCENARIO = str(Path(__file__).parents[2] / "examples" / "flooding.toml")


@pytest.mark.parametrize(
    ("form", "begins", "lines"),
    [
        ("ns2", "$node_(0) set X_ ", None),
        ("one", "0 60.000 0 ", 1 + 7 * 50),  # a header, and 50 nodes at 0, 10, … 60 s
        ("bonnmotion", "0.000000000 ", 50),
        ("gpx", "<?xml ", None),
    ],
)
def test_movement_is_written_in_every_format(form: str, begins: str, lines: int | None, tmp_path: Path) -> None:
    out = tmp_path / "moves"
    told = CliRunner().invoke(
        main, ["traces", "export", SCENARIO, "--format", form, "--tick", "10", "--corner", "45", "7", "--out", str(out)]
    )
    assert (told.exit_code, told.output) == (0, f"{out}: 50 nodes, 60 s\n")
    assert out.read_text().startswith(begins)
    assert lines is None or len(out.read_text().splitlines()) == lines
    assert ('lat="45.' in out.read_text()) == (form == "gpx")
