"""A node's settings, checked before anything is opened."""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import msgspec

from roamcast.config.errors import decode, suggestion
from roamcast.config.values import typed_value
from roamcast.content.event import MAX_NODE
from roamcast.errors import ConfigError
from roamcast.live.facts import DEFAULT_LIMIT
from roamcast.live.gps import Gps, Origin
from roamcast.live.places import Address, default_address, host_and_port
from roamcast.live.store import Sync
from roamcast.protocols.catalogue import find
from roamcast.protocols.entry import Entry

DEFAULT_PORT: Final = 47474


def parameters(entry: Entry, changes: Iterable[str]) -> msgspec.Struct:
    """A protocol's parameters with changes `NAME=VALUE`, values as in TOML; anything else is text."""
    raw: dict[str, Any] = dict(entry.on_devices)
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
    """All settings of a node."""

    node: int
    protocol: str = "roam"
    changes: tuple[str, ...] = ()
    """Changes of the protocol's parameters: `NAME=VALUE`."""
    key: Path | None = None
    old_key: Path | None = None
    """While a network changes its key: frames sealed with the old key are accepted too."""
    insecure: bool = False
    unsigned: bool = False
    """Events are neither signed nor checked: for closed networks whose members all trust each other."""
    members: Path | None = None
    """The owner's certificates and revocations."""
    store: Path | None = None
    """None: `default_store`."""
    sync: Sync = "full"
    port: int = DEFAULT_PORT
    address: str = "255.255.255.255"
    """Where broadcasts go."""
    interface: str | None = None
    air: tuple[str, int] | None = None
    """Where every datagram goes instead: an ether."""
    control: str | None = None
    """Where the API is; None: `default_address`."""
    mqtt: str | None = None
    """Where MQTT is spoken; None: nowhere."""
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """The API's certificate and its private key; both or none."""
    facts: Path | None = None
    facts_limit: int = DEFAULT_LIMIT
    """Bytes that all facts may take; beyond that, the oldest are removed."""
    decisions: bool = False
    """Whether the facts include what the broker decides about each event."""
    epoch: int | None = None
    """Wall-clock ns that are time 0; None: the first start with this store."""
    seed: str | None = None
    """Seed of the broker's random numbers; it also makes 1 the first serial of a new store. None: both are random."""
    here: str | None = None
    attributes: str | None = None
    """The source of the attributes; see `senses.py`."""
    sense_interval: float = 5.0
    gps: str | None = None
    """Where gpsd is, `HOST:PORT`; None: the position comes from elsewhere."""
    origin: str | None = None
    """Where x and y are 0: `LAT,LON`, in degrees."""
    folder: Path = field(default_factory=Path)
    """Where the path of a protocol of your own (`file.py:name`) starts."""

    def __post_init__(self) -> None:
        if not 0 <= self.node <= MAX_NODE:
            raise ConfigError(f"--id {self.node}: a node's number is from 0 to {MAX_NODE}")
        if self.key is None and not self.insecure:
            raise ConfigError(
                "a node needs the network's key: make one with 'roamcast key new FILE', copy it to every node, and "
                "give --key FILE; or --insecure, and anyone in range can read and forge messages"
            )
        if self.old_key is not None and self.key is None:
            raise ConfigError("--old-key needs --key: the old key is accepted beside the new one")
        if self.key is not None and self.insecure:
            raise ConfigError("--key and --insecure exclude each other: with a key every frame is sealed")
        if self.unsigned and self.members is not None:
            raise ConfigError("--unsigned cannot be combined with --members: nothing is checked without signatures")
        if (self.gps is None) != (self.origin is None):
            raise ConfigError("--gps and --origin LAT,LON go together: positions are in metres from the origin")
        if self.gps is not None and self.here is not None:
            raise ConfigError("--gps cannot be combined with --here: the position comes from gpsd")
        try:
            IPv4Address(self.address)
        except ValueError:
            raise ConfigError(f"--address {self.address}: expected an IPv4 address, such as 10.42.255.255") from None
        self._check_api()

    def _check_api(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("--tls-cert and --tls-key go together: a certificate and its private key")
        addresses = {"--api": self.address_of_api} | ({"--mqtt": self.address_of_mqtt} if self.address_of_mqtt else {})
        if self.tls_cert is not None and all(address.path for address in addresses.values()):
            raise ConfigError("--tls-cert is for an --api HOST:PORT: a Unix socket does not leave the machine")
        needed = {"--token-file FILE": self.token_file, "--tls-cert FILE --tls-key FILE": self.tls_cert}
        missing = [option for option, given in needed.items() if given is None]
        for option, address in addresses.items():
            if missing and not address.local:
                raise ConfigError(
                    f"{option} {address}: other machines can reach this address, so it needs {' and '.join(missing)}; "
                    "or use a loopback address or unix:PATH"
                )

    @property
    def address_of_api(self) -> Address:
        return default_address(self.node) if self.control is None else Address.parse(self.control, "--api")

    @property
    def address_of_mqtt(self) -> Address | None:
        return None if self.mqtt is None else Address.parse(self.mqtt, "--mqtt")

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context of the API, or None."""
        if self.tls_cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as problem:
            raise ConfigError(
                f"{self.tls_cert}, {self.tls_key}: cannot be used as certificate and private key: "
                f"{problem.strerror or problem}"
            ) from None
        return context

    def gpsd(self) -> Gps | None:
        """The connection to gpsd, or None."""
        if self.gps is None or self.origin is None:
            return None
        return Gps(host_and_port(self.gps, "--gps"), Origin.parse(self.origin))

    def entry(self) -> Entry:
        """The protocol's entry. Raises if it needs settings that are missing."""
        entry = find(self.protocol, self.folder)
        if self.decisions and self.facts is None:
            raise ConfigError("--decisions needs --facts DIR, where they are written")
        return entry
