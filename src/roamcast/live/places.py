"""Where nodes are on this machine and how to reach one: the address of its API, its token, its store.

Verbs that only talk to a node import this file and not a node's settings, which know the protocols.
"""

import os
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from roamcast.errors import ConfigError

API_VARIABLE: Final = "ROAMCAST_API"
TOKEN_VARIABLE: Final = "ROAMCAST_TOKEN_FILE"
CERTIFICATE_VARIABLE: Final = "ROAMCAST_TLS_CERT"
_MIN_TOKEN: Final = 16
MAX_SECRET: Final = 1024


class Address(NamedTuple):
    """Where the API of a node is: a host and a port, or the path of a Unix socket."""

    host: str
    port: int
    path: str = ""

    @classmethod
    def parse(cls, text: str, what: str = "address") -> "Address":
        """`what` is the option, for errors."""
        scheme, _, path = text.partition(":")
        if scheme == "unix" and path:
            return cls("", 0, path)
        try:
            return cls(*host_and_port(text, what))
        except ConfigError as problem:
            raise ConfigError(f"{problem}, or unix:PATH") from None

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def host_and_port(text: str, what: str) -> tuple[str, int]:
    """Parses `HOST:PORT`; an IPv6 address is in brackets."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or "/" in host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{what} {text!r}: expected HOST:PORT, such as 127.0.0.1:47475")
    return host, int(port)


def _state_folder() -> Path:
    """The same place, wherever a node is started from."""
    if "STATE_DIRECTORY" in os.environ:  # set by systemd
        return Path(os.environ["STATE_DIRECTORY"])
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "roamcast"


def default_store(node: int) -> Path:
    """The default path of a node's store."""
    return _state_folder() / f"node-{node}.store"


def default_bridge_state(broker: Address) -> Path:
    """The default path of the state of a bridge to this broker."""
    return _state_folder() / f"bridge-{broker.host.replace(':', '-')}-{broker.port}.state"


def default_address(node: int) -> Address:
    """The default address of a node's API: a Unix socket beside the default store."""
    return Address("", 0, str(_state_folder() / f"node-{node}.socket"))


def find_address() -> Address:
    """The API address of the one node that this user runs on this machine at its default address."""
    running = [path for path in sorted(_state_folder().glob("node-*.socket")) if answers(path)]
    if len(running) == 1:
        return Address("", 0, str(running[0]))
    if running:
        numbers = ", ".join(path.stem.removeprefix("node-") for path in running)
        raise ConfigError(f"several nodes run here: {numbers}; say which one with --node NUMBER")
    raise ConfigError(
        f"no node answers in {_state_folder()}: start one with 'roamcast node', or say where it is with --api or "
        f"{API_VARIABLE}"
    )


def answers(path: Path) -> bool:
    """Whether a process listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def read_secret(path: Path, what: str) -> str:
    """The one line of a file that others must not read; "" if it is not one line of text."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(MAX_SECRET + 1).decode().strip()
    except OSError as problem:
        raise ConfigError(f"{path}: the {what} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    if mode & 0o007:
        raise ConfigError(f"{path}: the {what} is open to every user of this machine; close it with: chmod 600 {path}")
    return text if len(text) <= MAX_SECRET and text.isprintable() else ""


def read_token(path: Path) -> str:
    """The one line of a token file."""
    text = read_secret(path, "token")
    if len(text) < _MIN_TOKEN or not text.isascii() or " " in text:
        raise ConfigError(
            f"{path}: a token is one line of {_MIN_TOKEN} to {MAX_SECRET} visible ASCII characters; make one "
            f"with: (umask 077; openssl rand -hex 32 > {path})"
        )
    return text
