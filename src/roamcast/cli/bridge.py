"""`roamcast bridge`: connects a node with an MQTT broker."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roamcast.cli.connection import NodeOptions, connecting, stopped_by_signals, with_node
from roamcast.cli.options import FILE
from roamcast.errors import ConfigError
from roamcast.live.places import MAX_SECRET, read_secret

if TYPE_CHECKING:
    from roamcast.live.mqtt.peer import Bridge, Target


@click.command()
@click.argument("url", metavar="mqtt://[USER@]HOST[:PORT]")
@click.option(
    "--out",
    "outwards",
    multiple=True,
    default=["#"],
    metavar="FILTER",
    help="Topic filter of the events that go to the broker; $filter/TEXT filters by content. May be repeated.",
)
@click.option(
    "--in",
    "inwards",
    multiple=True,
    default=["#"],
    metavar="FILTER",
    help="Topic filter of the broker's messages that come to the node. May be repeated.",
)
@click.option(
    "--password-file",
    type=FILE,
    help="File with the broker's password, on one line, which others must not be able to read.",
)
@click.option(
    "--broker-cert",
    type=FILE,
    help="Certificate of an mqtts:// broker, or of the authority that signed it.  [default: those the system trusts]",
)
@click.option(
    "--name", help="The broker's name in the attribute 'bridged' of events that come from it.  [default: HOST:PORT]"
)
@click.option(
    "--state",
    type=FILE,
    help="Database of what is under way.  [default: ~/.local/state/roamcast/bridge-HOST-PORT.state]",
)
@connecting
def bridge(
    url: str,
    outwards: tuple[str, ...],
    inwards: tuple[str, ...],
    password_file: Path | None,
    broker_cert: Path | None,
    name: str | None,
    state: Path | None,
    connection: NodeOptions,
) -> None:
    """Connect a node with an MQTT broker, both ways.

    The node must speak MQTT (roamcast node --mqtt), and the broker MQTT 5. What cannot be passed on waits on disk, and
    the bridge connects again whenever a side is away. Prints one line of JSON when both sides have answered, and logs
    to stderr. Stop it with SIGTERM or SIGINT.

    \b
    Examples:
      roamcast bridge mqtt://broker.example
      roamcast bridge mqtt://localhost --out 'alarm/#' --in 'weather/#'
    """
    from roamcast.live.log import log_to
    from roamcast.live.mqtt.bridge_state import BridgeState
    from roamcast.live.mqtt.peer import Bridge, Target
    from roamcast.live.places import default_bridge_state

    for option, filters in (("--out", outwards), ("--in", inwards)):
        _check(option, filters)
    password = None if password_file is None else _password(password_file)
    broker = Target.of_broker(url, password, None if broker_cert is None else str(broker_cert))
    number, node = _node(connection)
    if state is None:
        state = default_bridge_state(broker.address)
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log_to(sys.stderr, number, "info")

    async def run() -> None:
        made = Bridge(node, broker, BridgeState(state), outwards=outwards, inwards=inwards, name=name)
        await _run(made, str(state))

    asyncio.run(run())


def _check(option: str, filters: tuple[str, ...]) -> None:
    """A broker would end the connection without a reason that helps."""
    from roamcast.live.mqtt.packets import PacketError
    from roamcast.live.mqtt.topics import CONTENT, filter_of

    for text in filters:
        try:
            if option == "--in" and text.startswith(CONTENT):
                raise ConfigError(f"--in {text!r}: only nodes know {CONTENT}, not brokers")
            is_shared = option == "--in" and text.startswith(
                "$share/"
            )  # $share/GROUP/FILTER, which a node does not have
            filter_of(text.split("/", 2)[-1] if is_shared else text)
        except PacketError as problem:
            raise ConfigError(f"{option} {text!r}: {problem}") from None


def _password(file: Path) -> str:
    text = read_secret(file, "password")
    if not text:
        raise ConfigError(f"{file}: a password is one line of at most {MAX_SECRET} characters")
    return text


def _node(connection: NodeOptions) -> "tuple[int, Target]":
    """The node's number, and where it speaks MQTT."""
    from roamcast.live.mqtt.peer import Target
    from roamcast.live.places import Address
    from roamcast.live.request import trusted

    status: dict[str, Any] = with_node(connection, lambda client: client.status())
    spoken = status.get("mqtt")
    if spoken is None:
        raise ConfigError("this node does not speak MQTT: start it with --mqtt 127.0.0.1:1883")
    tls = trusted(None if connection.tls_cert is None else str(connection.tls_cert)) if spoken["tls"] else None
    token = connection.token()
    password = None if token is None else token.encode()
    return status["node"], Target(Address.parse(spoken["address"]), tls, "roamcast" if password else None, password)


async def _run(bridge: "Bridge", state: str) -> None:
    async def tell() -> None:
        await bridge.reached()
        ready = {"ready": True, "broker": str(bridge.broker.target.address), "state": state}
        click.echo(json.dumps(ready | {"node": str(bridge.node.target.address)}))

    telling = asyncio.create_task(tell())
    try:
        await bridge.run(stopped_by_signals())
    finally:
        telling.cancel()
