"""The figure of a race: that it shows what `choice.json` says."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from roamcast.report.choice import race_figure
from roamcast.report.distribution import as_svg

SVG = "{http://www.w3.org/2000/svg}"


def figures(goal: float, cost: float | None, low: float | None = None) -> dict[str, Any]:
    return {"seeds": 5, "goal": [goal, low, 1.0], "cost": [cost, None, None], "possible": 1.0}


def result(race: dict[str, dict[str, Any]], left: list[str], fresh: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "scenario": "crowd.toml",
        "goal": {"measure": "satisfaction_10", "at_least": 0.95, "words": "delivery within 10 s"},
        "cost": {"measure": "airtime_per_delivery", "words": "ms on the air per delivery"},
        "left": left,
        "ranking": list(race),
        "race": race,
        "fresh": fresh,
    }


def marks(axes: Axes) -> dict[float, tuple[float, str]]:
    """By row: where the mark is, and what it is filled with."""
    found = [line for line in axes.lines if line.get_marker() == "o"]
    return {
        float(line.get_ydata()[0]): (float(line.get_xdata()[0]), to_hex(line.get_markerfacecolor()))  # type: ignore[index, arg-type]
        for line in found
    }


def test_a_race_in_a_picture() -> None:
    """Fresh seeds count; those that were dropped are hollow, and what has no cost says why."""
    race = {"hint": figures(0.97, 2.0), "flooding": figures(1.0, 8.0, 0.5), "maodv": figures(0.0, None)}
    drawn = race_figure(result(race, ["hint"], {"hint": figures(0.96, 2.2)}))
    goals, costs = drawn.axes
    assert marks(goals) == {0: (0.96, "#0072b2"), 1: (1.0, "#ffffff"), 2: (0.0, "#ffffff")}
    assert marks(costs) == {0: (2.2, "#0072b2"), 1: (8.0, "#ffffff")}
    assert costs.get_xscale() == "log"
    (bar,) = goals.collections
    assert np.asarray(bar.get_paths()[0].vertices).tolist() == [[0.5, 1], [1.0, 1]]
    svg = as_svg(drawn)
    said = [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]
    assert {"hint", "flooding", "maodv", "delivery within 10 s", "ms on the air per delivery"} <= set(said)
    assert said.count("delivered nothing in some run") == 1
    assert as_svg(race_figure(result(race, ["hint"], {"hint": figures(0.96, 2.2)}))) == svg


def test_the_best_candidate_is_on_top() -> None:
    names = ["flooding", "odmrp mode=extended", "odmrp mode=one-channel", "gossip p=0.9"]
    goals, _ = race_figure(result({name: figures(0.99, 7.5) for name in names}, names, {})).axes
    assert [label.get_text() for label in goals.get_yticklabels()] == names
    assert goals.get_ylim() == (3.5, -0.5)
