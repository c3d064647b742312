"""Measures of whole campaigns: against numbers worked out by hand, and against the summary of real runs."""

import json
import math
import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.measured import MS, Run, S, tables, write_campaign
from roamcast.campaign.measured import About
from roamcast.campaign.schemas import PAIRED_ARROW, RUN_MEASURES_ARROW, SUMMARY_ARROW
from roamcast.content.rows import filter_rows
from roamcast.content.text import parse_filter
from roamcast.errors import RoamcastError
from roamcast.facts.pairs import AGES
from roamcast.facts.sinks import MemorySink
from roamcast.facts.summary import Summary, summarise
from roamcast.pipeline.measures import (
    MEASURES,
    Facts,
    Measure,
    caches,
    catalogue,
    causes,
    measure,
    read,
    repairs,
    run_measures,
    stable_core,
    tree,
)
from roamcast.pipeline.measures import facts as facts_module
from roamcast.pipeline.measures import pairs as pairs_module
from roamcast.pipeline.measures.by_run import rows_of_runs
from roamcast.pipeline.measures.deadlines import within
from roamcast.sim.run import run
from roamcast.sim.scenario import check

PAGE = Path(__file__).parents[2] / "docs" / "measures.md"


def typed(event: int, type_: str) -> tuple[Any, ...]:
    return event, "", "str", None, None, type_, None


def price(event: int, amount: int) -> tuple[Any, ...]:
    return event, "price", "int", amount, None, None, None


def asked(filters: Mapping[int, str]) -> list[tuple[Any, ...]]:
    return [tuple(row) for number, text in filters.items() for row in filter_rows(number, parse_filter(text))]


def by_hand() -> Run:
    """Seven nodes in a row, 100 m apart; two want something, and four events are published."""
    facts = tables(
        subscribe=[(0, 1, 1, True, "price < 20"), (0, 2, 2, True, "true")],
        filter_constraint=asked({1: "price < 20", 2: "true"}),
        publish=[(1 * S, 0, 10, "t", 50), (5 * S, 0, 11, "t", 50), (6 * S, 0, 12, "t", 50), (7 * S, 0, 13, "t", 50)],
        event_attribute=[typed(event, "t") for event in (10, 11, 12, 13)]
        + [price(10, 5), price(11, 10), price(12, 20), price(13, 19)],
        deliver=[
            (2 * S, 1, 10, 1, 1 * S, 9, "hello"),  # published in the warm-up: counts for nothing but its carrier
            (5 * S + 10 * MS, 1, 11, 1, 5 * S, 1, "data"),
            (5 * S + 20 * MS, 2, 11, 2, 5 * S, 2, "data"),
            (5 * S + 30 * MS, 2, 11, 2, 5 * S, 3, "data"),  # once more
            (6 * S + 60 * MS, 2, 12, 2, 6 * S, 3, "data"),
            (6 * S + 70 * MS, 1, 12, 1, 6 * S, 3, "data"),  # does not match
            (6 * S + 80 * MS, 5, 12, 2, 6 * S, 3, "data"),  # a node that never subscribed
        ],
        series=[
            (4, "data", *[100] * 9),  # begins in the warm-up
            (5, "data", 4, 4000, 2 * MS, 8, 1, 2, 3, 4, 5),
            (5, "beacon", 5, 500, 1 * MS, 10, 0, 0, 0, 0, 0),
            (6, "data", 2, 2000, 1 * MS, 4, 1, 0, 0, 0, 0),
            (6, "hello", 1, 100, 1 * MS, 0, 0, 0, 0, 0, 0),
            (6, "background", 50, 5000, 1 * MS, 2, 0, 0, 0, 0, 0),
        ],
        transmit=[
            (0, "data", "data", 0, 1, 1, 100, 2 * MS, *[0] * 6),
            (0, "beacon", "beacon", 0, 1, 1, 100, 1 * MS, *[0] * 6),
            (1, "data", "data", 0, 1, 1, 100, 1 * MS, *[0] * 6),
            (2, "background", "background", 0, 1, 1, 100, 9 * MS, *[0] * 6),
        ],
        note=[(0, "duplicate", 2), (1, "duplicate", 3), (1, "dropped", 1)],
        # Node 6 leaves at 6 s, and is out of reach at 8 s and 9 s.
        leg=[(node, 0, 100 * S, 100.0 * node, 0.0, 100.0 * node, 0.0, False) for node in range(6)]
        + [(6, 6 * S, 8 * S, 600.0, 0.0, 600.0, 200.0, False), (6, 0, 6 * S, 600.0, 0.0, 600.0, 0.0, False)]
        + [(6, 8 * S, 90 * S, 600.0, 200.0, 600.0, 200.0, False)],
    )
    radio = json.dumps({"radio": {"range": [100.0, 300.0 - 2 * 37.5]}})  # drawn: 162.5 m on average
    return Run("hand", facts, simulated=10.0, warmup=4.5, nodes=7, scenario=radio, experiment="hand")


CHAIN = 6 + math.sqrt(162.5**2 - 100**2) / 100 - 4.5
"""For how long node 6 is in range after the warm-up, s: from 6 s on it leaves at 100 m/s."""
APART = 5.5 - CHAIN

BY_HAND = {
    "delivery": 2 / 3,  # of 11 all, of 12 all, of 13 none
    "events": 3,
    "pairs_expected": 5,  # 11: both; 12: one, at 20; 13: both
    "pairs_delivered": 3,
    "hops_mean": 2.0,
    "delay_mean": 0.03,
    "delay_p50": 0.02,
    "delay_p95": 0.06,
    "delay_p99": 0.06,
    "overhead": 12 / 3,
    "overhead_data": 7 / 3,
    "bits_per_delivery": 6600 / 3,
    "airtime_per_delivery": 5 / 3,
    "duplicates": 5 / 3,
    "airtime_jain": 4**2 / (7 * (3**2 + 1**2)),  # 3 ms and 1 ms; five nodes sent nothing
    "airtime_most": 3 / 4,
    # 5 ms sent. Heard: 12 + 2 + 3 frames of data of 0.5 ms each, 10 beacons of 0.2 ms: 10.5 ms. Of 7 nodes in 5.5 s.
    "energy_per_delivery": (1.3272 * 0.005 + 0.96696 * 0.0105 + 0.84372 * (38.5 - 0.0155)) / 3,
    "energy_beyond_idle": (483.48 * 0.005 + 123.24 * 0.0105) / 3,
    "lost_collision": 2 / 40,  # 24 received; 2, 2, 3, 4 and 5 lost
    "lost_half_duplex": 2 / 40,
    "lost_random": 3 / 40,
    "queue_full": 4 / 40,
    "unreachable": 5 / 40,
    # A chain of seven until node 6 is 162.5 m from node 5, from then on one of six, and a node alone.
    "degree_mean": (12 * CHAIN + 10 * APART) / (5.5 * 7),
    "partitions_mean": (CHAIN + 2 * APART) / 5.5,
    "largest_partition": (CHAIN + APART * 6 / 7) / 5.5,
    "island_size": 7 * 5.5 / (CHAIN + 2 * APART),
    "island_size_by_node": (CHAIN * 49 + APART * 37) / (5.5 * 7),
    # Looked at at 4.5, 5.5 and 6.5 s, and at 7.5, 8.5 and 9.5 s.
    "island_hops": (3 * 6 + 3 * 5) / (3 + 3 * 2),
    "island_hops_by_node": (3 * 7 * 6 + 3 * 6 * 5) / (6 * 7),
    "island_hops_max": 6,
    "contact_time": None,  # none began after the warm-up
    "intercontact_time": None,
    "contact_breaks": 60 / 5.5,
    "link_changes": 1 / 5.5,
    "pairs_connected": (CHAIN + APART * 30 / 42) / 5.5,
    "path_hops": 8 / 3,  # looked at once, when it is a chain: 1 hop six times, 2 five times, … of 21 pairs
    # There is always a way from 0 to 1 and 2, who are the subscribers.
    "possible": 1,
    "possible_at_once": 1,
    "possible_interested": 1,
    "delivered_of_possible": 3 / 5,
    # 11 and 12 are old enough for 1 s, and 13 too; nothing is old enough for 10 s.
    "satisfaction_1": 3 / 5,
    "possible_1": 1,
    "delivered_of_possible_1": 3 / 5,
    "delay_restricted_1": (0.01 + 0.02 + 0.06 + 1 + 1) / 5,
    **{one.name: None for one in within(10, 60, 600)},
    **{f"possible_{age}": None for age in AGES},
    **{f"possible_interested_{age}": None for age in AGES},
    "satisfaction_1800": None,
    "satisfaction_3600": None,
    "satisfaction_5400": None,
    "satisfaction_7200": None,
    "throughput": 2 / 1.08,  # 11 and 12, from 5 s to the last delivery at 6.08 s
    "mbit": 0.0066,
    "requests_share": 0,
    **dict.fromkeys(("context_pairs", "context_beyond", "delivery_context")),  # nothing has a context
    "mbit_per_cube": None,  # there is no area
    # No frames were recorded, and it is not ODMRP.
    **dict.fromkeys(("bytes_in", "messages_in", "bytes_in_receivers", "bytes_in_unserved", "in_join_requests")),
    **dict.fromkeys(f"bytes_in_receiver_{number}" for number in range(1, 6)),
    **dict.fromkeys(("aged_1800", "aged_3600", "aged_5400", "age_peak")),
    # There is no tree: see test_measures_tree.py.
    **{one.name: None for family in (caches, causes, tree, repairs, stable_core) for one in family.MEASURES},
}


def slow() -> Run:
    """Documents that take their time: an hour and 40 minutes, of which the last ten seconds are too short for most."""
    hour = 3600 * S
    facts = tables(
        subscribe=[(0, 1, 1, True, "true"), (0, 2, 2, True, "true")],
        filter_constraint=asked({1: "true", 2: "true"}),
        publish=[(0, 0, 10, "t", 50), (2400 * S, 0, 11, "t", 50), (2401 * S, 0, 12, "t", 50)],
        event_attribute=[typed(event, "t") for event in (10, 11, 12)],
        deliver=[
            (1800 * S, 1, 10, 1, 0, 1, "data"),
            (1800 * S + 1, 2, 10, 2, 0, 1, "data"),
            (2400 * S + hour, 2, 11, 2, 2400 * S, 1, "data"),
            (2402 * S, 2, 12, 2, 2401 * S, 1, "data"),
        ],
    )
    return Run("slow", facts, simulated=6000.0, seed=2, experiment="slow")


def nothing() -> Run:
    return Run("nothing", tables(), experiment="hand", seed=2)


def failed() -> Run:
    return Run("failed", tables(), experiment="hand", seed=3, status="failed")


def simulated(
    name: str,
    seed: int,
    protocol: str,
    experiment: str = "real",
    lifetime: float | None = None,
    **changes: Any,  # noqa: ANN401  # as in a scenario
) -> Run:
    """A real run, with subscriptions that come and go."""
    groups = [
        {"count": 6, "filter": ['category = "jazz" and price < 20', 'category = "rock"', "price >= 12.5"]},
        {"count": 4, "filter": "true", "start": 8.0, "stop": 21.5},
    ]
    said = {"category": ["jazz", "rock", "folk"], "price": {"low": 5.0, "high": 40.0}}
    raw = {
        "seed": seed,
        "nodes": 30,
        "duration": 30,
        "warmup": 5.5,
        "area": {"width": 500, "height": 500},
        "radio": {"range": 150},
        "protocol": {"name": protocol},
        "workload": {
            "disjoint": False,
            "subscribers": groups,
            "publishers": [{"count": 8, "rate": 1.0, "timing": "poisson", "attributes": said, "lifetime": lifetime}],
        },
        **changes,
    }
    scenario, facts = check(raw, name, Path()), MemorySink()
    run(scenario, facts)
    encoded = msgspec.json.encode(scenario).decode()
    return Run(name, facts.tables(), 30.0, 5.5, 30, encoded, protocol, 0, seed, experiment)


LINKS: dict[str, Any] = {
    "area": None,
    "radio": {"propagation": "links"},
    "links": {"up": [[n, n + 1] for n in range(29)]},
}


@pytest.fixture(scope="module")
def real_runs() -> list[Run]:
    moving = [simulated(f"{name}{seed}", seed, name) for name in ("flooding", "gossip") for seed in (1, 2)]
    return [
        *moving,
        simulated("linked", 3, "flooding", **LINKS),
        # Unicast, beacons and background traffic, which is no cost; and subscribers served from what nodes hold.
        simulated("loaded", 4, "coman", "loaded", background={"rate": 0.2, "size": 100}),
        simulated("carried", 5, "opportunistic", "carried", lifetime=4.0),
    ]


@pytest.fixture(scope="module")
def out(spark: SparkSession, real_runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A folder whose name Spark could take for a pattern, or trip over.
    folder = tmp_path_factory.mktemp("campaign") / "out [1] {ü}*"
    write_campaign(folder, [by_hand(), slow(), nothing(), failed(), *real_runs])
    # Left by an attempt that the manifest knows nothing of: nobody looks at it.
    (folder / "facts" / "deliver" / "stray.parquet").write_bytes(b"half a file")
    measure(spark, folder)
    return folder


def table(out: Path, name: str) -> pa.Table:
    return pq.read_table(out / "measures" / f"{name}.parquet", partitioning=None)


def of_run(out: Path, name: str) -> dict[str, float | None]:
    return {row["measure"]: row["value"] for row in table(out, "run").to_pylist() if row["run"] == name}


def test_every_measure_of_a_small_run(out: Path) -> None:
    assert set(BY_HAND) == set(MEASURES)
    assert of_run(out, "hand") == pytest.approx(BY_HAND)


def test_satisfaction_leaves_out_what_is_too_young(out: Path) -> None:
    measured = of_run(out, "slow")
    assert measured["satisfaction_1800"] == pytest.approx(2 / 6)  # one a nanosecond late, one an hour
    assert measured["satisfaction_3600"] == pytest.approx(3 / 4)  # 12 came at once, but is too young by a second
    assert measured["satisfaction_5400"] == pytest.approx(2 / 2)
    assert measured["satisfaction_7200"] is None


def test_a_run_in_which_nothing_happened_has_counts_and_no_means(out: Path) -> None:
    counts = {"events": 0, "pairs_expected": 0, "pairs_delivered": 0}
    assert of_run(out, "nothing") == dict.fromkeys(MEASURES) | counts


def test_a_run_that_failed_is_not_measured(out: Path) -> None:
    assert of_run(out, "failed") == {}


SAME = {
    "delivery": "delivery",
    "events": "events",
    "pairs_expected": "pairs_expected",
    "pairs_delivered": "pairs_delivered",
    "hops_mean": "hops_mean",
    "delay_mean": "delay_mean",
    "delay_p50": "delay_p50",
    "delay_p95": "delay_p95",
    "delay_p99": "delay_p99",
    "overhead": "packets_per_pair",
    "overhead_data": "carrier_packets_per_pair",
    "bits_per_delivery": "bits_per_pair",
}


def shares(summary: Summary) -> dict[str, float]:
    meant = summary.receptions + sum(summary.losses.values())
    names = {"collision": "lost_collision", "half_duplex": "lost_half_duplex", "random_loss": "lost_random"}
    return {names.get(reason, reason): count / meant for reason, count in summary.losses.items()}


def test_real_runs_have_the_numbers_of_their_summary(out: Path, real_runs: list[Run]) -> None:
    for one in real_runs:
        summary = summarise(one.facts, one.warmup)
        expected = {name: getattr(summary, theirs) for name, theirs in SAME.items()} | shares(summary)
        expected["duplicates"] = summary.notes.get("duplicate", 0) / summary.pairs_delivered
        measured = of_run(out, one.name)
        assert {name: measured[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        assert summary.pairs_delivered > 50


def test_the_topology_of_a_real_run_is_within_what_it_can_be(out: Path) -> None:
    moving, linked = of_run(out, "gossip1"), of_run(out, "linked")
    # 30 nodes in 500 x 500 m see those within 150 m: 8 of 29 if they were spread evenly and there were no edges.
    assert moving["degree_mean"] is not None
    assert 4 < moving["degree_mean"] < 16
    assert moving == of_run(out, "gossip1") | {
        name: of_run(out, "flooding1")[name] for name in ("degree_mean", "partitions_mean", "largest_partition")
    }
    assert [linked[name] for name in ("degree_mean", "partitions_mean", "largest_partition")] == [58 / 30, 1, 1]
    assert [linked[name] for name in ("island_hops", "contact_time", "contact_breaks")] == [29, None, 0]


def test_the_summary_goes_over_the_seeds(out: Path) -> None:
    rows = {(row["experiment"], row["variant"], row["measure"]): row for row in table(out, "summary").to_pylist()}
    assert len(rows) == 6 * len(MEASURES)
    first, second = (of_run(out, name)["delivery"] or math.nan for name in ("gossip1", "gossip2"))
    mean, sd = (first + second) / 2, abs(first - second) / math.sqrt(2)
    assert rows["real", "gossip", "delivery"] == {
        "experiment": "real",
        "variant": "gossip",
        "point": 0,
        "axes": '{"credits": 0}',
        "measure": "delivery",
        "n": 2,
        "mean": pytest.approx(mean),
        "sd": pytest.approx(sd),
        "low": pytest.approx(mean - 12.7062047 * sd / math.sqrt(2)),
        "high": pytest.approx(mean + 12.7062047 * sd / math.sqrt(2)),
    }
    # Of three seeds one failed and one delivered nothing.
    lone = rows["hand", "flooding", "delivery"]
    assert [lone[name] for name in ("n", "mean", "sd", "low", "high")] == [1, pytest.approx(2 / 3), None, None, None]
    absent = rows["hand", "flooding", "satisfaction_1800"]
    assert [absent[name] for name in ("n", "mean", "sd", "low", "high")] == [0, None, None, None, None]


def test_variants_are_compared_seed_by_seed(out: Path) -> None:
    rows = {(row["variant"], row["baseline"], row["measure"]): row for row in table(out, "paired").to_pylist()}
    assert {(variant, baseline) for variant, baseline, _ in rows} == {("gossip", "flooding"), ("flooding", "gossip")}
    differences = [
        (of_run(out, f"gossip{seed}")["overhead"] or 0) - (of_run(out, f"flooding{seed}")["overhead"] or 0)
        for seed in (1, 2)
    ]
    row = rows["gossip", "flooding", "overhead"]
    assert (row["experiment"], row["point"], row["axes"], row["n"]) == ("real", 0, '{"credits": 0}', 2)
    assert row["mean"] == pytest.approx(sum(differences) / 2)
    assert row["sd"] == pytest.approx(abs(differences[0] - differences[1]) / math.sqrt(2))
    assert rows["flooding", "gossip", "overhead"]["mean"] == pytest.approx(-row["mean"])
    parts = [100 * part / (of_run(out, f"flooding{n}")["overhead"] or 0) for n, part in enumerate(differences, 1)]
    assert (row["relative_n"], row["relative_mean"]) == (2, pytest.approx(sum(parts) / 2))


def test_the_tables_are_as_their_schemas_say_and_in_order(out: Path) -> None:
    for name, schema in {"run": RUN_MEASURES_ARROW, "summary": SUMMARY_ARROW, "paired": PAIRED_ARROW}.items():
        assert table(out, name).schema.equals(schema)
    keys = [(row["run"], row["measure"]) for row in table(out, "run").to_pylist()]
    assert keys == sorted(set(keys))
    assert list((out / "tmp").iterdir()) == []


def test_measuring_again_gives_the_same_bytes(spark: SparkSession, out: Path) -> None:
    before = {path.name: path.read_bytes() for path in (out / "measures").iterdir()}
    assert sorted(before) == ["about.json", "made_from.json", "paired.parquet", "run.parquet", "summary.parquet"]
    measure(spark, out)
    assert {path.name: path.read_bytes() for path in (out / "measures").iterdir()} == before


# --- What can be wrong ----------------------------------------------------------------------------------------------


def test_an_unknown_measure_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [failed()])
    with pytest.raises(RoamcastError, match=r"no measure is named 'delivry'; there are delivery, events"):
        measure(spark, tmp_path, ["delivery", "delivry"])


def test_a_folder_without_a_manifest_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RoamcastError, match=r"runs\.parquet: cannot be read"):
        measure(spark, tmp_path)


def test_a_campaign_in_which_all_failed_has_tables_without_values(spark: SparkSession, tmp_path: Path) -> None:
    write_campaign(tmp_path, [failed()])
    measure(spark, tmp_path, ["delivery", "overhead", "degree_mean"])
    assert table(tmp_path, "run").equals(RUN_MEASURES_ARROW.empty_table())
    rows = table(tmp_path, "summary").select(["measure", "n", "mean"]).to_pylist()
    assert rows == [{"measure": name, "n": 0, "mean": None} for name in ("degree_mean", "delivery", "overhead")]
    assert table(tmp_path, "paired").equals(PAIRED_ARROW.empty_table())


def test_an_id_that_stood_for_two_filters_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    subscribe = [(0, 1, 1, True, "price < 20"), (5, 2, 1, True, "true")]
    facts = tables(subscribe=subscribe, filter_constraint=asked({1: "price < 20"}) + asked({1: "true"}))
    write_campaign(tmp_path, [Run("twice", facts)])
    with pytest.raises(PySparkException, match=r"run twice: the filter 'price < 20' of subscription 1"):
        measure(spark, tmp_path, ["delivery"])


def constant(name: str, value: str, times: int = 1) -> Measure:
    def function(facts: Facts) -> DataFrame:
        once = facts.runs.selectExpr("run", f"{value} AS value")
        return once if times == 1 else once.unionAll(once)

    return Measure(About(name=name), function)


def test_a_measure_must_give_one_value_a_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_campaign(tmp_path, [nothing()])
    monkeypatch.setitem(MEASURES, "double", constant("double", "1", times=2))
    with pytest.raises(RoamcastError, match="measure 'double' must give one value a run: 2 for 1 runs"):
        measure(spark, tmp_path, ["double"])
    wrong = Measure(About(name="wrong"), lambda facts: facts.runs.select("run", "warmup"))
    with pytest.raises(RoamcastError, match="measure 'wrong' must give the columns run and value, not run, warmup"):
        run_measures(read(spark, tmp_path), [wrong])


# --- Measures from outside ------------------------------------------------------------------------------------------


def page_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EntryPoint:
    """The example of the page as an installed module, and the entry point that its TOML declares."""
    blocks = dict(part.split("\n", 1) for part in PAGE.read_text(encoding="utf-8").split("```")[1::2])
    (tmp_path / "my_measures.py").write_text(blocks["python"], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    header, declared = blocks["toml"].strip().splitlines()
    assert header == '[project.entry-points."roamcast.measures"]'
    name, value = declared.split(" = ")
    return EntryPoint(name, json.loads(value), "roamcast.measures")


def test_the_example_of_the_page_is_a_measure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = catalogue([page_example(tmp_path, monkeypatch)])
    assert set(known) == {*MEASURES, "busiest"}
    counted = [(0, "data", 0, 1, 1, S, *[0] * 6), (0, "ack", 0, 1, 1, S, *[0] * 6), (1, "data", 0, 1, 1, S, *[0] * 6)]
    write_campaign(tmp_path, [Run("a", tables(transmit=counted), simulated=10.0), Run("b", tables(), seed=2)])
    rows = run_measures(read(spark, tmp_path), [known["busiest"]]).to_pylist()
    assert sorted(rows, key=lambda row: row["run"]) == [
        {"run": "a", "measure": "busiest", "value": 0.2},
        {"run": "b", "measure": "busiest", "value": None},
    ]


def test_the_page_has_every_measure_with_its_unit() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    described: dict[str, str] = {}
    for line in lines:
        names, unit, *_ = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:])
        described |= {name.strip("` "): unit for name in names.split(",")}
    assert {name: unit for name, unit in described.items() if not name.endswith(".parquet")} == {
        one.name: one.about.unit for one in MEASURES.values()
    }


def test_entry_points_that_cannot_be_measures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from roamcast.campaign.measured import About\n"
        "from roamcast.pipeline.measures import MEASURES, Measure\n"
        "NUMBER = 7\n"
        "SAME = Measure(About(name='delivery'), MEASURES['delivery'].function)\n"
    )
    (tmp_path / "bad_measures.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RoamcastError, match=r"bad_measures:NUMBER of roamcast.measures is 7, not a Measure"):
        catalogue([EntryPoint("number", "bad_measures:NUMBER", "roamcast.measures")])
    with pytest.raises(RoamcastError, match=r"bad_measures:SAME .* 'delivery' is the name of another"):
        catalogue([EntryPoint("same", "bad_measures:SAME", "roamcast.measures")])


# --- What must not grow with the number of runs ---------------------------------------------------------------------


def test_many_files_are_read_as_a_folder_and_runs_are_joined(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand names of files or runs in a plan would take Spark longer than the facts."""
    monkeypatch.setattr(facts_module, "_NAMED", 2)
    some = [Run(f"run-{number}", tables(publish=[(S, 0, number, "t", 50)])) for number in range(4)]
    write_campaign(tmp_path, some)
    whole = read(spark, tmp_path).table("publish")
    assert "InMemoryFileIndex(1 paths)" in plan_of(whole)
    assert {row.run for row in whole.collect()} == {"run-0", "run-1", "run-2", "run-3"}

    three = Facts(spark, tmp_path, only=frozenset(["run-0", "run-1", "run-3"])).table("publish")
    assert "InMemoryFileIndex(1 paths)" in plan_of(three)
    assert "LeftSemi" in plan_of(three)
    assert not any(f"run-{number}" in plan_of(three) for number in range(4))
    assert {row.run for row in three.collect()} == {"run-0", "run-1", "run-3"}


def plan_of(frame: DataFrame) -> str:
    text: str = frame._jdf.queryExecution().toString()
    return text


def test_the_outcome_of_a_run_is_worked_out_once_for_all_measures(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[frozenset[str]] = []

    def noted(facts: Facts, runs: frozenset[str], *others: Any) -> DataFrame:  # noqa: ANN401  # as the original
        made.append(runs)
        return rows_of_runs(facts, runs, *others)

    monkeypatch.setattr(pairs_module, "rows_of_runs", noted)
    write_campaign(tmp_path, [by_hand()])
    measure(spark, tmp_path, ["delivery", "delay_mean", "delay_p95", "hops_mean", "overhead"])
    assert made == [frozenset(["hand"])]
