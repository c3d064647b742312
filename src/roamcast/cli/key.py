"""`roamcast key`: makes the key of a network, and tells two apart."""

from pathlib import Path

import click

from roamcast.live.key import NetworkKey


@click.group()
def key() -> None:
    """Make the key that all nodes of a network share, or show the fingerprint of one."""


@key.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def new(file: Path) -> None:
    """Write a new key to FILE, which only you can read, and print its fingerprint.

    Copy it to every node by a way that you trust. Whoever has it belongs to the network.
    """
    made = NetworkKey.new()
    made.save(file)
    click.echo(made.fingerprint)


@key.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def show(file: Path) -> None:
    """Print the fingerprint of the key in FILE: the same on every node that can talk to the others."""
    click.echo(NetworkKey.load(file).fingerprint)
