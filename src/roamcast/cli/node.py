"""`roamcast node`: the daemon of one device."""

import asyncio
import gc
import json
import signal
import sys
from pathlib import Path
from typing import Any

import click

from roamcast.cli.completion import complete_protocols
from roamcast.cli.connection import stopped_by_signals
from roamcast.cli.options import FILE
from roamcast.errors import RoamcastError
from roamcast.live.gps import DEFAULT as GPSD
from roamcast.live.places import API_VARIABLE, host_and_port
from roamcast.live.settings import DEFAULT_PORT, NodeSettings

FAILED = 1
"""The exit code of a node that failed while running."""


@click.command()
@click.option("--id", "node", type=int, required=True, help="The node's number, unique in the network.")
@click.option(
    "--protocol",
    default="roam",
    shell_complete=complete_protocols,
    help="A protocol listed by 'roamcast protocols', or file.py:name.",
)
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the protocol. May be repeated."
)
@click.option(
    "--key", type=FILE, help="The network's key, made by 'roamcast key new'. Required unless --insecure is given."
)
@click.option("--old-key", type=FILE, help="The network's former key, accepted too while the network changes its key.")
@click.option("--insecure", is_flag=True, help="Run without a key: anyone in range can read and forge messages.")
@click.option(
    "--members", type=FILE, help="Certificates and revocations of the network's owner, made by 'roamcast key add'."
)
@click.option(
    "--unsigned",
    is_flag=True,
    help="Neither sign events nor check who published them. For networks whose members all trust each other; all nodes "
    "must agree.",
)
@click.option(
    "--store",
    type=FILE,
    help="Database of everything that must survive a crash.  [default: ~/.local/state/roamcast/node-ID.store]",
)
@click.option(
    "--sync",
    type=click.Choice(["full", "normal", "off"]),
    default="full",
    help="What acknowledged data survives. full: loss of power; normal: a crash of the program (faster); "
    "off: an orderly stop only (fastest).",
)
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, help="UDP port.")
@click.option("--interface", metavar="NAME", help="Network interface.  [default: chosen by the operating system]")
@click.option("--address", default="255.255.255.255", metavar="IP", help="Broadcast address.")
@click.option(
    "--air", metavar="HOST:PORT", help="Send all datagrams to the lab's ether at this address instead of broadcasting."
)
@click.option(
    "--api",
    "control",
    envvar=API_VARIABLE,
    metavar="HOST:PORT|unix:PATH",
    help="Address of the API; port 0 picks a free port.  [default: the socket ~/.local/state/roamcast/node-ID.socket]",
)
@click.option(
    "--mqtt",
    metavar="HOST:PORT|unix:PATH",
    help="Speak MQTT 5 and 3.1.1 to clients at this address too.  [default: no MQTT]",
)
@click.option(
    "--token-file",
    type=FILE,
    help="File with the token that clients of the API and of MQTT must present. Required beyond loopback.",
)
@click.option("--tls-cert", type=FILE, help="Certificate of the API and of MQTT, in PEM. Required beyond loopback.")
@click.option("--tls-key", type=FILE, help="Private key of --tls-cert, in PEM.")
@click.option(
    "--facts", type=click.Path(path_type=Path), metavar="DIR", help="Write facts to this folder.  [default: no facts]"
)
@click.option(
    "--facts-limit",
    type=click.IntRange(1),
    default=1024,
    metavar="MIB",
    help="Most disk space for facts; beyond it the oldest are removed.",
)
@click.option("--decisions", is_flag=True, help="Also record what the broker decides about each event.")
@click.option(
    "--epoch",
    type=int,
    metavar="NS",
    help="Time 0 of the facts, in ns since 1970.  [default: when the store was created]",
)
@click.option("--seed", help="Seed of the protocol's random numbers.  [default: from the operating system]")
@click.option(
    "--here",
    metavar="X,Y|file:PATH|command:WORDS",
    help="The node's position in metres; or a file or command that gives it as JSON.  [default: set through the API]",
)
@click.option(
    "--attributes",
    metavar="file:PATH|command:WORDS",
    help="File or command that gives the node's attributes as a JSON object.  [default: set through the API]",
)
@click.option(
    "--sense-interval",
    type=click.FloatRange(0.05, 86400),
    default=5.0,
    help="Read --here and --attributes every so many seconds.",
)
@click.option(
    "--gps",
    is_flag=False,
    flag_value=GPSD,
    metavar="[HOST:PORT]",
    help=f"Take the position and the attribute 'direction' from gpsd. Needs --origin.  [without an address: {GPSD}]",
)
@click.option(
    "--origin",
    metavar="LAT,LON",
    help="With --gps: where x and y are 0, in degrees. All nodes of a network need the same.",
)
@click.option(
    "--log",
    "level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="Lowest level to log.",
)
def node(
    node: int,
    air: str | None,
    level: str,
    facts_limit: int,
    **options: Any,  # noqa: ANN401  # of NodeSettings
) -> None:
    """Run a node on this device.

    A node exchanges events with its neighbours, for the applications on this machine. Prints one line of JSON when
    it is ready, and logs to stderr, one JSON object per line. Stop it with SIGTERM or SIGINT; SIGHUP has it read
    its keys, token and certificate again. Applications talk to it with 'roamcast pub', 'roamcast sub' and 'roamcast
    status', from Python with roamcast.live.client, or through its HTTP API (docs/live.md).

    \b
    Examples:
      roamcast key new network.key                               once; copy it to every device
      roamcast node --id 7 --protocol hint --key network.key     on device 7
    """
    settings = NodeSettings(
        node=node,
        air=host_and_port(air, "--air") if air is not None else None,
        facts_limit=facts_limit * 2**20,
        **options,
    )
    from roamcast.live.log import log_to

    log_to(sys.stderr, node, level)
    problem = asyncio.run(_run(settings))
    if problem is not None:
        click.echo(f"error: {problem}", err=True)
        sys.exit(FAILED)


async def _run(settings: NodeSettings) -> RoamcastError | None:
    """Runs until a signal arrives or the store fails; returns that failure."""
    from roamcast.live import log
    from roamcast.live.node import Node
    from roamcast.live.systemd import notify

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: log.error(context.get("message", "unexpected"), context.get("exception"))
    )
    stop = stopped_by_signals()
    async with Node(settings) as running:
        loop.add_signal_handler(signal.SIGHUP, running.reload)
        # Or a full collection would walk over all modules now and then: 30 ms in which nothing is heard.
        gc.collect()
        gc.freeze()
        ready = {"ready": True, "node": settings.node, "api": str(running.control)}
        if running.mqtt is not None:
            ready["mqtt"] = str(running.mqtt.address)
        click.echo(json.dumps(ready))
        notify("READY=1")
        assert running.failed is not None
        running.failed.add_done_callback(lambda _: stop.set())
        await stop.wait()
        notify("STOPPING=1")
        return running.failed.result() if running.failed.done() else None
