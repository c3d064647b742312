"""What measures call is compiled beforehand, so that no process that measures has to."""

import os
from pathlib import Path
from typing import Any

import pytest

from analysis.runs import by_hand, values_of
from roamcast.analysis import compilation, kernels


def compiled() -> dict[str, list[Any]]:
    return {name: list(one.signatures) for name, one in vars(kernels).items() if hasattr(one, "signatures")}


def test_no_measure_compiles_anything_after_the_kernels_are_loaded() -> None:
    compilation.load_kernels()
    before = compiled()
    assert {name for name, signatures in before.items() if signatures} >= {"pass_by", "look", "earliest", "relayed"}
    found = values_of(by_hand())
    assert None not in (found["possible"], found["degree_mean"], found["pairs_connected"])
    assert compiled() == before


def test_a_cold_cache_is_noticed_without_loading_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(compilation, "load_kernels", loaded.append)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compilation.compile_if_needed(print)
    assert loaded == [print]
    kept = tmp_path / "analysis_1234" / "kernels.relayed-1.py311.nbi"
    kept.parent.mkdir()
    kept.touch()
    compilation.compile_if_needed(print)
    assert loaded == [print], "newer than the source"
    os.utime(kept, (1, 1))
    compilation.compile_if_needed(print)
    assert loaded == [print, print], "older than the source"
