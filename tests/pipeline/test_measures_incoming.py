"""Incoming bytes, throughput, and the share inside Join Requests, against numbers worked out by hand."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.measured import Run, S, tables, write_campaign
from roamcast.pipeline.measures import MEASURES, read, run_measures

NAMES = (
    "bytes_in",
    "messages_in",
    "bytes_in_receivers",
    "bytes_in_receiver_1",
    "bytes_in_receiver_2",
    "bytes_in_receiver_3",
    "bytes_in_unserved",
    "throughput",
    "in_join_requests",
)


def by_hand() -> Run:
    """Four nodes: 0 publishes, 1 and 2 want something, and 2 gets none of it. The first second is warm-up."""
    facts = tables(
        subscribe=[(0, 1, 1, True, "true"), (0, 2, 2, True, "false")],
        publish=[
            (S // 2, 0, 10, "e", 100),
            (2 * S, 0, 11, "e", 100),
            (3 * S, 0, 12, "e", 100),
            (4 * S, 0, 13, "e", 100),
        ],
        deliver=[
            (S // 2, 1, 10, 1, S // 2, 1, "join_event"),
            (2 * S, 0, 11, 1, 2 * S, 0, "local"),
            (2 * S + 1, 1, 11, 1, 2 * S, 1, "join_event"),
            (3 * S + 1, 1, 12, 1, 3 * S, 1, "data"),
            (6 * S, 1, 13, 1, 4 * S, 2, "data"),
        ],
        frame=[
            (0, S // 2, S // 2 + 1, 0, None, "join_event", 0, 10, 1, 1000),
            (1, 2 * S, 2 * S + 1, 0, None, "join_event", 0, 11, 1, 120),
            (2, 3 * S, 3 * S + 1, 0, None, "data", 0, 12, 1, 100),
        ],
        reception=[
            *((0, node, "received") for node in (1, 2)),
            *((1, node, "received") for node in (1, 2)),
            (2, 1, "received"),
            (2, 2, "collision"),
        ],
    )
    return Run("r", facts, simulated=10.0, warmup=1.0, nodes=4, protocol="odmrp")


@pytest.fixture(scope="module")
def measured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float | None]:
    out: Path = write_campaign(tmp_path_factory.mktemp("incoming"), [by_hand()])
    table = run_measures(read(spark, out), [MEASURES[name] for name in NAMES])
    return dict(zip(table["measure"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_by_hand(measured: dict[str, float | None]) -> None:
    assert measured == {
        "bytes_in": (220 + 120) / 4,
        "messages_in": 3 / 4,
        "bytes_in_receivers": (220 + 120) / 2,
        "bytes_in_receiver_1": 220,
        "bytes_in_receiver_2": 120,
        "bytes_in_receiver_3": None,  # there are only two
        "bytes_in_unserved": 120 / 220,
        "throughput": 3 / 4,  # events 11, 12 and 13, from 2 s to 6 s
        "in_join_requests": 1 / 3,
    }
