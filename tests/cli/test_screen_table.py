"""Tables on a terminal: no value is cut, whatever the width."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from report.folders import CAMPAIGN, EXPERIMENT, write_folder
from roamcast.cli.screen_table import answer_lines, print_table, show_measures
from roamcast.report.answer import WrittenAnswer
from roamcast.report.source import read_report_data

HEAD = ["variant", "rate", "delivery", "overhead", "delay"]
ROWS_OF_TEXT = [["flooding", "1", "0.962 ± 0.016", "20.21 ± 0.71", "0.0513 ± 0.0060"], ["b", "10", "–", "1", "2"]]


def printed(width: int) -> str:
    file = io.StringIO()
    print_table(Console(file=file, width=width), "A title", HEAD, ROWS_OF_TEXT, 2, "all are in the report")
    return file.getvalue()


@pytest.mark.parametrize("width", range(20, 90, 7))
def test_every_value_is_whole_or_its_column_is_named_as_left_out(width: int) -> None:
    text = printed(width)
    assert "…" not in text
    head, _, missing = text.partition("Not shown, as the screen is too narrow: ")
    for at, name in enumerate(HEAD[2:], 2):
        if name in missing:
            assert all(row[at] not in head for row in ROWS_OF_TEXT if len(row[at]) > 3)
        elif at > 2:  # the first is there even where it must be folded
            assert all(row[at] in head for row in ROWS_OF_TEXT)


def test_a_wide_screen_shows_all_and_a_narrow_one_says_what_it_does_not() -> None:
    assert "Not shown" not in printed(80)
    assert "Not shown, as the screen is too narrow: overhead, delay; all are in the report." in printed(40)


def test_variants_are_in_the_order_of_the_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variants = [{"name": "zebra"}, {"name": "ape"}]
    rows = [("credits", name, 0, '{"credits": 1}', "delivery", 3, 0.5, 0.1, 0.25, 0.75) for name in ("ape", "zebra")]
    campaign = {**CAMPAIGN, "experiments": [{**EXPERIMENT, "variants": variants}]}
    show_measures(read_report_data(write_folder(tmp_path / "out", campaign=campaign, rows=rows)), Path("page"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line[:1] in (["zebra"], ["ape"])] == [
        ["zebra", "1", "0.50", "±", "0.25"],
        ["ape", "1", "0.50", "±", "0.25"],
    ]


def test_long_answers_are_wrapped_and_many_are_counted() -> None:
    first = WrittenAnswer(
        "a is best.", ("word " * 30, "Open; 9 seeds would decide it: roamcast campaign e.toml --seeds 9")
    )
    lines = answer_lines([first, WrittenAnswer("b"), WrittenAnswer("c")], 60, most=2)
    assert all(len(line) <= 60 for line in lines)
    assert lines[:2] == ["(1 more answer is in the report)", "b"]
    assert lines[-2:] == ["    roamcast campaign e.toml --seeds 9", "a is best."]
