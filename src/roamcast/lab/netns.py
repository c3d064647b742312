"""Network namespaces on a bridge: a real interface and real broadcast for every node, on one machine. It needs root.

The rule this file owns: nothing has to be cleaned up. The namespaces have no names, so they end with their processes;
the bridge is in that of a process of its own, and a cable (veth pair) ends with either of its ends. However the lab
ends, the kernel removes everything.
"""

import ctypes
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from roamcast.errors import RoamcastError

INTERFACE: Final = "eth0"
"""The name of a node's interface in its namespace."""
BROADCAST: Final = "10.255.255.255"
_BRIDGE: Final = "air"
_CLONE_NEWNET: Final = 0x40000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class NamespaceError(RoamcastError):
    """The kernel refuses, or a tool is missing."""


def check_possible() -> None:
    """Raises `NamespaceError`, saying what to do, if namespaces cannot be used."""
    if os.geteuid() != 0:
        raise NamespaceError("--netns needs root, for network namespaces: start it with sudo, or leave --netns out")
    if shutil.which("ip") is None:
        raise NamespaceError("--netns needs the command ip: install iproute2, or leave --netns out")


def address_of(node: int) -> str:
    """A node's address in 10.0.0.0/8; never the network's own or the broadcast address."""
    return f"10.{(node + 1) >> 16 & 255}.{(node + 1) >> 8 & 255}.{(node + 1) & 255}"


def make_bridge() -> None:
    """Moves this process into a new network namespace, and makes the bridge there."""
    _enter_new()
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("link", "set", _BRIDGE, "up")


def join(bridge: int, address: str) -> None:
    """Moves this process into a new network namespace, with a cable to the bridge that another process has made."""
    _enter_new()
    cable, me = f"v{os.getpid()}", str(os.getpid())
    with Path(f"/proc/{bridge}/ns/net").open() as there:
        _ip("link", "add", cable, "type", "veth", "peer", "name", INTERFACE, "netns", me, inside=there.fileno())
        _ip("link", "set", cable, "master", _BRIDGE, "up", inside=there.fileno())
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{address}/8", "broadcast", BROADCAST, "dev", INTERFACE)
    _ip("link", "set", INTERFACE, "up")


def _enter_new() -> None:
    """Moves this process into a new, empty network namespace."""
    if _LIBC.unshare(_CLONE_NEWNET) != 0:
        raise NamespaceError(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")


def _ip(*words: str, inside: int | None = None) -> None:
    """Runs the command `ip`, in this process's namespace or in another, by its open file."""
    enter = None if inside is None else partial(_LIBC.setns, inside, _CLONE_NEWNET)
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode:
        raise NamespaceError(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")
