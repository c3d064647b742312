"""`roamcast doctor`: what this machine lacks, for a node and for the rest.

The rule this file owns: the exit code is 1 if something is missing without which a node does not start or cannot be
heard; what only simulations and campaigns need, or what makes a node worse but not useless, is told and no failure.
"""

import ctypes
import importlib.metadata
import json
import os
import re
import shutil
import socket
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import click

from roamcast.cli.screen import screen_width
from roamcast.errors import RoamcastError
from roamcast.live.link.settings import LinkSettings
from roamcast.live.link.sockets import shared_socket
from roamcast.live.places import default_store
from roamcast.live.settings import DEFAULT_PORT

MISSING: Final = 1
"""The exit code if a node lacks something."""
DISK: Final = 256 * 2**20
"""Bytes: what a node's store may take, with a margin; facts take more (`--facts-limit`)."""
FILES: Final = 256
DISCARD: Final = 9
"""The port that nobody listens to (RFC 863), for a broadcast that says nothing."""
_NOT_SYNCHRONIZED: Final = 5
"""TIME_ERROR of `man 2 adjtimex`."""
_OLDEST_CLOCK: Final = 1735689600
"""2025, in s since 1970: a clock before that was never set."""

State = Literal["ok", "missing", "optional"]


class Finding(NamedTuple):
    """One line of the table."""

    what: str
    state: State
    """missing: a node needs it; optional: a node works without it."""
    found: str
    remedy: str = ""


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, help="UDP port.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects instead of a table.")
def doctor(port: int, as_json: bool) -> None:
    """Say what this machine lacks: for a node, for simulations and for campaigns.

    Exits with 1 if a node would lack something.
    """
    findings = list(_findings(port))
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings]))
    else:
        click.echo("\n".join(_table(findings, screen_width())))
    if any(finding.state == "missing" for finding in findings):
        sys.exit(MISSING)


def _table(findings: list[Finding], width: int) -> Iterator[str]:
    """Without the libraries for tables, which a device does not have."""
    longest = max(len(finding.what) for finding in findings)
    for what, state, found, remedy in findings:
        first = f"{what:<{longest}}  {state:<8}  "
        words = f"{found}: {remedy}" if remedy else found
        yield textwrap.fill(words, width, initial_indent=first, subsequent_indent=" " * len(first))


def _findings(port: int) -> Iterator[Finding]:
    yield Finding("Python", "ok", ".".join(map(str, sys.version_info[:3])))
    yield from _extras()
    yield _java()
    yield _port(port)
    yield _broadcast()
    yield _clock()
    yield _disk(default_store(0).parent)
    yield _files()


def _extras() -> Iterator[Finding]:
    """The extras of this package, from its own metadata; those for its developers are left out."""
    needed: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires("roamcast") or ():
        named = re.fullmatch(r"""([\w.-]+).*;.*extra == ['"](\w+)['"].*""", requirement)
        if named is not None and named[2] != "dev" and named[1] != "roamcast":
            needed.setdefault(named[2], []).append(named[1])
    for extra, packages in needed.items():
        absent = [name for name in packages if not _installed(name)]
        if absent:
            remedy = f"pip install 'roamcast[{extra}]'"
            yield Finding(f"extra {extra}", "optional", f"without {', '.join(absent)}", remedy)
        else:
            yield Finding(f"extra {extra}", "ok", "installed")


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _java() -> Finding:
    try:
        from roamcast.pipeline.jvm import find_java
    except ModuleNotFoundError:
        return Finding("Java", "optional", "not looked for", "campaigns need it, and 'roamcast[spark]' brings one")
    try:
        java = find_java()
    except RoamcastError as problem:
        return Finding("Java", "optional", "none for campaigns", str(problem))
    return Finding("Java", "ok", f"{java.full_version} in {java.home}")


def _port(port: int) -> Finding:
    try:
        shared_socket(LinkSettings(port=port)).close()
    except RoamcastError as problem:
        return Finding("port", "missing", str(problem), "end the program that has it, or use --port")
    return Finding("port", "ok", f"UDP {port} can be used")


def _broadcast() -> Finding:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            probe.sendto(b"", ("255.255.255.255", DISCARD))
        except OSError as problem:
            remedy = "bring up an interface with an address and a broadcast address (docs/installation.md)"
            return Finding("broadcast", "missing", f"cannot be sent: {problem.strerror}", remedy)
    return Finding("broadcast", "ok", "can be sent")


def _clock(now: Callable[[], float] = time.time) -> Finding:
    if now() < _OLDEST_CLOCK:
        says = time.strftime("says %Y-%m-%d", time.gmtime(now()))
        return Finding("clock", "optional", says, "set it: date -s, or NTP")
    state = _clock_state()
    if state is None or state < 0:
        return Finding("clock", "ok", "set; whether it is synchronized cannot be read here")
    if state == _NOT_SYNCHRONIZED:
        remedy = "events would show a wrong time of publication: use NTP, gpsd, or a clock chip"
        return Finding("clock", "optional", "set, but not synchronized", remedy)
    return Finding("clock", "ok", "synchronized")


def _clock_state() -> int | None:
    try:
        return int(ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(512)))
    except (OSError, AttributeError):
        return None


def _disk(folder: Path) -> Finding:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if not os.access(there, os.W_OK):
        return Finding("disk", "missing", f"{folder} cannot be written to", "change its owner, or use --store")
    words = f"{free // 2**20} MiB free in {folder}"
    if free < DISK:
        return Finding("disk", "missing", words, f"a store needs up to {DISK // 2**20} MiB: make room, or use --store")
    return Finding("disk", "ok", words)


def _files() -> Finding:
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < FILES:
        return Finding("open files", "optional", f"at most {limit}", f"few applications can connect: ulimit -n {FILES}")
    return Finding("open files", "ok", f"at most {limit}")
