"""Telling systemd that the node is ready, and that its loop still turns (`sd_notify(3)`). Without systemd, nothing."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """`READY=1`, `WATCHDOG=1` or `STOPPING=1`, to whoever started us and wants to know."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    address = "\0" + place[1:] if place.startswith("@") else place
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.setblocking(False)
        out.sendto(state.encode(), address)
