"""`roamcast measures`, and what the shell completes."""

import json

import click
import pytest
from click.testing import CliRunner

from roamcast.cli.completion import complete_fields, complete_measures
from roamcast.cli.main import main

NOWHERE = click.Context(main), click.Argument(["any"])


def test_measures_are_listed_by_topic_with_unit_and_sentence() -> None:
    shown = " ".join(CliRunner().invoke(main, ["measures", "airtime"]).stdout.split())
    assert "What delivery cost" in shown
    assert "airtime_per_delivery ms Time on the air for each delivered pair" in shown
    rows = json.loads(CliRunner().invoke(main, ["measures", "--json"]).stdout)
    known = {row["name"]: row for row in rows}
    assert known["delivery"]["share"]
    assert known["delay_p95"]["unit"] == "s"
    assert all(row["topic"] and row["description"] for row in rows)


def test_a_word_that_no_measure_has_is_one_line() -> None:
    result = CliRunner().invoke(main, ["measures", "delvery"])
    assert result.exit_code == 2
    assert result.stderr == "error: no measure has the word 'delvery'; did you mean 'delivery'?\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("radio.ra", ["radio.range="]),
        ("protocol.parameters.cred", ["protocol.parameters.credits="]),
        ("protocol.name=od", ["protocol.name=odmrp"]),
        ("workload.publishers[0].ra", ["workload.publishers[0].rate="]),
        ("nothing", []),
    ],
)
def test_fields_are_completed(typed: str, completed: list[str]) -> None:
    assert complete_fields(*NOWHERE, typed) == completed


def test_measures_are_completed() -> None:
    assert complete_measures(*NOWHERE, "overh") == ["overhead", "overhead_data"]
