"""When, where and with what: for readers of a report."""

import platform
from datetime import UTC, datetime

import pytest

from roamcast.campaign.define import provenance


def test_it_tells_date_machine_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    found = provenance.provenance(datetime(2026, 11, 1, 9, 5, tzinfo=UTC))
    assert found["date"] == "2026-11-01 09:05 UTC"
    assert ", 1 core, " in found["machine"]
    assert platform.node() not in found["machine"]
    assert {"roamcast", "python", "pyspark", "numpy", "numba"} == set(found["versions"])


def test_a_system_that_does_not_tell_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_CPU_FILE", provenance._CPU_FILE / "nowhere")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert provenance.machine().startswith("riscv64, ")
