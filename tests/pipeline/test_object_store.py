"""Campaigns in an object store: Python's side with moto's server, Spark's with a scheme mapped to a folder."""

import contextlib
import json
import logging
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession

import roamcast
from pipeline.measured import Run, S, tables, write_campaign
from pipeline.tiny import planned
from roamcast.campaign.folder.recorded import open_run
from roamcast.campaign.folder.survey import check_same_campaign
from roamcast.campaign.folder.upload import upload
from roamcast.campaign.folder.verify import verify
from roamcast.cli.main import main
from roamcast.errors import ConfigError, RoamcastError
from roamcast.facts.schema import FACTS_VERSION
from roamcast.pipeline.facts import CampaignFacts
from roamcast.pipeline.measure import measure
from roamcast.pipeline.simulate import simulate
from roamcast.report import write_report
from roamcast.storage import Store, _filesystem, local_path

NAMES = ["delivery", "overhead", "airtime_jain", "events"]
WANTED = {  # by hand: one event, two subscribers, one of them reached; ten packets; airtimes of 3 and 1 among 3 nodes
    "delivery": 0.5,
    "overhead": 10.0,
    "airtime_jain": 16 / (3 * 10),
    "events": 1.0,
}


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Of processes that are to find the server."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else its requests may end up in a verb's output
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "whatever",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    server.stop()


@pytest.fixture
def bucket(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    _filesystem.cache_clear()
    made = urllib.request.Request(f"{environment['AWS_ENDPOINT_URL']}/campaigns", method="PUT")
    urllib.request.urlopen(made).close()
    return "campaigns"


@pytest.fixture
def spark_there(spark: SparkSession, environment: dict[str, str]) -> Iterator[SparkSession]:
    """A session whose Python workers find the server: its JVM is older than that."""
    workers: dict[str, Any] = spark.sparkContext.environment
    before = dict(workers)
    workers.update(environment)
    yield spark
    workers.clear()
    workers.update(before)


def counters(**counted: int) -> list[int]:
    """The rest of a row of `series` or `transmit`."""
    columns = ("messages", "packets", "bits", "airtime", "receptions", "collision", "half_duplex", "random_loss")
    return [counted.get(name, 0) for name in (*columns, "queue_full", "unreachable")]


def campaign(out: Path, *runs: str) -> Path:
    facts = tables(
        subscribe=[(0, node, node, True, "true") for node in (1, 2)],
        filter_constraint=[(node, 0, 1, 0, "", "exists", "any", None, None, None, None) for node in (1, 2)],
        publish=[(S, 0, 1, "t", 10)],
        event_attribute=[(1, "", "str", None, None, "t", None)],
        deliver=[(2 * S, 1, 1, 1, S, 1, "data")],
        series=[(1, "data", "data", *counters(packets=10))],
        transmit=[(node, "data", "data", 0, *counters(airtime=airtime)) for node, airtime in ((0, 3), (1, 1))],
    )
    write_campaign(out, [Run(name, facts, seed=seed) for seed, name in enumerate(runs or ["one"])])
    (out / "campaign.json").write_text(json.dumps({"version": FACTS_VERSION, "experiments": []}))
    (out / "facts" / "publish" / "orphan.parquet").write_bytes(b"of an earlier plan")
    return out


def pack_of(out: Path, table: str) -> str:
    """The name of the file with a table's facts."""
    (found,) = (out / "facts" / table).glob("pack-*.parquet")
    return found.relative_to(out).as_posix()


def measured(out: Path) -> dict[str, float]:
    rows = pq.read_table(out / "measures" / "run.parquet", partitioning=None).to_pylist()
    return {row["measure"]: row["value"] for row in rows}


def test_a_campaign_is_published_verified_and_measured_there(
    spark_there: SparkSession, tmp_path: Path, bucket: str
) -> None:
    out, there = campaign(tmp_path / "out"), Store.at(f"s3a://{bucket}/one/")
    assert str(there) == f"s3://{bucket}/one"
    assert upload(out, there) == 11  # seven tables and their index, runs, manifest and campaign.json
    assert "facts/publish/orphan.parquet" not in there.sizes(recursive=True)
    assert verify(there) == (1, [])
    measure(spark_there, there, NAMES)
    for name in there.sizes("measures"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(there.read(name))
    assert measured(tmp_path) == pytest.approx(WANTED)

    found = roamcast.load(str(there), spark_there)
    assert found.results.to_pylist()[0]["delivery"] == 0.5
    assert found.facts("deliver").num_rows == 1
    assert [row.airtime for row in found.sql("select airtime from transmit order by airtime").collect()] == [1, 3]

    assert upload(out, there) == 4  # the facts are there
    there.write(pack_of(out, "deliver"), b"something else")
    assert "facts/deliver" in verify(there)[1][0]
    assert upload(out, there) == 5
    assert verify(there) == (1, [])


@pytest.mark.parametrize("packed", [False, True])
def test_verbs_measure_and_report_what_is_in_a_store(
    packed: bool, spark_there: SparkSession, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign that was simulated here is measured and reported there, with the same tables and the same page."""
    out, there = tmp_path / "out", Store.at(f"s3://{bucket}/{'packed' if packed else 'plain'}")
    simulate(spark_there, planned(tmp_path, seeds=2), out)
    upload(out, there, packed=packed)
    monkeypatch.setattr("roamcast.pipeline.session.session", lambda *_, **__: contextlib.nullcontext(spark_there))
    for words in (["measure", str(there), "delivery", "overhead"], ["report", str(there)]):
        result = CliRunner().invoke(main, words, catch_exceptions=False)
        assert (result.exit_code, result.stdout.splitlines()[-1].startswith(str(there))) == (0, True)

    measure(spark_there, out, ["delivery", "overhead"])
    write_report(out)
    made = [path.relative_to(out).as_posix() for part in ("measures", "report") for path in (out / part).rglob("*.*")]
    assert "report/index.html" in made
    assert {name: there.read(name) for name in made} == {name: (out / name).read_bytes() for name in made}

    upload(out, Store.at(tmp_path / "copy"), packed=packed)
    run = min(pq.read_table(out / "manifest.parquet")["run"].to_pylist())
    assert open_run(tmp_path / "copy" / run).tables == open_run(out / run).tables


def test_a_packed_copy_is_few_files_and_says_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roamcast.campaign.folder.packs.RUNS_PER_PACK", 2)
    out, copy = campaign(tmp_path / "out", "one", "three", "two"), Store.at(tmp_path / "copy")
    # Seven tables of three runs in two files each, an index; runs, manifest and campaign.json.
    assert upload(out, copy, packed=True) == 7 * 2 + 1 + 3
    assert verify(copy) == (3, [])
    measure(spark, copy, NAMES)
    assert measured(tmp_path / "copy") == pytest.approx(WANTED)
    found = roamcast.load(tmp_path / "copy", spark)
    assert found.facts("deliver").sort_by("run")["run"].to_pylist() == ["one", "three", "two"]
    assert found.frame("transmit").count() == 6

    again = Store.at(tmp_path / "again")
    upload(tmp_path / "copy", again)
    assert verify(again) == (3, [])
    assert CampaignFacts(spark, tmp_path / "again", again).table("transmit").count() == 6
    with pytest.raises(RoamcastError, match="is not empty and is not a campaign's folder"):
        upload(out, Store.at(tmp_path))

    file = tmp_path / "copy" / "facts" / "deliver" / "packed-00001.parquet"
    file.write_bytes((tmp_path / "copy" / "facts" / "deliver" / "packed-00000.parquet").read_bytes())
    problems = verify(copy)[1]
    assert "its digest differs" in problems[0]
    with pytest.raises(RoamcastError, match="packed copy of a campaign"):
        check_same_campaign(planned(tmp_path), tmp_path / "copy")


def test_spark_reads_a_scheme_that_it_knows_by_itself(
    spark: SparkSession, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, there = campaign(tmp_path / "out"), Store.at(f"s3://{bucket}/two")
    upload(out, there)
    settings = {
        "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        f"fs.viewfs.mounttable.{bucket}.link./two": out.as_uri(),
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        rows = CampaignFacts(spark, out, there).table("transmit")
        assert sorted(row.airtime for row in rows.collect()) == [1, 3]
        assert rows.inputFiles() == [f"s3a://{bucket}/two/{pack_of(out, 'transmit')}"]
    finally:
        for key in settings:
            spark.conf.unset(key)


def test_a_default_file_system_that_is_not_this_machine_breaks_nothing(spark: SparkSession, tmp_path: Path) -> None:
    out = campaign(tmp_path / "a folder, with {odd} [letters]*")
    spark.conf.set("fs.defaultFS", "nowhere://at.all")
    try:
        with pytest.raises(Exception, match="nowhere"):
            spark.read.parquet(str(out / pack_of(out, "transmit")))
        assert CampaignFacts(spark, out, Store.at(out)).table("transmit").count() == 2
        measure(spark, out, NAMES)
    finally:
        spark.conf.unset("fs.defaultFS")
    assert measured(out) == pytest.approx(WANTED)


def test_what_is_wrong_with_a_store_is_said_by_its_name(tmp_path: Path, bucket: str) -> None:
    with pytest.raises(RoamcastError, match="s3://nobodys/x: there is no campaign"):
        verify(Store.at("s3://nobodys/x"))
    with pytest.raises(RoamcastError, match=r"s3://nobodys/x/campaign\.json"):
        Store.at("s3://nobodys/x").write("campaign.json", b"")
    with pytest.raises(RoamcastError, match="s3://campaigns/none: there is no campaign"):
        verify(Store.at(f"s3://{bucket}/none"))
    with pytest.raises(RoamcastError, match=r"is not a finished campaign: runs\.parquet is missing"):
        upload(tmp_path, Store.at(f"s3://{bucket}/x"))


@pytest.mark.parametrize(
    "words",
    [
        ["campaign", "examples/campaigns/range.toml", "--out", "hdfs://x/y"],
        ["papers", "hint", "--out", "hdfs://x/y"],
        ["choose", "examples/flooding.toml", "--out", "hdfs://x/y"],
        ["run", "examples/flooding.toml", "--out", "hdfs://x/y"],
        ["verify", "hdfs://x/y"],
        ["report", "hdfs://x/y"],
        ["measure", "hdfs://x/y"],
        ["sql", "hdfs://x/y", "select 1"],
        ["upload", "out", "hdfs://x/y"],
        ["traces", "import", "hdfs://x/y", "--out", "t"],
        ["traces", "import", "t.csv", "--out", "hdfs://x/y"],
        ["traces", "describe", "hdfs://x/y"],
        ["traces", "contacts", "hdfs://x/y", "--range", "10", "--out", "t"],
        ["traces", "export", "examples/flooding.toml", "--format", "ns2", "--out", "hdfs://x/y"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_verb_refuses_a_scheme_that_it_does_not_know(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "hdfs" in result.output
    assert not list(tmp_path.iterdir())


def test_a_campaign_is_not_simulated_into_an_object_store() -> None:
    with pytest.raises(ConfigError, match="roamcast upload"):
        local_path("s3://bucket/x")
    with pytest.raises(ConfigError, match="names no bucket"):
        Store.at("s3:///")
