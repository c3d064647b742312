"""The two tables that a campaign commits together, and a process that is killed between them."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from roamcast.campaign.folder.layout import MANIFEST_FILE, RUNS_FILE, read_commit, write_commit
from roamcast.campaign.folder.schemas import MANIFEST_ARROW, RUNS_ARROW
from roamcast.errors import RoamcastError

_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from campaign.test_folder import write
replace = Path.replace
left = [{renames}]
def replace_or_die(self, target):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return replace(self, target)
Path.replace = replace_or_die
write(Path({out!r}), 2)
"""


def write(out: Path, seeds: int) -> None:
    place = {"experiment": "e", "variant": "v", "point": 0, "axes": "{}", "scenario": "{}", "folder": "."}
    runs = [{"run": f"r{seed}", "seed": seed, "estimate": 1.0, **place} for seed in range(seeds)]
    done = {"status": "ok", "simulated": 1.0, "warmup": 0.0, "nodes": 1, "protocol": "p", "rows": [], "digest": ""}
    manifest: list[dict[str, Any]] = [{"run": run["run"], "error": None, **done} for run in runs]
    write_commit(out, pa.Table.from_pylist(runs, RUNS_ARROW), pa.Table.from_pylist(manifest, MANIFEST_ARROW))


def names(out: Path) -> tuple[list[str], list[str]]:
    runs, manifest = read_commit(out)
    return runs["run"].to_pylist(), manifest["run"].to_pylist()


@pytest.mark.parametrize(("renames", "committed"), [(0, ["r0"]), (1, ["r0", "r1"])])
def test_killed_while_it_commits(renames: int, committed: list[str], tmp_path: Path) -> None:
    write(tmp_path, 1)
    script = _KILLED.format(tests=str(Path(__file__).parents[1]), renames=renames, out=str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", script], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert names(tmp_path) == (committed, committed)
    assert names(tmp_path) == (committed, committed)  # and again, now that it is mended
    write(tmp_path, 3)
    assert names(tmp_path) == (["r0", "r1", "r2"],) * 2


def test_tables_of_two_commits_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 1)
    former = (tmp_path / MANIFEST_FILE).read_bytes()
    write(tmp_path, 2)
    (tmp_path / MANIFEST_FILE).write_bytes(former)
    with pytest.raises(RoamcastError, match="do not belong together"):
        read_commit(tmp_path)


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RoamcastError, match="is not a campaign's folder"):
        read_commit(tmp_path)
    (tmp_path / RUNS_FILE).write_bytes(b"PAR1")
    with pytest.raises(RoamcastError, match="cannot be read"):
        read_commit(tmp_path)
