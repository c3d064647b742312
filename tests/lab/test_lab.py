"""The lab's own parts, and one whole run with parameters, files and subscriptions that end."""

import asyncio
import os
import signal
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.twins import LINE, Facts, delivered, linked, reported, simulated
from roamcast.config.toml_file import toml_value
from roamcast.facts.sinks import MemorySink
from roamcast.lab.lab import Death, Lab, LabReport, work_folder
from roamcast.lab.processes import LabError
from roamcast.units import SECOND

VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # TOML knows no DEL in a text, and no lone surrogates.
    | st.text(st.characters(exclude_characters="\x7f", codec="utf-8")),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text("abc", min_size=1), parts, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_a_parameter_reaches_its_node_as_it_is(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


def test_a_death_is_told_in_words() -> None:
    assert (
        str(Death(3, 2 * SECOND, -9, "it printed nothing")) == "node 3 ended by SIGKILL after 2.0 s: it printed nothing"
    )
    assert str(Death(3, -1, 1, "error: no disk")) == "node 3 ended with status 1 before the start: error: no disk"


def test_a_report_is_whole_if_nothing_went_wrong() -> None:
    assert LabReport(missed=3).whole
    broken = LabReport(deaths=[Death(0, 0, 1, "x")], stubborn=[4], refused=["node 5 at 1.000 s: no"])
    assert not broken.whole
    assert [problem.partition(" ")[2][:1] for problem in broken.problems()] == ["0", "4", "5"]


def test_a_temporary_folder_with_a_long_name_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(LabError, match="TMPDIR"), work_folder():
        pass
    assert list(long.iterdir()) == []


async def test_a_node_that_dies_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    workload = {
        "subscribers": [{"nodes": [1]}],
        "publishers": [{"nodes": [0], "rate": 10.0, "start": 0.5, "stop": 3.5}],
    }
    with work_folder() as work:
        async with Lab(linked(LINE, "flooding", duration=4.0, workload=workload), Path(), work) as lab:
            await lab.populate()
            driving = asyncio.create_task(lab.drive())
            while lab.now < SECOND:
                await asyncio.sleep(0.05)
            os.kill(lab.processes[3].pid, signal.SIGKILL)
            await driving
        sink = MemorySink()
        lab.gather(sink)
    [death] = lab.report.deaths
    assert (death.node, death.status) == (3, -signal.SIGKILL)
    assert 1 * SECOND <= death.time < 4 * SECOND
    assert not lab.report.whole
    assert len(delivered(sink.tables())) == 30


async def test_a_node_that_cannot_start_ends_the_lab_with_its_reason(tmp_path: Path) -> None:
    scenario = linked(LINE, "flooding")
    with work_folder() as work:
        async with Lab(scenario, Path(), work) as lab:
            (work / "key").unlink()
            with pytest.raises(LabError, match=r"node 0: it ended before it was ready \(2\): error: the key"):
                await lab.populate()


def column(facts: Facts, table: str, *names: str) -> list[tuple[object, ...]]:
    return list(zip(*(facts[table].column(name).to_pylist() for name in names), strict=True))


async def test_the_facts_are_those_of_the_simulator_but_for_the_times() -> None:
    workload = {
        "subscribers": [{"nodes": [4], "filter": ["price < 20", 'type = "offer"']}, {"nodes": [2], "stop": 1.5}],
        "publishers": [
            {
                "nodes": [0],
                "rate": 4.0,
                "start": 0.5,
                "stop": 2.5,
                "type": "offer",
                "attributes": {"price": {"low": 1, "high": 40}, "place": ["here", "there"]},
                "size": 3000,
            }
        ],
    }
    scenario = linked(LINE, "flooding", seed=2, duration=3.3, workload=workload, parameters={"jitter": 0.002})
    live, report = await reported(scenario)
    assert report.whole, list(report.problems())
    twin = simulated(scenario)
    for table, names in (
        ("subscribe", ("node", "subscription", "active", "filter")),
        ("filter_constraint", tuple(twin["filter_constraint"].column_names)),
        ("publish", ("node", "event", "type", "size")),
        ("event_attribute", tuple(twin["event_attribute"].column_names)),
        ("link", tuple(twin["link"].column_names)),
    ):
        assert column(live, table, *names) == column(twin, table, *names), table
    assert delivered(live) == delivered(twin)
    hops = {(event, node): hop for event, node, hop in column(live, "deliver", "event", "node", "hops")}
    assert set(hops.values()) == {2, 4}
    # Every event is acted on at its time, or after it.
    for (then,), (now,) in zip(column(twin, "publish", "time"), column(live, "publish", "time"), strict=True):
        assert isinstance(then, int)
        assert isinstance(now, int)
        assert now >= then
    # 3,000 bytes take three datagrams; every node sends each of the eight events once.
    packets = [packets for kind, packets in column(live, "series", "kind", "packets") if kind == "data"]
    assert sum(packet for packet in packets if isinstance(packet, int)) == 8 * 5 * 3
