"""Readings of the papers: that they load, change what they say, and stay within their time."""

from pathlib import Path

import pyarrow as pa
import pytest

from roamcast import papers
from roamcast.analysis.measures.measure import Measure, Measures
from roamcast.campaign.define.experiment import Experiment, load_experiment
from roamcast.papers.claims import Check, Claim, Reaching, Term, load_claims
from roamcast.papers.explore import MOST_HOURS, Campaigns, main_points, numbers, verdicts
from roamcast.papers.ranking import MainPoint
from roamcast.papers.readings import (
    Need,
    Reading,
    ReadingError,
    Setting,
    alone,
    claims_under,
    judged_checks,
    load_readings,
    main_checks,
    needs,
    only_needed,
    together,
    under,
)
from roamcast.statistics.curves import VALUES

OPEN = Setting(name="open", kind="open", text="silent", set={"radio.range": 100.0})
OTHER = Setting(name="other", kind="open", text="silent", question="q", set={"mac.rate": 1})
AWAY = Setting(name="away", kind="departure", text="says so", why="because", question="q", set={"mac.rate": 11})

FILE = """
name = "mine"
measures = ["delivery", "overhead"]
seeds = 3
[scenario]
nodes = 5
duration = 10
[scenario.area]
width = 100
height = 100
[scenario.protocol]
name = "gossip"
[[axes]]
field = "protocol.parameters.p"
label = "p"
values = [0.25, 0.5, 1.0]
[[axes]]
field = "nodes"
label = "nodes"
values = [5, 10]
[[variants]]
name = "gossip"
[[variants]]
name = "shorter"
set = { "radio.range" = 50.0 }
[[variants]]
name = "flooding"
fixed = true
set = { "protocol" = { name = "flooding" } }
"""


@pytest.fixture
def mine(tmp_path: Path) -> Experiment:
    (tmp_path / "mine.toml").write_text(FILE)
    return load_experiment(tmp_path / "mine.toml")


def changes(one: Experiment, *settings: Setting) -> dict[str, object]:
    return {variant.name: variant.set for variant in under(Reading(settings), one, 7, one).variants}


# --- Files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_paper_has_readings_that_can_be_run_within_their_time(paper: str) -> None:
    """Every scenario of every setting is checked on the way."""
    found = load_readings(paper)
    campaigns = Campaigns(found, [claim for claim in load_claims(papers.CLAIMS) if claim.paper == paper])
    cost = campaigns.cost()
    assert cost.alone == len(found.settings) + 1
    assert 0 < cost.hours <= MOST_HOURS
    assert {setting.kind for setting in found.settings} == {"open", "departure"}


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_exploring_and_confirming_seeds_are_fresh(paper: str) -> None:
    found = load_readings(paper)
    ledger = {seed for one in papers.load([paper]) for seed in one.seeds()}
    assert not set(found.exploring) & set(found.confirming)
    assert not ledger & {*found.exploring, *found.confirming}


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_every_setting_changes_a_run_or_what_is_judged(paper: str) -> None:
    found = load_readings(paper)
    campaigns = Campaigns(found, [claim for claim in load_claims(papers.CLAIMS) if claim.paper == paper])

    def runs(reading: Reading) -> list[object]:
        explored = campaigns.exploring([(0, reading)])
        points = [
            (one, variant, point) for one in explored for variant in one.variants for point in one.points(variant)
        ]
        return [(one.name, one.spec.measures, one.at(variant, point)) for one, variant, point in points]

    before = runs(Reading())
    for setting in found.settings:
        assert runs(Reading((setting,))) != before, setting.name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[settings]]\nname = "a"\nkind = "departure"\ntext = "t"\nset = { nodes = 1 }', "a: a departure says why"),
        ('[[settings]]\nname = "a"\nkind = "open"\ntext = "t"', "a: changes nothing"),
        ('[[settings]]\nname = "a"\nkind = "guess"\ntext = "t"', "kind"),
    ],
)
def test_a_file_that_is_not_valid(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.toml").write_text(f'paper = "p"\nexploring = [1]\nconfirming = [2]\n{text}\n')
    with pytest.raises(ReadingError, match=words):
        load_readings("p", tmp_path)


def test_seeds_that_choose_do_not_confirm(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('paper = "p"\nexploring = [1, 2]\nconfirming = [2]\nsettings = []\n')
    with pytest.raises(ReadingError, match="different seeds"):
        load_readings("p", tmp_path)


# --- Readings -------------------------------------------------------------------------------------------------------


def test_readings_of_one_setting_and_of_several() -> None:
    assert [reading.name for reading in alone([OPEN, AWAY])] == ["as in the ledger", "open", "away"]
    assert [reading.name for reading in together([OPEN, OTHER, AWAY])] == ["open + other", "open + away"]
    assert Reading((OPEN, OTHER)).is_open
    assert not Reading((OPEN, AWAY)).is_open


def test_a_setting_is_set_after_the_variant_and_only_where_it_belongs(mine: Experiment) -> None:
    assert changes(mine, OPEN) == {
        "gossip": {"radio.range": 100.0},
        "shorter": {"radio.range": 100.0},
        "flooding": {"protocol": {"name": "flooding"}, "radio.range": 100.0},
    }
    of_gossip = Setting(name="s", kind="open", text="t", set={"protocol.parameters.p": 0.1, "nodes": 6})
    assert changes(mine, of_gossip)["flooding"] == {"protocol": {"name": "flooding"}, "nodes": 6}
    for only in (
        Setting(name="s", kind="open", text="t", set={"nodes": 6}, protocols=("gossip",)),
        Setting(name="s", kind="open", text="t", set={"nodes": 6}, only=("gossip", "shorter")),
    ):
        changed = changes(mine, only)
        assert changed["gossip"] == {"nodes": 6}
        assert changed["flooding"] == {"protocol": {"name": "flooding"}}
    for nowhere in (
        Setting(name="s", kind="open", text="t", set={"nodes": 6}, where="background"),
        Setting(name="s", kind="open", text="t", set={"nodes": 6}, experiments=("other",)),
    ):
        assert changes(mine, nowhere)["gossip"] == {}


def test_a_variant_that_is_run_instead_keeps_the_name_that_claims_know(mine: Experiment) -> None:
    instead = Setting(name="s", kind="open", text="t", variants={"mine": {"gossip": "shorter"}})
    assert changes(mine, instead)["gossip"] == {"radio.range": 50.0}


def test_only_what_checks_need_is_run(mine: Experiment) -> None:
    need = Need({"gossip": None}, {"delivery": None}, [{"p": 0.5}, {"p": 1.0, "nodes": 5}])
    part = only_needed(mine, need, [8, 9], mine)
    assert [variant.name for variant in part.variants] == ["gossip"]
    assert [axis.values for axis in part.spec.axes] == [(0.5, 1.0), (5, 10)]
    assert (part.seeds(), part.spec.measures) == ([8, 9], ("delivery",))
    all_points = only_needed(mine, Need({"gossip": None}, {}, [{"p": 0.5}, None]), [8], mine)
    assert [axis.values for axis in all_points.spec.axes] == [(0.25, 0.5, 1.0), (5, 10)]


def test_needs_of_the_main_point_and_of_what_is_judged() -> None:
    place = Term(experiment="e", variant="v", measure="cost", at={"p": 0.5})
    where = Term(experiment="f", variant="w", measure="cost", reaching=Reaching(measure="delivery", value=0.7))
    beside = Term(experiment="g", variant="u", measure="cost")
    checks = (
        Check(says="main", kind="far below", of=place, than=where, main=True),
        Check(says="judged", kind="rises", of=Term(experiment="e", variant="v2", measure="cost")),
        Check(says="beside", kind="rises", of=beside, judged=False),
    )
    claim = Claim(id="A", paper="p", figure="1", text="t", checks=checks)
    found = needs([claim], main_checks)
    assert set(found) == {"e", "f"}
    assert list(found["e"].measures) == ["cost", "delivery"]
    assert found["e"].points[0] == {"p": 0.5}
    assert list(needs([claim], judged_checks)["e"].variants) == ["v", "v2"]


# --- How main points come out ---------------------------------------------------------------------------------------

LEVEL = Claim(
    id="A",
    paper="p",
    figure="1",
    text="t",
    checks=(
        Check(says="s", kind="about", value=0.7, of=Term(experiment="e", variant="v", measure="delivery")),
        Check(says="n", kind="above", value=0.5, of=Term(experiment="e", variant="v", measure="delivery")),
    ),
)
ABOUT = Measures({name: Measure(name, share=True) for name in ("delivery", "other")})


def values(**by_experiment: list[float]) -> pa.Table:
    rows = [
        {"experiment": name, "variant": "v", "point": 0, "axes": "{}", "seed": seed, "measure": measure, "value": value}
        for name, numbers in by_experiment.items()
        for seed, value in enumerate(numbers)
        for measure in ("delivery", "other")
    ]
    return pa.Table.from_pylist(rows, VALUES)


def test_the_mean_decides_and_not_the_interval() -> None:
    """0.74 is within 0.05 of 0.7; with two seeds the strict verdict is inconclusive."""
    table = values(e_reading0=[0.6, 0.88], e_reading3=[0.8, 0.9])
    assert main_points(Reading(), 0, [LEVEL], table, ABOUT) == {"A": MainPoint(True, 0.0, "0.74 (0 to 1)")}
    assert main_points(Reading(), 3, [LEVEL], table, ABOUT)["A"].met is False
    assert main_points(Reading(), 3, [LEVEL], table, ABOUT)["A"].miss == pytest.approx(0.1)
    assert main_points(Reading(), 5, [LEVEL], table, ABOUT) == {"A": MainPoint(False, None)}
    (verdict,) = verdicts(Reading(), 0, [LEVEL], table, ABOUT)
    assert str(verdict.outcome) == "inconclusive"
    assert len(verdict.checks) == 2


def test_another_measure_is_judged_instead() -> None:
    instead = Reading((Setting(name="s", kind="open", text="t", measures={"delivery": "other"}),))
    (claim,) = claims_under(instead, [LEVEL], 4)
    assert (claim.checks[0].of.experiment, claim.checks[0].of.measure) == ("e_reading4", "other")


def test_readings_are_compared_by_everything_measured() -> None:
    table = values(e_reading0=[0.5, 0.6], e_reading1=[0.5, 0.6], e_reading2=[0.6, 0.5], other_reading0=[0.1])
    first, same, swapped = (numbers(number, [LEVEL], table) for number in range(3))
    assert first == same
    assert first != swapped
    assert len(first) == 4, "of the claims' experiments only"
