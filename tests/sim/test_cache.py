"""The compiled code that numba keeps between processes must never be that of an older source."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from small import answer
print(answer(1))
"""
SOURCE = """
from numba import njit

@njit(cache=True)
def inner(x):
    return x + {number}

@njit(cache=True)
def answer(x):
    return inner(x)
"""


def test_one_file_is_recompiled_after_an_edit(tmp_path: Path) -> None:
    """What `kernel.py` relies on by being one file: a callee's edit invalidates its callers beside it."""

    def ask() -> str:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    source = tmp_path / "small.py"
    source.write_text(SOURCE.format(number=10))
    assert ask() == "11"
    assert list(tmp_path.glob("__pycache__/*.nbc")), "nothing was cached: the test would prove nothing"
    source.write_text(SOURCE.format(number=200))
    assert ask() == "201"


def test_compiled_files_do_not_call_each_other() -> None:
    package = Path(__file__).parents[2] / "src" / "roamcast"
    compiled = [path for path in package.rglob("*.py") if "njit" in path.read_text()]
    assert sorted(path.name for path in compiled) == ["kernel.py", "kernels.py"]
    for path in compiled:
        others = {other.stem for other in compiled} - {path.stem}
        assert not any(f"import {name}" in path.read_text() or f".{name} import" in path.read_text() for name in others)
