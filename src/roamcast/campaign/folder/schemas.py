"""Every table of a campaign's folder: its columns, as Arrow types.

The rule this file owns: a table's schema is written once, here. Readers give it explicitly and never infer one, so a
file that differs is an error and not another table.
"""

from typing import Final

import pyarrow as pa

from roamcast.facts.schema import TABLES
from roamcast.statistics.over_seeds import DESCRIBED, INTERVAL

RUNS_ARROW: Final = pa.schema(
    [
        ("run", pa.string()),
        ("experiment", pa.string()),
        ("variant", pa.string()),
        ("point", pa.int32()),
        ("axes", pa.string()),
        ("seed", pa.int64()),
        ("scenario", pa.string()),
        ("folder", pa.string()),
        ("estimate", pa.float64()),
    ]
)
"""What was planned: one row per experiment, variant, point and seed; several may name the same run. `axes` is a JSON
object from labels to values in the order of the axes, `scenario` the JSON of the checked scenario."""

MANIFEST_ARROW: Final = pa.schema(
    [
        ("run", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("simulated", pa.float64()),
        ("warmup", pa.float64()),
        ("nodes", pa.int32()),
        ("protocol", pa.string()),
        ("rows", pa.map_(pa.string(), pa.int64())),
        ("digest", pa.string()),
    ]
)
"""What was run: a row for each run. `rows` counts its facts by table; `simulated` and `warmup` are in s."""

OK: Final = "ok"
FAILED: Final = "failed"

RUN_MEASURES_ARROW: Final = pa.schema([("run", pa.string()), ("measure", pa.string()), ("value", pa.float64())])
"""A row for each run that is ok and each measure; the value is null where the measure is undefined."""

ACROSS_RUNS_ARROW: Final = pa.schema([("run", pa.string()), *DESCRIBED])
"""What is computed across runs: a row with a run is its value of a pooled measure, in `mean`."""
SUMMARY_ARROW: Final = pa.schema(
    [DESCRIBED.field(name) for name in ("experiment", "variant", "point", "axes", "measure", *INTERVAL.names)]
)
"""Each measure over the seeds of a variant at a point."""
PAIRED_ARROW: Final = DESCRIBED
"""Differences variant − baseline of the same seed, over the seeds that have both; and the same in per cent of the
baseline, over the seeds for which that means something (`statistics.over_seeds`)."""


def with_run(schema: pa.Schema) -> pa.Schema:
    """The schema of a table of many runs, from that of one: adds the column `run`."""
    return pa.schema([pa.field("run", pa.string()), *schema], metadata=schema.metadata)


FACTS_ARROW: Final[dict[str, pa.Schema]] = {table: with_run(schema) for table, schema in TABLES.items()}
"""The facts of many runs: the tables that every run has. Tables that protocols declare are in their runs' files."""
