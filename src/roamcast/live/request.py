"""One HTTP request to a node's API, by the standard library, which takes a tenth of aiohttp's time to load; and whose
certificates it trusts."""

import http.client
import socket
import ssl
from pathlib import Path

from roamcast.errors import ConfigError
from roamcast.live.places import Address


def trusted(certificate: Path | str | None) -> ssl.SSLContext:
    """A TLS context that trusts this certificate, or those that the system trusts."""
    try:
        return ssl.create_default_context(cafile=certificate)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(f"{certificate}: cannot be used as a certificate: {problem.strerror or problem}") from None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def request(
    address: Address,
    tls: ssl.SSLContext | None,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    timeout: float,
) -> tuple[int, bytes]:
    """The status and the content of the answer. Raises `OSError`."""
    connection: http.client.HTTPConnection
    if address.path:
        connection = _UnixConnection(address.path, timeout)
    elif tls is None:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
    else:
        connection = http.client.HTTPSConnection(address.host, address.port, timeout=timeout, context=tls)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as problem:
        raise ConnectionError(str(problem) or "it does not speak HTTP") from problem
    finally:
        connection.close()
