"""The verdicts in the repository: docs/ledger/verdicts.md and README say what they say."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roamcast.papers import CLAIMS
from roamcast.papers.claims import load_claims
from roamcast.papers.conditions import CheckOutcome
from roamcast.papers.verdict import OTHER_READING, CheckResult, Verdict, filled, main_point, main_points

DOCS = Path(__file__).parents[2] / "docs"
MAKE = DOCS / "ledger" / "make.py"


def claim(name: str, verdict: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401  # fields of a verdict
    """A claim of the first paper, with a check of which nothing is shown."""
    made = {"id": name, "paper": "hint", "figure": "6", "text": f"Says {name}.", "verdict": verdict, "held": 0, "of": 0}
    unseen = {"says": "", "verdict": verdict, "measured": "", "judged": False, "explains": ""}
    return made | {"explanation": "", "reading": "", "tested": None, "checks": [unseen]} | changes


def test_page_and_readme_say_what_the_verdicts_say() -> None:
    made = runpy.run_path(str(MAKE))
    ledgers = made["read"]()
    assert MAKE.with_name("verdicts.md").read_text(encoding="utf-8") == made["page"](ledgers), "run docs/ledger/make.py"
    tried = MAKE.with_name("readings.md").read_text(encoding="utf-8")
    assert tried == made["readings_page"](ledgers), "run docs/ledger/make.py"
    written = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert made["readme"](written, ledgers) == written, "run python docs/ledger/make.py"
    drawn = MAKE.with_name("verdicts.svg").read_text(encoding="utf-8")
    assert drawn == made["picture"](ledgers), "run python docs/ledger/make.py"


def test_in_short() -> None:
    in_short = runpy.run_path(str(MAKE))["in_short"]
    claims = [claim("H1", "inconclusive"), claim("H2", "holds"), claim("H3", "does not hold"), claim("H4", "holds")]
    assert in_short(claims) == "H2 and H4 hold; H3 does not hold; H1 is inconclusive"
    assert in_short(claims[:1] * 3) == "H1, H1 and H1 are inconclusive"


def test_a_main_point_may_hold_under_another_reading() -> None:
    """It fails as read, and holds where a supposed cause is removed; a cause of another check does not help."""
    says = "less than half"
    main = CheckResult(says, CheckOutcome.FAILS, "0.6", main=True)
    cause = CheckResult(says, CheckOutcome.HOLDS, "0.4", judged=False, explains="explained by load")
    other = CheckResult("elsewhere", CheckOutcome.HOLDS, "1", judged=False, explains="explained by load")
    perhaps = CheckResult(says, CheckOutcome.OPEN, "0.5", judged=False, explains="perhaps explained by load")
    claims = [
        Verdict("H1", "", CheckOutcome.HOLDS, main=CheckOutcome.HOLDS, checks=[main]),
        Verdict("H2", "", CheckOutcome.FAILS, main=CheckOutcome.FAILS, checks=[main, cause]),
        Verdict("H3", "", CheckOutcome.FAILS, main=CheckOutcome.FAILS, checks=[main, other, perhaps]),
        Verdict("H4", "", CheckOutcome.MISSING),
    ]
    assert [main_point(claim) for claim in claims] == ["holds", OTHER_READING, "does not hold", None]
    assert main_points(claims) == ("1 of 3 main points holds (H1); 1 holds under another reading (H2); 1 does not (H3)")


def test_explanations_are_filled_from_what_was_measured() -> None:
    assert filled("It is {2}, not {1} or {3}.", {1: "0.6", 2: "0.5 (0.4 to 0.6)"}) == (
        "It is 0.5 (0.4 to 0.6), not 0.6 or not measured."
    )


UNITS = "m|ms|m/s|msg/s|Mb/s|packets mean|hosts per square km"
SETTING = rf"p = 0\.\d|its 0\.85|\d+ p packets|[\d.]+ (?:{UNITS})\b"
"""Numbers in explanations that are set, or said by the paper, and not measured."""


def test_no_explanation_has_a_result_by_hand() -> None:
    """Shares, percentages and counts come from the checks; opportunistic's explanations are still written by hand."""
    for claim in load_claims(CLAIMS):
        if claim.paper != "opportunistic":
            rest = re.sub(rf"{SETTING}|\{{\d+\}}", "", claim.explanation)
            assert not re.findall(r"\d+\.\d+|\d+ %|\d+ packets", rest), claim.id


def test_a_claim_about_code_is_not_said_to_be_unmeasured() -> None:
    about_code = claim("O8", "not measured", figure="text", checks=[], reading="A benchmark measures it.")
    made = runpy.run_path(str(MAKE))
    assert made["in_short"]([claim("O3", "holds"), about_code]) == "O3 holds"
    assert [*made["_claim"](about_code)] == [
        "### O8, text: not for a campaign",
        "",
        "Says O8.",
        "",
        "A benchmark measures it.",
        "",
    ]


def test_a_claim_as_a_table() -> None:
    check = {"says": "less than half", "verdict": "does not hold", "measured": "0.6 | 0.1", "judged": True}
    check |= {"main": True, "misses": "0.1", "explains": ""}
    cause = check | {"says": "without load", "judged": False, "main": False, "explains": "explained by load"}
    beside = cause | {"says": "elsewhere", "explains": ""}
    old = beside | {"says": "below 1: before the correction", "verdict": "holds"}
    one = claim(
        "H1",
        "does not hold",
        of=1,
        main="does not hold",
        checks=[check, cause, beside, old],
        reading="Of all nodes.",
        explanation="Load.",
        tested=True,
    )
    ledger = {
        "command": "roamcast papers hint --quick",
        "date": "today",
        "runs": 1234,
        "seeds": [3, 5],
        "claims": [one],
    }
    lines = runpy.run_path(str(MAKE))["page"]({"hint": ledger}).splitlines()
    at = lines.index("`roamcast papers hint --quick`, a preview: 1,234 runs, 3 to 5 seeds per point; today.")
    assert lines[at:] == [
        "`roamcast papers hint --quick`, a preview: 1,234 runs, 3 to 5 seeds per point; today.",
        "",
        "0 of 1 main points hold; 1 does not (H1). To the letter: H1 does not hold.",
        "",
        "### H1, figure 6: does not hold (0 of 1 checks hold)",
        "",
        "Says H1.",
        "",
        "Of all nodes.",
        "",
        "| check | measured | verdict |",
        "|---|---|---|",
        "| **less than half** | 0.6 \\| 0.1 | does not hold; misses by 0.1 |",
        "| → without load | 0.6 \\| 0.1 | explained by load |",
        "| below 1: before the correction | 0.6 \\| 0.1 | not judged: holds |",
        "",
        "Load.",
    ]


def test_verdicts_are_taken_with_where_they_come_from(tmp_path: Path) -> None:
    """Two seeds at one point; one at another, whose run is that of the first. The folder does not matter."""
    about = {"command": "roamcast papers hint --out elsewhere/x --seeds 2", "date": "today"}
    (tmp_path / "campaign.json").write_text(json.dumps(about | {"experiments": [{"name": "e", "paper": "hint"}]}))
    (tmp_path / "claims.json").write_text(json.dumps([claim("H1", "holds")]))
    columns = {"run": ["r", "s", "r"], "axes": ["a", "a", "b"], "seed": [1, 2, 1]}
    rows = pa.table(columns | {"experiment": ["e"] * 3, "variant": ["v"] * 3})
    pq.write_table(rows, tmp_path / "runs.parquet")
    made = runpy.run_path(str(MAKE))
    made["take"].__globals__["HERE"] = tmp_path
    made["take"](tmp_path)
    assert json.loads((tmp_path / "hint.json").read_bytes()) == {
        "command": "roamcast papers hint --seeds 2",
        "date": "today",
        "runs": 2,
        "seeds": [1, 2],
        "claims": [claim("H1", "holds")],
    }


# --- Readings -------------------------------------------------------------------------------------------------------


def point(met: bool, miss: float | None, measured: str = "") -> dict[str, Any]:
    return {"met": met, "miss": miss, "measured": measured, "standardised": miss or 0.0}


def explored(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  # fields of what was explored
    """Two readings of two claims; H1 comes out under one of them, H2 under none."""
    ledgers = {"H1": point(True, 0.0, "1"), "H2": point(False, 0.2, "0.3 against 0.5")}
    far = {"H1": point(False, 0.5, "0.5"), "H2": point(False, None)}
    return {
        "command": "roamcast papers hint --readings",
        "date": "today",
        "runs": 1234,
        "stage": "confirming",
        "seeds": {"exploring": [101, 102], "confirming": [1001, 1002]},
        "tried": [
            {"reading": "as in the ledger", "open": True, "met": 1, "misses": 1.0, "points": ledgers},
            {"reading": "far", "open": False, "met": 0, "misses": 2.0, "points": far},
        ],
        "same": {"near": "as in the ledger"},
        "distribution": {"0": 1, "1": 1},
        "left_out": {"H1": {"reading": "far", "met": False}, "H2": {"reading": "far", "met": False}},
        "left_out_open": {name: {"reading": "as in the ledger", "met": name == "H1"} for name in ("H1", "H2")},
        "best": {"open": "as in the ledger", "departure": "as in the ledger"},
        "confirmed": {
            "as in the ledger": {
                "H1": {"main": "holds", "verdict": "holds", "measured": "1"},
                "H2": {"main": "does not hold", "verdict": "does not hold", "measured": "0.3"},
            }
        },
    } | changes


def test_readings_as_a_table() -> None:
    lines = [*runpy.run_path(str(MAKE))["_explored"](explored())]
    assert lines == [
        "`roamcast papers hint --readings`: 1,234 runs, exploring seeds 101 to 102; today.",
        "2 readings, of 2 main points: 1 meet 0, 1 meet 1.",
        "",
        "| reading | kind | met | misses | H1 | H2 |",
        "|---|---|---|---|---|---|",
        "| as in the ledger | open | 1 | 1.00 | ✓ | ✗ |",
        "| far | departure | 0 | 2.00 | ✗ | – |",
        "| chosen without the claim, open settings only |  | 1 |  | ✓ | ✗ |",
        "| chosen without the claim, all settings |  | 0 |  | ✗ | ✗ |",
        "| confirmed on fresh seeds: as in the ledger |  | 1 |  | holds | does not hold |",
        "",
        "Best with open settings only: *as in the ledger*; with departures: *as in the ledger*.",
        "Every number as under another reading: near.",
        "",
    ]
    unconfirmed = [*runpy.run_path(str(MAKE))["_explored"](explored(stage="together", confirmed={}))]
    assert unconfirmed[1].endswith("1 meet 1. None was confirmed on fresh seeds.")


def test_all_papers_together() -> None:
    papers = {"hint": {"readings": explored()}, "odmrp": {"readings": explored(confirmed={})}, "coman": {}}
    assert [*runpy.run_path(str(MAKE))["_together"](papers)] == [
        "- With open settings only, the best reading of each paper meets 2 of 4 main points by the means of the",
        "  exploring seeds; of the 2 that were judged on fresh seeds 1 hold.",
        "- With departures too, the best reading of each paper meets 2 of 4 main points by the means of the",
        "  exploring seeds; of the 2 that were judged on fresh seeds 1 hold.",
        "- Not explored: coman.",
        "",
    ]


def test_a_claim_says_under_how_many_readings_it_comes_out() -> None:
    told = runpy.run_path(str(MAKE))["_under_readings"]
    first, second = claim("H1", "holds", possible=""), claim("H2", "does not hold", possible="It can, elsewhere.")
    assert [*told(first, None)] == []
    assert [*told(first, explored())] == [
        "Readings: the main point comes out under 1 of 2 (by the means of a preview).",
        "",
    ]
    assert [*told(second, explored())] == [
        "Readings: the main point comes out under none of 2 (by the means of a preview); the nearest is "
        "*as in the ledger*, 0.3 against 0.5.",
        "",
        "It can, elsewhere.",
        "",
    ]


def test_what_readings_came_to_is_taken_with_where_it_comes_from(tmp_path: Path) -> None:
    """A run of both stages counts once; of what was confirmed, the main points stay."""
    check = {"says": "half", "measured": "0.6", "main": True}
    verdict = {"id": "H1", "main": "holds", "verdict": "inconclusive", "checks": [check | {"main": False}, check]}
    for stage, runs in (("alone", ["r", "s"]), ("confirming", ["s", "t"])):
        (tmp_path / stage).mkdir()
        about = {"command": "roamcast papers hint --readings --out /elsewhere", "date": f"{stage} day"}
        (tmp_path / stage / "campaign.json").write_text(json.dumps(about))
        pq.write_table(pa.table({"run": runs}), tmp_path / stage / "runs.parquet")
    (tmp_path / "readings.json").write_text(json.dumps({"paper": "hint", "confirmed": {"far": [verdict]}}))
    made = runpy.run_path(str(MAKE))
    made["take"].__globals__["HERE"] = tmp_path
    made["take"](tmp_path)
    assert json.loads((tmp_path / "hint-readings.json").read_bytes()) == {
        "command": "roamcast papers hint --readings",
        "date": "confirming day",
        "runs": 3,
        "paper": "hint",
        "confirmed": {"far": {"H1": {"main": "holds", "verdict": "inconclusive", "measured": "0.6"}}},
    }
