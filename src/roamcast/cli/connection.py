"""The connection to a node, and its options, for every verb that talks to one."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from roamcast.cli.options import FILE, gathered
from roamcast.content.context.text import parse_context
from roamcast.content.event import MAX_NODE
from roamcast.live.places import API_VARIABLE, CERTIFICATE_VARIABLE, TOKEN_VARIABLE, read_token

if TYPE_CHECKING:
    from roamcast.live.client import Client

T = TypeVar("T")


class NodeOptions(NamedTuple):
    """The options that say which node to use."""

    node: int | None
    api: str | None
    token_file: Path | None
    tls_cert: Path | None

    def client(self) -> "Client":
        from roamcast.live.client import Client

        if self.node is not None and self.api is not None:
            raise click.UsageError("--node and --api both name the node: give one of them")
        return Client(self.api, self.token(), node=self.node, tls_cert=self.tls_cert)

    def token(self) -> str | None:
        return None if self.token_file is None else read_token(self.token_file)


connecting = gathered(
    "connection",
    NodeOptions,
    click.option(
        "--node",
        type=click.IntRange(0, MAX_NODE),
        metavar="NUMBER",
        help="The node's number, if several run on this machine.",
    ),
    click.option(
        "--api",
        envvar=API_VARIABLE,
        metavar="HOST:PORT|unix:PATH",
        help=f"Address of the node's API.  [default: ${API_VARIABLE}, or your only node on this machine]",
    ),
    click.option(
        "--token-file",
        envvar=TOKEN_VARIABLE,
        type=FILE,
        help=f"File with the node's token, if it requires one.  [default: ${TOKEN_VARIABLE}, or none]",
    ),
    click.option(
        "--tls-cert",
        envvar=CERTIFICATE_VARIABLE,
        type=FILE,
        help="Certificate of a node on another machine, or of the authority that signed it.  "
        f"[default: ${CERTIFICATE_VARIABLE}, or those that this system trusts]",
    ),
)
"""Adds the options that say which node to use."""


def read_context(text: str | None) -> str | None:
    """Checks an option that is a context, so that a mistake is shown with a caret under its place."""
    if text is not None:
        parse_context(text, me=(0.0, 0.0))  # only the node knows where it is
    return text


def stopped_by_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def with_node(connection: NodeOptions, work: Callable[["Client"], Coroutine[Any, Any, T]]) -> T:
    """Calls `work` with a connected `Client`."""

    async def connected() -> T:
        async with connection.client() as client:
            return await work(client)

    return asyncio.run(connected())
