"""The effect of the choices that the paper on `opportunistic` leaves open, changed one at a time.

The paper's scenario with 802.11 at 11 Mb/s, two hops, caches of 8 documents, over 400 s and eight layouts of
buildings: `python -m bench opportunistic-choices`. Layouts differ more than choices do, so each choice is compared
with the paper's on the same layouts: the mean of the ratios of deliveries, with its 95 % interval. The table in
docs/protocols/opportunistic.md is from it.

Some choices change nothing unless another is made: a copy that arrives later matters from three hops on, and forgetting
with a policy that takes old documents back. These are compared with the other choice alone.
"""

from pathlib import Path
from statistics import mean
from typing import Any, Final

import roamcast.papers
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run as run_scenario
from roamcast.sim.scenario.scenario import check, read
from roamcast.statistics.intervals import interval

SCENARIO: Final = Path(roamcast.papers.__file__).parent / "scenarios" / "opportunistic-radio.toml"
BASE: Final = {"scope": 2, "capacity": 8}
DURATION: Final = 400.0
SEEDS: Final = range(1, 9)
CHOICES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("as in the paper's experiments", {}),
    ('catalog = "missing"', {"catalog": "missing"}),
    ('asking = "one"', {"asking": "one"}),
    ("whole = false: pieces are kept", {"whole": False}),
    ('relaying = "flooding"', {"relaying": "flooding"}),
    ('policy = "oldest arrival"', {"policy": "oldest arrival"}),
    ('policy = "least requested"', {"policy": "least requested"}),
    ('policy = "others first"', {"policy": "others first"}),
    ('carry = "everything"', {"carry": "everything"}),
    ("jitter = 0.5", {"jitter": 0.5}),
    ("missed = 1", {"missed": 1}),
    ("listed = 256, cut = true", {"listed": 256, "cut": True}),
    ("spread = 0", {"spread": 0.0}),
)
PAIRS: Final[tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...]] = (
    ("scope = 3", {"scope": 3}, 'scope = 3, decide = "any"', {"scope": 3, "decide": "any"}),
    (
        'policy = "oldest arrival"',
        {"policy": "oldest arrival"},
        "and remember = false",
        {"policy": "oldest arrival", "remember": False},
    ),
    ('asking = "one"', {"asking": "one"}, "and patience = 40", {"asking": "one", "patience": 40.0}),
)
"""A choice, and another beside it that is compared with the first."""


def outcome(changes: dict[str, Any], seed: int) -> tuple[float, float, float, float]:
    """Deliveries to others than the publisher, and messages by kind: announces, requests, pieces; in thousands."""
    raw = read(SCENARIO) | {"duration": DURATION, "cooldown": 0.0, "seed": seed}
    raw["protocol"]["parameters"] |= BASE | changes
    facts = MemorySink()
    run_scenario(check(raw, "choices", Path()), facts)
    sent = dict.fromkeys(("announce", "request", "piece"), 0.0)
    for row in facts.table("transmit").to_pylist():
        if row["kind"] in sent:
            sent[row["kind"]] += row["packets"] / 1000
    delivered = sum(hops > 0 for hops in facts.table("deliver")["hops"].to_pylist())
    return delivered, sent["announce"], sent["request"], sent["piece"]


def run() -> None:
    print(
        f"opportunistic: the choices, mean of {len(SEEDS)} layouts, {DURATION:g} s; deliveries as a ratio to the first"
    )
    print(f"  {'':32} deliveries  ratio          announces  requests  pieces (thousand packets)")
    (name, changes), *others = CHOICES
    first = show(name, changes, None)
    for name, changes in others:
        show(name, changes, first)
    print("  choices that matter with another; deliveries as a ratio to the line above")
    for name, changes, beside, more in PAIRS:
        show(beside, more, show(name, changes, None))


def show(name: str, changes: dict[str, Any], base: list[float] | None) -> list[float]:
    """Prints a line; returns the deliveries on each layout."""
    outcomes = [outcome(changes, seed) for seed in SEEDS]
    delivered, announces, requests, pieces = map(mean, zip(*outcomes, strict=True))
    compared = ""
    if base is not None:
        ratio = interval([one[0] / first for one, first in zip(outcomes, base, strict=True)])
        compared = f"{ratio.mean:.3f} ± {ratio.half:.3f}"
    print(f"  {name:32} {delivered:10.0f}  {compared:13} {announces:10.2f} {requests:9.2f} {pieces:7.1f}", flush=True)
    return [one[0] for one in outcomes]
