"""The report as files: what the page says, the numbers beside it, and what is refused. No browser is used here."""

import csv
import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from lxml import html

from report.folders import CAMPAIGN, CLAIMS, EVIL, EXPERIMENT, PAIRED, ROWS, evil_folder, table, write_folder
from roamcast.cli.main import main
from roamcast.errors import RoamcastError
from roamcast.report import answers, draw, write_report
from roamcast.report.source import read_report_data


def page_of(out: Path) -> Any:  # noqa: ANN401  # lxml's stubs lack HTML's elements
    return html.document_fromstring(write_report(out).read_text(encoding="utf-8"))


def texts(page: Any, path: str) -> list[str]:  # noqa: ANN401
    return [" ".join(element.text_content().split()) for element in page.xpath(path)]


def with_experiment(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**CAMPAIGN, "experiments": [{**EXPERIMENT, **changes}]}


# --- The page -------------------------------------------------------------------------------------------------------


def test_the_page_has_every_part(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path / "out"))
    assert texts(page, "//h1") == ["Impact of credits"]
    assert texts(page, "//h2") == ["What these runs say", "Claims", "Impact of credits", "Failures", "Run it again"]
    assert texts(page, "//h3") == ["Delivery over credits"]
    assert texts(page, "//figcaption") == ["As it was."]
    assert texts(page, "//*[@class='legend']//button") == ["hint", "gossip"]
    assert texts(page, "//section[@id='again']//code") == ["roamcast papers hint --quick"]
    assert texts(page, "//section[@id='again']/p")[-1] == "Made with roamcast 0.1.0, python 3.11.7."
    assert texts(page, "//dl/div[dt='Runs']/dd") == ["1 done, 1 failed"]
    assert texts(page, "//dl/div[dt='Date']/dd") == ["2026-11-01 12:00 UTC"]
    assert texts(page, "//dl/div[dt='Machine']/dd") == ["a processor, 2 cores, Linux 6.1"]


def test_the_page_opens_with_the_answer(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out")
    # t of 2 degrees of freedom is 4.303: 4.303 · 0.01 / √3 = 0.025.
    told = "hint has the highest delivery in this scenario, 0.15 ± 0.02 above gossip (95 % sure, 3 seeds)."
    assert [str(one) for one in answers(out)] == [told]
    page = page_of(out)
    assert texts(page, "//main/section[1]/p[@class='sentence']") == [told]
    winners = page.xpath("//section[@id='experiment-credits']/table")[0]
    assert (texts(winners, "thead//th"), texts(winners, "tbody//td")) == (
        ["Credits", "Highest delivery"],
        ["1", "hint, 0.75"],
    )
    assert texts(page, "//figure/p[@class='answer']") == ["Highest delivery: hint, 0.15 ± 0.02 above gossip."]


def test_points_can_be_focused_and_say_what_they_are(tmp_path: Path) -> None:
    points = page_of(write_folder(tmp_path / "out")).xpath("//figure//*[@data-view='Fit']//*[@class='point']")
    assert [point.get("tabindex") for point in points] == ["0"] * 4
    y = "delivery (share of interested subscribers)"
    assert [point.get("aria-label") for point in points] == [
        f"hint; credits: 0; {y}: 0.5; n = 1, no interval",
        f"hint; credits: 1; {y}: 0.750 ± 0.050; n = 3",
        f"hint; credits: 4; {y}: 0.900 ± 0.050; n = 3",
        f"gossip; {y}: 0.600 ± 0.050; n = 3",
    ]


def test_legend_and_curves_belong_together(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path / "out"))
    assert page.xpath("//figure//@data-toggles") == ["0", "1"]
    assert page.xpath("//figure//@data-curve") == ["0", "1"] * 3
    assert page.xpath("//figure//@data-view") == texts(page, "//figure//*[@data-shows]") == ["Fit", "0–1", "Log"]
    assert [view.get("hidden") is None for view in page.xpath("//figure//*[@data-view]")] == [True, False, False]


def test_the_ledger_has_symbol_word_and_reason(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path / "out"))
    assert texts(page, "//section[@id='claims']//td") == [
        *("H2", "hint 7", "about 0.7", "0.5", "✗ does not hold", "too few seeds"),
        *("O1", "odmrp 6", "beats it", "", "– not measured", ""),
    ]
    assert texts(page, "//section[@id='claims']//details//td[1]") == ["O1"]
    assert texts(page, "//dl/div[dt='Claims']//span") == ["✗ does not hold: 1", "– not measured: 1"]


def test_the_checks_of_a_claim_stand_one_by_one(tmp_path: Path) -> None:
    checks = [
        {"says": "delivery is about 0.7", "verdict": "holds", "measured": "0.71 ± 0.02"},
        {"says": "with all beacons", "verdict": "does not hold", "measured": "5.4 ± 0.1", "judged": False},
    ]
    claim = {**CLAIMS[0], "checks": checks, "reading": "About: within 15 %."}
    page = page_of(write_folder(tmp_path / "out", claims=[claim]))
    assert texts(page, "//*[@class='checks']/li") == [
        "✓ delivery is about 0.7: 0.71 ± 0.02",
        "· with all beacons: 5.4 ± 0.1",
    ]
    assert page.xpath("//*[@class='checks']/li/span/@title") == ["holds", "reported, not judged"]
    assert texts(page, "//section[@id='claims']//td/p") == ["About: within 15 %.", "too few seeds"]


def test_beside_the_verdict_stands_what_of_a_claim_survives(tmp_path: Path) -> None:
    checks = [
        {"says": "cheap", "verdict": "does not hold", "measured": "−46 %", "main": True, "misses": "4 points"},
        {"says": "quick", "verdict": "holds", "measured": "0.1 s"},
    ]
    claim = {**CLAIMS[0], "checks": checks, "held": 1, "of": 2, "main": "does not hold", "tested": False}
    page = page_of(write_folder(tmp_path / "out", claims=[claim]))
    assert texts(page, "//*[@class='checks']/li") == [
        "✗ cheap (main point): −46 %; misses by 4 points",
        "✓ quick: 0.1 s",
    ]
    assert texts(page, "//section[@id='claims']//td/p") == [
        "1 of 2 checks hold",
        "main point: ✗ does not hold",
        "A guess, not tested: too few seeds",
    ]


def test_without_claims_there_is_no_ledger(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path / "out", claims=None))
    assert page.xpath("//*[@id='claims']") == []
    assert texts(page, "//h2")[:2] == ["What these runs say", "Impact of credits"]


def test_the_numbers_stand_behind_the_figure(tmp_path: Path) -> None:
    """A line for each curve, a column for each value; as many digits as the interval gives."""
    page = page_of(write_folder(tmp_path / "out"))
    numbers, differences = page.xpath("//figure//table")
    assert texts(numbers, "thead//th") == ["0", "1", "4"]
    assert [texts(row, "th | td") for row in numbers.xpath(".//tbody/tr")] == [
        ["hint", "0.5 n = 1", "0.750 ± 0.050", "0.900 ± 0.050"],
        ["gossip", "0.600 ± 0.050"],
    ]
    assert [texts(row, "th | td") for row in differences.xpath(".//tbody/tr")] == [["hint", "–", "0.150 ± 0.025", "–"]]
    assert texts(differences, "caption") == [
        "Delivery (share of interested subscribers): difference from gossip, seed by seed, by credits: means and 95 % "
        "intervals that hold together over 3 seeds."
    ]


def test_many_values_make_tables_below_each_other(tmp_path: Path) -> None:
    values = list(range(8))
    rows = [("credits", "hint", n, f'{{"credits": {n}}}', "delivery", 3, n / 10, 0.01, None, None) for n in values]
    axes = [{**EXPERIMENT["axes"][0], "values": values}]
    page = page_of(write_folder(tmp_path / "out", campaign=with_experiment(axes=axes), rows=rows))
    first, second, *_ = page.xpath("//figure//table")
    assert (texts(first, "thead//th"), texts(second, "thead//th")) == (["0", "1", "2", "3", "4", "5"], ["6", "7"])
    assert texts(second, "tbody//td") == ["0.6", "0.7"]


def test_differences_are_those_from_the_baseline(tmp_path: Path) -> None:
    """Both ways round there would be; a page that mixed them would call both the same."""
    for baseline, shown in (("gossip", ["hint"]), ("hint", ["gossip"]), (None, None)):
        out = write_folder(tmp_path / str(baseline), campaign=with_experiment(baseline=baseline))
        _, *differences = page_of(out).xpath("//figure//table")
        assert [texts(one, "tbody//th") for one in differences] == ([] if shown is None else [shown])
        assert all(f"difference from {baseline}, seed by seed" in texts(one, "caption")[0] for one in differences)


def test_a_figure_of_relative_differences(tmp_path: Path) -> None:
    """Of those from gossip in per cent; not of those the other way round, nor of a variant with one point only."""
    variants = [{"name": "gossip"}, {"name": "hint"}, {"name": "flooding", "fixed": True}]
    figures = [{"id": "d", "x": "credits", "y": "delivery", "against": "gossip"}]
    out = write_folder(tmp_path / "out", campaign=with_experiment(variants=variants, figures=figures))
    relative = {f"relative_{name}": PAIRED.field(name).type for name in ("n", "mean", "sd", "low", "high")}
    schema = pa.schema([*PAIRED, *relative.items()])
    few = [(3, 25.0, 2.0, 20.0, 30.0), (2, -12.5, 2.0, -15.0, -10.0)]
    rows = [
        ("credits", n, f'{{"credits": {n}}}', "hint", "gossip", "delivery", 3, 0.15, 0.01, 0.125, 0.175, *percent)
        for n, percent in enumerate(few)
    ]
    rows.append(("credits", 0, '{"credits": 0}', "gossip", "hint", "delivery", 3, -0.15, 0.01, -0.2, -0.1, *few[0]))
    rows.append(("credits", 0, "{}", "flooding", "gossip", "delivery", 3, 0.1, 0.01, 0.05, 0.15, *few[0]))
    pq.write_table(table(schema, rows), out / "measures" / "paired.parquet")

    page = page_of(out)
    title = "delivery: difference from gossip (%)"
    assert [point.get("aria-label") for point in page.xpath("//figure//*[@data-view='Fit']//*[@class='point']")] == [
        f"hint; credits: 0; {title}: 25.0 ± 5.0; n = 3",
        f"hint; credits: 1; {title}: −12.5 ± 2.5; n = 2",
    ]
    # In per cent, though delivery is a share; and down to where the means are.
    ticks = ["−20", "−10", "0", "10", "20", "30"]
    assert texts(page, "//figure//*[@data-view='Fit']//*[@class='tick end']") == ticks
    numbers, differences = page.xpath("//figure//table")
    assert texts(numbers, "caption")[0].startswith("Delivery: difference from gossip (%)")
    assert texts(differences, "tbody//th") == ["hint"]
    assert (out / "report" / "data" / "credits-d.csv").read_text() == (
        "experiment,variant,baseline,credits,measure,n,mean,sd,low,high\n"
        "credits,hint,gossip,0,delivery (%),3,25.0,2.0,20.0,30.0\n"
        "credits,hint,gossip,1,delivery (%),2,-12.5,2.0,-15.0,-10.0\n"
    )


def test_a_campaign_measured_without_relative_differences_has_none_to_draw(tmp_path: Path) -> None:
    figures = [{"id": "d", "x": "credits", "y": "delivery", "against": "gossip"}]
    page = page_of(write_folder(tmp_path / "out", campaign=with_experiment(figures=figures)))
    assert page.xpath("//figure") == []
    assert "Not drawn, because no run was measured for them: d (delivery over credits)." in texts(page, "//section/p")


def test_the_scenario_is_written_as_fields(tmp_path: Path) -> None:
    variants = [{"name": "hint"}, {"name": "gossip", "fixed": True, "set": {"protocol.name": "gossip"}}]
    page = page_of(write_folder(tmp_path / "out", campaign=with_experiment(variants=variants)))
    [code] = page.xpath("//section[@id='experiment-credits']//pre/code")
    assert code.text_content() == (
        "nodes = 100\nradio.range = [100, 200]\ngroups[0].count = 2\n\n"
        '# variant: gossip\nprotocol.name = "gossip"\n\n'
        "# swept\nprotocol.parameters.credits = 0, 1, 4"
    )


def test_failures_are_listed_with_what_they_were_for(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path / "out"))
    assert texts(page, "//section[@id='failures']//td") == [
        "b2",
        "hint",
        "credits, hint, credits 0, seed 3",
        "ValueError: no such node",
    ]


def test_where_nothing_failed_there_is_one_sentence(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path / "out", error=None))
    assert page.xpath("//*[@id='failures']") == []
    assert "No run failed: all 2 are in the figures." in texts(page, "//section[@id='again']/p")
    assert texts(page, "//dl/div[dt='Runs']/dd") == ["2, none failed"]


def test_an_experiment_without_figures_gets_each_measure_over_each_axis(tmp_path: Path) -> None:
    """Those that it names; if it names none, all, with those that nobody asked for folded away."""
    axes = [*EXPERIMENT["axes"], {"label": "speed", "field": "movement.speed", "values": [1, 2]}]
    rows = [
        ("credits", "hint", 0, f'{{"credits": {credits}, "speed": {speed}}}', measure, 3, 0.5, 0.1, 0.4, 0.6)
        for credits in (0, 1)
        for speed in (1, 2)
        for measure in ("airtime_jain", "overhead", "delivery")
    ]
    for measures, asked, more in (
        (["overhead", "delivery"], ["Overhead over credits", "Overhead over speed", "Delivery over credits"], []),
        (
            None,
            ["Delivery over credits", "Delivery over speed", "Overhead over credits"],
            ["Airtime jain over credits"],
        ),
    ):
        changes = {"figures": [], "axes": axes, "measures": measures, "variants": [{"name": "hint"}]}
        out = write_folder(tmp_path / str(measures is None), campaign=with_experiment(**changes), rows=rows)
        page = page_of(out)
        assert texts(page, "//section/div[@class='figures']//h3")[:3] == asked
        assert texts(page, "//section/details/div[@class='figures']//h3")[:1] == more
        drawn = sorted(file.name for file in (out / "report" / "figures").glob("*.svg"))
        assert drawn == [f"credits-{y}-{x}.svg" for y in ("delivery", "overhead") for x in ("credits", "speed")]


def test_axes_that_go_in_step_are_one(tmp_path: Path) -> None:
    axes = [{"label": "side", "values": [500, 1000]}, {"label": "nodes", "values": [25, 100]}]
    rows = [
        ("credits", "hint", n, f'{{"side": {side}, "nodes": {nodes}}}', "delivery", 3, 0.5, 0.1, 0.4, 0.6)
        for n, (side, nodes) in enumerate(((500, 25), (1000, 100)))
    ]
    campaign = with_experiment(figures=[], axes=axes, measures=["delivery"], variants=[{"name": "hint"}])
    assert texts(page_of(write_folder(tmp_path / "out", campaign=campaign, rows=rows)), "//h3") == [
        "Delivery over side"
    ]


def test_an_experiment_without_axes_shows_measures_by_variant(tmp_path: Path) -> None:
    rows = [
        ("credits", "hint", 0, "{}", "delivery", 3, 0.75, 0.02, 0.7, 0.8),
        ("credits", "gossip", 0, "{}", "delivery", 3, 0.6, 0.01, 0.55, 0.65),
        ("credits", "hint", 0, "{}", "overhead", 3, 2.5, 0.1, 2.25, 2.75),
    ]
    page = page_of(write_folder(tmp_path / "out", campaign=with_experiment(figures=[], axes=[]), rows=rows))
    (numbers,) = page.xpath("//section[@id='experiment-credits']//table[@class='numbers']")
    assert texts(numbers, ".//thead//th") == ["hint", "gossip"]
    assert [texts(row, "th | td") for row in numbers.xpath(".//tbody/tr")] == [
        ["Delivery (share of interested subscribers)", "0.750 ± 0.050", "0.600 ± 0.050"],
        ["Overhead (packets per delivery)", "2.50 ± 0.25", "–"],
    ]


def test_figures_without_values_are_one_sentence(tmp_path: Path) -> None:
    figures = [{"id": "9", "x": "credits", "y": "delay_p95"}, {"id": "7", "x": "credits", "y": "delivery"}]
    page = page_of(write_folder(tmp_path / "out", campaign=with_experiment(figures=figures)))
    assert len(page.xpath("//figure")) == 1
    assert "Not drawn, because no run was measured for them: 9 (delay_p95 over credits)." in texts(page, "//section/p")


def test_a_logarithm_that_cannot_be_taken_is_said(tmp_path: Path) -> None:
    figures = [{"id": "9", "x": "credits", "y": "delivery", "log": True}]
    page = page_of(write_folder(tmp_path / "out", campaign=with_experiment(figures=figures)))
    assert texts(page, "//figcaption/p") == [
        "Drawn without the logarithmic scale: a value on the axis has no logarithm."
    ]


def test_undefined_values_are_gaps(tmp_path: Path) -> None:
    rows = [*ROWS[:2], ("credits", "hint", 1, '{"credits": 1}', "delivery", 0, float("nan"), None, None, None)]
    page = page_of(write_folder(tmp_path / "out", rows=rows))
    assert len(page.xpath("//*[@data-view='Fit']//*[@class='point']")) == 2
    assert texts(page, "//figure//tbody/tr[1]/td")[:3] == ["0.5 n = 1", "–", "0.900 ± 0.050"]


@pytest.mark.parametrize(
    ("papers", "title"),
    [
        (("hint", "hint"), "The published evaluation of hint, measured again"),
        (("hint", "coman"), "The published evaluations of hint and coman, measured again"),
        ((None, None), "A campaign of 2 experiments"),
    ],
)
def test_a_campaign_of_several_is_named_after_its_papers(
    tmp_path: Path, papers: tuple[str | None, ...], title: str
) -> None:
    experiments = [{**EXPERIMENT, "name": f"e{index}", "paper": paper} for index, paper in enumerate(papers)]
    page = page_of(write_folder(tmp_path / "out", campaign={**CAMPAIGN, "experiments": experiments}))
    assert texts(page, "//h1") == [title]


def test_seeds_are_counted_where_they_were_added_only_where_needed(tmp_path: Path) -> None:
    rows = [
        ("credits", "hint", i, f'{{"credits": {i}}}', "delivery", n, 0.5, 0.1, 0.4, 0.6) for i, n in enumerate((3, 7))
    ]
    page = page_of(write_folder(tmp_path / "out", rows=rows))
    assert texts(page, "//dt[.='Seeds per point']/following-sibling::dd[1]") == ["3–7"]


def test_every_link_leads_to_a_file_or_a_place(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out")
    page = page_of(out)
    links = page.xpath("//@href | //@src")
    assert len(links) >= 8
    for link in links:
        if link.startswith("#"):
            assert page.xpath(f"//*[@id='{link[1:]}']"), link
        else:
            assert (out / "report" / link).is_file(), link


def test_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    text = write_report(write_folder(tmp_path / "out")).read_text(encoding="utf-8")
    for foreign in ("http://", "https://", "@import", "url("):
        assert foreign not in text
    parsed: Any = html.document_fromstring(text)
    [policy] = parsed.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


# --- Names that attack ----------------------------------------------------------------------------------------------


def test_names_are_shown_and_never_run(tmp_path: Path) -> None:
    out = evil_folder(tmp_path / "out")
    page = page_of(out)
    assert len(page.xpath("//script")) == 1
    assert page.xpath("//img") == []
    assert not [name for element in page.iter() for name in element.attrib if name.startswith("on")]
    assert texts(page, "//h1") == [EVIL]
    assert texts(page, "//section[@id='failures']//td")[3] == EVIL
    files = sorted(file.name for file in (out / "report").rglob("*") if file.is_file())
    assert files == [
        "claims.csv",
        "credits--script-alert-1-script-img-src-x-onerror-alert-2-amp.csv",
        "credits--script-alert-1-script-img-src-x-onerror-alert-2-amp.png",
        "credits--script-alert-1-script-img-src-x-onerror-alert-2-amp.svg",
        "credits.csv",
        "index.html",
    ]


# --- Files beside it ------------------------------------------------------------------------------------------------


def test_csv_has_every_digit(tmp_path: Path) -> None:
    rows = [*ROWS, ("credits", "hint", 1, '{"credits": 1}', "delay_mean", 3, 0.1 + 0.2, None, None, None)]
    out = write_folder(tmp_path / "out", rows=rows)
    write_report(out)
    data = out / "report" / "data"
    assert (data / "credits-7.csv").read_text() == (
        "experiment,variant,credits,measure,n,mean,sd,low,high\n"
        "credits,hint,0,delivery,1,0.5,,,\n"
        "credits,hint,1,delivery,3,0.75,0.02,0.7,0.8\n"
        "credits,hint,4,delivery,3,0.9,0.02,0.85,0.95\n"
        "credits,gossip,,delivery,3,0.6,0.01,0.55,0.65\n"
    )
    with (data / "credits-paired.csv").open(newline="") as file:
        back, there = csv.DictReader(file)
    assert (back["variant"], there["variant"], there["level"], there["compared"]) == (
        *("gossip", "hint"),
        *("0.95", "difference"),
    )
    assert [float(there[name]) for name in ("mean", "sd", "low", "high")] == pytest.approx(
        [0.15, 0.01, 0.1252, 0.1748], abs=1e-4
    )
    assert "credits,hint,1,delay_mean,3,0.30000000000000004,,,\n" in (data / "credits.csv").read_text()
    with (data / "claims.csv").open(newline="") as file:
        assert [line["verdict"] for line in csv.DictReader(file)] == ["does not hold", "not measured"]


def test_ids_that_come_down_to_one_name_get_two_files(tmp_path: Path) -> None:
    figures = [{"id": name, "x": "credits", "y": "delivery"} for name in ("a/b", "a b")]
    out = write_folder(tmp_path / "out", campaign=with_experiment(figures=figures))
    write_report(out)
    assert sorted(file.name for file in (out / "report" / "figures").iterdir()) == [
        "credits-a-b-2.png",
        "credits-a-b-2.svg",
        "credits-a-b.png",
        "credits-a-b.svg",
    ]


def test_a_report_replaces_the_former_whole(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out")
    first = write_report(out).read_bytes()
    (out / "report" / "data" / "stale.csv").touch()
    assert write_report(out).read_bytes() == first
    assert not (out / "report" / "data" / "stale.csv").exists()
    assert [entry.name for entry in out.iterdir() if entry.name.startswith(".")] == []


# --- What is refused, and the verb ----------------------------------------------------------------------------------


def test_the_verb_prints_where_the_page_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "out")
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    result = CliRunner().invoke(main, ["report", "out"])
    assert (result.exit_code, result.output, shown) == (0, "out/report/index.html\n", [])
    CliRunner().invoke(main, ["report", "out", "--open"])
    assert shown == [(tmp_path / "out/report/index.html").as_uri()]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output == (
        f"error: {tmp_path}: is not a campaign's folder (campaign.json is missing): name the one that `roamcast "
        "campaign` or `roamcast papers` wrote\n"
    )


def test_a_campaign_without_measures_is_told_how_to_get_them(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out")
    (out / "measures" / "summary.parquet").unlink()
    result = CliRunner().invoke(main, ["report", str(out)])
    assert result.exit_code == 2
    assert result.output == (
        f"error: {out}: has no measures yet (measures/summary.parquet is missing): finish it with "
        "`roamcast papers hint --quick`\n"
    )


@pytest.mark.parametrize("name", ["campaign.json", "claims.json", "manifest.parquet", "measures/summary.parquet"])
def test_a_broken_file_is_named(tmp_path: Path, name: str) -> None:
    out = write_folder(tmp_path / "out")
    (out / name).write_bytes(b"{broken")
    with pytest.raises(RoamcastError, match=rf"{name}: cannot be read: "):
        write_report(out)


def test_a_file_in_the_place_of_the_report_is_not_replaced(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out")
    (out / "report").touch()
    with pytest.raises(RoamcastError, match="report: is a file, not a folder for a report"):
        write_report(out)


def test_a_full_disk_leaves_the_former_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = write_folder(tmp_path / "out")
    former = write_report(out).read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("roamcast.report.paper.render", full)
    with pytest.raises(RoamcastError, match="report: cannot be written: No space left on device"):
        write_report(out)
    assert (out / "report" / "index.html").read_bytes() == former
    assert [entry.name for entry in out.iterdir() if entry.name.startswith(".")] == []


def test_one_figure_can_be_drawn_alone(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "out")
    figures = [figure["id"] for figure in EXPERIMENT["figures"]]
    write_report(out)
    alone = draw(out, figures[0])
    assert alone in [file.read_text(encoding="utf-8") for file in (out / "report" / "figures").glob("*.svg")]
    assert draw(out, "delivery") == alone
    with pytest.raises(RoamcastError, match="there is no figure or measure 'none'"):
        draw(out, "none")


def test_intervals_end_where_the_measure_does(tmp_path: Path) -> None:
    rows = [("credits", "hint", 0, '{"credits": 0}', "delivery", 3, 0.98, 0.02, 0.93, 1.03)]
    (row,) = read_report_data(write_folder(tmp_path, rows=rows)).rows
    assert (row.low, row.high) == (0.93, 1.0)


def test_a_folder_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    write_folder(tmp_path, campaign={**CAMPAIGN, "version": 1})
    with pytest.raises(RoamcastError, match=r"^[^\n]*: holds facts of version 1, and this roamcast reads .* version 2"):
        read_report_data(tmp_path)
