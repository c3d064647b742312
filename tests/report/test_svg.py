"""Drawings measured with a ruler. The plot spans x from 60 to 460, values 20 inside it, and y from 280 up to 40."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from roamcast.report.chart import Chart, Curve
from roamcast.report.scale import labelled, linear, nice_step, y_ticks
from roamcast.report.source import FigurePlan, Row
from roamcast.report.svg import inline, standalone


def row(x: Any, mean: float | None, low: float | None = None, high: float | None = None) -> Row:  # noqa: ANN401
    return Row("e", "v", {"x": x}, "m", 3, mean, None, low, high)


def chart_of(*curves: Curve, y: str = "delivery", log: bool = False) -> Chart:
    values = {row.axes["x"]: None for curve in curves if not curve.level for row in curve.rows}
    return Chart(FigurePlan("1", "x", y, "T", log=log), "e", "x", y, tuple(values), curves, whole=y == "delivery")


def curve(*rows: Row, name: str = "hint", level: bool = False) -> Curve:
    return Curve(name, level, rows)


def drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(inline(chart))


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
    ("measure", "values", "ticks"),
    [
        ("delivery", (0.9, 0.95), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ("overhead", (2.0, 7.2), [0, 2, 4, 6, 8]),
        ("overhead", (12.0, 15.0), [0, 5, 10, 15]),
        ("overhead", (-1.0, 4.0), [-1, 0, 1, 2, 3, 4]),
        ("overhead", (0.0, 0.0), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ("lost_random", (0.001, 0.002), [0, 0.0005, 0.001, 0.0015, 0.002]),
    ],
)
def test_ticks_on_y(measure: str, values: tuple[float, ...], ticks: list[float]) -> None:
    chart = chart_of(curve(*(row(index, value) for index, value in enumerate(values))), y=measure)
    assert y_ticks(chart) == pytest.approx(ticks)


def test_intervals_make_room_up_to_half_the_largest_mean() -> None:
    assert y_ticks(chart_of(curve(row(0, 4, 3, 5)), y="overhead")) == [0, 1, 2, 3, 4, 5]
    assert y_ticks(chart_of(curve(row(0, 4, -60, 68)), y="overhead")) == [0, 2, 4, 6]
    assert y_ticks(chart_of(curve(row(0, -4, -68, 60)), y="overhead")) == [-6, -4, -2, 0]


@pytest.mark.parametrize(("span", "step"), [(1, 0.2), (5, 1), (5.1, 2), (12, 2.5), (13, 5), (26, 10), (0.05, 0.01)])
def test_steps_are_round(span: float, step: float) -> None:
    assert nice_step(span) == pytest.approx(step)


def test_curves_at_the_same_x_stand_beside_each_other() -> None:
    # Two curves, 5 apart. Ten at values 10 apart (0 and 1 of 36) share half of the way: 0.5 each.
    two = [curve(row(0, 0.5), row(1, 0.5), name=name) for name in "ab"]
    level = curve(row(None, 0.5), name="g", level=True)
    image = drawn(chart_of(two[0], level, two[1]))
    assert marks(image) == [f"translate({place} 160)" for place in ("77.5", "437.5", "82.5", "442.5")]
    ten = [curve(row(0, 0.5), row(1, 0.5), row(36, 0.5), name=name) for name in "abcdefghij"]
    assert marks(drawn(chart_of(*ten)))[::3] == [f"translate({77.75 + 0.5 * index:g} 160)" for index in range(10)]


def test_labels_that_would_touch_are_left_out() -> None:
    # A letter is 10 wide: "1" covers 95 to 105 and needs 10 more, so "2" at 110 (from 105) is too near, "10" is not.
    assert labelled([1, 2, 10], linear(1, 10, 100, 190), 10) == [1, 10]


def test_a_file_of_its_own_has_title_legend_and_size() -> None:
    first, second = curve(row(0, 0.5), row(1, 0.5)), curve(row(0, 0.25), row(1, 0.25), name="<gossip>")
    text, width, height = standalone(chart_of(first, second))
    image = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert image.tag == f"{space}svg"
    assert (image.attrib["width"], image.attrib["height"]) == (str(width), str(height)) == ("480", "368")
    assert image.findtext(f"{space}title") == "T"
    assert [text.text for text in image.iter(f"{space}text")][-2:] == ["hint", "<gossip>"]


def test_no_two_of_many_curves_look_alike() -> None:
    image = drawn(chart_of(*(curve(row(0, 0.1), row(1, 0.2), name=f"c{index}") for index in range(24))))
    looks = set()
    for group in image.iter("g"):
        if "data-curve" in group.attrib:
            line = next(path for path in group.iter("path") if path.get("class") == "line")
            shape = next(path for path in group.iter("path") if path.get("class") == "mark")
            looks.add((group.get("class"), line.get("stroke-dasharray"), shape.get("d")))
    assert len(looks) == 24
