"""What a node is told when it starts, checked before anything is opened."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from roamcast.config.errors import decode, suggestion
from roamcast.config.values import typed_value
from roamcast.content.event import MAX_NODE
from roamcast.errors import ConfigError
from roamcast.live.store import Sync
from roamcast.protocols.catalogue import find
from roamcast.protocols.entry import Entry

DEFAULT_PORT: Final = 47474
DEFAULT_CONTROL: Final = "127.0.0.1:47475"
CONTROL_VARIABLE: Final = "ROAMCAST_CONTROL"
TOKEN_VARIABLE: Final = "ROAMCAST_TOKEN_FILE"
_MIN_TOKEN: Final = 16
_MAX_TOKEN: Final = 1024


class Address(NamedTuple):
    """Where a control API is: a host and a port, or the path of a Unix socket."""

    host: str
    port: int
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> "Address":
        if text.startswith("unix:"):
            if not text.removeprefix("unix:"):
                raise ConfigError(f"control address {text!r}: expected unix:PATH")
            return cls("", 0, text.removeprefix("unix:"))
        return cls(*host_and_port(text, "control address"))

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
    """`HOST:PORT`; an IPv6 address stands in brackets."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{what} {text!r}: expected HOST:PORT, such as 127.0.0.1:47475")
    return host, int(port)


def default_store(node: int) -> Path:
    """Where the store of a node is unless it is told otherwise: one place, wherever the node is started from."""
    if "STATE_DIRECTORY" in os.environ:  # systemd's
        folder = Path(os.environ["STATE_DIRECTORY"])
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "roamcast"
    return folder / f"node-{node}.store"


def read_token(path: Path) -> str:
    """The one line of a token file."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_MAX_TOKEN + 1).decode("ascii").strip()
    except OSError as problem:
        raise ConfigError(f"{path}: the token cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    if mode & 0o007:
        raise ConfigError(f"{path}: the token is open to every user of this machine; close it with: chmod 600 {path}")
    if not _MIN_TOKEN <= len(text) <= _MAX_TOKEN or not text.isprintable() or " " in text:
        raise ConfigError(
            f"{path}: a token is one line of {_MIN_TOKEN} to {_MAX_TOKEN} visible ASCII characters; make one "
            f"with: (umask 077; openssl rand -hex 32 > {path})"
        )
    return text


def parameters(entry: Entry, changes: Iterable[str]) -> msgspec.Struct:
    """A protocol's parameters with changes `NAME=VALUE`, values as in TOML; what is not TOML is text."""
    raw: dict[str, Any] = {}
    known = {field.encode_name: field.type for field in msgspec.structs.fields(entry.parameters)}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set {change}: expected NAME=VALUE, such as jitter=0.01")
        if name not in known:
            hint = suggestion(name, known, "it has")
            raise ConfigError(f"--set {change}: {entry.name} has no parameter {name!r}; {hint}")
        raw[name] = typed_value(text)
        decode(raw[name], known[name], f"--set {change}", ConfigError, path=name)
    return decode(raw, entry.parameters, "--set", ConfigError)


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """All that a node is told."""

    node: int
    protocol: str = "flooding"
    changes: tuple[str, ...] = ()
    """Of the protocol's parameters: `NAME=VALUE`."""
    key: Path | None = None
    old_key: Path | None = None
    """Of a network that changes its key: frames sealed with it are opened too."""
    insecure: bool = False
    store: Path | None = None
    """None: `default_store`."""
    sync: Sync = "full"
    port: int = DEFAULT_PORT
    address: str = "255.255.255.255"
    """Where broadcasts go."""
    interface: str | None = None
    air: tuple[str, int] | None = None
    """Where every datagram goes instead: an ether."""
    control: str = DEFAULT_CONTROL
    token_file: Path | None = None
    facts: Path | None = None
    decisions: bool = False
    """Whether the facts have what the broker decides about each event."""
    epoch: int | None = None
    """Wall-clock ns that are time 0; None: the first start with this store."""
    seed: str | None = None
    """Of the broker's chance, with the first event of a new store having the serial 1; None: both by chance."""
    here: str | None = None
    attributes: str | None = None
    """Where they come from; see `senses.py`."""
    sense_interval: float = 5.0
    folder: Path = field(default_factory=Path)
    """Where a protocol of one's own (`file.py:name`) is looked for."""

    def __post_init__(self) -> None:
        if not 0 <= self.node <= MAX_NODE:
            raise ConfigError(f"--id {self.node}: a node's number is from 0 to {MAX_NODE}")
        if self.key is None and not self.insecure:
            raise ConfigError(
                "a node needs the network's key: make one with 'roamcast key new FILE', copy it to every node, and "
                "give --key FILE; or say --insecure, and whoever is in range may read everything and say anything"
            )
        if self.old_key is not None and self.key is None:
            raise ConfigError("--old-key goes with --key: the old key is opened beside the new one")
        if self.key is not None and self.insecure:
            raise ConfigError("--key and --insecure exclude each other: with a key every frame is sealed")
        address = Address.parse(self.control)
        if not address.local and self.token_file is None:
            raise ConfigError(
                f"--control {self.control}: others can reach this address, so it needs --token-file FILE; "
                "or use a loopback address or unix:PATH"
            )

    def entry(self) -> Entry:
        """The protocol. Refused if it needs what the node is not told."""
        entry = find(self.protocol, self.folder)
        if self.decisions and self.facts is None:
            raise ConfigError("--decisions goes with --facts DIR: that is where they are written")
        return entry
