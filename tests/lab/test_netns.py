"""Real broadcast between network namespaces. What needs root is skipped without it, and says so."""

import os
import shutil
import subprocess

import pytest

from lab.twins import delivered, linked, summary
from roamcast.facts.sinks import MemorySink
from roamcast.lab import netns
from roamcast.lab.lab import run_lab


def lacking() -> str:
    """Why namespaces cannot be had here; empty if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "the commands ip and unshare are needed"
    made = subprocess.run(
        ["unshare", "-n", "ip", "link", "add", "air0", "type", "bridge"], capture_output=True, text=True, check=False
    )
    return f"this kernel or container has none: {made.stderr.strip()}" if made.returncode else ""


WHY_NOT = lacking()


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
async def test_two_nodes_in_two_namespaces_exchange_events_by_real_broadcast() -> None:
    workload = {
        "subscribers": [{"nodes": [1], "filter": "price < 30"}],
        "publishers": [{"nodes": [0], "rate": 10.0, "start": 0.5, "stop": 1.5, "attributes": {"price": 12}}],
    }
    sink = MemorySink()
    report = await run_lab(linked([[0, 1]], "flooding", workload=workload), sink, in_namespaces=True)
    assert report.whole, list(report.problems())
    facts = sink.tables()
    assert {(event & 0xFFFFFFFF, node) for event, node, _ in delivered(facts)} == {(n, 1) for n in range(1, 11)}
    found = summary(facts)
    # Each event is sent by its publisher and once by who hears it.
    assert (found.packets, found.hops_mean) == (20, 1.0)
    assert not report.air  # no ether was there


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
async def test_on_a_bridge_everybody_hears_everybody_whatever_the_links_say() -> None:
    workload = {"subscribers": [{"nodes": [2]}], "publishers": [{"nodes": [0], "rate": 5.0, "start": 0.5, "stop": 1.5}]}
    sink = MemorySink()
    report = await run_lab(linked([[0, 1], [1, 2]], "flooding", workload=workload), sink, in_namespaces=True)
    assert report.whole, list(report.problems())
    assert summary(sink.tables()).hops_mean == 1.0
    assert len(sink.table("link")) == 6


def test_without_root_it_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(netns.NamespaceError, match=r"needs root.*start it with sudo, or leave --netns out"):
        netns.check_possible()


def test_without_the_command_ip_it_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(netns.NamespaceError, match=r"needs the command ip: install iproute2"):
        netns.check_possible()


def test_every_node_has_an_address_of_its_own_in_the_network() -> None:
    assert [netns.address_of(node) for node in (0, 1, 254, 255, 65535)] == [
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.255",
        "10.0.1.0",
        "10.1.0.0",
    ]
