"""The ledger: complete, well formed, and about experiments, variants, measures and points that exist."""

import json
import random
import re
import tomllib
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from papers.known import MEASURED
from roamcast import papers
from roamcast.campaign.define.experiment import Experiment
from roamcast.papers.claims import WANTS, Check, Claim, ClaimError, Term, load_claims
from roamcast.papers.judge import judge
from roamcast.sim.mobility import ScenarioError
from roamcast.statistics.curves import VALUES

PAPERS = {"H": ("hint", 8), "O": ("odmrp", 8), "C": ("coman", 9), "P": ("opportunistic", 5), "X": ("context", 4)}
CLAIMS = load_claims(papers.CLAIMS)
CHECKS = [(claim.id, check) for claim in CLAIMS for check in claim.checks]
EXPERIMENTS = {one.name: one for one in papers.load()}
PREVIEWS = {one.name: one for one in papers.preview()}


def test_all_claims_are_there() -> None:
    wanted = [(f"{letter}{n}", paper) for letter, (paper, most) in PAPERS.items() for n in range(1, most + 1)]
    assert [(claim.id, claim.paper) for claim in CLAIMS] == wanted
    assert list(papers.PAPERS) == [paper for paper, _ in PAPERS.values()]


def test_those_of_all_papers_are_checked_but_for_two_about_code() -> None:
    most = {"H": 8, "O": 6, "C": 9, "P": 5, "X": 4}
    checked = [f"{letter}{n}" for letter, last in most.items() for n in range(1, last + 1)]
    assert [claim.id for claim in CLAIMS if claim.checks] == checked


def test_a_claim_says_each_thing_once() -> None:
    said = [(id, check.says, check.cause) for id, check in CHECKS]
    assert len(said) == len(set(said))


def test_the_claims_keep_the_numbers_fixed_for_all_but_where_a_paper_has_its_own() -> None:
    own = {(id, check.kind, check.number) for id, check in CHECKS if check.number is not None}
    assert own == {("O2", "clearly above", 0.7), ("P4", "slightly below", 0.03)}


def test_no_number_is_exact_yet() -> None:
    assert [check for _, check in CHECKS if check.exact] == []


def test_every_claim_with_checks_has_a_main_point() -> None:
    assert [claim.id for claim in CLAIMS if sum(check.main for check in claim.checks) != bool(claim.checks)] == []


def test_every_explanation_says_whether_it_was_tested() -> None:
    raw = tomllib.loads(papers.CLAIMS.read_text())["claims"]
    assert [claim["id"] for claim in raw if ("explanation" in claim) != ("tested" in claim)] == []


def test_no_claim_is_explained_before_it_is_measured() -> None:
    assert [claim.id for claim in CLAIMS if claim.explanation and not claim.checks] == []


def by_hand(claim: Claim) -> list[str]:
    """Decimals in an explanation that are neither the paper's nor a setting (p = 0.5, 0.5 msg/s)."""
    text = re.sub(r"p = [\d.]*\d|[\d.]*\d msg/s", "", claim.explanation)
    known = {f"{claim.text} {claim.reading}", *(str(check.value) for check in claim.checks)}
    return [number for number in re.findall(r"\d+\.\d+", text) if not any(number in one for one in known)]


def test_results_in_explanations_are_filled_in() -> None:
    assert {claim.id: found for claim in CLAIMS if (found := by_hand(claim))} == {}


def test_a_result_by_hand_is_found() -> None:
    words = "It is 0.54 ({1}), not 0.5, with p = 0.7 and 0.1 msg/s."
    claim = Claim(id="T1", paper="p", figure="1", text="Half, 0.5.", explanation=words)
    assert by_hand(claim) == ["0.54"]


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.checks], ids=lambda claim: claim.id)
def test_a_claims_checks_look_at_its_own_figures(claim: Claim) -> None:
    """9 is a figure with the parts 9a, 9b and so on."""
    drawn = {figure.id.partition("-")[0] for check in claim.checks for figure in _of(check.of).spec.figures}
    assert set(claim.figure.split(", ")) <= drawn | {id.rstrip("abcd") for id in drawn}


def _of(term: Term) -> Experiment:
    return EXPERIMENTS[term.experiment]


@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
@pytest.mark.parametrize(("id", "check"), CHECKS, ids=[f"{id} {check.says}" for id, check in CHECKS])
def test_a_check_is_about_what_is_measured(id: str, check: Check, quick: bool) -> None:
    """A preview has all that is judged, and of the rest what the same experiments give. One that an experiment states
    itself has at least what a claim is named after."""
    for term, measure in check.measures:
        one = PREVIEWS.get(term.experiment) if quick else _of(term)
        if one is None:
            assert not check.judged
            return
        if quick and _of(term).spec.quick is not None and not check.main:
            return
        (variant,) = (variant for variant in one.variants if variant.name == term.variant)
        assert measure in (one.spec.measures or ())
        if isinstance(term.at, dict):
            assert any(term.at.items() <= point.items() for point in one.points(variant))


def test_what_is_judged_at_150_m_stands_there_at_250_m_too_without_a_say() -> None:
    """But for the park, whose radio is another."""
    far = ", at 250 m range"
    for claim in CLAIMS:
        if claim.paper == "coman" and claim.id != "C8":
            near = [check for check in claim.checks if not check.says.endswith(far) and not check.cause]
            beside = [check for check in claim.checks if check.says.endswith(far)]
            assert [check.says + far for check in near] == [check.says for check in beside]
            assert [check.kind for check in near] == [check.kind for check in beside]
            assert [_without_range(check) for check in near] == [_without_range(check) for check in beside]
            assert not any(check.judged for check in beside)
            assert {check.of.experiment.endswith("-250") for check in near} == {False}
            assert {check.of.experiment.endswith("-250") for check in beside} == {True}


def _without_range(check: Check) -> list[tuple[object, ...]]:
    return [(term.experiment.removesuffix("-250"), term.variant, term.measure, term.at) for term in check.terms]


def _judged(check: Check) -> Check:
    return msgspec.structs.replace(check, judged=True)


def test_every_check_can_be_judged_on_any_numbers() -> None:
    """Of both papers, three seeds."""
    rng = random.Random(12)
    rows = [
        (one.name, variant.name, number, json.dumps(point), seed, measure, rng.uniform(0.1, 0.9))
        for one in papers.load()
        for variant in one.variants
        for number, point in enumerate(one.points(variant))
        for measure in one.spec.measures or ()
        for seed in range(3)
    ]
    values = pa.table(dict(zip(VALUES.names, map(list, zip(*rows, strict=True)), strict=True)), schema=VALUES)
    judged = [msgspec.structs.replace(one, checks=tuple(map(_judged, one.checks))) for one in CLAIMS]
    for claim, verdict in zip(judged, judge(judged, values, MEASURED), strict=True):
        assert len(verdict.checks) == len(claim.checks)
        missing = [check.measured for check in verdict.checks if check.outcome == "not measured"]
        reasons = ("no point to look at", "no rise, or ", " never comes up to a ")
        assert all(any(reason in text for reason in reasons) for text in missing), missing


# --- A ledger that cannot be judged by ------------------------------------------------------------------------------

CLAIM = '[[claims]]\nid = "T1"\npaper = "p"\nfigure = "1"\ntext = "t"\n'
OF = 'of = { experiment = "e", variant = "v", measure = "delivery" }\n'


def ledger(kind: str, more: str = "", of: str = OF) -> str:
    return f'{CLAIM}[[claims.checks]]\nsays = "so"\nkind = "{kind}"\n{of}{more}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("claims = 3", "claims: expected a list of tables; got 3"),
        ("claims = [", "is not TOML: "),
        (CLAIM + "colour = 3", "claims[0].colour: there is no such field; known are checks, explanation, "),
        (CLAIM + CLAIM, "T1: is there more than once"),
        (ledger("wobbles"), "T1: there is no kind of check 'wobbles'; known are about, above, "),
        (ledger("about"), "T1: the check 'so': 'about' needs 'value'"),
        (ledger("rises", "value = 3.0"), "T1: the check 'so': 'rises' takes no 'value'"),
        (ledger("far below"), "T1: the check 'so': 'far below' needs 'than'"),
        (ledger("rises", "number = 0.2"), "T1: the check 'so': a number of its own, or `exact`, goes with a reason"),
        (ledger("rises", "exact = true"), "T1: the check 'so': a number of its own, or `exact`, goes with a reason"),
        (ledger("rises", "judged = false"), "T1: none of its checks is judged"),
        (ledger("rises", 'cause = "the weather"'), "T1: the check 'so': what tests a cause is not judged"),
        (ledger("rises", "judged = false\nmain = true"), "T1: the check 'so': the main point is judged"),
        (
            ledger("rises", "main = true\n") + ledger("falls", "main = true").removeprefix(CLAIM),
            "T1: it has more than one main point",
        ),
        (CLAIM + "tested = true", "T1: there is no explanation that could have been tested"),
        (
            ledger(
                "lower than",
                "than = { " + OF.split("{ ")[1].replace(" }", ', reaching = { measure = "overhead", value = 3 } }'),
                of=OF.replace(" }", ', at = "best" }'),
            ),
            "T1: the check 'so': the best is not compared with where a curve reaches a value",
        ),
        (
            ledger("rises", of=OF.replace(" }", ', at = "first", reaching = { measure = "overhead", value = 3 } }')),
            "T1: the check 'so': a term is either at a point or where it reaches a value",
        ),
        (
            ledger("rises", of=OF.replace(" }", ', reaching = { measure = "overhead" } }')),
            "T1: the check 'so': of.reaching.value is missing",
        ),
    ],
)
def test_a_wrong_ledger_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "claims.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError if "TOML" in words else ClaimError) as refusal:
        load_claims(file)
    assert str(refusal.value).startswith(f"{file}: {words}")


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: No such file or directory"):
        load_claims(tmp_path / "claims.toml")


# --- The page -------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text()


def test_the_pages_claim_is_judged_by_the_pages_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packets with a range of 200 against five with 100, nearly whatever the seed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.toml").write_text(PAGE.split("```toml\n")[1].split("```")[0])
    (tmp_path / "out/mine/measures").mkdir(parents=True)
    runs = [
        {"run": f"{reach}-{seed}", "experiment": "mine", "variant": "my protocol", "point": point, "seed": seed}
        | {"axes": json.dumps({"range": reach})}
        for point, reach in enumerate((100, 200))
        for seed in (1, 2)
    ]
    pq.write_table(pa.Table.from_pylist(runs), tmp_path / "out/mine/runs.parquet")
    packets = {"100-1": 5.0, "100-2": 5.0, "200-1": 2.0, "200-2": 2.01}
    values = [{"run": run, "measure": "overhead", "value": value} for run, value in packets.items()]
    pq.write_table(pa.Table.from_pylist(values), tmp_path / "out/mine/measures/run.parquet")
    said: list[tuple[object, ...]] = []
    exec(PAGE.split("```python\n")[1].split("```")[0], {"print": lambda *words: said.append(words)})
    assert said == [("M1", "holds")]


def test_the_page_explains_every_kind_of_check() -> None:
    assert [kind for kind in WANTS if f"`{kind}`" not in PAGE] == ["above", "below", "at least", "at most"]
    assert "| above, below, at least, at most x |" in PAGE
