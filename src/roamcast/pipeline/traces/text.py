"""Text files as lines, split into those that fit the format and those that are refused with a reason."""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from roamcast.errors import RoamcastError
from roamcast.facts.recorder import batch_of
from roamcast.pipeline.traces.samples import Read
from roamcast.sim.mobility.lines import Refused

KEPT: Final = 200
"""How many characters of a refused line are kept."""
REFUSED: Final = "reason string, line string"
_PACKED: Final = (".gz", ".bz2", ".zst", ".lz4")
"""Ends of names of files that cannot be read from the middle."""
_PART: Final = 2**26
_CHUNK: Final = 2**20
"""Bytes that a task reads, and that it parses at a time."""


def lines(spark: SparkSession, path: str) -> DataFrame:
    """(line): without blank lines and `#` comments. Spark reads .gz, .bz2 and .zst by the name's end."""
    text = spark.read.text(path).select(F.trim(F.regexp_replace("value", "^\ufeff|\r$", "")).alias("line"))
    return text.where((F.col("line") != "") & ~F.startswith("line", F.lit("#")))


def files_of(folder: Path) -> list[Path]:
    """The files that Spark reads in a folder."""
    every = (one for one in folder.rglob("*") if one.is_file())
    return sorted(one for one in every if not any(part[0] in "._" for part in one.relative_to(folder).parts))


def parts_of(files: Sequence[Path]) -> pa.Table:
    """(number, file, begin, end): parts of about equal size, for a task each. What is packed is one part."""
    rows = []
    for file in map(Path.resolve, files):
        size = sys.maxsize if file.suffix in _PACKED else file.stat().st_size
        step = size if file.suffix in _PACKED else _PART
        rows += [(str(file), begin, min(begin + step, size)) for begin in range(0, size, step)]
    schema = pa.schema([("file", pa.string()), ("begin", pa.int64()), ("end", pa.int64())])
    return pa.table(batch_of(rows, schema)).add_column(0, "number", pa.array(range(len(rows)), pa.int64()))


def lines_of(file: Path, begin: int = 0, end: int = sys.maxsize) -> Iterator[pa.StringArray]:
    """The lines that begin in a part of a file, as `lines` gives them."""
    try:
        opened = pa.input_stream(str(file), buffer_size=0)
    except OSError as problem:
        raise RoamcastError(f"{file}: cannot be read here, as every worker must: {problem}") from None
    with io.BufferedReader(opened) as source:
        left = end - begin
        if begin:  # the line that reaches into this part belongs to the one before
            source.seek(begin - 1)
            left -= len(source.readline()) - 1
        is_first = begin == 0
        while left > 0:
            try:
                chunk = source.read(min(_CHUNK, left))
                if not chunk.endswith(b"\n"):
                    chunk += source.readline()
            except OSError as problem:
                raise RoamcastError(f"{file}: is damaged or cut short ({problem}): get it again") from None
            if not chunk:
                return
            left -= len(chunk)
            text = chunk.decode(errors="replace").removeprefix("\ufeff" if is_first else "")
            is_first = False
            if "\r" in text:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            found = pc.utf8_trim(pc.split_pattern(pa.array([text]), "\n").values, " ")
            yield found.filter(pc.invert(pc.match_substring_regex(found, "^(#|$)")))


def first_lines(file: Path, most: int) -> list[str]:
    """The first lines of a file, as `lines` gives them."""
    every = chain.from_iterable(lines.to_pylist() for lines in lines_of(file))
    return list(islice(every, most))


def parsed(text: DataFrame, parse: Callable[[str], tuple[Any, ...] | None], columns: str) -> DataFrame:
    """What a reader of `sim.mobility` says of each line: (columns, reason, line, order); `order` is that of the file.

    For formats that scenarios read too, so that both take the same files: it costs Python code for each line, where the
    formats that only an import reads are column expressions. Lines for which the reader returns nothing are left out.
    """
    numbered = text.select("line", F.monotonically_increasing_id().alias("order"))
    schema = StructType.fromDDL(f"{columns}, {REFUSED}, order long")
    assert isinstance(schema, StructType)
    arrow = to_arrow_schema(schema)
    nothing = (None,) * (len(schema) - 3)

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[tuple[Any, ...]] = []
            for line, order in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                try:
                    row = parse(line)
                except Refused as problem:
                    rows.append((*nothing, str(problem), line[:KEPT], order))
                else:
                    if row is not None:
                        rows.append((*row, None, line[:KEPT], order))
            yield batch_of(rows, arrow)

    return numbered.mapInArrow(each, schema)


def number(value: Column) -> Column:
    """Text or a number as a finite double, else null."""
    double = value.try_cast("double")
    return F.when(F.abs(double) < float("inf"), double)  # to Spark, NaN is greater than any


def apart(
    parsed: DataFrame,
    needed: dict[str, str],
    columns: Sequence[str] = ("id", "t", "x", "y"),
    *,
    geographic: bool = False,
    continuous: bool = False,
) -> Read:
    """Rows in which no needed column is null, and the others as (reason, line). `needed` has the reason by column."""
    reason = F.coalesce(*(F.when(F.col(column).isNull(), F.lit(why)) for column, why in needed.items()))
    told = parsed.withColumn("reason", reason)
    refused = told.where("reason is not null").select("reason", F.substring("line", 1, KEPT).alias("line"))
    return Read(told.where("reason is null").select(*columns), refused, geographic, continuous)
