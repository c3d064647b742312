"""A campaign's folder with a few literal numbers in it."""

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_TEXT, _REAL, _INT = pa.string(), pa.float64(), pa.int32()
_STATISTICS = {"n": _INT, "mean": _REAL, "sd": _REAL, "low": _REAL, "high": _REAL}
SUMMARY = pa.schema(
    {"experiment": _TEXT, "variant": _TEXT, "point": _INT, "axes": _TEXT, "measure": _TEXT, **_STATISTICS}
)
PAIRED = pa.schema(
    {
        "experiment": _TEXT,
        "point": _INT,
        "axes": _TEXT,
        "variant": _TEXT,
        "baseline": _TEXT,
        "measure": _TEXT,
        **_STATISTICS,
    }
)
MANIFEST = pa.schema({"run": _TEXT, "status": _TEXT, "error": _TEXT, "protocol": _TEXT})
RUNS = pa.schema(
    {"run": _TEXT, "experiment": _TEXT, "variant": _TEXT, "point": _INT, "axes": _TEXT, "seed": pa.int64()}
)
RUN_MEASURES = pa.schema({"run": _TEXT, "measure": _TEXT, "value": _REAL})

EXPERIMENT: dict[str, Any] = {
    "name": "credits",
    "title": "Impact of credits",
    "paper": "hint",
    "seeds": [1, 2, 3],
    "axes": [{"label": "credits", "field": "protocol.parameters.credits", "values": [0, 1, 4]}],
    "variants": [{"name": "hint", "fixed": False}, {"name": "gossip", "fixed": True}],
    "baseline": "gossip",
    "figures": [
        {"id": "7", "title": "Delivery over credits", "x": "credits", "y": "delivery", "caption": "As it was."}
    ],
    "scenario": {"nodes": 100, "radio": {"range": [100, 200], "indoor_range": None}, "groups": [{"count": 2}]},
}
CAMPAIGN: dict[str, Any] = {
    "version": 2,
    "command": "roamcast papers hint --quick",
    "versions": {"roamcast": "0.1.0", "python": "3.11.7"},
    "date": "2026-11-01 12:00 UTC",
    "machine": "a processor, 2 cores, Linux 6.1",
    "experiments": [EXPERIMENT],
}
ROWS: list[tuple[Any, ...]] = [
    ("credits", "hint", 2, '{"credits": 4}', "delivery", 3, 0.9, 0.02, 0.85, 0.95),
    ("credits", "hint", 0, '{"credits": 0}', "delivery", 1, 0.5, None, None, None),
    ("credits", "hint", 1, '{"credits": 1}', "delivery", 3, 0.75, 0.02, 0.7, 0.8),
    ("credits", "gossip", 0, "{}", "delivery", 3, 0.6, 0.01, 0.55, 0.65),
    ("credits", "hint", 1, '{"credits": 1}', "overhead", 3, 2.5, 0.1, 2.25, 2.75),
]
ABOUT: list[dict[str, Any]] = [
    {"name": "delivery", "title": "delivery (share of interested subscribers)", "share": True, "whole": True},
    {"name": "overhead", "title": "overhead (packets per delivery)"},
]
DIFFERENCES: list[tuple[Any, ...]] = [
    ("credits", 1, '{"credits": 1}', "hint", "gossip", "delivery", 3, 0.15, 0.01, 0.125, 0.175)
]
BY_SEED: list[tuple[Any, ...]] = [
    *(("hint", 1, '{"credits": 1}', seed, value) for seed, value in ((1, 0.73), (2, 0.75), (3, 0.77))),
    *(("gossip", 0, "{}", seed, value) for seed, value in ((1, 0.59), (2, 0.6), (3, 0.61))),
]
"""Delivery: variant, point, axes, seed, value. The differences are 0.14, 0.15 and 0.16: 0.15 ± 4.303 · 0.01 / √3."""
CLAIMS: list[dict[str, Any]] = [
    {
        "id": "H2",
        "paper": "hint",
        "figure": "7",
        "text": "about 0.7",
        "verdict": "does not hold",
        "measured": "0.5",
        "explanation": "too few seeds",
    },
    {
        "id": "O1",
        "paper": "odmrp",
        "figure": "6",
        "text": "beats it",
        "verdict": "not measured",
        "measured": None,
        "explanation": None,
    },
]

EVIL = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;"
"""A text that breaks out of an attribute, an element and a script, wherever it is not escaped."""


def table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def write_folder(
    out: Path,
    campaign: dict[str, Any] = CAMPAIGN,
    rows: list[tuple[Any, ...]] = ROWS,
    claims: list[dict[str, Any]] | None = CLAIMS,
    error: str | None = "ValueError: no such node",
    by_seed: list[tuple[Any, ...]] = BY_SEED,
) -> Path:
    """Two runs, of which the second fails if an error is given."""
    (out / "measures").mkdir(parents=True)
    (out / "campaign.json").write_text(json.dumps(campaign))
    (out / "measures" / "about.json").write_text(json.dumps(ABOUT))
    if claims is not None:
        (out / "claims.json").write_text(json.dumps(claims))
    runs = [("a1", "ok", None, "hint"), ("b2", "failed" if error else "ok", error, "hint")]
    pq.write_table(table(MANIFEST, runs), out / "manifest.parquet")
    measured = [(f"{variant}-{point}-{seed}", variant, point, axes, seed) for variant, point, axes, seed, _ in by_seed]
    planned = [(run, "credits", *of) for run, *of in measured]
    planned.append(("b2", "credits", "hint", 0, '{"credits": 0}', 3))
    pq.write_table(table(RUNS, planned), out / "runs.parquet")
    values = [(run, "delivery", value) for (run, *_), (*_, value) in zip(measured, by_seed, strict=True)]
    pq.write_table(table(RUN_MEASURES, values), out / "measures" / "run.parquet")
    pq.write_table(table(SUMMARY, rows), out / "measures" / "summary.parquet")
    pq.write_table(table(PAIRED, DIFFERENCES), out / "measures" / "paired.parquet")
    return out


def evil_folder(out: Path) -> Path:
    """Every text of every table is an attack."""
    experiment = copy.deepcopy(EXPERIMENT) | {"title": EVIL, "paper": EVIL, "scenario": {EVIL: EVIL}}
    experiment["axes"] = [{"label": EVIL, "field": EVIL, "values": [EVIL]}]
    experiment["variants"] = [{"name": EVIL, "set": {EVIL: EVIL}}]
    experiment["figures"] = [{"id": EVIL, "title": EVIL, "x": EVIL, "y": EVIL, "caption": EVIL}]
    escaped = '{"' + EVIL.replace('"', '\\"') + '": "' + EVIL.replace('"', '\\"') + '"}'
    rows = [("credits", EVIL, 0, escaped, EVIL, 3, 1.0, 0.1, 0.9, 1.1)]
    claims = [{**CLAIMS[0], "id": EVIL, "figure": EVIL, "text": EVIL, "measured": EVIL, "explanation": EVIL}]
    campaign = {**CAMPAIGN, "command": EVIL, "versions": {EVIL: EVIL}, "experiments": [experiment]}
    return write_folder(out, campaign=campaign, rows=rows, claims=claims, error=EVIL)
