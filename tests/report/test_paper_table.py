"""Tables for papers: the best in bold, those not separated with a star, numbers as siunitx reads them."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from report.folders import BY_SEED, ROWS, write_folder
from report.test_report import with_experiment
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.report.paper_table import paper_table
from roamcast.report.source import read_report_data

VARIANTS = [{"name": "hint"}, {"name": "50% & more"}]
MEANS = {
    ("hint", 1): (0.9, 0.02),
    ("50% & more", 1): (0.6, 0.01),
    ("hint", 4): (0.7, 0.05),
    ("50% & more", 4): (0.7, 0.05),
}
SEEDS = {
    ("hint", 1): (0.88, 0.9, 0.92),
    ("50% & more", 1): (0.59, 0.6, 0.61),
    ("hint", 4): (0.7, 0.65, 0.75),
    ("50% & more", 4): (0.69, 0.75, 0.66),
}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """At 1 hint leads by 0.3 ± 0.04; at 4 nobody does."""
    rows: list[tuple[Any, ...]] = [
        ("credits", name, at, f'{{"credits": {at}}}', "delivery", 3, mean, half / 2, mean - half, mean + half)
        for (name, at), (mean, half) in MEANS.items()
    ]
    by_seed = [
        (name, at, f'{{"credits": {at}}}', seed, value)
        for (name, at), values in SEEDS.items()
        for seed, value in enumerate(values, 1)
    ]
    campaign = with_experiment(variants=VARIANTS, baseline=None)
    return write_folder(tmp_path / "out", campaign=campaign, rows=rows, by_seed=by_seed)


def test_latex_has_numbers_for_siunitx(out: Path) -> None:
    text = paper_table(read_report_data(out), "latex")
    assert text.splitlines()[2:-1] == [
        r"\begin{tabular}{llr}",
        r"\toprule",
        r"Credits & Variant & Delivery \\",
        r" &  & (share of interested subscribers) \\",
        r"\midrule",
        r"1 & hint & \textbf{\num{0.900 +- 0.020}} \\",
        r" & 50\% \& more & \num{0.600 +- 0.010} \\",
        r"\addlinespace",
        r"4 & hint & \num{0.700 +- 0.050}\rlap{*} \\",
        r" & 50\% \& more & \num{0.700 +- 0.050}\rlap{*} \\",
        r"\bottomrule",
        r"\multicolumn{3}{l}{\footnotesize Means $\pm$ 95 \% intervals over 3 seeds. Bold: the best, 95 \% sure; *: "
        r"not separated from the best.}",
    ]


def test_markdown_and_csv_say_the_same(out: Path) -> None:
    result = CliRunner().invoke(main, ["table", str(out)])
    assert "| 1 | hint | **0.900 ± 0.020** |\n| 1 | 50% & more | 0.600 ± 0.010 |\n" in result.stdout
    assert "| 4 | hint | 0.700 ± 0.050\\* |\n" in result.stdout
    rows = list(csv.DictReader(io.StringIO(paper_table(read_report_data(out), "csv", ["delivery"]))))
    assert [(row["credits"], row["variant"], row["standing"]) for row in rows] == [
        ("1", "hint", "best"),
        ("1", "50% & more", ""),
        ("4", "hint", "not separated"),
        ("4", "50% & more", "not separated"),
    ]
    assert (rows[0]["mean"], rows[0]["n"]) == ("0.9", "3")


def test_what_there_is_not_is_one_line(tmp_path: Path) -> None:
    results = read_report_data(write_folder(tmp_path / "out", rows=ROWS, by_seed=BY_SEED))
    with pytest.raises(RoamcastError, match="no values of 'delivry'; did you mean 'delivery'"):
        paper_table(results, "csv", ["delivry"])
    with pytest.raises(RoamcastError, match="there is no experiment 'other'"):
        paper_table(results, "csv", experiment="other")
