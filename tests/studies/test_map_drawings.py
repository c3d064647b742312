"""The figures of a map: that they show what their tables say."""

import xml.etree.ElementTree as ET

from studies.map import tables
from studies.map.drawings import drawings
from studies.map.paint import NOBODY, colour

SVG = "{http://www.w3.org/2000/svg}"
WORLD = dict.fromkeys(tables.WORLD, "1")


def cell(degree: str, deadline: str, **changes: str) -> dict[str, str]:
    names = ("seeds", "deadline", "winner", "knob", "delivered", "cost", "wins", "not_separated", "closest", "next")
    blank = dict.fromkeys((*names, "next_knob", "margin", "margin_low", "margin_high"), "")
    return {"speed": "5", "degree": degree} | WORLD | blank | {"seeds": "5", "deadline": deadline} | changes


def setting(name: str, cost: str, delivered: str, pareto: str) -> dict[str, str]:
    measured = {"airtime_per_delivery": cost, "delivered_of_possible_10": delivered, "delay_restricted_10": "0.5"}
    return {
        "speed": "5",
        "degree": "8",
        "setting": name,
        "protocol": name.partition(" ")[0],
        "pareto": pareto,
    } | measured


ATLAS = tables.Atlas(
    [
        row
        for deadline in ("1", "10", "60")
        for row in (
            cell("4", deadline, closest="flooding", delivered="0.5"),
            cell("8", deadline, winner="hint", knob="2", wins="0.8", not_separated="gossip; coman", margin="1.2"),
        )
    ],
    [{"speed": "5", "degree": "8", "deadline": "10", "protocol": "hint", "knob": "2", "delivered": "1", "cost": "3"}],
    [setting("hint credits=2", "3", "0.97", "yes"), setting("maodv", "30", "0.5", ""), setting("coman", "", "0", "")],
)


def texts(drawn: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(drawn).iter(f"{SVG}text")]


def fills(drawn: str, name: str) -> list[str]:
    return [element.get("fill", "") for element in ET.fromstring(drawn).iter(f"{SVG}{name}")]


def test_winners_are_coloured_hatched_and_numbered_and_nobody_is_grey() -> None:
    drawn = drawings(ATLAS)["winners-10"]
    said = texts(drawn)
    assert {"nobody", "closest: flooding", "0.5", "hint 2", "× 1.2", "or 2 others; wins 80%"} <= set(said)
    assert fills(drawn, "rect").count(NOBODY) == 1
    assert fills(drawn, "rect").count(colour("hint")) == 1
    assert fills(drawn, "rect").count("url(#hatch)") == 1


def test_what_is_dominated_is_hollow_and_what_delivers_nothing_is_not_drawn() -> None:
    shapes = fills(drawings(ATLAS)["fronts"], "path")
    assert shapes.count(colour("hint")) == 2  # the point and the legend
    assert shapes.count(colour("maodv")) == 1  # the legend
    assert shapes.count("#fff") == 1  # the point of maodv
    assert shapes.count(colour("coman")) == 1  # the legend


def test_every_figure_is_a_picture_with_a_title() -> None:
    for drawn in drawings(ATLAS).values():
        assert ET.fromstring(drawn).find(f"{SVG}title") is not None
