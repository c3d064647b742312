"""The sockets of a link: its own, for sending and for unicast, and one on the broadcast port that all nodes of a host
share, so that each hears every broadcast."""

import asyncio
import socket
from contextlib import suppress
from typing import Final

from roamcast.live.link.limits import LinkProblem
from roamcast.live.link.neighbours import Address
from roamcast.live.link.settings import LinkSettings

RECEIVE_BUFFER: Final = 2**20
"""Octets requested from the kernel, which may give less: room for a burst while the node is busy."""


async def resolve(host: str, port: int) -> Address:
    """Resolves a name to an IPv4 address, once: `sendto` would resolve it for every datagram."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, family=socket.AF_INET, type=socket.SOCK_DGRAM, proto=0
        )
    except (OSError, UnicodeError) as problem:
        raise LinkProblem(f"{host} is not an IPv4 address: {problem}") from None
    return str(found[0][4][0]), int(found[0][4][1])


def interface_index(name: str | None) -> int | None:
    """The system's index of an interface, which changes if it goes and comes back; None: there is no such interface."""
    try:
        return None if name is None else socket.if_nametoindex(name)
    except OSError:
        return None


def own_socket(settings: LinkSettings) -> socket.socket:
    return _bound(settings, (settings.bind, 0), shared=False)


def shared_socket(settings: LinkSettings) -> socket.socket:
    return _bound(settings, ("", settings.port), shared=True)


def _bound(settings: LinkSettings, address: Address, *, shared: bool) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        with suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # On Linux the former is enough, and nodes of different users may share the port; elsewhere it is not.
            if not hasattr(socket, "SO_BINDTODEVICE") and hasattr(socket, "SO_REUSEPORT"):
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if settings.interface is not None:
            _to_interface(made, settings.interface)
        made.bind(address)
    except OSError as problem:
        made.close()
        raise LinkProblem(f"no socket on {address[0] or 'any address'} port {address[1]}: {problem.strerror}") from None
    except BaseException:
        made.close()
        raise
    return made


def _to_interface(made: socket.socket, interface: str) -> None:
    try:
        option = socket.SO_BINDTODEVICE
    except AttributeError:
        raise LinkProblem("this system cannot bind to an interface; name its broadcast address instead") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, option, interface.encode() + b"\0")
    except PermissionError:
        raise LinkProblem(
            f"binding to interface {interface} needs CAP_NET_RAW; or name its broadcast address instead"
        ) from None
    except OSError:
        known = ", ".join(name for _, name in socket.if_nameindex())
        raise LinkProblem(f"there is no interface {interface}: this machine has {known}") from None
