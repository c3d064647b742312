"""`roamcast node`: the daemon of one device."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import click

from roamcast.errors import RoamcastError
from roamcast.live.settings import CONTROL_VARIABLE, DEFAULT_CONTROL, DEFAULT_PORT, NodeSettings, host_and_port

FAILED = 1
"""The exit code of a node that ran and could not go on."""


@click.command()
@click.option("--id", "node", type=int, required=True, help="The node's number, of which no other may have the same.")
@click.option("--protocol", default="flooding", show_default=True, help="One of 'roamcast protocols', or file.py:name.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a parameter of the protocol. May be repeated.  [default: none]",
)
@click.option("--key", type=click.Path(path_type=Path), metavar="FILE", help="The network's key.  [default: refuse]")
@click.option(
    "--old-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="While the network changes its key: the former one, accepted too.  [default: none]",
)
@click.option("--insecure", is_flag=True, help="Run without a key: anybody in range can read and forge.  [default: no]")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What must survive a crash.  [default: ~/.local/state/roamcast/node-ID.store]",
)
@click.option(
    "--sync",
    type=click.Choice(["full", "normal"]),
    default="full",
    show_default=True,
    help="What acknowledged things survive: full, a loss of power; normal, faster, a crash of the program.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="UDP port.")
@click.option("--interface", metavar="NAME", help="Network interface to use.  [default: the system's choice]")
@click.option(
    "--address", default="255.255.255.255", show_default=True, metavar="IP", help="Where broadcasts are sent to."
)
@click.option(
    "--air", metavar="HOST:PORT", help="Send everything to an ether instead of broadcasting.  [default: none]"
)
@click.option(
    "--control",
    envvar=CONTROL_VARIABLE,
    default=DEFAULT_CONTROL,
    show_default=True,
    metavar="HOST:PORT|unix:PATH",
    help="Where the local API listens; port 0 finds one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who uses the API must know the token in it; needed beyond loopback.  [default: none]",
)
@click.option("--facts", type=click.Path(path_type=Path), metavar="DIR", help="Write facts there.  [default: none]")
@click.option(
    "--decisions", is_flag=True, help="Add what the broker decides about each event to the facts.  [default: no]"
)
@click.option("--epoch", type=int, metavar="NS", help="Time 0 in ns since 1970.  [default: the store's first start]")
@click.option("--seed", help="Of the protocol's chance.  [default: from the operating system]")
@click.option(
    "--here",
    metavar="X,Y|file:PATH|command:WORDS",
    help="Where the node is, in metres; a file or a command gives JSON.  [default: told by the API]",
)
@click.option(
    "--attributes",
    metavar="file:PATH|command:WORDS",
    help="What the node knows of itself, as a JSON object.  [default: told by the API]",
)
@click.option(
    "--sense-interval",
    type=click.FloatRange(0.05, 86400),
    default=5.0,
    show_default=True,
    help="Seconds between two readings of --here and --attributes.",
)
@click.option(
    "--log",
    "level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What is logged, from this level on.",
)
def node(
    node: int,
    air: str | None,
    level: str,
    **options: Any,  # noqa: ANN401  # of NodeSettings
) -> None:
    """Run a node: a broker that passes events on between its neighbours and the applications on this machine.

    When it is ready, one line of JSON is printed; logs, one JSON object a line, go to stderr. It ends on SIGTERM and
    SIGINT. Applications use it by 'roamcast pub', 'roamcast sub' and 'roamcast status', by roamcast.live.client in
    Python, or by its HTTP API (docs/live.md).

    \b
    Examples:
      roamcast key new network.key                               once; copy it to every device
      roamcast node --id 7 --protocol hint --key network.key     on the seventh
    """
    settings = NodeSettings(
        node=node,
        air=host_and_port(air, "--air") if air is not None else None,
        **options,
    )
    from roamcast.live.log import log_to

    log_to(sys.stderr, node, level)
    problem = asyncio.run(_run(settings))
    if problem is not None:
        click.echo(f"error: {problem}", err=True)
        sys.exit(FAILED)


async def _run(settings: NodeSettings) -> RoamcastError | None:
    """Runs until a signal comes or the store fails, which is given back."""
    from roamcast.live import log
    from roamcast.live.node import Node

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: log.error(context.get("message", "unexpected"), context.get("exception"))
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Node(settings) as running:
        click.echo(json.dumps({"ready": True, "node": settings.node, "control": str(running.control)}))
        sys.stdout.flush()
        assert running.failed is not None
        running.failed.add_done_callback(lambda _: stop.set())
        await stop.wait()
        return running.failed.result() if running.failed.done() else None
