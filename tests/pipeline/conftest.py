"""One local session for all tests of a process, made when the first test asks for it: a JVM costs seconds."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from roamcast.pipeline.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Two cores, so that tasks run side by side on any machine; two shuffle partitions, for tables of a few rows. To
    # compile a query takes longer than to interpret it once for those: a sixth of all that the tests with Spark take.
    small = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with session("local[2]", small, name="roamcast tests") as shared:
        yield shared


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """An environment with what Spark's scripts use, but no Java."""
    for tool in ("bash", "dirname", "ps"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    return {"HOME": str(tmp_path), "PATH": str(tmp_path)}
