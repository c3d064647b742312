"""The bar: R, met, missed and clearly beaten, on results written by hand."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from studies.map.bar import Mark, bar, joined, judged, read
from studies.map.cells import Cell, Setting
from studies.map.winners import judge

from roamcast.campaign.folder.layout import CAMPAIGN_FILE, RUNS_FILE
from roamcast.campaign.folder.schemas import RUNS_ARROW
from roamcast.errors import RoamcastError
from roamcast.facts.schema import FACTS_VERSION

DELIVERED, LATE, COST = "delivered_of_possible_10", "delivered_of_possible_60", "airtime_per_delivery"
FLOODING = Setting("flooding", "flooding")
GOSSIP = tuple(Setting(f"gossip p={p}", "gossip", p, continuous=True) for p in (0.5, 0.7, 0.9))
HINT = tuple(Setting(f"hint credits={credits}", "hint", credits) for credits in (0, 2))
ROAM = Setting("roam", "roam")
Values = tuple[Sequence[float], Sequence[float]] | tuple[Sequence[float], Sequence[float], Sequence[float]]


def cell(values: Mapping[Setting, Values], seeds: Sequence[int] = ()) -> Cell:
    """Of deliveries and costs seed by seed, and deliveries within 60 s where they matter."""
    table = {
        setting.name: {DELIVERED: np.array(one[0]), COST: np.array(one[1]), LATE: np.array(one[-1 if one[2:] else 0])}
        for setting, one in values.items()
    }
    many = len(next(iter(values.values()))[0])
    return Cell({"speed": 5, "degree": 8}, tuple(seeds or range(many)), tuple(values), table)


def marked(values: Mapping[Setting, Values], candidate: str = "roam") -> Mark:
    (found,) = judged("map-core", [cell(values)], candidate)
    return found


DENSE: dict[Setting, Values] = {
    FLOODING: ([0.99, 0.99], [8.0, 8.0]),
    HINT[0]: ([0.90, 0.92], [2.0, 2.0]),
    HINT[1]: ([0.95, 0.97], [4.0, 4.0]),
}
"""R is hint with two credits: 0.96 at 4; the best is 0.99: 0.97 are needed, at 4.4 at most."""


@pytest.mark.parametrize(
    ("delivered", "cost", "misses"),
    [
        ([0.96, 0.98], [4.4, 4.3], ()),
        ([0.96, 0.97], [4.0, 4.0], ("delivers 0.965, needs 0.970",)),
        ([0.98, 0.98], [4.6, 4.6], ("costs 1.15 times R, at most 1.1",)),
        ([0.96, 0.97], [8.0, 8.0], ("delivers 0.965, needs 0.970", "costs 2.00 times R, at most 1.1")),
    ],
)
def test_met_and_missed_beside_the_cheapest_that_reaches_it(
    delivered: list[float], cost: list[float], misses: tuple[str, ...]
) -> None:
    found = marked({**DENSE, ROAM: (delivered, cost)})
    assert found.reference is not None
    assert (found.reference.name, found.best.name) == ("hint credits=2", "flooding")
    assert (found.reference.level, found.reference.cost) == pytest.approx((0.96, 4.0))
    assert found.misses == misses


def test_where_the_best_is_hardly_better_two_points_below_it_are_enough() -> None:
    """R and the best deliver 0.96: 0.94 are needed, not 0.97."""
    found = marked({HINT[1]: ([0.96] * 2, [4.0] * 2), ROAM: ([0.945] * 2, [4.0] * 2)})
    assert found.met
    assert not marked({HINT[1]: ([0.96] * 2, [4.0] * 2), ROAM: ([0.935] * 2, [4.0] * 2)}).met


def test_costs_are_compared_seed_by_seed_and_geometrically() -> None:
    """Twice as dear in one seed and half as dear in the other: as dear. The arithmetic means are 2.5 and 2."""
    found = marked({HINT[1]: ([0.96] * 2, [1.0, 4.0]), ROAM: ([0.96] * 2, [2.0, 2.0])})
    assert found.ratio == pytest.approx(1.0)


def test_gossip_is_read_where_it_reaches_the_threshold_in_each_seed() -> None:
    """0.95 lies a quarter of the way from 0.94 to 0.98: p = 0.55, and each seed's cost by its logarithm.

    Seed 1: 4 * 16 ** 0.25 = 8; seed 2: 2 * 16 ** 0.25 = 4. Against 8 and 4: as dear.
    """
    curve: dict[Setting, Values] = {
        GOSSIP[0]: ([0.93, 0.95], [4.0, 2.0]),
        GOSSIP[1]: ([0.99, 0.97], [64.0, 32.0]),
        GOSSIP[2]: ([0.99, 0.99], [80.0, 40.0]),
    }
    found = marked({**curve, ROAM: ([0.97, 0.97], [8.0, 4.0])})
    assert found.reference is not None
    assert found.reference.name == "gossip at 0.55"
    assert found.reference.delivered.tolist() == pytest.approx([0.945, 0.955])
    assert found.ratio == pytest.approx(1.0)
    assert found.met, "0.96 are needed: one point above R; the best less two points are 0.97"
    winner = judge(cell(curve), 10).winner
    assert winner is not None
    assert found.reference.cost == pytest.approx(winner.cost), "as the map's winners"


SPARSE: dict[Setting, Values] = {
    FLOODING: ([0.6, 0.7], [8.0, 8.0], [0.5, 0.5]),
    HINT[0]: ([0.2, 0.2], [2.0, 2.0], [0.2, 0.2]),
}
"""Nobody reaches the threshold."""


@pytest.mark.parametrize(
    ("mine", "misses"),
    [
        (([0.6, 0.7], [16.0, 16.0], [0.94, 0.97]), ()),
        (([0.6, 0.6], [9.0, 9.0], [1.0, 1.0]), ("delivers 0.600, flooding 0.650",)),
        (([0.9, 0.9], [17.0, 16.0], [1.0, 1.0]), ("costs 2.06 times flooding, at most 2",)),
        (([0.9, 0.9], [9.0, 9.0], [0.94, 0.94]), ("delivers 0.940 within 60 s, needs 0.95",)),
    ],
)
def test_where_nobody_reaches_it_the_best_within_twice_the_cost_of_flooding(
    mine: Values, misses: tuple[str, ...]
) -> None:
    found = marked({**SPARSE, ROAM: mine})
    assert found.reference is None
    assert found.misses == misses


def test_clearly_below_is_more_than_five_points_by_the_bound() -> None:
    """t(0.975, 2) = 4.303, so differences of 7, 8, 9 points have a lower bound of 8 - 4.303 / sqrt(3) = 5.5 points."""
    rival: Values = ([0.97, 0.98, 0.99], [8.0] * 3)
    assert marked({FLOODING: rival, ROAM: ([0.90] * 3, [7.0] * 3)}).beaten == (
        "flooding delivers 0.080 more [0.055, 0.105]",
    )
    assert marked({FLOODING: rival, ROAM: ([0.91] * 3, [7.0] * 3)}).beaten == (), "4.5 points by the bound"


def test_clearly_dearer_is_more_than_1_5_times_by_the_bound_than_one_that_delivers_as_much() -> None:
    """Ratios 2, 2.1, 1.9: logarithms 0.6931, 0.7419, 0.6419, mean 0.6923, sd 0.0500; 0.6923 - 0.1243 is 1.765 times."""
    mine: Values = ([0.96] * 3, [8.0, 8.4, 7.6])
    (said,) = marked({HINT[0]: ([0.94, 0.98, 0.97], [4.0] * 3), ROAM: mine}).beaten
    assert said == "hint credits=0 costs 1/2.00 [1/2.26, 1/1.76] and delivers as much"
    assert marked({HINT[0]: ([0.94, 0.98, 0.95], [4.0] * 3), ROAM: mine}).beaten == (), "it delivers less"
    assert marked({HINT[0]: ([0.97] * 3, [5.2] * 3), ROAM: mine}).beaten == (), "1.36 times by the bound"
    assert marked({HINT[0]: ([0.97], [1.0]), ROAM: ([0.96], [9.0])}).beaten == (), "one seed has no bounds"


def test_r_between_two_settings_may_beat_clearly_too() -> None:
    """Gossip at 0.95 costs 8 (as above), both of its settings are not a cheaper one that delivers 0.945."""
    found = marked(
        {
            GOSSIP[0]: ([0.94] * 3, [4.0] * 3),
            GOSSIP[1]: ([0.98] * 3, [64.0] * 3),
            ROAM: ([0.945] * 3, [16.0] * 3),
        }
    )
    assert found.beaten == ("gossip at 0.55 costs 1/2.00 [1/2.00, 1/2.00] and delivers as much",)


def test_a_candidate_is_not_its_own_rival_and_each_of_its_settings_is_judged() -> None:
    marks = list(judged("map-core", [cell(DENSE)], "hint"))
    assert [one.mine.name for one in marks] == ["hint credits=0", "hint credits=2"]
    assert [one.reference.name if one.reference else None for one in marks] == ["flooding", "flooding"]
    assert [one.met for one in marks] == [False, False]
    assert marks[1].misses == ("delivers 0.960, needs 0.970",)
    (one,) = judged("map-core", [cell(DENSE)], "hint credits=2")
    assert one.mine.name == "hint credits=2"
    modes = tuple(Setting(f"odmrp mode={mode}", f"odmrp {mode}") for mode in ("extended", "one-channel"))
    both = cell({FLOODING: ([0.99], [8.0]), **{mode: ([0.99], [1.0]) for mode in modes}})
    assert [one.best.name for one in judged("map-core", [both], "odmrp")] == ["flooding", "flooding"]


def test_seeds_without_anything_possible_are_left_out_and_no_delivery_is_never_cheap() -> None:
    nan, inf = math.nan, math.inf
    found = marked({FLOODING: ([0.96, nan, 0.98], [8.0, inf, 8.0]), ROAM: ([0.97, nan, 0.97], [8.0, inf, 8.0])})
    assert (found.seeds, found.met) == (2, True)
    silent = marked({FLOODING: ([0.96, 0.98], [8.0, 8.0]), ROAM: ([0.97, 0.97], [1.0, inf])})
    assert silent.misses == ("costs inf times R, at most 1.1",)
    other = marked({FLOODING: ([0.97, 0.97], [8.0, 8.0]), HINT[0]: ([0.99, 0.99], [1.0, inf]), ROAM: DENSE[FLOODING]})
    assert other.reference is not None
    assert other.reference.name == "flooding"
    assert other.beaten == ()


def test_tuned_settings_join_the_cell_on_the_seeds_of_both() -> None:
    tuned = Setting("hint credits=5 interval=2.0", "hint")
    core = cell({FLOODING: ([0.97, 0.98, 0.99], [8.0, 8.1, 8.2]), ROAM: ([0.9] * 3, [1.0] * 3)}, (1, 2, 3))
    other = cell({FLOODING: ([0.1] * 3, [9.0] * 3), tuned: ([0.96, 0.97, 0.0], [3.0, 4.0, 0.1])}, (2, 3, 4))
    both = joined(core, other)
    assert both.seeds == (2, 3)
    assert [one.name for one in both.settings] == ["flooding", "roam", "hint credits=5 interval=2.0"]
    assert both.column(FLOODING, COST).tolist() == [8.1, 8.2], "the core's own stays"
    assert both.column(tuned, COST).tolist() == [3.0, 4.0]
    (found,) = judged("map-core", [both], "roam")
    assert found.reference is not None
    assert found.reference.name == tuned.name


# --- The command ------------------------------------------------------------------------------------------------------


def campaign(folder: Path, name: str, settings: Mapping[str, tuple[float, float]]) -> Path:
    """A measured campaign of one cell and two seeds."""
    runs, measured = [], []
    for setting, (delivered, cost) in settings.items():
        for seed in (1, 2):
            run = f"{setting}-{seed}"
            axes = json.dumps({"speed": 1, "degree": 6})
            place = {"experiment": name, "variant": setting, "point": 0, "axes": axes, "seed": seed, "run": run}
            runs.append(place)
            for measure, value in ((DELIVERED, delivered), (LATE, delivered), (COST, cost)):
                measured.append({"run": run, "measure": measure, "value": value})
    variants = [{"name": one, "set": {"protocol.name": one, "protocol.parameters": {}}} for one in settings]
    (folder / "measures").mkdir(parents=True)
    requested = {"name": name, "seeds": [1, 2], "variants": variants}
    about = {"version": FACTS_VERSION, "command": "", "experiments": [requested]}
    (folder / CAMPAIGN_FILE).write_text(json.dumps(about))
    pq.write_table(pa.Table.from_pylist(runs, RUNS_ARROW), folder / RUNS_FILE)
    pq.write_table(pa.Table.from_pylist(measured), folder / "measures" / "run.parquet")
    return folder


def said(*arguments: object) -> Any:  # noqa: ANN401  # click's result
    return CliRunner().invoke(bar, [str(one) for one in arguments])


def test_the_command_prints_a_table_or_json_and_writes_csv(tmp_path: Path) -> None:
    core = campaign(tmp_path / "core", "map-core", {"flooding": (0.99, 8.0), "roam": (0.98, 4.0)})
    tuned = campaign(tmp_path / "tuned", "map-tuned", {"maodv": (0.97, 2.0)})
    told = said(core)
    assert told.exit_code == 0
    assert told.output.splitlines() == [
        "### roam in map-core: met in 1 of 1 cells, clearly beaten in 0",
        "",
        "| cell | R | R delivers | R costs | best | delivers | in 60 s | costs | ratio | verdict |",
        "|" + "---|" * 10,
        "| speed 1, degree 6 | flooding | 0.99 | 8 | flooding 0.99 | 0.98 | 0.98 | 4 | 0.5 | met |",
        "",
    ]
    (row,) = json.loads(said(core, tuned, "--json", "--csv", tmp_path / "bar.csv").output)
    assert (row["reference"], row["ratio"], row["verdict"]) == ("maodv", 2.0, "missed")
    assert row["misses"] == "costs 2.00 times R, at most 1.1"
    assert row["clearly_beaten"] == "", "it delivers less"
    with (tmp_path / "bar.csv").open(newline="") as file:
        (written,) = csv.DictReader(file)
    assert (written["reference"], written["reference_cost"], written["delivered"]) == ("maodv", "2.0", "0.98")


def test_a_candidate_that_never_ran_and_a_folder_without_results_are_refused(tmp_path: Path) -> None:
    core = campaign(tmp_path / "core", "map-core", {"flooding": (0.99, 8.0), "hint": (0.98, 4.0)})
    told = said(core, "--candidate", "rome")
    assert told.exit_code == 1
    assert "no run of 'rome' there; there are flooding, hint" in told.output
    assert "is not a campaign's folder" in said(tmp_path).output
    with pytest.raises(RoamcastError, match="nothing to compare flooding with"):
        list(judged("x", read([campaign(tmp_path / "one", "x", {"flooding": (0.9, 8.0)})])["x"], "flooding"))
