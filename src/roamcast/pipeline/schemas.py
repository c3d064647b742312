"""The tables of a campaign as Spark sees them; `campaign.schemas` has their columns."""

from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from roamcast.campaign.schemas import (
    FACTS_ARROW,
    MANIFEST_ARROW,
    PAIRED_ARROW,
    RUN_MEASURES_ARROW,
    RUNS_ARROW,
    SUMMARY_ARROW,
)

_SPARK: Final[dict[pa.DataType, DataType]] = {
    pa.string(): StringType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.list_(pa.int64()): ArrayType(LongType()),
    pa.list_(pa.float64()): ArrayType(DoubleType()),
    pa.list_(pa.string()): ArrayType(StringType()),
    pa.map_(pa.string(), pa.int64()): MapType(StringType(), LongType()),
}


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns for Spark."""
    return StructType([StructField(field.name, _SPARK[field.type]) for field in schema])


RUNS: Final = spark_schema(RUNS_ARROW)
MANIFEST: Final = spark_schema(MANIFEST_ARROW)
RUN_MEASURES: Final = spark_schema(RUN_MEASURES_ARROW)
SUMMARY: Final = spark_schema(SUMMARY_ARROW)
PAIRED: Final = spark_schema(PAIRED_ARROW)
FACTS: Final = {table: spark_schema(schema) for table, schema in FACTS_ARROW.items()}
