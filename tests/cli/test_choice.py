"""What a person reads of a race: the answer in words, and a table that cuts nothing."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.campaign.decide.choice import THE_SAME
from roamcast.cli.choice import answer, show

HINT = {"seeds": 5, "goal": [0.97, 0.92, 1.02], "cost": [1.21, 1.01, 1.41], "possible": 1.0}
FLOODING = {"seeds": 5, "goal": [1.0, 1.0, 1.0], "cost": [7.5, 7.4, 7.6], "possible": 1.0}
OPPORTUNISTIC = {"seeds": 5, "goal": [0.0, 0.0, 0.0], "cost": [None, None, None], "possible": 1.0}


def result(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  # any value of JSON
    return {
        "goal": {"measure": "satisfaction_10", "at_least": 0.95, "words": "delivery within 10 s"},
        "cost": {"measure": "airtime_per_delivery", "words": "ms"},
        "left": ["hint credits=0", "flooding"],
        "ranking": ["hint credits=0", "flooding", "opportunistic"],
        "decided": False,
        "goal_reachable": True,
        "ended": "the time was up",
        "time_was_up": True,
        "looked": 5,
        "settled": True,
        "dropped": [{"arm": "opportunistic", "seeds": 5, "reason": "goal 0.41 ± 0.08, below 0.95"}],
        "race": {"flooding": FLOODING, "hint credits=0": HINT, "opportunistic": OPPORTUNISTIC},
        "fresh": {},
        "run": {"hint credits=0": "roamcast run out/winner.toml"},
        "node": {"hint credits=0": "roamcast node --protocol hint"},
    } | changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"left": ["hint credits=0"], "decided": True, "time_was_up": False},
            "Use hint credits=0, the cheapest that reaches delivery within 10 s of at least 0.95: 0.970 ± 0.050 at "
            "1.21 ± 0.20 ms.",
        ),
        (
            {
                "left": ["hint credits=0"],
                "decided": True,
                "fresh": {"hint credits=0": HINT | {"goal": [0.94, 0.9, 0.98]}},
            },
            "Use hint credits=0, all others were dropped; but it may miss delivery within 10 s of at least 0.95: 0.940 "
            "± 0.040 at 1.21 ± 0.20 ms. Any protocol could have delivered 1.000 of all pairs at most. "
            "The same command with more --minutes continues from here.",
        ),
        (
            {},
            "Not decided for delivery within 10 s of at least 0.95: the time was up. Best so far: hint credits=0, "
            "0.970 ± 0.050 at 1.21 ± 0.20 ms. Not separated from it: flooding. The same command with more --minutes "
            "continues from here.",
        ),
        (
            {
                "goal_reachable": False,
                "race": {
                    "hint credits=0": HINT | {"possible": 0.98},
                    "opportunistic": OPPORTUNISTIC | {"possible": 0.98},
                },
                "left": ["hint credits=0", "opportunistic"],
                "time_was_up": False,
            },
            "Nothing meets the goal, delivery within 10 s of at least 0.95. Closest to it: hint credits=0, 0.970 "
            "± 0.050 at 1.21 ± 0.20 ms. Any protocol could have delivered 0.980 of all pairs at most. Not separated "
            "from it: opportunistic.",
        ),
        (
            {"left": ["hint credits=0"], "decided": True, "settled": False, "time_was_up": False},
            "Use hint credits=0, all others were dropped; but it may miss delivery within 10 s of at least 0.95: 0.970 "
            "± 0.050 at 1.21 ± 0.20 ms. Any protocol could have delivered 1.000 of all pairs at most.",
        ),
        (
            {"ended": THE_SAME, "time_was_up": False},
            "Use hint credits=0, or another that is left: all reach delivery within 10 s of at least 0.95 at the same "
            "cost within 5 %, 0.970 ± 0.050 at 1.21 ± 0.20 ms. Not separated from it: flooding.",
        ),
        ({"left": [], "ended": "no candidate could be run"}, "No answer: no candidate could be run."),
        (
            {"race": {"hint credits=0": HINT}, "looked": 0},
            "No answer: the time was up before a single look at all candidates. Give it more --minutes.",
        ),
    ],
)
def test_the_answer(changes: dict[str, Any], words: str) -> None:
    assert answer(result(**changes)) == words


def test_the_table_fits_eighty_columns_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    longest = {
        "odmrp mode=one-channel": FLOODING | {"goal": [0.9985, 0.9952, 1.0018], "cost": [6540.0, 6300.0, 9780.0]}
    }
    ranking = ["hint credits=0", "flooding", *longest, "opportunistic"]
    changes = {
        "ranking": ranking,
        "race": result()["race"] | longest,
        "fresh": {"hint credits=0": HINT | {"seeds": 10}},
    }
    show(result(**changes), Path("out"))
    said = capsys.readouterr().out
    lines = said.splitlines()
    table = lines[: next(at for at, line in enumerate(lines) if line.startswith("cost: "))]
    assert max(map(len, table)) <= 80
    assert [
        line.split()[-1]
        for line in table
        if "∞" in line or "6\N{NARROW NO-BREAK SPACE}540 ± 3\N{NARROW NO-BREAK SPACE}240" in line
    ] == ["dropped"] * 2
    assert any("odmrp mode=one-channel" in line for line in table)
    assert "…" not in said
    (hint,) = [line.split() for line in table if line.lstrip().startswith("hint")]
    assert hint == ["hint", "credits=0", "0.970", "±", "0.050", "1.21", "±", "0.20", "10", "fresh"]
    names = [line.split()[0] for line in table if "±" in line or "∞" in line]
    assert names == ["hint", "flooding", "odmrp", "opportunistic"]
    assert "opportunistic dropped after 5 seeds: goal 0.41 ± 0.08, below 0.95" in lines
    assert "∞" in said
    assert "simulate it:      roamcast run out/winner.toml" in lines
