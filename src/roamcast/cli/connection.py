"""The options that every verb has which talks to a node, and how it talks."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from roamcast.content.context.expression import Context
from roamcast.content.context.text import parse_context
from roamcast.live.settings import CONTROL_VARIABLE, DEFAULT_CONTROL, TOKEN_VARIABLE, read_token

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def connecting(verb: F) -> F:
    """Adds `--control` and `--token-file`."""
    control = click.option(
        "--control",
        envvar=CONTROL_VARIABLE,
        default=DEFAULT_CONTROL,
        metavar="HOST:PORT|unix:PATH",
        help=f"Address of the node's API.  [default: ${CONTROL_VARIABLE}, or {DEFAULT_CONTROL}]",
    )
    token = click.option(
        "--token-file",
        envvar=TOKEN_VARIABLE,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"File with the node's token, if it requires one.  [default: ${TOKEN_VARIABLE}, or none]",
    )
    return control(token(verb))


def read_context(text: str | None) -> Context | None:
    """An option that is a context: refused here, with a caret under the place."""
    return None if text is None else parse_context(text)


def with_node(control: str, token_file: Path | None, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """Does the work with a connected `Client`."""
    from roamcast.live.client import Client

    async def connected() -> T:
        async with Client(control, read_token(token_file) if token_file is not None else None) as client:
            return await work(client)

    return asyncio.run(connected())
