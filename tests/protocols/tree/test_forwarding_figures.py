"""Subscription forwarding: the paper's Figures 1 and 2."""

import msgspec
import pytest

from protocols.tree.network import (
    FIGURE_1,
    JAZZ,
    S1,
    S2,
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
    L,
    Network,
    figure_1b,
    reconfigure,
    told,
)
from roamcast.content.filter import Filter
from roamcast.protocols.api import Node
from roamcast.protocols.testing import Delivery

ON_THE_PATH = {G, B, D, E, A, H}


def test_figure_1a() -> None:
    """Subscription S1 of E propagates to the entire tree."""
    network = Network(9, FIGURE_1)
    network.subscribe(E, S1)
    network.run()
    assert network.routes_to(S1) == {A: [E], F: [A], H: [A], L: [H], G: [H], B: [G], C: [B], D: [B]}
    assert len(network.log) == 8, "once over each link"
    assert network.publish(D, JAZZ) == ({(D, B), (B, G), (G, H), (H, A), (A, E)}, {E})
    assert network[E].port.delivered == [Delivery(JAZZ, (1,), 5, "routed")]


def test_figure_1b() -> None:
    """S1 of F goes to A and on towards E only; S2 of C, which is new, everywhere."""
    network = Network(9, FIGURE_1)
    network.subscribe(E, S1)
    network.run()
    network.log.clear()
    network.subscribe(F, S1)
    network.run()
    assert [(sender, to) for sender, to, _ in network.log] == [(F, A), (A, E)]
    network.log.clear()
    network.subscribe(C, S2)
    network.run()
    assert len(network.log) == 8
    assert network.routes_to(S1) == {A: [E, F], E: [A], F: [A], H: [A], L: [H], G: [H], B: [G], C: [B], D: [B]}
    assert network.routes_to(S2) == {B: [C], D: [B], G: [B], H: [G], L: [H], A: [H], E: [A], F: [A]}
    assert network.publish(L, JAZZ) == ({(L, H), (H, A), (A, E), (A, F)}, {E, F})


def off_the_path(network: Network) -> list[tuple[Node, tuple[Filter, ...], tuple[Filter, ...]]]:
    """What nodes off the reconfiguration path were told."""
    return [entry[1:] for entry in told(network) if entry[1] not in ON_THE_PATH]


def test_figure_2() -> None:
    """Only the nodes on the reconfiguration path change their tables.

    One node beside it hears something. E cannot know that it wanted S2 for C's sake alone, over the link that is lost,
    and tells D; so C learns that its own subscription is wanted elsewhere, and unlearns it when the time is over.
    """
    network = figure_1b(defer=5)
    before = network.routes_to(S1), network.routes_to(S2)
    network.down(G, H)
    network.run()
    assert (network.routes_to(S1), network.routes_to(S2)) == before, "deferred"
    assert network.log == []
    network.up(G, H)
    network.run()
    network.log.clear()

    reconfigure(network)
    after = network.routes_to(S1), network.routes_to(S2)
    assert after == (
        {A: [E, F], E: [A], F: [A], H: [A], L: [H], D: [E], B: [D], G: [B], C: [B]},
        {B: [C], G: [B], D: [B], E: [D], A: [E], F: [A], H: [A], L: [H]},
    )
    changed = {node for node in range(9) if any(b.get(node) != a.get(node) for b, a in zip(before, after, strict=True))}
    assert changed == ON_THE_PATH
    assert off_the_path(network) == [(C, (S2,), ()), (C, (), (S2,))]
    assert network.publish(L, JAZZ) == ({(L, H), (H, A), (A, E), (A, F)}, {E, F})
    assert network.publish(C, msgspec.structs.replace(JAZZ, id=8))[1] == {E, F}


@pytest.mark.parametrize("leaves", [0, 10])
def test_figure_2_without_deferring(leaves: int) -> None:
    """Routes are withdrawn at once, everywhere behind the lost link, and told again when the new one is there."""
    deferring, at_once = figure_1b(leaves, defer=5), figure_1b(leaves, defer=0)
    for network in (deferring, at_once):
        reconfigure(network)
    assert at_once.routes_to(S1) == deferring.routes_to(S1)
    assert at_once.routes_to(S2) == deferring.routes_to(S2)
    # S1 leaves B, C, D (3 messages) and S2 leaves L, A, E, F and each more leaf (4 and more). The link D-E comes up (2
    # lists, 2 answers). Then S1 goes to B, G, C (3), and S2 to A, H, F, L and each more leaf (4 and more).
    assert len(at_once.log) == 18 + 2 * leaves
    # The link (4); S1 to B and G, S2 to A, H (4), and, with S1 to B, to C (1). When the time is over, S1 is withdrawn
    # by G, B, D (3), and S2 by H, A, E, D, B (5).
    assert len(deferring.log) == 17
    heard = off_the_path(at_once)
    for node in (C, F, L, *range(9, 9 + leaves)):
        filter = S1 if node == C else S2
        assert [entry[1:] for entry in heard if entry[0] == node] == [((), (filter,)), ((filter,), ())]


def test_an_event_does_not_go_over_a_lost_link() -> None:
    network = figure_1b(defer=5)
    network.down(G, H)
    assert network.publish(D, JAZZ) == ({(D, B), (B, G)}, set())
