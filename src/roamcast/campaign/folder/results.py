"""The results of a campaign's folder, run by run, with what each run stands for."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.campaign.folder.layout import RUN_MEASURES_FILE, RUNS_FILE
from roamcast.errors import RoamcastError
from roamcast.statistics.curves import VALUES


def read_values(out: Path) -> pa.Table:
    """The VALUES of a campaign's folder that has been measured."""
    try:
        runs = pq.read_table(out / RUNS_FILE, partitioning=None, columns=["run", *VALUES.names[:5]])
        measures = pq.read_table(out / RUN_MEASURES_FILE, partitioning=None)
    except OSError as problem:
        raise RoamcastError(f"{out}: has no measures to judge by: {problem}") from None
    joined = runs.join(measures.filter(pc.is_valid(measures["value"])), "run", join_type="inner")
    return joined.select(VALUES.names).cast(VALUES)
