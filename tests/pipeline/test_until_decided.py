"""`--until-decided` on real runs: a claim that is plain at the first look, and one that no seeds can settle."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from roamcast.campaign.define.experiment import experiment
from roamcast.campaign.define.plan import Experiment, plan
from roamcast.papers.claims import Claim
from roamcast.papers.until import Decided
from roamcast.pipeline.run import run_campaign

SEEDS = 9


def over_a_link(name: str, loss: float, folder: Path) -> Experiment:
    raw = {
        "name": name,
        "seeds": SEEDS,
        "measures": ["delivery"],
        "scenario": {
            "nodes": 2,
            "duration": 20,
            "radio": {"propagation": "links"},
            "mac": {"model": "ideal"},
            "links": {"up": [[0, 1]], "loss": loss},
            "workload": {"subscribers": [{"nodes": [1]}], "publishers": [{"nodes": [0], "rate": 1}]},
        },
        "variants": [{"name": "flooding"}],
    }
    return experiment(raw, f"{name}.toml", folder)


def above_a_half(id: str, of: str) -> Claim:
    term = {"experiment": of, "variant": "flooding", "measure": "delivery"}
    check = {"says": "more than half arrives", "kind": "above", "of": term, "value": 0.5}
    raw: dict[str, Any] = {"id": id, "paper": "p", "figure": "1", "text": "t", "checks": [check]}
    return msgspec.convert(raw, Claim)


def test_only_what_is_open_gets_all_its_seeds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A link that loses one frame in twenty delivers nearly all, one that loses every second frame about a half.
    experiments = [over_a_link("plain", 0.05, tmp_path), over_a_link("open", 0.5, tmp_path)]
    decided = Decided([above_a_half("A", "plain"), above_a_half("B", "open")])
    out = tmp_path / "out"
    assert run_campaign(experiments, out, goal=decided, spark=spark) == []
    assert {name: str(verdict.outcome) for name, verdict in decided.verdicts.items()} == {
        "A": "holds",
        "B": "inconclusive",
    }
    rows = pq.read_table(out / "runs.parquet", partitioning=None).to_pylist()
    seeds = {name: sum(row["experiment"] == name for row in rows) for name in ("plain", "open")}
    assert seeds == {"plain": 5, "open": SEEDS}
    assert pq.read_metadata(out / "manifest.parquet").num_rows == 14
    assert len(plan(experiments).distinct) == 18  # what all seeds everywhere would have been

    # Started again, it looks at the same seeds as before, one look after the other, and has nothing to run or measure.
    monkeypatch.setattr("roamcast.pipeline.session.session", refused)
    again = Decided([above_a_half("A", "plain"), above_a_half("B", "open")])
    assert run_campaign(experiments, out, goal=again) == []
    assert again.verdicts == decided.verdicts


def refused(*_: object) -> None:
    raise AssertionError("Spark was started")
