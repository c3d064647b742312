"""The nodes' processes: they are the program, their ends are reported, and none is left behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from multiprocessing import forkserver as standard
from pathlib import Path

import pytest

from roamcast.lab.processes import LabError, Process, Processes

PATIENCE = 60


def node_args(folder: Path, number: int) -> list[str]:
    return [
        *("node", "--id", str(number), "--insecure", "--store", str(folder / f"{number}.store")),
        *("--air", "127.0.0.1:9", "--api", f"unix:{folder / str(number)}"),
    ]


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def wait_until_gone(pids: list[int]) -> None:
    until = time.monotonic() + PATIENCE
    while not all(map(gone, pids)):
        assert time.monotonic() < until, "a process was left behind"
        time.sleep(0.02)


async def test_a_process_is_the_program(tmp_path: Path) -> None:
    async with Processes() as forkserver:
        process = await forkserver.start("a", ["protocols"], tmp_path / "log")
        assert await process.ended == 0
        refused = await forkserver.start("b", ["node", "--id", "-1"], tmp_path / "refused")
        assert await refused.ended == 2
        assert "a node's number" in refused.last_words()
        with pytest.raises(LabError, match=r"b: it ended before it was ready \(2\): error: --id -1"):
            await refused.ready


async def test_a_node_is_ready_ends_when_asked(tmp_path: Path) -> None:
    deaths: list[Process] = []
    async with Processes(on_death=deaths.append) as forkserver:
        node = await forkserver.start("node 3", node_args(tmp_path, 3), tmp_path / "log")
        said = await asyncio.wait_for(node.ready, PATIENCE)
        assert said["node"] == 3
        assert await forkserver.stop([node], PATIENCE) == []
        assert node.ended.result() == 0
    assert deaths == []


async def test_a_death_is_told_with_its_signal_and_the_others_live_on(tmp_path: Path) -> None:
    deaths: list[Process] = []
    async with Processes(on_death=deaths.append) as forkserver:
        nodes = [await forkserver.start(f"node {n}", node_args(tmp_path, n), tmp_path / f"{n}.log") for n in range(3)]
        for node in nodes:
            await asyncio.wait_for(node.ready, PATIENCE)
        os.kill(nodes[1].pid, signal.SIGKILL)
        assert await asyncio.wait_for(nodes[1].ended, PATIENCE) == -signal.SIGKILL
        assert deaths == [nodes[1]]
        assert [node.alive for node in nodes] == [True, False, True]
    wait_until_gone([node.pid for node in nodes])
    assert deaths == [nodes[1]]  # the end of the forkserver is nobody's death


async def test_a_process_that_does_not_end_is_made_to(tmp_path: Path) -> None:
    async with Processes() as forkserver:
        node = await forkserver.start("node 1", node_args(tmp_path, 1), tmp_path / "log")
        await asyncio.wait_for(node.ready, PATIENCE)
        os.kill(node.pid, signal.SIGSTOP)
        assert await forkserver.stop([node], 0.2) == [node]
        assert node.ended.result() == -signal.SIGKILL


async def test_whoever_stops_waiting_for_an_end_does_not_spoil_it_for_the_others(tmp_path: Path) -> None:
    async with Processes() as forkserver:
        node = await forkserver.start("node 3", node_args(tmp_path, 3), tmp_path / "log")
        waiting = [asyncio.create_task(node.wait()), asyncio.create_task(forkserver.stop([node], PATIENCE))]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        forkserver.signal(node, signal.SIGKILL)
        assert await asyncio.wait_for(node.wait(), PATIENCE) in (-signal.SIGKILL, -signal.SIGTERM, 0)


async def test_a_node_started_after_the_forkserver_was_killed_has_a_new_one(tmp_path: Path) -> None:
    async with Processes() as forkserver:
        node = await forkserver.start("node 1", node_args(tmp_path, 1), tmp_path / "log")
        os.kill(standard._forkserver._forkserver_pid, signal.SIGKILL)  # type: ignore[attr-defined]  # has no public name
        assert await asyncio.wait_for(node.ended, PATIENCE) == 255
        wait_until_gone([node.pid])
        other = await forkserver.start("node 2", node_args(tmp_path, 2), tmp_path / "other")
        assert (await asyncio.wait_for(other.ready, PATIENCE))["node"] == 2
    wait_until_gone([other.pid])


LEAVE = """
    import asyncio, sys
    from multiprocessing import forkserver as standard
    from pathlib import Path
    from roamcast.lab.processes import Processes

    async def main():
        async with Processes() as forkserver:
            started = [await forkserver.start(f"node {n}", args + ["--id", str(n), "--store", f"{folder}/{n}.store",
                       "--api", f"unix:{folder}/{n}"], Path(folder) / f"{n}.log") for n in range(2)]
            for one in started:
                await one.ready
            print(standard._forkserver._forkserver_pid, *(one.pid for one in started), flush=True)
            await asyncio.sleep(3600)

    folder, args = sys.argv[1], ["node", "--insecure", "--air", "127.0.0.1:9"]
    asyncio.run(main())
"""


@contextlib.contextmanager
def leaving(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A lab in a process of its own: it, and the ids of the fork server and of two nodes."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LEAVE), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as lab:
        assert lab.stdout is not None
        pids = [int(word) for word in lab.stdout.readline().split()]
        assert len(pids) == 3
        yield lab, pids


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_whatever_ends_the_lab_ends_its_processes(tmp_path: Path, how: signal.Signals) -> None:
    with leaving(tmp_path) as (lab, pids):
        lab.send_signal(how)
        lab.wait(PATIENCE)
        wait_until_gone(pids)


def test_children_go_with_a_forkserver_that_is_killed(tmp_path: Path) -> None:
    with leaving(tmp_path) as (lab, pids):
        os.kill(pids[0], signal.SIGKILL)
        wait_until_gone(pids)
        lab.kill()
        lab.wait(PATIENCE)
