"""Network namespaces on a bridge: a real interface and real broadcast for every node, on one machine. It needs root.

The rule this file owns: nothing has to be cleaned up. The namespaces have no names, so they end with their processes;
the bridge is in the fork server's own namespace, and a cable (veth pair) ends with either of its ends. However the lab
ends, the kernel removes everything.
"""

import ctypes
import os
import shutil
import subprocess
from typing import Final

from roamcast.errors import RoamcastError

INTERFACE: Final = "eth0"
"""The name of a node's interface in its namespace."""
BROADCAST: Final = "10.255.255.255"
_BRIDGE: Final = "air"
_CLONE_NEWNET: Final = 0x40000000


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


def enter_new() -> None:
    """Moves this process into a new, empty network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise NamespaceError(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")


def make_bridge() -> None:
    """Makes the bridge, in this process's namespace."""
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("link", "set", _BRIDGE, "up")


def plug_in(pid: int) -> None:
    """Connects the namespace of a process to the bridge."""
    _ip("link", "add", f"v{pid}", "type", "veth", "peer", "name", INTERFACE, "netns", str(pid))
    _ip("link", "set", f"v{pid}", "master", _BRIDGE, "up")


def configure(address: str) -> None:
    """Gives this process's end of the cable an address."""
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{address}/8", "broadcast", BROADCAST, "dev", INTERFACE)
    _ip("link", "set", INTERFACE, "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NamespaceError(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")
