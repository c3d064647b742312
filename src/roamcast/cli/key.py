"""`roamcast key`: makes the keys of a network, and says who its members are."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from roamcast.cli.connection import NodeOptions, connecting, with_node
from roamcast.cli.options import FILE
from roamcast.content.event import MAX_NODE
from roamcast.live.certificates import MembersFile
from roamcast.live.identity import PUBLIC, Identity, PublicKey
from roamcast.live.key import KeyProblem, NetworkKey, load_owner, save_owner

_NODE = click.IntRange(0, MAX_NODE)


@click.group()
def key() -> None:
    """Create a network's key, and say who its members are.

    \b
    Without an owner: anyone with the key is a member, and the first to speak under a number keeps it.
      roamcast key new network.key
    With an owner, who says which device has which number, and can revoke it:
      roamcast key new network.key --owner owner.key             once; owner.key stays with you
      roamcast key identity --id 7                               on device 7: prints its identity
      roamcast key add network.members 7 IDENTITY --owner owner.key
      roamcast node --id 7 --key network.key --members network.members
      roamcast key revoke network.members 7 --owner owner.key    copy the file to a node, and send it SIGHUP
    """


@key.command()
@click.argument("file", type=FILE)
@click.option("--owner", type=FILE, help="Also create an owner, and write the owner's key to this file.")
def new(file: Path, owner: Path | None) -> None:
    """Write a new key to FILE, and print its fingerprint.

    Only you can read the file. Copy it to every node over a channel you trust: anyone who has the key can join the
    network. The owner's key stays with you: it decides who is a member.
    """
    identity = None if owner is None else Identity.new()
    made = NetworkKey.new(None if identity is None else identity.public)
    if owner is not None and identity is not None:
        save_owner(owner, identity.secret)
    made.save(file)
    click.echo(made.fingerprint)


@key.command()
@click.argument("file", type=FILE)
def show(file: Path) -> None:
    """Print the fingerprint of a key, and its owner.

    Nodes can talk to each other only if theirs are equal.
    """
    loaded = NetworkKey.load(file)
    click.echo(loaded.fingerprint)
    if loaded.owner is not None:
        click.echo(f"owner {loaded.owner.hex()}")


@key.command()
@click.option("--id", "node", type=_NODE, required=True, help="The node's number.")
@click.option("--store", type=FILE, help="The node's store.  [default: as for 'roamcast node']")
def identity(node: int, store: Path | None) -> None:
    """Print the identity of a node on this device.

    The owner of the network needs it for 'roamcast key add'. It is made here if the node has not run yet. While the
    node runs, 'roamcast status' shows it.
    """
    from roamcast.live.node import identity_of

    click.echo(asyncio.run(identity_of(node, store)).hex())


def _by_owner(command: Callable[..., Any]) -> Callable[..., Any]:
    owner = click.option("--owner", type=FILE, required=True, help="The owner's key, made by 'roamcast key new'.")
    return click.argument("members", type=FILE, metavar="MEMBERS")(owner(command))


@key.command()
@_by_owner
@click.argument("node", type=_NODE)
@click.argument("identity")
def add(members: Path, node: int, identity: str, owner: Path) -> None:
    """Certify that NODE has this IDENTITY, in the file MEMBERS.

    A node that was revoked, or lost its store, is added again in the same way. Nodes learn certificates from each
    other: only the new node needs the file.
    """
    try:
        public = PublicKey(bytes.fromhex(identity)).octets
    except ValueError:
        raise KeyProblem(
            f"{identity!r} is not an identity: expected the {2 * PUBLIC} hex digits that 'roamcast key identity' prints"
        ) from None
    listed = MembersFile.load(members) if members.exists() else MembersFile()
    listed.add(node, public, Identity(load_owner(owner))).save(members)


@key.command()
@_by_owner
@click.argument("node", type=_NODE)
def revoke(members: Path, node: int, owner: Path) -> None:
    """Take NODE out of the file MEMBERS.

    Give the file to any node that runs (--members, SIGHUP): the nodes tell each other. From then on nobody believes
    an event of NODE, not even one from before. It still has the network's key: to keep it from listening, change that.
    """
    MembersFile.load(members).revoke(node, Identity(load_owner(owner))).save(members)


@key.command()
@click.argument("author", type=_NODE)
@connecting
def forget(author: int, connection: NodeOptions) -> None:
    """Forget whom a node trusts under a number.

    The node on this machine will know nothing of AUTHOR. For networks without an owner, when a device was replaced: the
    next one to speak under this number keeps it.
    """
    with_node(connection, lambda client: client.forget_author(author))
