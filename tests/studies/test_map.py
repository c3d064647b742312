"""The map: who wins a cell, who is not separated, who is dominated; by hand, on few seeds."""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from studies.map import EXPERIMENTS, PARTS, causes, load_part, page, tables
from studies.map.cells import Cell, Setting, cells, setting_of
from studies.map.dominance import front
from studies.map.drawings import drawings
from studies.map.tuning import is_shown, picks, tuned
from studies.map.winners import judge
from studies.map.words import compared, sentences

from roamcast.campaign.define.experiment import Variant, load_experiment
from roamcast.campaign.define.plan import plan
from roamcast.protocols.catalogue import CATALOGUE

DELIVERED, COST, DELAY = "delivered_of_possible_10", "airtime_per_delivery", "delay_restricted_10"
FLOODING = Setting("flooding", "flooding")
GOSSIP = tuple(Setting(f"gossip p={p}", "gossip", p, continuous=True) for p in (0.5, 0.7))
HINT = tuple(Setting(f"hint credits={credits}", "hint", credits) for credits in (0, 2))


def cell(values: Mapping[Setting, tuple[Sequence[float], Sequence[float]]]) -> Cell:
    """Of deliveries and costs, seed by seed; the delay is the same for all."""
    table = {
        setting.name: {
            DELIVERED: np.array(delivered),
            COST: np.array(cost),
            DELAY: np.ones(len(cost)),
        }
        for setting, (delivered, cost) in values.items()
    }
    seeds = tuple(range(len(next(iter(values.values()))[0])))
    return Cell({"speed": 5}, seeds, tuple(values), table)


def test_the_cheapest_that_reaches_the_threshold_wins() -> None:
    verdict = judge(
        cell(
            {
                FLOODING: ([0.99, 0.98, 0.99, 0.98], [8.0, 8.1, 7.9, 8.0]),
                HINT[0]: ([0.90, 0.91, 0.90, 0.89], [2.0, 2.1, 2.0, 1.9]),
                HINT[1]: ([0.97, 0.98, 0.97, 0.98], [4.0, 4.1, 3.9, 4.0]),
            }
        ),
        10,
    )
    assert verdict.winner is not None
    assert (verdict.winner.protocol, verdict.winner.knob) == ("hint", 2)
    assert verdict.winner.cost == pytest.approx((4.0 * 4.1 * 3.9 * 4.0) ** 0.25)
    assert verdict.winner.wins > 0.99
    assert verdict.rivals == ()
    assert verdict.margin is not None
    assert verdict.margin.mean == pytest.approx(2.0, rel=0.01)
    assert 1.8 < verdict.margin.low < 2.0 < verdict.margin.high < 2.2


def test_a_continuous_knob_is_read_at_equal_delivery() -> None:
    """0.95 lies a quarter of the way from 0.94 to 0.98, and so do p and the logarithm of the cost: 4 * 16 ** 0.25."""
    verdict = judge(cell({GOSSIP[0]: ([0.94, 0.94], [4.0, 4.0]), GOSSIP[1]: ([0.98, 0.98], [64.0, 64.0])}), 10)
    assert verdict.winner is not None
    assert verdict.winner.knob == pytest.approx(0.55)
    assert verdict.winner.cost == pytest.approx(8.0)
    assert verdict.winner.delivery == 0.95


def test_whole_numbers_are_not_divided() -> None:
    verdict = judge(cell({HINT[0]: ([0.94, 0.94], [4.0, 4.0]), HINT[1]: ([0.98, 0.98], [64.0, 64.0])}), 10)
    assert verdict.winner is not None
    assert verdict.winner.knob == 2
    assert verdict.winner.cost == pytest.approx(64.0)


def test_who_may_be_as_cheap_is_not_separated() -> None:
    verdict = judge(
        cell({FLOODING: ([0.99] * 4, [8.0, 4.0, 8.0, 4.0]), HINT[0]: ([0.97] * 4, [4.0, 8.0, 4.0, 7.0])}), 10
    )
    assert verdict.winner is not None
    assert verdict.winner.protocol == "hint"
    assert 0.5 < verdict.winner.wins < 0.8
    assert verdict.rivals == ("flooding",)


def test_a_winner_that_may_miss_the_threshold_is_not_separated() -> None:
    verdict = judge(cell({FLOODING: ([0.99] * 4, [8.0] * 4), HINT[0]: ([0.90, 1.0, 0.91, 1.0], [4.0] * 4)}), 10)
    assert verdict.winner is not None
    assert verdict.winner.protocol == "hint"
    assert verdict.rivals == ("flooding",)


def test_perhaps_nobody_reaches_it() -> None:
    verdict = judge(cell({FLOODING: ([0.90, 1.0, 0.91, 1.0], [8.0] * 4)}), 10)
    assert verdict.winner is not None
    assert verdict.rivals == ("nobody",)


def test_nobody_wins_where_nobody_reaches_it() -> None:
    verdict = judge(cell({FLOODING: ([0.9, 0.94], [8.0, 8.0]), HINT[0]: ([0.8, 0.9], [1.0, 1.0])}), 10)
    assert verdict.winner is None
    assert [one.protocol for one in verdict.standings] == ["flooding", "hint"]
    assert verdict.standings[0].delivery == pytest.approx(0.92)


def test_who_delivers_nothing_in_one_run_cannot_win() -> None:
    verdict = judge(cell({FLOODING: ([0.99] * 3, [8.0] * 3), HINT[0]: ([1.0, 1.0, 1.0], [1.0, math.inf, 1.0])}), 10)
    assert verdict.winner is not None
    assert verdict.winner.protocol == "flooding"


def test_dominated_by_means_and_surely() -> None:
    found = front(
        cell(
            {
                FLOODING: ([0.990, 0.985, 0.988, 0.991, 0.99], [8.0, 8.1, 8.2, 7.9, 8.0]),
                HINT[0]: ([0.990, 0.985, 0.988, 0.991, 0.99], [4.0, 4.1, 4.2, 3.9, 4.0]),
                HINT[1]: ([0.90, 0.91, 0.92, 0.9, 0.91], [2.0, 2.1, 2.0, 2.0, 2.0]),
            }
        )
    )
    assert found.pareto == ("hint credits=0", "hint credits=2")
    assert found.dominated == {"flooding": "hint credits=0"}


def test_a_difference_that_does_not_matter_does_not_dominate() -> None:
    found = front(cell({FLOODING: ([0.990] * 4, [8.0] * 4), HINT[0]: ([0.985] * 4, [7.7] * 4)}))
    assert found.pareto == ("flooding", "hint credits=0")
    assert not found.dominated


def test_tuning_takes_the_cheapest_that_delivers_enough_or_the_one_that_delivers_most() -> None:
    anchor = cell(
        {
            HINT[0]: ([0.90, 0.92], [2.0, 2.0]),
            HINT[1]: ([0.93, 0.94], [9.0, 9.0]),
            GOSSIP[0]: ([0.96, 0.98], [4.0, 4.0]),
            GOSSIP[1]: ([0.99, 0.99], [6.0, 6.0]),
        }
    )
    picked = picks([anchor])
    assert picked == {"speed 5": {"hint credits=2", "gossip p=0.5"}}
    assert is_shown(picked, {"variant": "gossip p=0.5", "axes": '{"speed": 5.0}'})
    assert not is_shown(picked, {"variant": HINT[0].name, "axes": '{"speed": 5.0}'})
    (tuning,) = load_part("tuned", "quick")
    shown = tuned(tuning, {"a": frozenset({"coman"}), "b": frozenset({"maodv", "coman"})}, 5)
    assert [variant.name for variant in shown.variants] == ["maodv", "coman"]
    assert not {row["seed"] for row in plan([shown]).rows} & {row["seed"] for row in plan([tuning]).rows}


def test_the_budget_of_tuning_is_equal() -> None:
    (tuning,) = load_part("tuned", "usual")
    by_protocol = Counter(setting_of(Variant(name=one.name, set=one.set)).protocol for one in tuning.variants)
    assert set(by_protocol.values()) == {6}
    untuned = {"roam"}  # it has no settings that a user must choose
    assert {name.partition(" ")[0] for name in by_protocol} == set(CATALOGUE) - untuned


def test_settings_of_variants() -> None:
    def made(name: str, **parameters: Any) -> Setting:  # noqa: ANN401  # any value of TOML
        return setting_of(Variant(name="x", set={"protocol.name": name, "protocol.parameters": parameters}))

    assert made("gossip", p=0.5) == Setting("x", "gossip", 0.5, continuous=True)
    assert made("hint", credits=2) == Setting("x", "hint", 2, continuous=False)
    assert made("odmrp", mode="one-channel") == Setting("x", "odmrp one-channel")
    assert made("coman", readopt=True).knob is None


def test_only_seeds_that_all_have_count_and_no_delivery_is_an_infinite_cost() -> None:
    rows = [
        {"axes": '{"speed": 1}', "variant": variant, "seed": seed, DELIVERED: 1.0}
        | {COST: None if (variant, seed) == ("flooding", 3) else 2.0}
        for variant, seeds in (("flooding", (1, 2, 3)), ("hint credits=0", (2, 3, 4)))
        for seed in seeds
    ]
    (found,) = cells([FLOODING, HINT[0]], pa.Table.from_pylist(rows))
    assert found.seeds == (2, 3)
    assert found.column(FLOODING, COST).tolist() == [2.0, math.inf]


def test_what_a_change_did_is_its_difference_from_the_protocols_first_setting_by_seed() -> None:
    """Differences 0.2, 0.3, 0.1: mean 0.2, t(0.975, 2) = 4.303 times 0.1 / sqrt(3) = 0.248 on either side."""
    often = Setting("flooding jitter=1.0", "flooding", 1.0, continuous=True)
    values = {
        FLOODING: ([0.5, 0.6, 0.7], [8.0, 8.0, 8.0]),
        often: ([0.7, 0.9, 0.8], [4.0, math.inf, 4.0]),
        HINT[0]: ([0.2, 0.2, 0.2], [1.0, 1.0, 1.0]),
    }
    first, changed, other = causes.rows([cell(values)], (DELIVERED, COST))
    assert (first["speed"], first["setting"], first["seeds"], first["difference"]) == ("5", "flooding", "3", "")
    assert (changed["difference"], changed["difference_low"], changed["difference_high"]) == ("0.2", "-0.0484", "0.448")
    assert (changed[DELIVERED], changed[COST]) == ("0.8", "inf")
    assert other["difference"] == ""
    *_, last = causes.lines([first, changed | {"difference_low": "0.1"}])
    assert last.startswith("| 5 | `flooding jitter=1.0` | 0.8 [")
    assert last.endswith("| **0.2 [0.1, 0.448]** |")


# --- The experiments ------------------------------------------------------------------------------------------------


def test_the_map_has_every_protocol_of_the_catalogue() -> None:
    one = load_experiment(EXPERIMENTS / "map-core.toml")
    assert {variant.set["protocol.name"] for variant in one.variants} == set(CATALOGUE)


@pytest.mark.parametrize("part", PARTS)
def test_the_levels_are_parts_of_each_other_and_can_run(part: str) -> None:
    quick, usual, full = ({row["axes"] for row in plan(load_part(part, level), 1).rows} for level in LEVELS)
    assert quick <= usual <= full


LEVELS: Any = ("quick", "usual", "full")


@pytest.mark.parametrize(("degree", "side"), [(2, 2184), (4, 1521), (6, 1243), (8, 1072), (12, 867), (20, 655)])
def test_the_area_gives_the_degree(degree: float, side: float) -> None:
    """A hundred nodes on trips between uniform places, weighted by length; two are neighbours within 150 m."""
    one = load_experiment(EXPERIMENTS / "map-core.toml")
    (axis,) = (axis for axis in one.spec.axes if axis.name == "degree")
    assert axis.put_as(degree) == side
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 400_000, 2)) * side
    length = np.hypot(*(b - a).T)
    kept = rng.random(len(a)) * side * math.sqrt(2) < length
    place = a[kept] + (b - a)[kept] * rng.random((int(kept.sum()), 1))
    half = len(place) // 2
    near = np.hypot(*(place[:half] - place[half : 2 * half]).T) <= 150
    assert 99 * near.mean() == pytest.approx(degree, rel=0.03)


# --- The map that is in the repository ------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "studies" / "map" / "results"


def test_the_page_and_its_figures_say_what_the_tables_say() -> None:
    found = tables.read(RESULTS)
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.page() == written, "run python -m studies.map.page"
    for name, drawing in drawings(found).items():
        assert (DOCS / "pictures" / f"map-{name}.svg").read_text(encoding="utf-8") == drawing


def test_intervals_written_by_hand_are_in_the_tables() -> None:
    pages = DOCS / "choose.md", page.PAGE.with_name("README.md")
    by_hand = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in pages)
    measured = [triple for file in RESULTS.rglob("*.csv") for triple in _intervals(file)]
    claimed = re.findall(r"([\d.]+)(?: times)?(?: as much)? \[([\d.]+), ([\d.]+)\]", by_hand)
    assert len(claimed) >= 8
    for numbers in claimed:
        assert any(all(map(_rounds_to, triple, numbers)) for triple in measured), numbers


def _intervals(file: Path) -> Iterator[tuple[float, float, float]]:
    """Every value of a table that has the ends of its interval beside it."""
    with file.open(newline="") as rows:
        for row in csv.DictReader(rows):
            for name in row:
                ends = row.get(f"{name}_low"), row.get(f"{name}_high")
                if row[name] and ends[0] and ends[1]:
                    yield float(row[name]), float(ends[0]), float(ends[1])


def _rounds_to(value: float, written: str) -> bool:
    digits = len(written.partition(".")[2])
    return abs(value - float(written)) <= 0.501 * 10.0**-digits


def test_words_by_hand() -> None:
    """One cell is clear, one is not decided, in one nobody reaches the threshold."""
    world = dict.fromkeys(tables.WORLD, "1")
    blank = dict.fromkeys(("winner", "knob", "cost", "wins", "not_separated", "closest", "next", "next_knob"), "")
    blank |= dict.fromkeys(("margin", "margin_low", "margin_high"), "")

    def row(degree: str, **changes: str) -> dict[str, str]:
        place = {"speed": "5", "degree": degree}
        return place | world | {"seeds": "5", "deadline": "10", "delivered": "0.97"} | blank | changes

    margin = {"next": "gossip", "next_knob": "0.6", "margin": "1.6", "margin_low": "1.4", "margin_high": "1.8"}
    found = tables.Atlas(
        [
            row("2", closest="flooding", delivered="0.5"),
            row("8", winner="flooding", wins="0.7", not_separated="odmrp extended; hint", cost="7"),
            row("12", winner="hint", knob="0", wins="0.99", cost="2", **margin),
        ],
        [
            {"speed": "5", "degree": degree, "deadline": "10", "protocol": "coman", "delivered": "0.4", "cost": cost}
            for degree, cost in (("2", ""), ("8", "14"), ("12", "9"))
        ],
        [],
    )
    lines = [line for line in sentences(found) if line.startswith("- ")]
    assert [line.removeprefix("- ") for line in lines] == [
        "**hint** (credits 0) is the cheapest in 1 of 3 cells: degree 12 at 5 m/s. The closest call is at 5 m/s, "
        "degree 12: gossip (p 0.6) costs 1.6 times as much [1.4, 1.8].",
        "Not decided at 5 m/s, degree 8: **flooding** was the cheapest and wins 70 % of the draws; odmrp extended "
        "and hint are not separated from it.",
        "**Nobody** delivers 95 % of what was possible in 1 of 3 cells: degree 2 at 5 m/s. Closest to it "
        "comes flooding: 0.5.",
        "coman reaches 95 % in 2 of 3 cells, and costs there 2 (at 5 m/s, degree 8) to 4.5 times (at 5 m/s, "
        "degree 12) as much as the cheapest.",
    ]


def test_places_on_three_axes_and_knobs_by_their_names() -> None:
    place = {"speed": "1", "degree": "6", "rate": "0.2"}
    world = dict.fromkeys(tables.WORLD, "1")
    won = {"winner": "maodv", "knob": "0.5", "cost": "2", "wins": "1", "not_separated": "", "delivered": "0.97"}
    margin = {"next": "hint", "next_knob": "", "margin": "1.6", "margin_low": "1.4", "margin_high": "1.8"}
    settings = [place | {"setting": "maodv members=clients hello=0.5", "protocol": "maodv", "knob": "0.5"}]
    found = tables.Atlas([place | world | {"seeds": "5", "deadline": "10"} | won | margin], [], settings)
    (line,) = [line for line in sentences(found, (10,)) if line.startswith("- ")]
    assert line == (
        "- **maodv** (hello 0.5) is the cheapest in 1 of 1 cells: 0.2/s per publisher at 1 m/s, degree 6. The "
        "closest call is at 1 m/s, degree 6, 0.2/s per publisher: hint costs 1.6 times as much [1.4, 1.8]."
    )


def test_what_tuning_changed_stands_beside_the_setting_of_the_paper() -> None:
    def setting(name: str, protocol: str, delivered: str, cost: str) -> dict[str, str]:
        figures = {
            f"{measure}{end}": value
            for measure, value in ((DELIVERED, delivered), (COST, cost))
            for end in ("", "_low", "_high")
        }
        return {"speed": "1", "setting": name, "protocol": protocol} | figures

    cells_ = [{"speed": "1"} | dict.fromkeys(tables.WORLD, "1")]
    best = [setting("maodv hello=0.5", "maodv", "0.9", "12"), setting("gossip p=0.5", "gossip", "0.97", "4")]
    usual = [setting("maodv", "maodv", "0.5", "20"), setting("gossip p=0.5", "gossip", "0.97", "4")]
    lines = list(compared(tables.Atlas(cells_, [], best), tables.Atlas(cells_, [], usual)))
    assert lines[-2:] == [
        "| 1 | `maodv hello=0.5` | 0.9 [0.9, 0.9] | 12 [12, 12] | 0.5 at 20 |",
        "| 1 | `gossip p=0.5` | 0.97 [0.97, 0.97] | 4 [4, 4] |  |",
    ]
