"""`roamcast protocols`: lists the protocols, or explains the parameters of one."""

from pathlib import Path

import click

from roamcast.cli.screen import screen_width
from roamcast.config.explain import as_text, explain
from roamcast.protocols.catalogue import CATALOGUE, find


@click.command()
@click.argument("name", required=False, shell_complete=lambda _context, _name, typed: _beginning_with(typed))
def protocols(name: str | None) -> None:
    """List the protocols, or explain the parameters of one.

    NAME is a protocol of the list, or file.py:name for one of your own.
    """
    if name is None:
        widest = max(map(len, CATALOGUE))
        for entry in CATALOGUE.values():
            click.echo(f"{entry.name:{widest}}  {entry.summary}")
    else:
        entry = find(name, Path())
        click.echo(f"{entry.name}: {entry.summary}\n")
        click.echo(as_text(explain(entry.parameters, "protocol.parameters"), screen_width()))


def _beginning_with(typed: str) -> list[str]:
    return [name for name in CATALOGUE if name.startswith(typed)]
