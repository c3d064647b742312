"""What `bench simulator --ns3` finds out about the ns-3 that it compares with; the comparison itself needs one."""

import shutil
from pathlib import Path

import pytest
from bench import ns3

HAS_TOOLS = shutil.which("pkg-config") is not None and shutil.which("g++") is not None


@pytest.mark.parametrize(
    ("library", "built"),
    [
        (b"\0_ZN3ns312LogComponentC1ERKNSt\0", "built with logs, built without asserts"),
        (b'\0assert failed. cond="\0', "built without logs, built with asserts"),
        (b"\0_ZNK3ns312LogComponent9IsEnabledE\0", "built without logs, built without asserts"),
    ],
)
def test_a_library_shows_how_it_was_built(library: bytes, built: str) -> None:
    assert ns3.told(library) == built


def test_a_path_without_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ns3.found(str(tmp_path)) is None
    assert capsys.readouterr().out.startswith(f"no ns-3 with lib/pkgconfig is in {tmp_path}")


@pytest.mark.skipif(not HAS_TOOLS, reason="pkg-config or g++ is not installed")
def test_the_one_at_a_path_goes_before_the_installed_one(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "pkgconfig"
    folder.mkdir(parents=True)
    for module in ns3.MODULES:
        (folder / f"{module}.pc").write_text(f"Name: {module}\nDescription: none\nVersion: 9.9\n")
    found = ns3.found(str(tmp_path))
    assert found is not None
    assert found.version == "9.9"
    assert ns3.environment(tmp_path)["LD_LIBRARY_PATH"] == str(tmp_path / "lib")
