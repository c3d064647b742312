"""Seeds until claims are decided: which experiments get more, and what a verdict is worth."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from papers.known import MEASURED
from papers.test_judge import table, term
from roamcast.campaign.decide.until import ResultsSoFar
from roamcast.papers.claims import Claim
from roamcast.papers.until import Decided

CLEAR = (0.9, 0.901, 0.899, 0.9, 0.9)
VAGUE = (0.6, 0.9, 0.5, 0.8, 0.7)
PLACES = {("e", '{"x": 0}'): 5, ("e", '{"x": 1}'): 5, ("other", "{}"): 5}


def claim(id: str, variant: str) -> Claim:
    check = {"says": "so", "kind": "above", "of": term(f"{variant}_delivery"), "value": 0.65}
    raw: dict[str, Any] = {"id": id, "paper": "p", "figure": "1", "text": "t", "checks": [check]}
    return msgspec.convert(raw, Claim)


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    monkeypatch.setattr("roamcast.papers.until.values_of", lambda _: table(**shown))
    return shown


def test_only_the_experiments_of_open_claims_get_more(values: dict[str, Any]) -> None:
    values |= {"a_delivery": {0: CLEAR}, "b_delivery": {0: VAGUE}}
    none = dict.fromkeys(PLACES, 0)
    both = Decided([claim("A", "a"), claim("B", "b")])
    assert both.waiting(ResultsSoFar(pa.table({}), MEASURED, PLACES, none, 20)) == [
        ("e", '{"x": 0}'),
        ("e", '{"x": 1}'),
    ]
    assert {name: str(verdict.outcome) for name, verdict in both.verdicts.items()} == {
        "A": "holds",
        "B": "inconclusive",
    }
    assert Decided([claim("A", "a")]).waiting(ResultsSoFar(pa.table({}), MEASURED, PLACES, none, 20)) == []


def test_a_verdict_stands_whatever_comes_later(values: dict[str, Any]) -> None:
    values |= {"a_delivery": {0: CLEAR}}
    waiter = Decided([claim("A", "a")])
    waiter.waiting(ResultsSoFar(pa.table({}), MEASURED, PLACES, dict.fromkeys(PLACES, 0), 20))
    values |= {"a_delivery": {0: VAGUE}}
    waiter.waiting(ResultsSoFar(pa.table({}), MEASURED, dict.fromkeys(PLACES, 8), PLACES, 20))
    assert str(waiter.verdicts["A"].outcome) == "holds"


def test_an_early_look_asks_for_more_than_a_single_one(values: dict[str, Any]) -> None:
    # The standard deviation is 0.0316, so 0.7 ± 0.039 with 95 %: above 0.65. With the 99.95 % that 5 of 50
    # seeds may spend, t is 10.3 and not 2.78, and the interval ± 0.146.
    values |= {"a_delivery": {0: (0.66, 0.74, 0.70, 0.68, 0.72)}}
    none = dict.fromkeys(PLACES, 0)
    single, early = Decided([claim("A", "a")]), Decided([claim("A", "a")])
    single.waiting(ResultsSoFar(pa.table({}), MEASURED, PLACES, none, 5))
    early.waiting(ResultsSoFar(pa.table({}), MEASURED, PLACES, none, 50))
    assert (str(single.verdicts["A"].outcome), str(early.verdicts["A"].outcome)) == ("holds", "inconclusive")


def test_a_claim_without_checks_is_not_waited_for(values: dict[str, Any]) -> None:
    values |= {"a_delivery": {0: CLEAR}}
    bare = msgspec.convert({"id": "N", "paper": "p", "figure": "1", "text": "t"}, Claim)
    waiter = Decided([bare])
    assert waiter.waiting(ResultsSoFar(pa.table({}), MEASURED, PLACES, dict.fromkeys(PLACES, 0), 20)) == []
    assert str(waiter.verdicts["N"].outcome) == "not measured"
