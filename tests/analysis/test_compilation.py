"""What measures call is compiled beforehand, so that no process that measures has to."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from analysis.runs import by_hand, values_of
from roamcast.analysis import compilation, kernels
from roamcast.sim.core import compilation as simulator


def compiled() -> dict[str, list[Any]]:
    return {name: list(one.signatures) for name, one in vars(kernels).items() if hasattr(one, "signatures")}


def test_no_measure_compiles_anything_after_the_kernels_are_loaded() -> None:
    compilation.load_kernels()
    before = compiled()
    assert {name for name, signatures in before.items() if signatures} >= {"pass_by", "look", "earliest", "relayed"}
    found = values_of(by_hand())
    assert None not in (found["possible"], found["degree_mean"], found["pairs_connected"])
    assert compiled() == before


@pytest.mark.parametrize(
    ("module", "load", "kept"),
    [
        (compilation, "load_kernels", "analysis_1234/kernels.relayed-1.py311.nbi"),
        (simulator, "load_kernel", "sim_1234/kernel._advance-1.py311.nbi"),
    ],
    ids=["measures", "simulator"],
)
def test_a_cold_cache_is_noticed_without_loading_anything(
    module: ModuleType, load: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(module, load, loaded.append)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    module.compile_if_needed(print)
    assert loaded == [print]
    (tmp_path / kept).parent.mkdir()
    (tmp_path / kept).touch()
    module.compile_if_needed(print)
    assert loaded == [print], "newer than the source"
    os.utime(tmp_path / kept, (1, 1))
    module.compile_if_needed(print)
    assert loaded == [print, print], "older than the source"
