"""The results of a campaign: a row for each planned run, a column for each measure. Everything that reads values of
runs reads them here.

The rules this file owns:

* A planned run has a row, with nulls if it failed, and then its error. Several rows may be the same run.
* A measure is null where it is undefined.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roamcast.campaign.folder.layout import MANIFEST_FILE, RUN_MEASURES_FILE, RUNS_FILE
from roamcast.campaign.folder.schemas import RUNS_ARROW
from roamcast.errors import RoamcastError
from roamcast.statistics.curves import VALUES
from roamcast.statistics.over_seeds import PLAN_COLUMNS, Grid

ERROR: Final = "error"


def read_results(
    out: Path, measures: Sequence[str] | None = None, planned: Iterable[Mapping[str, Any]] | None = None
) -> pa.Table:
    """The columns PLAN_COLUMNS, `error` and then the measures, all or these. `planned` are rows of RUNS, if they are
    not to be those of the folder."""
    try:
        runs = (
            pq.read_table(out / RUNS_FILE, partitioning=None, columns=PLAN_COLUMNS)
            if planned is None
            else pa.Table.from_pylist(list(planned), RUNS_ARROW).select(PLAN_COLUMNS)
        )
        chosen = None if measures is None else pc.field("measure").isin(list(measures))
        measured = pq.read_table(out / RUN_MEASURES_FILE, partitioning=None, filters=chosen)
    except OSError as problem:
        raise RoamcastError(f"{out}: has no measures yet: finish the campaign first: {problem}") from None
    names = runs["run"].unique()
    grid = Grid(measured.filter(pc.is_in(measured["run"], names)), names)
    at = grid.index(runs["run"])
    table = runs.append_column(ERROR, _errors(out, runs["run"]))
    for name in grid.measures.to_pylist() if measures is None else dict.fromkeys(measures):
        table = table.append_column(name, grid.column(name, at))
    return table


def _errors(out: Path, runs: pa.ChunkedArray) -> pa.Array:
    if not (out / MANIFEST_FILE).is_file():
        return pa.nulls(len(runs), pa.string())
    done = pq.read_table(out / MANIFEST_FILE, partitioning=None, columns=["run", "error"])
    return done["error"].take(pc.index_in(runs, done["run"].combine_chunks())).cast(pa.string())


def measures_in(results: pa.Table) -> list[str]:
    """The measures that results have."""
    return [name for name in results.column_names if name not in (*PLAN_COLUMNS, ERROR)]


def values_of(results: pa.Table) -> pa.Table:
    """VALUES: a row for each run and measure that has a value."""
    place = VALUES.names[:5]
    tables = [VALUES.empty_table()]
    for name in measures_in(results):
        there = results.filter(results[name].is_valid())
        named = there.select(place).append_column("measure", pa.repeat(name, len(there)))
        tables.append(named.append_column("value", there[name]).cast(VALUES))
    return pa.concat_tables(tables)


def read_values(out: Path) -> pa.Table:
    """The VALUES of a campaign's folder that has been measured."""
    return values_of(read_results(out))


def axes_as_columns(results: pa.Table) -> pa.Table:
    """The same with a column for each axis instead of `axes`, numeric if all its values are numbers. An axis with the
    name of another column gets the suffix `_axis`."""
    axes = [json.loads(text or "{}") for text in results["axes"].to_pylist()]
    place = [name for name in PLAN_COLUMNS if name != "axes"]
    columns = {name: results[name] for name in place}
    for label in dict.fromkeys(label for point in axes for label in point):
        values = [point.get(label) for point in axes]
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values if one is not None)
        name = f"{label}_axis" if label in columns else label
        columns[name] = pa.array(values, pa.float64()) if numbers else pa.array([_text(value) for value in values])
    return pa.table(columns | {name: results[name] for name in measures_in(results)})


def _text(value: Any) -> str | None:  # noqa: ANN401  # any value of TOML
    return value if value is None or isinstance(value, str) else json.dumps(value)
