"""The tables of a campaign as Spark sees them; `campaign.folder.schemas` has their columns."""

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from roamcast.campaign.folder.schemas import FACTS_ARROW


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns for Spark, by the structure of their types: Arrow's types cannot be keys of a table, since a
    list read from Parquet (`list<element>`) equals one made here (`list<item>`) and has another hash."""
    return from_arrow_schema(schema)


FACTS: Final = {table: spark_schema(schema) for table, schema in FACTS_ARROW.items()}
