"""The figure of a race: that it shows what `choice.json` says."""

import itertools
import xml.etree.ElementTree as ET
from typing import Any

from roamcast.report.choice import drawing
from roamcast.report.paint import colour

SVG = "{http://www.w3.org/2000/svg}"


def figures(goal: float, cost: float | None) -> dict[str, Any]:
    return {"seeds": 5, "goal": [goal, goal - 0.01, None], "cost": [cost, None, None], "possible": 1.0}


def drawn(race: dict[str, dict[str, Any]], left: list[str], fresh: dict[str, dict[str, Any]]) -> ET.Element:
    return ET.fromstring(
        drawing(
            {
                "scenario": "crowd.toml",
                "goal": {"measure": "satisfaction_10", "at_least": 0.95, "words": "delivery within 10 s"},
                "cost": {"measure": "airtime_per_delivery", "words": "ms on the air per delivery"},
                "left": left,
                "ranking": list(race),
                "race": race,
                "fresh": fresh,
            }
        )
    )


def texts(picture: ET.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def fills(picture: ET.Element) -> list[str]:
    return [element.get("fill", "") for element in picture.iter(f"{SVG}path")]


def test_a_race_in_a_picture() -> None:
    race = {"hint": figures(0.97, 2.0), "flooding": figures(1.0, 8.0), "maodv": figures(0.0, None)}
    picture = drawn(race, ["hint"], {"hint": figures(0.96, 2.2)})
    said = texts(picture)
    assert {"hint", "flooding", "maodv", "delivery within 10 s", "ms on the air per delivery"} <= set(said)
    assert said.count("delivered nothing in some run") == 1
    assert fills(picture).count(colour("hint")) == 2  # its goal and its cost
    assert fills(picture).count("#fff") == 3  # flooding and maodv were dropped, and maodv has no cost


def test_the_further_right_the_more() -> None:
    """Four times the cost is half of the way to sixteen times, and fresh seeds count."""
    race = {"flooding": figures(0.5, 1.0), "hint": figures(1.0, 4.0), "maodv": figures(0.2, 16.0)}
    marks = [
        float(element.get("transform", "").removeprefix("translate(").split()[0])
        for element in drawn(race, [], {"flooding": figures(0.6, 1.0)}).iter(f"{SVG}path")
        if element.get("transform")
    ]
    (goal, cost), (goal_2, cost_2), (goal_3, cost_3) = zip(marks[::2], marks[1::2], strict=True)
    assert abs((goal - goal_3) - (goal_2 - goal)) < 0.11  # 0.6 is half of the way from 0.2 to 1
    assert abs((cost_2 - cost) - (cost_3 - cost_2)) < 0.21


def test_every_candidate_has_a_row_and_modes_have_their_colours() -> None:
    names = ["flooding", "odmrp mode=extended", "odmrp mode=one-channel", "gossip p=0.9"]
    picture = drawn({name: figures(0.99, 7.5) for name in names}, names, {})
    heights = [float(element.get("y", "")) for element in picture.iter(f"{SVG}text") if element.text in names]
    assert len(heights) == 4
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 12
    assert colour("odmrp extended") in fills(picture)
