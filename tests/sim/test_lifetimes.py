"""Lifetimes and ages tell the same, where nothing else limits documents: with lifetimes of L, what is delivered is what
would be delivered within L anyway. The check of the evaluation of Haillot and Guidec (2008), figures 3 and 5.
"""

from pathlib import Path

import pytest

from roamcast import papers
from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check, read
from roamcast.units import SECOND

SCENARIO = Path(papers.__file__).parent / "scenarios" / "opportunistic.toml"


def delays(lifetime: float | None) -> dict[tuple[int, int], int]:
    """How old each document was when it came to each host; ideal medium access and unlimited caches."""
    raw = read(SCENARIO) | {"duration": 600.0, "cooldown": 0.0}
    assert raw["mac"]["model"] == "ideal"
    assert raw["protocol"]["parameters"]["capacity"] == raw["protocol"]["parameters"]["octets"] == 0
    if lifetime is not None:
        raw["workload"]["publishers"][0]["lifetime"] = lifetime
    facts = MemorySink()
    run(check(raw, "lifetimes", Path()), facts)
    rows = facts.table("deliver").to_pylist()
    return {(row["event"], row["node"]): row["time"] - row["published"] for row in rows}


def test_satisfaction_with_a_lifetime_is_the_distribution_of_ages_at_it() -> None:
    limited = set(delays(200.0))
    aged = {pair for pair, delay in delays(None).items() if delay <= 200 * SECOND}
    assert len(aged) > 500
    assert aged <= limited
    # Frames take time: a document that is on the air when its life ends still arrives.
    assert len(limited) == pytest.approx(len(aged), rel=0.01)
