"""Figures as files, and the verb that makes one."""

import copy
import shutil
import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from report.folders import CAMPAIGN, EXPERIMENT, ROWS, write_folder
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.report.causes import Causes, causes_of
from roamcast.report.chart import all_charts
from roamcast.report.find import find_figure
from roamcast.report.looks import COLOURS, DASHES, MARKERS, PAPER_MARKERS
from roamcast.report.paper import TEX, FigureLook, length, render
from roamcast.report.source import read_report_data

SVG = "{http://www.w3.org/2000/svg}"


def campaign(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**CAMPAIGN, "experiments": [{**EXPERIMENT, **changes}]}


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, ["figure", *words])


def test_the_verb_draws_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "out")
    result = invoke("out", "delivery")
    assert (result.exit_code, result.stdout) == (0, "delivery.pdf\n")
    assert (tmp_path / "delivery.pdf").read_bytes().startswith(b"%PDF-")
    result = invoke("out", "7", "--width", "2in", "--height", "1.5in", "--out", "small.png")
    assert (result.exit_code, result.stdout) == (0, "small.png\n")
    png = (tmp_path / "small.png").read_bytes()
    assert struct.unpack(">II", png[16:24]) == (600, 450)  # 300 to the inch


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    write_folder(tmp_path / "out")
    result = invoke(str(tmp_path / "out"), "7", "--out", str(tmp_path / "gone" / "7.svg"))
    assert result.exit_code == 2
    assert result.output == f"error: {tmp_path / 'gone' / '7.svg'}: cannot be written: No such file or directory\n"


def test_an_svg_has_its_colours_in_itself(tmp_path: Path) -> None:
    """Style sheets and variables of a page are black in every program but a browser."""
    write_folder(tmp_path / "out")
    drawn = render(find_figure(read_report_data(tmp_path / "out"), "7"), "svg", FigureLook(width=144)).decode()
    assert "var(" not in drawn
    assert COLOURS[0] in drawn
    assert COLOURS[1] in drawn
    assert ET.fromstring(drawn).attrib["width"] == "144pt"


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_numbers_give_the_same_bytes(tmp_path: Path, kind: str) -> None:
    chart = find_figure(read_report_data(write_folder(tmp_path / "out")), "7")
    assert render(chart, kind) == render(chart, kind)


def test_without_tex_pgf_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    write_folder(tmp_path / "out")
    result = invoke(str(tmp_path / "out"), "7", "--format", "pgf")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: PGF needs a TeX, and none of pdflatex, lualatex, xelatex is installed: take --format pdf instead\n",
    )


@pytest.mark.skipif(not any(map(shutil.which, TEX)), reason="no TeX on this machine: PGF is not tested")
def test_pgf_has_names_that_tex_would_take_for_commands(tmp_path: Path) -> None:
    name = r"_hint_2 & 50 % #1 ~x^2 {a} $y\z"
    campaign = copy.deepcopy(CAMPAIGN)
    campaign["experiments"][0]["variants"][0]["name"] = name
    rows = [(row[0], name if row[1] == "hint" else row[1], *row[2:]) for row in ROWS]
    drawn = render(find_figure(read_report_data(write_folder(tmp_path / "out", campaign, rows)), "7"), "pgf").decode()
    written = r"\_hint\_2 \& 50 \% \#1 \textasciitilde{}x\textasciicircum{}2 \{a\} \textdollar{}y\textbackslash{}z"
    assert written in drawn.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["delivry"], "error: there is no figure or measure 'delivry'; did you mean 'delivery'?\n"),
        (["7", "--width", "3.5"], "error: '3.5': expected a length from 0.5in to 50in, such as 3.5in, 8.8cm, 88mm or"),
        (["7", "--style", "nowhere"], "error: nowhere: is neither a file nor a style of matplotlib: "),
        (["causes"], "error: no causes were measured: record frames and decisions"),
        (["7", "--experiment", "none"], "error: there is no experiment 'none'; "),
    ],
)
def test_what_cannot_be_drawn_is_one_line(tmp_path: Path, words: list[str], problem: str) -> None:
    write_folder(tmp_path / "out")
    result = invoke(str(tmp_path / "out"), *words, "--out", str(tmp_path / "x.svg"))
    assert result.exit_code == 2
    assert result.output.startswith(problem)
    assert result.output.count("\n") == 1


def test_a_file_of_an_unknown_kind_needs_a_format(tmp_path: Path) -> None:
    write_folder(tmp_path / "out")
    place = tmp_path / "x.docx"
    refused = invoke(str(tmp_path / "out"), "7", "--out", str(place))
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"error: --out {place}: ends in none of .pdf, .svg, .png, .pgf: give --format\n",
    )
    assert invoke(str(tmp_path / "out"), "7", "--out", str(place), "--format", "svg").exit_code == 0
    assert place.read_bytes().startswith(b"<?xml")


def test_one_of_several_is_named_by_its_axis(tmp_path: Path) -> None:
    figures = [{"id": "a", "x": "credits", "y": "delivery"}, {"id": "b", "x": "credits", "y": "delivery"}]
    results = read_report_data(write_folder(tmp_path / "out", campaign=campaign(figures=figures)))
    with pytest.raises(RoamcastError, match="'delivery' means 2 figures; name one of them: --experiment credits"):
        find_figure(results, "delivery")


def test_a_measure_without_a_figure_can_be_drawn(tmp_path: Path) -> None:
    rows = [*ROWS, ("credits", "hint", 2, '{"credits": 4}', "overhead", 3, 2.0, 0.1, 1.75, 2.25)]
    found = find_figure(read_report_data(write_folder(tmp_path / "out", rows=rows)), "overhead")
    assert not isinstance(found, Causes)
    assert [[row.mean for row in curve.rows] for curve in found.curves] == [[2.5, 2.0]]


@pytest.mark.parametrize(
    ("text", "points"), [("3.5in", 252.0), ("88mm", 249.45), ("8.8 cm", 249.45), ("252pt", 251.06)]
)
def test_lengths(text: str, points: float) -> None:
    assert length(text) == pytest.approx(points, abs=0.01)


def test_a_curve_looks_the_same_in_every_figure(tmp_path: Path) -> None:
    """The second figure has no curve of gossip, and hint keeps its look."""
    variants = [{"name": "gossip"}, {"name": "hint"}]
    figures = [{"id": "a", "x": "credits", "y": "delivery"}, {"id": "b", "x": "credits", "y": "overhead"}]
    rows = [("credits", "gossip", 0, '{"credits": 0}', "delivery", 3, 0.6, 0.01, 0.55, 0.65), *ROWS[:3], ROWS[4]]
    results = read_report_data(
        write_folder(tmp_path / "out", campaign=campaign(variants=variants, figures=figures), rows=rows)
    )
    ((_, (first, second)),) = all_charts(results)
    assert {curve.name: curve.look for curve in first.curves} == {"gossip": 0, "hint": 1}
    assert {curve.name: curve.look for curve in second.curves} == {"hint": 1}


def test_looks_differ_without_colour() -> None:
    assert len(set(MARKERS)) == len(set(PAPER_MARKERS)) == len(set(COLOURS)) == len(set(DASHES)) == 12


def test_names_are_no_formulas_and_no_secrets(tmp_path: Path) -> None:
    """matplotlib sets what stands between dollars, and leaves labels out that begin with an underscore."""
    name = "_p = $x$ <&> 1"
    rows = [("credits", name, 0, f'{{"credits": {n}}}', "delivery", 3, 0.6, 0.01, 0.55, 0.65) for n in (0, 1)]
    out = write_folder(tmp_path / "out", campaign=campaign(variants=[{"name": name}]), rows=rows)
    assert render(find_figure(read_report_data(out), "7"), "svg")


# --- Causes ---------------------------------------------------------------------------------------------------------

CAUSE_ROWS = [
    ("credits", variant, 0, axes, f"cause_{cause}", 3, share, None, None, None)
    for variant, axes, shares in (
        ("hint", '{"credits": 0}', {"collision": 0.2, "no_path": 0.1, "not_sent": 0.0}),
        ("hint", '{"credits": 1}', {"collision": 0.1, "no_path": 0.05, "not_sent": 0.0}),
        ("gossip", "{}", {"collision": 0.0, "no_path": 0.3, "not_sent": 0.0}),
    )
    for cause, share in shares.items()
]


def test_causes_are_stacked_by_variant_and_place(tmp_path: Path) -> None:
    results = read_report_data(write_folder(tmp_path / "out", rows=[*ROWS, *CAUSE_ROWS]))
    found = causes_of(results.campaign.experiments[0], results.rows)
    assert found is not None
    assert found.causes == ("no path", "collision")  # 0.45 and 0.3 in all; nothing was not sent
    assert [(bar.name, bar.shares) for bar in found.bars] == [
        ("hint, credits 0", (0.1, 0.2)),
        ("hint, credits 1", (0.05, 0.1)),
        ("gossip", (0.3, 0.0)),
    ]
    assert found.ticks == [0, 0.1, 0.2, 0.3]
    assert render(find_figure(results, "causes"), "pdf").startswith(b"%PDF-")


def test_rare_causes_are_added_up(tmp_path: Path) -> None:
    rows = [
        ("credits", "hint", 0, '{"credits": 0}', f"cause_{name}", 3, 0.01 * (10 - n), None, None, None)
        for n, name in enumerate("abcdefghij")
    ]
    results = read_report_data(write_folder(tmp_path / "out", rows=rows))
    found = causes_of(results.campaign.experiments[0], results.rows)
    assert found is not None
    assert found.causes == ("a", "b", "c", "d", "e", "f", "g", "other causes")
    assert found.bars[0].shares[-1] == pytest.approx(0.03 + 0.02 + 0.01)


def test_without_causes_there_is_no_figure_of_them(tmp_path: Path) -> None:
    nothing = [("credits", "hint", 0, '{"credits": 0}', "cause_collision", 3, 0.0, None, None, None)]
    for rows in (ROWS, [*ROWS, *nothing]):
        results = read_report_data(write_folder(tmp_path / str(len(rows)), rows=rows))
        assert causes_of(results.campaign.experiments[0], results.rows) is None
