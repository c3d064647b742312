"""Tells systemd that the node is ready, and that its loop still runs (`sd_notify(3)`). Does nothing without systemd."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Sends `READY=1`, `WATCHDOG=1` or `STOPPING=1` to the service manager, if there is one."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    address = "\0" + place[1:] if place.startswith("@") else place
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.setblocking(False)
        out.sendto(state.encode(), address)
