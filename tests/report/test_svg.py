"""Drawings measured with a ruler. The plot spans x from 60 to 460, values 20 inside it, and y from 280 up to 40."""

import itertools
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from roamcast.campaign.define.described import FigurePlan
from roamcast.report.chart import Chart, Curve
from roamcast.report.scale import (
    YScale,
    apart,
    fitted_ticks,
    is_even,
    labelled,
    linear,
    log_ticks,
    nice_step,
    y_scales,
    zero_ticks,
)
from roamcast.report.source import SummaryRow
from roamcast.report.svg import drawing, views


def row(x: Any, mean: float | None, low: float | None = None, high: float | None = None) -> SummaryRow:  # noqa: ANN401
    return SummaryRow("e", "v", {"x": x}, "m", 3, mean, None, low, high)


def chart_of(*curves: Curve, y: str = "delivery", log: bool = False) -> Chart:
    values = {row.axes["x"]: None for curve in curves if not curve.level for row in curve.rows}
    return Chart(
        FigurePlan(id="1", x="x", y=y, title="T", log=log), "e", "x", y, tuple(values), curves, whole=y == "delivery"
    )


def curve(*rows: SummaryRow, name: str = "hint", level: bool = False, look: int = 0) -> Curve:
    return Curve(name, level, rows, look)


def drawn(chart: Chart) -> ET.Element:
    """From 0 to 1."""
    return ET.fromstring(drawing(chart, YScale("0–1", (0, 0.5, 1))))


def paths(element: ET.Element, kind: str) -> list[str]:
    return [path.attrib["d"] for path in element.iter("path") if path.get("class") == kind]


def marks(element: ET.Element) -> list[str]:
    return [path.attrib["transform"] for path in element.iter("path") if path.get("class") == "mark"]


def test_a_point_and_its_error_bar() -> None:
    # x: 0 to 4 on 80 to 440, so 1 is at 170. y: 0 to 1 on 280 to 40, so 0.75 is at 100, 0.7 at 112, 0.8 at 88.
    image = drawn(chart_of(curve(row(0, 0.5), row(1, 0.75, 0.7, 0.8), row(4, 1.0))))
    assert paths(image, "line") == ["M80 160L170 100L440 40"]
    assert paths(image, "bar") == ["M170 88V112M166 88h8M166 112h8"]
    assert marks(image) == ["translate(80 160)", "translate(170 100)", "translate(440 40)"]
    labels = [g.attrib["aria-label"] for g in image.iter("g") if g.get("class") == "point"]
    assert labels == [
        "hint; x: 0; delivery: 0.5; n = 3, no interval",
        "hint; x: 1; delivery: 0.750 ± 0.050; n = 3",
        "hint; x: 4; delivery: 1; n = 3, no interval",
    ]


def test_an_interval_is_cut_at_the_frame() -> None:
    image = drawn(chart_of(curve(row(0, 0.95, 0.9, 1.2), row(1, 0.9))))
    assert paths(image, "bar") == ["M80 40V64M76 64h8"]


def test_the_line_breaks_where_nothing_was_measured() -> None:
    image = drawn(chart_of(curve(row(0, 0.5), row(1, 0.5), row(2, None), row(3, 0.5), row(4, 0.5))))
    assert paths(image, "line") == ["M80 160L170 160M350 160L440 160"]
    assert len(marks(image)) == 4


def test_a_level_spans_the_plot_with_its_interval_as_a_band() -> None:
    image = drawn(chart_of(curve(row(0, 0.5), row(1, 0.5)), curve(row(None, 0.25, 0.2, 0.3), name="g", level=True)))
    assert paths(image, "line")[1] == "M60 220H460"
    band = next(image.iter("rect"))
    assert [band.attrib[name] for name in ("x", "y", "width", "height")] == ["60", "208", "400", "24"]


@pytest.mark.parametrize(
    ("values", "log", "places"),
    [
        ((1, 10, 100), False, ["80", "112.73", "440"]),
        ((1, 10, 100), True, ["80", "260", "440"]),
        (("few", "some", "many"), False, ["80", "260", "440"]),
        ((7,), False, ["260"]),
    ],
)
def test_places_on_x(values: tuple[Any, ...], log: bool, places: list[str]) -> None:
    image = drawn(chart_of(curve(*(row(value, 0.5) for value in values)), log=log))
    assert marks(image) == [f"translate({place} 160)" for place in places]


@pytest.mark.parametrize(
    ("values", "fitted", "from_zero"),
    [
        ((0.9, 0.95), [0.9, 0.91, 0.92, 0.93, 0.94, 0.95], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ((2.0, 7.2), [0, 2, 4, 6, 8], [0, 2, 4, 6, 8]),
        ((12.0, 15.0), [12, 13, 14, 15], [0, 5, 10, 15]),
        ((-1.0, 4.0), [-1, 0, 1, 2, 3, 4], [-1, 0, 1, 2, 3, 4]),
        ((0.0, 0.0), [0, 0.2, 0.4, 0.6, 0.8, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ((3.0, 3.0), [0, 1, 2, 3], [0, 1, 2, 3]),
        ((-3.0, -3.0), [-3, -2, -1, 0], [-3, -2, -1, 0]),
        ((0.001, 0.002), [0.001, 0.0012, 0.0014, 0.0016, 0.0018, 0.002], [0, 0.0005, 0.001, 0.0015, 0.002]),
    ],
)
def test_ticks_on_y(values: tuple[float, ...], fitted: list[float], from_zero: list[float]) -> None:
    chart = chart_of(curve(*(row(index, value) for index, value in enumerate(values))), y="overhead")
    assert fitted_ticks(chart) == pytest.approx(fitted)
    assert zero_ticks(chart) == pytest.approx(from_zero)


def test_intervals_make_room_but_not_any() -> None:
    assert zero_ticks(chart_of(curve(row(0, 4, 3, 5)), y="overhead")) == [0, 1, 2, 3, 4, 5]
    assert zero_ticks(chart_of(curve(row(0, 4, -60, 68)), y="overhead")) == [0, 2, 4, 6]
    assert zero_ticks(chart_of(curve(row(0, -4, -68, 60)), y="overhead")) == [-6, -4, -2, 0]
    # Means 4 and 5: at most the greater of their distance and a quarter of 5 beyond them, from 2.75 to 6.25.
    assert fitted_ticks(chart_of(curve(row(0, 4, -60, 68), row(1, 5)), y="overhead")) == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((3, 700), [1, 10, 100, 1000]),
        ((0.15, 0.9), [0.1, 0.2, 0.5, 1]),
        ((21, 29), [20, 25, 30]),
        ((5, 5), [5, 50]),
        ((0, 5), []),
        ((-1, 5), []),
    ],
)
def test_logarithmic_ticks(values: tuple[float, ...], ticks: list[float]) -> None:
    assert log_ticks(chart_of(curve(*map(row, range(2), values)), y="overhead")) == pytest.approx(ticks)


def test_a_figure_can_be_seen_on_every_axis_that_it_can_have() -> None:
    def names(chart: Chart) -> list[str]:
        return [name for name, _ in views(chart)]

    shares = curve(row(0, 0.9), row(1, 0.95))
    assert names(chart_of(shares)) == ["Fit", "0–1", "Log"]
    assert names(chart_of(shares, y="overhead")) == ["Fit", "From 0", "Log"]
    # From 0 anyway; and 0 has no logarithm.
    assert names(chart_of(curve(row(0, 0), row(1, 7)), y="overhead")) == ["Fit"]
    # 10 is in the middle between 1 and 100; the lower end of its interval is below any logarithm.
    chart = chart_of(curve(row(0, 1), row(1, 10, -5, 25), row(2, 100)), y="overhead")
    image = ET.fromstring(dict(views(chart))["Log"])
    assert y_scales(chart)[-1].ticks == (1, 2, 5, 10, 20, 50, 100)
    assert marks(image)[1] == "translate(260 160)"
    assert paths(image, "bar") == ["M260 112.25V280M256 112.25h8"]


@pytest.mark.parametrize(("span", "step"), [(1, 0.2), (5, 1), (5.1, 2), (12, 2.5), (13, 5), (26, 10), (0.05, 0.01)])
def test_steps_are_round(span: float, step: float) -> None:
    assert nice_step(span) == pytest.approx(step)


def bars(image: ET.Element) -> list[tuple[float, float, float]]:
    """Of each interval: its x, and the ends of its caps."""
    found = []
    for path in paths(image, "bar"):
        middle = float(path[1:].split()[0])
        cap, width = path.split("M")[2].split()[0], path.split("h")[1].split("M")[0]
        found.append((middle, float(cap), float(cap) + float(width)))
    return found


def test_curves_at_the_same_x_stand_beside_each_other() -> None:
    two = [curve(row(0, 0.5), row(1, 0.5), name=name) for name in "ab"]
    level = curve(row(None, 0.5), name="g", level=True)
    image = drawn(chart_of(two[0], level, two[1]))
    assert marks(image) == [f"translate({place} 160)" for place in ("76", "436", "84", "444")]


@pytest.mark.parametrize("values", [(0, 1), (0, 1, 2, 3, 4, 5, 6, 7), (0, 1, 36), (1, 2, 1000)])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_neighbouring_bars_do_not_overlap(values: tuple[int, ...], count: int) -> None:
    curves = [curve(*(row(value, 0.5, 0.4, 0.6) for value in values), name=f"c{index}") for index in range(count)]
    found = sorted(bars(drawn(chart_of(*curves))))
    assert len(found) == count * len(values)
    assert all(before[2] < after[1] for before, after in itertools.pairwise(found))
    assert found[0][1] > 60
    assert found[-1][2] < 460


def test_values_too_close_for_their_bars_are_placed_evenly() -> None:
    near = [curve(row(1, 0.5), row(2, 0.5), row(1000, 0.5), name=name) for name in "ab"]
    assert is_even(chart_of(*near), 400)
    assert not is_even(chart_of(near[0]), 400)
    assert marks(drawn(chart_of(*near)))[:3] == [f"translate({place} 160)" for place in (76, 256, 436)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 12])
def test_points_stay_on_their_x(count: int) -> None:
    """Within 1 % of the axis, which is 400 long: 1, 2 and 5 of 1 to 5 are at 80, 170 and 440."""
    curves = [curve(*(row(x, 0.5, 0.4, 0.6) for x in (1, 2, 5)), name=f"c{index}") for index in range(count)]
    found = [float(mark.removeprefix("translate(").split()[0]) for mark in marks(drawn(chart_of(*curves)))]
    assert len(found) == 3 * count
    assert all(abs(x - place) <= 4 for x, place in zip(found, [80, 170, 440] * count, strict=True))


def test_intervals_of_many_curves_are_bands() -> None:
    curves = [curve(row(0, 0.5, 0.4, 0.6), row(4, 0.5, 0.25, 0.75), name=f"c{index}") for index in range(5)]
    image = drawn(chart_of(*curves))
    assert paths(image, "bar") == []
    assert paths(image, "band")[0] == "M80 136L440 100L440 220L80 184Z"


def test_eight_curves_have_their_names_at_their_ends() -> None:
    def names(count: int) -> list[tuple[str, float]]:
        curves = [curve(row(0, 0.5), row(1, 0.5), name=f"c{index}") for index in range(count)]
        texts = drawn(chart_of(*curves)).iter("text")
        return [(text.text or "", float(text.attrib["y"])) for text in texts if text.get("class") == "name"]

    assert names(7) == []
    found = names(8)
    assert [name for name, _ in found] == [f"c{index}" for index in range(8)]
    places = sorted(place for _, place in found)
    assert all(after - before >= 12.9 for before, after in itertools.pairwise(places))


def test_curves_that_differ_by_more_than_thirty_times_have_a_logarithmic_axis_first() -> None:
    def first(*means: float, by_ratio: bool = True) -> str:
        curves = [curve(row(0, mean), row(1, mean / 40), name=str(mean)) for mean in means]
        return y_scales(replace(chart_of(*curves, y="delay"), by_ratio=by_ratio))[0].name

    assert first(1.0, 31.0) == "Log"
    assert first(1.0, 29.0) == "Fit"  # though each falls by 40 times along x
    assert first(1.0, 31.0, by_ratio=False) == "Fit"


@pytest.mark.parametrize(
    ("places", "moved"),
    [([1, 5], [1, 5]), ([1, 1, 1], [1, 3, 5]), ([9, 9.5, 10], [6, 8, 10]), ([5, 1, 2], [5, 1, 3])],
)
def test_names_are_moved_apart_within_the_frame(places: list[float], moved: list[float]) -> None:
    assert apart(places, 2, 0, 10) == moved


def test_labels_that_would_touch_are_left_out() -> None:
    # A letter is 10 wide: "1" covers 95 to 105 and needs 10 more, so "2" at 110 (from 105) is too near, "10" is not.
    assert labelled([1, 2, 10], linear(1, 10, 100, 190), 10) == [1, 10]


def test_no_two_of_many_curves_look_alike() -> None:
    image = drawn(chart_of(*(curve(row(0, 0.1), row(1, 0.2), name=f"c{index}", look=index) for index in range(24))))
    looks = set()
    for group in image.iter("g"):
        if "data-curve" in group.attrib:
            line = next(path for path in group.iter("path") if path.get("class") == "line")
            shape = next(path for path in group.iter("path") if path.get("class") == "mark")
            looks.add((group.get("class"), line.get("stroke-dasharray"), shape.get("d")))
    assert len(looks) == 24
