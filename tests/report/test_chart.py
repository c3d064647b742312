"""Which rows make a curve, and in which order."""

from typing import Any

import pytest

from roamcast.analysis.measures.measure import Measure, Measures
from roamcast.campaign.define.described import FigurePlan, ReportedExperiment, SweptAxis
from roamcast.campaign.define.experiment import Variant
from roamcast.report.chart import Chart, make_chart
from roamcast.report.source import SummaryRow
from roamcast.report.titles import first_upper

ABOUT = [Measure(name="delay_p95", title="delay, 95th percentile (s)"), Measure(name="overhead")]


def row(variant: str, axes: dict[str, Any], mean: float | None = 1.0, measure: str = "overhead") -> SummaryRow:
    return SummaryRow("e", variant, axes, measure, 3, mean, None, None, None)


def chart_of(
    axes: list[SweptAxis],
    variants: list[Variant],
    rows: list[SummaryRow],
    x: str,
    y: str = "overhead",
    log: bool = False,
) -> Chart:
    experiment = ReportedExperiment("e", [1], axes=axes, variants=variants)
    return make_chart(
        experiment, FigurePlan(id="1", x=x, y=y, log=log), rows, Measures({about.name: about for about in ABOUT})
    )


def names(chart: Chart) -> list[str]:
    return [curve.name for curve in chart.curves]


def test_a_curve_a_variant_in_the_order_of_the_experiment_and_of_x() -> None:
    rows = [row("b", {"p": 10}), row("a", {"p": 10}), row("a", {"p": 2}), row("a", {"p": 2}, measure="delivery")]
    chart = chart_of([SweptAxis("p", [10, 2])], [Variant(name="a"), Variant(name="b")], rows, "p")
    assert names(chart) == ["a", "b"]
    assert [[chart.x_of(point) for point in curve.rows] for curve in chart.curves] == [[2, 10], [10]]
    assert chart.x_values == (2, 10)


def test_another_axis_makes_more_curves() -> None:
    rows = [row("hint", {"speed": speed, "interval": interval}) for speed in (1, 20) for interval in (0.5, 5)]
    chart = chart_of(
        [SweptAxis("speed", [1, 20]), SweptAxis("interval", [0.5, 5])], [Variant(name="hint")], rows, "speed"
    )
    assert names(chart) == ["hint, interval 0.5", "hint, interval 5"]
    assert [len(curve.rows) for curve in chart.curves] == [2, 2]


def test_measures_that_differ_in_a_number_are_one_curve_over_it() -> None:
    names_and_means = (("by_age_10", 0.5), ("by_age_2.5", 0.1), ("by_age_peak", 9.0), ("overhead", 7.0))
    rows = [row("a", {"hops": hops}, mean, name) for hops in (1, 2) for name, mean in names_and_means]
    chart = chart_of([SweptAxis("hops", [1, 2])], [Variant(name="a")], rows, "age (min)", "by_age_{}")
    assert names(chart) == ["a, hops 1", "a, hops 2"]
    assert [(chart.x_of(point), point.mean) for point in chart.curves[1].rows] == [(2.5, 0.1), (10.0, 0.5)]
    assert chart.x_title == "age (min)"


def test_an_axis_that_goes_along_with_x_does_not() -> None:
    rows = [row("hint", {"nodes": nodes, "side": side, "k": 1}) for nodes, side in ((50, 700), (100, 1000))]
    chart = chart_of(
        [SweptAxis("nodes", [50, 100]), SweptAxis("side", [700, 1000]), SweptAxis("k", [1])], [], rows, "nodes"
    )
    assert names(chart) == ["hint"]
    assert [point.axes["side"] for point in chart.curves[0].rows] == [700, 1000]


def test_a_fixed_variant_is_one_level() -> None:
    rows = [row("gossip", {}, 7.0), row("hint", {"p": 1}), row("hint", {"p": 2})]
    chart = chart_of([SweptAxis("p", [1, 2])], [Variant(name="hint"), Variant(name="gossip", fixed=True)], rows, "p")
    assert [(curve.name, curve.level, len(curve.rows)) for curve in chart.curves] == [
        ("hint", False, 2),
        ("gossip", True, 1),
    ]


def test_names_are_in_the_order_of_the_axis() -> None:
    rows = [row("hint", {"model": "column"}), row("hint", {"model": "static"})]
    chart = chart_of([SweptAxis("model", ["static", "column"])], [], rows, "model")
    assert chart.x_values == ("static", "column")
    assert chart.categorical


@pytest.mark.parametrize(("values", "logarithmic"), [((1, 10), True), ((0, 10), False), (("a", "b"), False)])
def test_a_logarithmic_axis_needs_numbers_above_zero(values: tuple[Any, ...], logarithmic: bool) -> None:
    chart = chart_of([SweptAxis("p", list(values))], [], [row("a", {"p": value}) for value in values], "p", log=True)
    assert chart.logarithmic is logarithmic


@pytest.mark.parametrize(("x", "y"), [("credits", "overhead"), ("p", "delay_p95")])
def test_nothing_measured_gives_no_curves(x: str, y: str) -> None:
    assert chart_of([SweptAxis("p", [1])], [Variant(name="a")], [row("a", {"p": 1})], x, y).curves == ()


def test_titles_have_units() -> None:
    axes = [
        SweptAxis("speed", [1], "movement.speed"),
        SweptAxis("interval (beacons)", [1], "protocol.parameters.interval"),
    ]
    rows = [row("a", {"speed": 1, "interval (beacons)": 1}, measure="delay_p95")]
    chart = chart_of(axes, [], rows, "speed", "delay_p95")
    assert (chart.x_title, chart.y_title) == ("speed (m/s)", "delay, 95th percentile (s)")
    assert chart_of(axes, [], rows, "interval (beacons)", "delay_p95").x_title == "interval (beacons)"
    assert chart_of([SweptAxis("rate", [1], "workload.publishers[0].rate")], [], [], "rate").x_title == "rate (msg/s)"
    assert chart_of([], [], [], "x", "my_own").y_title == "my own"


def test_a_title_begins_upper_case_but_for_a_single_letter() -> None:
    assert [first_upper(text) for text in ("degree", "p", "p (share)", "")] == ["Degree", "p", "p (share)", ""]
