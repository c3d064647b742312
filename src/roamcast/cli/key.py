"""`roamcast key`: makes the key of a network, and shows the fingerprint of one."""

from pathlib import Path

import click

from roamcast.cli.options import FILE
from roamcast.live.key import NetworkKey


@click.group()
def key() -> None:
    """Create the key that all nodes of a network share, or show it."""


@key.command()
@click.argument("file", type=FILE)
def new(file: Path) -> None:
    """Write a new key to FILE, and print its fingerprint.

    Only you can read the file. Copy it to every node over a channel you trust: anyone who has the key can join the
    network.
    """
    made = NetworkKey.new()
    made.save(file)
    click.echo(made.fingerprint)


@key.command()
@click.argument("file", type=FILE)
def show(file: Path) -> None:
    """Print the fingerprint of the key in FILE.

    Nodes can talk to each other only if theirs are equal.
    """
    click.echo(NetworkKey.load(file).fingerprint)
