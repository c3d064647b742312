"""Small worlds whose every nanosecond was worked out by hand from `docs/model.md`, for any core.

Unless a test says otherwise: 256-byte messages, 2 Mb/s, the first release at 1 ms, seed 7. The first backoffs of that
seed, from the window 31, are 9, 18, 12 (node 0), 28, 13, 12 (node 1) and 11, 30, 26 (node 2). Frames are sensed as they
start (CCA 0).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from roamcast.sim.core import kernel, reference
from roamcast.sim.core.interface import EVERYONE, METRICS, Core, Frame, Outcome, Settings, Upcall

CORES: list[Callable[[Settings], Core]] = [reference.Core, kernel.Core]

World: TypeAlias = Callable[..., Core]
Entry: TypeAlias = tuple[int, Upcall, int, int, list[int]]

MS = 1_000_000
SLOT, SIFS, DIFS, EIFS = 20_000, 10_000, 50_000, 364_000
AIR = 192_000 + (256 + 64) * 4_000  # 1_472_000: a message of 256 bytes at 2 Mb/s
ACK = 192_000 + 14 * 4_000  # 248_000
WAIT = SIFS + 192_000 + 14 * 8_000  # 314_000: until an acknowledgement at 1 Mb/s would have come
END = MS + AIR  # of the first frame of most tests
KIND = 2

BROADCAST, DELIVERED, FINISHED = Upcall.BROADCAST, Upcall.DELIVERED, Upcall.FINISHED
UNREACHABLE, DROPPED = Upcall.UNREACHABLE, Upcall.DROPPED


@pytest.fixture(params=CORES, ids=lambda core: core.__module__)
def world(request: pytest.FixtureRequest) -> World:
    """Makes a core of linked nodes, or with `at` of nodes at these places with a range of 250 m."""

    def make(
        nodes: int = 0,
        links: Sequence[tuple[int, int]] = (),
        at: Sequence[tuple[float, float]] = (),
        both: bool = True,
        **options: object,
    ) -> Core:
        fields: dict[str, Any] = {
            "nodes": nodes or len(at),
            "seed": 7,
            "kinds": 3,
            "links": not at,
            "cca": 0,
            **options,
        }
        core: Core = request.param(Settings(**fields))
        for a, b in links:
            core.set_link(a, b, 0.0)
            if both:
                core.set_link(b, a, 0.0)
        for node, (x, y) in enumerate(at):
            core.set_leg(node, 0, x, y, 0.0, 0.0)
            core.set_range(node, 250.0)
        return core

    return make


def mesh(nodes: int) -> list[tuple[int, int]]:
    return list(permutations(range(nodes), 2))


def send(
    core: Core, node: int, handle: int, release: int, to: int = EVERYONE, size: int = 256, urgent: bool = False
) -> None:
    core.send(node, handle, to, size, KIND, release, urgent)


def run(core: Core, until: int = 1_000 * MS) -> list[Entry]:
    """All upcalls but FRAME, with receivers where the interface promises them."""
    log: list[Entry] = []
    while (upcall := core.advance(until)) is not Upcall.REACHED:
        if upcall is not Upcall.FRAME:
            receivers = core.receivers if upcall in (BROADCAST, DELIVERED) else []
            log.append((core.now, upcall, core.sender, core.handle, list(receivers)))
    assert core.now == until
    return log


def frames(core: Core, until: int = 1_000 * MS) -> list[Frame]:
    found = []
    while (upcall := core.advance(until)) is not Upcall.REACHED:
        if upcall is Upcall.FRAME:
            assert core.frame is not None
            found.append(core.frame)
    return found


def counted(core: Core, metric: str, kind: int = KIND) -> list[int]:
    """By node."""
    return [kinds[kind][METRICS.index(metric)] for kinds in core.totals()]


def draws(seed: int, purpose: str, node: int) -> Iterator[int]:
    """Splitmix64, written a second time."""
    state = int.from_bytes(
        hashlib.blake2b(b"%d/%s/%d" % (seed, purpose.encode(), node), digest_size=8).digest(), "little"
    )
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def uniforms(seed: int, purpose: str, node: int) -> Iterator[float]:
    return ((z >> 11) / 2**53 for z in draws(seed, purpose, node))


def backoffs(node: int, count: int, seed: int = 7) -> list[int]:
    return [z & 31 for z in islice(draws(seed, "backoff", node), count)]


def test_the_draws_this_page_counts_on() -> None:
    assert [backoffs(node, 3) for node in range(3)] == [[9, 18, 12], [28, 13, 12], [11, 30, 26]]


# One frame


def test_a_broadcast_arrives_after_its_airtime(world: World) -> None:
    core = world(3, mesh(3))
    send(core, 0, 5, MS)
    assert run(core) == [(2_472_000, BROADCAST, 0, 5, [1, 2])]
    assert counted(core, "packets") == [1, 0, 0]
    assert counted(core, "bits") == [192 + 8 * 320, 0, 0]
    assert counted(core, "airtime") == [1_472_000, 0, 0]
    assert counted(core, "receptions") == [0, 1, 1]


def test_at_the_start_the_medium_has_been_idle_for_ever(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, 0)
    assert run(core) == [(AIR, BROADCAST, 0, 5, [1])]


def test_a_broadcast_that_nobody_hears_is_over_all_the_same(world: World) -> None:
    core = world(1)
    send(core, 0, 5, MS)
    assert run(core) == [(END, BROADCAST, 0, 5, [])]


def test_the_edge_of_the_range_belongs_to_it(world: World) -> None:
    core = world(at=[(0, 0), (250, 0), (150, -200), (250.001, 0)])
    send(core, 0, 5, MS)
    assert run(core) == [(END, BROADCAST, 0, 5, [1, 2])]


def test_the_position_at_the_start_of_a_frame_counts(world: World) -> None:
    # Node 1, at 20 m/s, is at 249.99 m at 0.5 ms, just inside 250 m 1 ns before 1 ms, and outside at the frame's end.
    # Node 2 is 0.1 mm farther out in its own direction.
    core = world(at=[(0, 0), (0, 0), (0, 0)])
    core.set_leg(1, MS // 2, 249.99, 0.0, 20e-9, 0.0)
    core.set_leg(2, MS // 2, 0.0, -249.9901, 0.0, -20e-9)
    send(core, 0, 5, MS - 1)
    assert run(core) == [(MS - 1 + AIR, BROADCAST, 0, 5, [1])]


@pytest.mark.parametrize("start", [1, 9_100_000_000_000_001, 9_100_000_000_000_003, 9_999_999_999_999_001])
def test_positions_are_exact_to_the_nanosecond_to_the_end_of_the_longest_run(world: World, start: int) -> None:
    """At a metre per nanosecond both are at the edge of the range when the frame starts; a nanosecond earlier or later
    one of them is out of it. From 2^53 on, not every nanosecond is a float."""
    core = world(at=[(0, 0), (150, 0), (350, 0)])
    run(core, start)
    core.set_leg(1, start, 150.0, 0.0, 1.0, 0.0)
    core.set_leg(2, start, 350.0, 0.0, -1.0, 0.0)
    send(core, 0, 0, start + 100)
    assert run(core, start + 10 * MS) == [(start + 100 + AIR, BROADCAST, 0, 0, [1, 2])]


def test_with_surroundings_the_lesser_range_counts(world: World) -> None:
    core = world(at=[(0, 0), (90, 0), (0, 110), (0, -110)], surroundings=True)
    core.set_range(0, 120.0)
    core.set_range(1, 80.0)
    core.set_range(2, 100.0)
    send(core, 0, 5, MS)
    assert run(core) == [(END, BROADCAST, 0, 5, [3])]


def test_walls_are_opaque(world: World) -> None:
    # Nodes 0 and 1 in one room, 2 in another, 3 outdoors. Node 2 neither senses node 0, beside it, nor disturbs it.
    core = world(at=[(0, 0), (10, 0), (0, 10), (10, 10)], sense=2.2)
    for node, room in enumerate([4, 4, 5, -1]):
        core.set_room(node, room)
    send(core, 0, 5, MS)
    send(core, 2, 6, MS + 100_000)
    assert run(core) == [(END, BROADCAST, 0, 5, [1]), (END + 100_000, BROADCAST, 2, 6, [])]
    core.set_room(0, -1)
    send(core, 0, 5, 2_000 * MS)
    assert run(core, 3_000 * MS) == [(2_000 * MS + AIR, BROADCAST, 0, 5, [3])]


def test_the_range_of_a_frame_is_drawn_from_the_senders_stream(world: World) -> None:
    core = world(at=[(0, 0), (150, 0)], range_low=100.0, range_high=200.0)
    for handle in range(20):
        send(core, 0, handle, (handle + 1) * 10 * MS)
    reaches = [100 + 100 * u for u in islice(uniforms(7, "range", 0), 20)]
    assert [receivers for *_, receivers in run(core)] == [[1] if reach >= 150 else [] for reach in reaches]
    assert 0 < sum(counted(core, "receptions")) < 20


def test_acknowledgements_draw_their_range_too(world: World) -> None:
    # The addressee's first draw decides over the first acknowledgement; only frames in range are acknowledged.
    core = world(at=[(0, 0), (150, 0)], range_low=100.0, range_high=200.0, retries=0)
    for handle in range(20):
        send(core, 0, handle, (handle + 1) * 10 * MS, to=1)
    there, back = uniforms(7, "range", 0), uniforms(7, "range", 1)
    expected = []
    for handle in range(20):
        arrived = next(there) >= 0.5
        expected += [(DELIVERED, handle)] if arrived else []
        expected += [(FINISHED if arrived and next(back) >= 0.5 else UNREACHABLE, handle)]
    assert [(upcall, handle) for _, upcall, _, handle, _ in run(core)] == expected


# Collisions


def test_two_that_start_together_collide(world: World) -> None:
    core = world(3, mesh(3))
    send(core, 1, 6, MS)
    send(core, 0, 5, MS)
    assert run(core) == [(END, BROADCAST, 1, 6, []), (END, BROADCAST, 0, 5, [])]
    assert counted(core, "half_duplex") == [1, 1, 0]
    assert counted(core, "collision") == [0, 0, 2]
    assert counted(core, "receptions") == [0, 0, 0]


def test_a_hidden_terminal_does_not_defer(world: World) -> None:
    core = world(at=[(0, 0), (200, 0), (400, 0)])
    send(core, 0, 5, MS)
    send(core, 2, 6, MS + 500_000)
    assert run(core) == [(END, BROADCAST, 0, 5, []), (END + 500_000, BROADCAST, 2, 6, [])]
    assert counted(core, "collision") == [0, 2, 0]


def test_a_frame_that_ends_as_another_starts_does_not_overlap_it(world: World) -> None:
    core = world(3, [(0, 1), (1, 2)])
    send(core, 0, 5, MS)
    send(core, 2, 6, END)
    assert run(core) == [(END, BROADCAST, 0, 5, [1]), (END + AIR, BROADCAST, 2, 6, [1])]


def test_a_frame_merely_sensed_collides_and_is_not_counted(world: World) -> None:
    # Node 2 is 700 m from the sender (beyond 2.2 * 250 = 550 m) and 500 m from the receiver.
    core = world(at=[(0, 0), (200, 0), (700, 0)], sense=2.2)
    send(core, 0, 5, MS)
    send(core, 2, 6, MS + 500_000)
    assert run(core) == [(END, BROADCAST, 0, 5, []), (END + 500_000, BROADCAST, 2, 6, [])]
    assert counted(core, "collision") == [0, 1, 0]


@pytest.mark.parametrize(("decibels", "receivers"), [(9, []), (11, [0])])
def test_capture_needs_ten_decibels(world: World, decibels: int, receivers: list[int]) -> None:
    # Power falls with the fourth power of distance: n dB, 10**(n/10) in power, are 10**(n/40) in distance.
    core = world(at=[(0, 0), (100, 0), (-100 * 10 ** (decibels / 40), 0)], capture=True)
    send(core, 1, 5, MS)
    send(core, 2, 6, MS)
    assert run(core) == [(END, BROADCAST, 1, 5, receivers), (END, BROADCAST, 2, 6, [])]


@pytest.mark.parametrize("decibels", [9, 11])
def test_a_later_and_stronger_frame_is_captured(world: World, decibels: int) -> None:
    # The senders are hidden from each other, so that the stronger can start in the middle of the weaker.
    core = world(at=[(0, 0), (200, 0), (-200 / 10 ** (decibels / 40), 0)], capture=True)
    send(core, 1, 5, MS)
    send(core, 2, 6, MS + 500_000)
    captured = [0] if decibels > 10 else []
    assert run(core) == [(END, BROADCAST, 1, 5, []), (END + 500_000, BROADCAST, 2, 6, captured)]


@pytest.mark.parametrize(("interferers", "receivers"), [(1, [0]), (2, [0]), (3, [])])
def test_interference_adds_up(world: World, interferers: int, receivers: list[int]) -> None:
    # Each interferer has 1/25 of the power: two together 1/12.5, three 1/8.3, more than a tenth.
    far = 100 * 25**0.25
    places = [(0, 0), (100, 0), (-far, 0), (0, far), (0, -far)]
    core = world(at=places[: 2 + interferers], capture=True)
    for node in range(1, 2 + interferers):
        send(core, node, node, MS)
    assert run(core)[0] == (END, BROADCAST, 1, 1, receivers)


def test_links_know_no_capture(world: World) -> None:
    core = world(3, [(0, 1), (0, 2)], capture=True)
    send(core, 1, 5, MS)
    send(core, 2, 6, MS)
    assert [receivers for *_, receivers in run(core)] == [[], []]
    assert counted(core, "collision") == [2, 0, 0]


def test_who_transmits_hears_nothing(world: World) -> None:
    # Node 0 does not hear node 1 and so starts in the middle of its frame.
    core = world(2, [(0, 1)], both=False)
    send(core, 1, 6, MS)
    send(core, 0, 5, MS + 500_000)
    assert run(core) == [(END, BROADCAST, 1, 6, []), (END + 500_000, BROADCAST, 0, 5, [])]
    assert counted(core, "half_duplex") == [0, 1]


# Contention


def test_who_finds_the_medium_busy_backs_off(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + 500_000)
    start = END + DIFS + 28 * SLOT
    assert run(core) == [(END, BROADCAST, 0, 5, [1]), (start + AIR, BROADCAST, 1, 6, [0])]


def test_who_merely_senses_backs_off_too_and_waits_no_longer(world: World) -> None:
    core = world(at=[(0, 0), (500, 0)], sense=2.2)
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + 500_000)
    assert run(core) == [(END, BROADCAST, 0, 5, []), (END + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [])]


def test_who_finds_the_medium_idle_for_less_than_difs_waits_for_the_rest(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    send(core, 1, 6, END + 20_000)
    assert run(core)[1] == (END + DIFS + AIR, BROADCAST, 1, 6, [0])


def test_a_countdown_freezes_while_the_medium_is_busy(world: World) -> None:
    # Of node 1's 28 slots two and a quarter pass before node 2, which has none to wait for, starts: 26 are left.
    core = world(3, mesh(3))
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + 500_000)
    second = END + DIFS + 2 * SLOT + 5_000
    send(core, 2, 7, second)
    third = second + AIR + DIFS + 26 * SLOT
    assert run(core) == [
        (END, BROADCAST, 0, 5, [1, 2]),
        (second + AIR, BROADCAST, 2, 7, [0, 1]),
        (third + AIR, BROADCAST, 1, 6, [0, 2]),
    ]


def test_countdowns_that_end_together_collide(world: World) -> None:
    assert backoffs(1, 1, seed=1) == backoffs(2, 1, seed=1) == [9]
    core = world(3, mesh(3), seed=1)
    for node in range(3):
        send(core, node, node, MS + node * 1_000)
    both = END + DIFS + 9 * SLOT + AIR
    assert run(core)[1:] == [(both, BROADCAST, 1, 1, []), (both, BROADCAST, 2, 2, [])]
    assert counted(core, "collision") == [2, 0, 0]


@pytest.mark.parametrize(("later", "collide"), [(0, True), (3_999, True), (4_000, False), (5_000, False)])
def test_who_starts_before_a_frame_is_sensed_collides_with_it(world: World, later: int, collide: bool) -> None:
    # Node 1 finds the medium idle, or at 4 µs busy: then it draws 28 slots.
    core = world(3, mesh(3), cca=4_000)
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + later)
    log = run(core)
    if collide:
        assert log == [(END, BROADCAST, 0, 5, []), (END + later, BROADCAST, 1, 6, [])]
    else:
        assert log == [(END, BROADCAST, 0, 5, [1, 2]), (END + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0, 2])]


@pytest.mark.parametrize(("before", "collide"), [(3_999, True), (4_000, False)])
def test_countdowns_that_end_within_cca_collide(world: World, before: int, collide: bool) -> None:
    # Node 1 counts down 28 slots after node 0's frame; node 2, which has none to wait for, starts just before the end.
    # Of the 28, all are gone when its frame is sensed; a backoff of none remains.
    core = world(3, mesh(3), cca=4_000)
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + 500_000)
    due = END + DIFS + 28 * SLOT
    send(core, 2, 7, due - before)
    second = due - before + AIR
    first = (second, BROADCAST, 2, 7, [] if collide else [0, 1])
    other = (due + AIR, BROADCAST, 1, 6, []) if collide else (second + DIFS + AIR, BROADCAST, 1, 6, [0, 2])
    assert run(core)[1:] == [first, other]


def test_a_slot_that_ends_before_the_frame_is_sensed_has_passed(world: World) -> None:
    # 2 slots and 17 µs before node 2 starts, 3 slots and 1 µs before that is sensed: of 28, 25 are left.
    core = world(3, mesh(3), cca=4_000)
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + 500_000)
    second = END + DIFS + 2 * SLOT + 17_000
    send(core, 2, 7, second)
    assert run(core)[2] == (second + AIR + DIFS + 25 * SLOT + AIR, BROADCAST, 1, 6, [0, 2])


def test_a_message_that_cannot_go_before_a_frame_is_sensed_backs_off(world: World) -> None:
    # Released 1 µs after node 2 has started, while node 1 still waits for DIFS after node 0's frame.
    core = world(3, mesh(3), cca=4_000)
    send(core, 0, 5, MS)
    core.set_link(0, 2, None)  # so that node 2 need not wait
    send(core, 2, 7, END + 20_000)
    send(core, 1, 6, END + 21_000)
    assert run(core)[2] == (END + 20_000 + AIR + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0, 2])


def test_waiting_for_difs_is_broken_off_with_a_backoff(world: World) -> None:
    # Node 1 would go at END + DIFS; node 2, hidden from node 0, goes before.
    core = world(3, [(0, 1), (1, 2)])
    send(core, 0, 5, MS)
    send(core, 1, 6, END + 10_000)
    send(core, 2, 7, END + 30_000)
    assert run(core)[2] == (END + 30_000 + AIR + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0, 2])


def test_after_a_collision_eifs_is_waited_out(world: World) -> None:
    core = world(3, [(0, 1), (1, 2)])
    send(core, 0, 5, MS)
    send(core, 2, 6, MS + 500_000)
    send(core, 1, 7, MS + 800_000)
    assert run(core)[2] == (END + 500_000 + EIFS + 28 * SLOT + AIR, BROADCAST, 1, 7, [0, 2])


def test_a_good_frame_ends_eifs(world: World) -> None:
    # After the collision node 1 waits out EIFS. Node 3's frame breaks in after 100 µs and is received: now it is DIFS.
    core = world(4, [(0, 1), (1, 2), (1, 3)])
    send(core, 0, 5, MS)
    send(core, 2, 6, MS + 500_000)
    send(core, 1, 7, MS + 800_000)
    send(core, 3, 8, END + 600_000)
    assert run(core)[2:] == [
        (END + 600_000 + AIR, BROADCAST, 3, 8, [1]),
        (END + 600_000 + AIR + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 7, [0, 2, 3]),
    ]


def test_slots_count_from_the_end_of_eifs(world: World) -> None:
    # As before, but node 3 breaks in when 3 of the 28 slots after EIFS have passed.
    core = world(4, [(0, 1), (1, 2), (1, 3)])
    send(core, 0, 5, MS)
    send(core, 2, 6, MS + 500_000)
    send(core, 1, 7, MS + 800_000)
    third = END + 500_000 + EIFS + 3 * SLOT + 19_999
    send(core, 3, 8, third)
    assert run(core)[3] == (third + AIR + DIFS + 25 * SLOT + AIR, BROADCAST, 1, 7, [0, 2, 3])


def test_a_frame_merely_sensed_ends_eifs(world: World) -> None:
    # Nodes 0 and 2 collide at node 1. Node 3, 500 m away and so only sensed, breaks into its EIFS: a backoff is drawn.
    core = world(at=[(-200, 0), (0, 0), (200, 0), (0, 500)], sense=2.2)
    send(core, 0, 5, MS)
    send(core, 2, 6, MS)
    send(core, 1, 7, END + 1)
    send(core, 3, 8, END + 100_000)
    assert run(core)[3] == (END + 100_000 + AIR + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 7, [0, 2])


def test_the_own_transmission_ends_eifs(world: World) -> None:
    core = world(3, [(0, 1), (1, 2)])
    send(core, 0, 5, MS)
    send(core, 2, 6, MS)
    send(core, 1, 7, END + 1)
    send(core, 1, 8, END + 1)
    first_end = END + EIFS + AIR
    assert run(core)[2:] == [
        (first_end, BROADCAST, 1, 7, [0, 2]),
        (first_end + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 8, [0, 2]),
    ]


def test_half_duplex_leaves_eifs_and_the_backoff_as_they_were(world: World) -> None:
    # Node 0's long frame starts during node 1's own and outlives it. Node 2's, 256 times as strong, begins meanwhile
    # and is lost by chance: EIFS applies, and still does when node 0's frame ends. Node 1 then wants to send again: it
    # finds the medium busy, but has the backoff after its own frame.
    core = world(at=[(200, 0), (0, 0), (-50, 0)], capture=True, loss=1.0, mtu=3000)
    core.set_range(0, 240.0)  # hidden from node 2
    core.set_range(1, 0.0)
    core.set_range(2, 240.0)
    send(core, 1, 5, MS)
    send(core, 0, 6, MS + 500_000, size=3000)
    send(core, 2, 7, END + MS)
    send(core, 1, 8, END + 2 * MS)
    long_end = MS + 500_000 + 192_000 + 3064 * 4_000
    assert run(core)[3] == (long_end + EIFS + 28 * SLOT + AIR, BROADCAST, 1, 8, [])
    assert counted(core, "half_duplex") == [0, 1, 0]
    assert counted(core, "random_loss") == [0, 1, 0]


def test_a_frame_that_was_never_locked_on_to_calls_for_no_eifs(world: World) -> None:
    # Node 1 transmits when node 0's long frame starts; node 2's, which starts in the middle of that, cannot be captured
    # either. Both are lost, neither had begun: node 1 waits for DIFS, and the 28 slots after its own frame.
    core = world(3, [(0, 1), (2, 1)], both=False, mtu=3000)
    send(core, 1, 5, MS)
    send(core, 0, 6, MS + 500_000, size=3000)
    send(core, 2, 7, END + MS)
    send(core, 1, 8, END + 2 * MS)
    long_end = MS + 500_000 + 192_000 + 3064 * 4_000
    assert run(core)[3] == (long_end + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 8, [])
    assert counted(core, "half_duplex") == [0, 1, 0]
    assert counted(core, "collision") == [0, 1, 0]


def test_a_frame_lost_under_one_merely_sensed_calls_for_no_eifs(world: World) -> None:
    # Node 2, 500 m away, is sensed at node 1 when node 0's frame of 600 bytes (2.848 ms) starts there: that cannot be
    # received. The other way round its reception has begun, and EIFS applies. Node 0's frame is always the last to end.
    for far, near, space in ((0, 100_000, DIFS), (100_000, 0, EIFS)):
        core = world(at=[(-200, 0), (0, 0), (500, 0)], sense=2.2)
        send(core, 2, 5, MS + far)
        send(core, 0, 6, MS + near, size=600)
        send(core, 1, 7, MS + 200_000)
        assert run(core)[2][0] == MS + near + 2_848_000 + space + 28 * SLOT + AIR
        assert counted(core, "collision") == [0, 1, 0]


@pytest.mark.parametrize("gap", [-1_000_000, 0, 10_000, DIFS + 9 * SLOT])
def test_every_transmission_is_followed_by_a_backoff(world: World, gap: int) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    send(core, 0, 6, END + gap)
    assert run(core)[1] == (END + DIFS + 9 * SLOT + AIR, BROADCAST, 0, 6, [1])


def test_once_that_backoff_is_over_a_message_goes_at_once(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    late = END + DIFS + 9 * SLOT + 1
    send(core, 0, 6, late)
    assert run(core)[1] == (late + AIR, BROADCAST, 0, 6, [1])


@pytest.mark.parametrize(("passed", "left"), [(4, 9 - 4), (10, 18)])
def test_that_backoff_is_counted_down_without_a_message_too(world: World, passed: int, left: int) -> None:
    # Node 1 starts when so many of the 9 slots have passed. With all of them gone, the message that comes draws anew.
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    second = END + DIFS + passed * SLOT + 1
    send(core, 1, 6, second)
    send(core, 0, 7, second + 1_000)
    assert run(core)[2] == (second + AIR + DIFS + left * SLOT + AIR, BROADCAST, 0, 7, [1])


# The queue


def test_one_is_served_fifty_wait_and_the_next_is_dropped(world: World) -> None:
    core = world(2, mesh(2))
    for handle in range(52):
        send(core, 0, handle, MS)
    log = run(core)
    assert log[0] == (MS, DROPPED, 0, 51, [])
    assert [(upcall, handle) for _, upcall, _, handle, _ in log[1:]] == [(BROADCAST, handle) for handle in range(51)]
    assert counted(core, "queue_full") == [1, 0]


def test_urgent_messages_go_before_the_others_that_wait(world: World) -> None:
    core = world(2, mesh(2))
    for handle, urgent in enumerate([False, False, False, True, True]):
        send(core, 0, handle, MS, urgent=urgent)
    assert [handle for _, _, _, handle, _ in run(core)] == [0, 3, 4, 1, 2]


def test_a_withdrawn_message_is_never_sent_and_its_handle_is_free(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, 5 * MS)
    assert run(core, 2 * MS) == []
    core.withdraw(5)
    send(core, 0, 5, 9 * MS)
    assert run(core) == [(9 * MS + AIR, BROADCAST, 0, 5, [1])]
    assert counted(core, "packets") == [1, 0]


def test_what_the_host_sends_after_an_upcall_is_released_at_that_instant(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    assert (core.advance(20 * MS), core.now) == (BROADCAST, END)
    send(core, 1, 6, 0)
    assert run(core) == [(END + DIFS + AIR, BROADCAST, 1, 6, [0])]


def test_advance_works_through_what_comes_before_until(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    assert (core.advance(END), core.now) == (Upcall.REACHED, END)
    assert (core.advance(END + 1), core.now) == (BROADCAST, END)
    assert (core.advance(END + 1), core.now) == (Upcall.REACHED, END + 1)


# Unicast


def test_a_unicast_is_delivered_and_then_acknowledged(world: World) -> None:
    core = world(3, mesh(3))
    send(core, 0, 5, MS, to=1)
    assert run(core) == [(END, DELIVERED, 0, 5, [1]), (END + SIFS + ACK, FINISHED, 0, 5, [])]
    assert counted(core, "receptions") == [0, 1, 0]
    assert counted(core, "receptions", kind=0) == [1, 0, 0]
    assert counted(core, "bits", kind=0) == [0, 192 + 8 * 14, 0]
    assert counted(core, "airtime", kind=0) == [0, ACK, 0]


def test_a_unicast_goes_at_the_rate_and_its_acknowledgement_at_the_basic_rate(world: World) -> None:
    # 320 bytes at 11 Mb/s: 2560 bits / 11 = 232.73 µs, rounded up to a nanosecond.
    core = world(2, mesh(2), kbps=11_000)
    send(core, 0, 5, MS, to=1)
    end = MS + 192_000 + 232_728
    assert run(core) == [(end, DELIVERED, 0, 5, [1]), (end + SIFS + ACK, FINISHED, 0, 5, [])]


def test_an_acknowledgement_that_ends_as_the_wait_does_has_come_in_time(world: World) -> None:
    core = world(2, mesh(2), basic_kbps=1_000)
    send(core, 0, 5, MS, to=1)
    assert run(core) == [(END, DELIVERED, 0, 5, [1]), (END + WAIT, FINISHED, 0, 5, [])]
    assert counted(core, "packets") == [1, 0]


def test_an_acknowledgement_that_comes_too_late_is_ignored(world: World) -> None:
    # At 0.5 Mb/s it takes 192_000 + 14 * 16_000 = 416_000 ns, longer than the wait. The next message must not take it
    # for its own; it backs off by 9 slots after the end of what it hears.
    core = world(2, mesh(2), basic_kbps=500, retries=0)
    send(core, 0, 5, MS, to=1)
    send(core, 0, 6, MS, to=1)
    second_end = END + SIFS + 416_000 + DIFS + 9 * SLOT + AIR
    assert run(core) == [
        (END, DELIVERED, 0, 5, [1]),
        (END + WAIT, UNREACHABLE, 0, 5, []),
        (second_end, DELIVERED, 0, 6, [1]),
        (second_end + WAIT, UNREACHABLE, 0, 6, []),
    ]


def failures(node: int, retries: int) -> list[int]:
    """When the waits of a unicast released at 1 ms time out: the window doubles each time."""
    stream = draws(7, "backoff", node)
    times = [END + WAIT]
    for window in [63, 127, 255, 511, 1023, 1023, 1023][:retries]:
        times.append(times[-1] + DIFS + (next(stream) & window) * SLOT + AIR + WAIT)
    return times


def test_a_node_that_has_left_is_given_up_after_eight_transmissions(world: World) -> None:
    core = world(2, mesh(2))
    core.set_link(0, 1, None)
    send(core, 0, 5, MS, to=1)
    assert run(core) == [(failures(0, 7)[-1], UNREACHABLE, 0, 5, [])]
    assert counted(core, "packets") == [8, 0]
    assert counted(core, "unreachable") == [1, 0]


def test_a_node_that_returns_is_reached_and_the_window_with_it(world: World) -> None:
    # Two failures; the third transmission arrives; what follows draws its backoff from the window 31 again.
    core = world(2)
    send(core, 0, 5, MS, to=1)
    send(core, 0, 6, MS)
    second = failures(0, 1)[1]
    assert run(core, second) == []
    core.set_link(0, 1, 0.0)
    core.set_link(1, 0, 0.0)
    third, fourth = list(islice(draws(7, "backoff", 0), 3))[1:]
    arrival = second + DIFS + (third & 127) * SLOT + AIR
    assert run(core) == [
        (arrival, DELIVERED, 0, 5, [1]),
        (arrival + SIFS + ACK, FINISHED, 0, 5, []),
        (arrival + SIFS + ACK + DIFS + (fourth & 31) * SLOT + AIR, BROADCAST, 0, 6, [1]),
    ]


def test_a_repeated_frame_is_acknowledged_again_and_delivered_once(world: World) -> None:
    # Every acknowledgement is lost on the way back. The loss calls for EIFS, but the end of the wait revokes it.
    core = world(2, mesh(2))
    core.set_link(1, 0, 1.0)
    send(core, 0, 5, MS, to=1)
    assert run(core) == [(END, DELIVERED, 0, 5, [1]), (failures(0, 7)[-1], UNREACHABLE, 0, 5, [])]
    assert counted(core, "packets", kind=0) == [0, 8]
    assert counted(core, "random_loss", kind=0) == [8, 0]
    assert counted(core, "receptions") == [0, 8]


@pytest.mark.parametrize("links", [[(0, 1), (0, 2)], [(0, 1), (0, 2), (1, 2)]])
def test_a_third_party_leaves_room_for_the_acknowledgement(world: World, links: list[tuple[int, int]]) -> None:
    # Node 2 hears the frame; whether it hears the acknowledgement makes no difference.
    core = world(3, links)
    send(core, 0, 5, MS, to=1)
    send(core, 2, 6, MS + 500_000)
    start = END + SIFS + ACK + DIFS + 11 * SLOT
    assert run(core)[2][:4] == (start + AIR, BROADCAST, 2, 6)


def test_an_acknowledgement_interrupts_the_own_countdown(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, to=1)
    send(core, 1, 6, MS + 500_000)
    assert run(core)[2] == (END + SIFS + ACK + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0])


def test_an_acknowledgement_before_an_access_without_backoff_draws_one(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, to=1)
    send(core, 1, 6, END + 5_000)
    assert run(core)[2] == (END + SIFS + ACK + DIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0])


def test_an_acknowledgement_cancels_an_access_due_at_its_very_instant(world: World) -> None:
    # With DIFS as short as SIFS and no backoff, node 1's access falls on its acknowledgement, which goes first.
    core = world(2, mesh(2), difs=SIFS)
    send(core, 0, 5, MS, to=1)
    send(core, 1, 6, END + 5_000)
    assert run(core)[:3] == [
        (END, DELIVERED, 0, 5, [1]),
        (END + SIFS + ACK, FINISHED, 0, 5, []),
        (END + SIFS + ACK + SIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0]),
    ]


def test_it_does_so_even_if_a_foreign_frame_came_first_and_let_the_access_stand(world: World) -> None:
    # As before, with a second pair (2, 3) in step with the first: at END + SIFS node 1 first hears node 3 acknowledge.
    core = world(4, [(0, 1), (1, 0), (2, 3), (3, 2), (3, 1)], both=False, difs=SIFS)
    send(core, 2, 4, MS, to=3)
    send(core, 0, 5, MS, to=1)
    send(core, 1, 6, END + 5_000)
    over = END + SIFS + ACK
    assert run(core)[2:] == [
        (over, FINISHED, 2, 4, []),
        (over, FINISHED, 0, 5, []),
        (over + SIFS + 28 * SLOT + AIR, BROADCAST, 1, 6, [0]),
    ]


def test_who_transmits_does_not_acknowledge(world: World) -> None:
    # Node 1 receives node 0's frame, but starts its own before the acknowledgement is due: DIFS is shorter than SIFS.
    core = world(2, mesh(2), difs=SIFS // 2, retries=0)
    send(core, 0, 5, MS, to=1)
    send(core, 1, 6, END + 1_000)
    assert run(core)[:3] == [
        (END, DELIVERED, 0, 5, [1]),
        (END + WAIT, UNREACHABLE, 0, 5, []),
        (END + SIFS // 2 + AIR, BROADCAST, 1, 6, [0]),
    ]
    assert counted(core, "packets", kind=0) == [0, 0]


# Fragments: 3000 bytes are 1472 + 1472 + 56, with headers 1536 + 1536 + 120

LONG, SHORT = 192_000 + 1536 * 4_000, 192_000 + 120 * 4_000  # 6_336_000 and 672_000


def test_the_fragments_of_a_broadcast_are_frames_of_their_own(world: World) -> None:
    # After each the sender backs off, by 9 and by 18 slots.
    core = world(2, mesh(2), record=True)
    send(core, 0, 5, MS, size=3000)
    second = MS + LONG + DIFS + 9 * SLOT
    third = second + LONG + DIFS + 18 * SLOT
    got = ((1, Outcome.RECEIVED),)
    assert frames(core) == [
        Frame(MS, 0, EVERYONE, KIND, 5, 1, 1472, got),
        Frame(second, 0, EVERYONE, KIND, 5, 1, 1472, got),
        Frame(third, 0, EVERYONE, KIND, 5, 1, 56, got),
    ]
    assert counted(core, "packets") == [3, 0]
    assert counted(core, "bits") == [3 * 192 + 8 * 3192, 0]
    assert counted(core, "airtime") == [2 * LONG + SHORT, 0]
    assert counted(core, "receptions") == [0, 3]


def test_a_long_broadcast_has_ended_with_its_last_fragment(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, size=3000)
    assert run(core) == [(MS + 2 * (LONG + DIFS) + (9 + 18) * SLOT + SHORT, BROADCAST, 0, 5, [1])]
    assert core.spent == (3, 3 * 192 + 8 * 3192, 2 * LONG + SHORT)


def test_others_get_in_between_the_fragments_of_a_broadcast(world: World) -> None:
    # Node 2 draws 11 slots while the first fragment is sent. It comes after the second: that starts after 9 slots.
    core = world(3, mesh(3))
    send(core, 0, 5, MS, size=3000)
    send(core, 2, 6, 2 * MS)
    second_end = MS + LONG + DIFS + 9 * SLOT + LONG
    between = second_end + DIFS + (11 - 9) * SLOT
    assert run(core) == [
        (between + AIR, BROADCAST, 2, 6, [0, 1]),
        (between + AIR + DIFS + (18 - 2) * SLOT + SHORT, BROADCAST, 0, 5, [1, 2]),
    ]


def test_an_urgent_message_waits_for_the_last_fragment(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, size=3000)
    send(core, 0, 6, 2 * MS, urgent=True)
    assert [handle for _, _, _, handle, _ in run(core)] == [5, 6]


def lossy(core: Core, gaps: Sequence[tuple[int, int]]) -> None:
    """Node 1 does not hear node 0 from each first time to the second."""
    for gone, back in gaps:
        assert run(core, gone) == []
        core.set_link(0, 1, None)
        assert run(core, back) == []
        core.set_link(0, 1, 0.0)


def test_who_lacks_a_fragment_does_not_have_the_message(world: World) -> None:
    core = world(3, mesh(3))
    send(core, 0, 5, MS, size=3000)
    lossy(core, [(2 * MS, 2 * MS + LONG)])  # away from node 1 when the second starts
    assert [receivers for *_, receivers in run(core)] == [[2]]
    assert counted(core, "receptions") == [0, 2, 3]


def test_of_a_bulk_everyone_is_told_what_it_has(world: World) -> None:
    # Pieces of 1000, 1000 and 200 bytes, 1064 and 264 with headers; node 1 misses the second, node 3 all.
    core = world(4, [(0, 1), (0, 2)])
    piece, last = 192_000 + 1064 * 4_000, 192_000 + 264 * 4_000
    core.send_bulk(0, 5, 3, 1000, 200, KIND, MS, False)
    lossy(core, [(2 * MS, 2 * MS + piece)])
    end = MS + 2 * (piece + DIFS) + (9 + 18) * SLOT + last
    assert run(core) == [(end, BROADCAST, 0, 5, [1, 2])]
    assert core.spent == (3, 3 * 192 + 8 * (1064 + 1064 + 264), 2 * piece + last)


@pytest.mark.parametrize("pieces", [1, 2, 62])
def test_the_masks_of_a_bulk(world: World, pieces: int) -> None:
    core = world(2, ideal=True)
    core.set_link(0, 1, 0.5)
    core.send_bulk(0, 5, pieces, 256, 256, KIND, 0, False)
    assert core.advance(1_000 * MS) is BROADCAST
    expected = sum((u >= 0.5) << n for n, u in enumerate(islice(uniforms(7, "loss", 0), pieces)))
    assert list(zip(core.receivers, core.masks, strict=True)) == ([(1, expected)] if expected else [])
    assert core.now == pieces * AIR


def test_a_message_of_many_fragments_arrives_whole(world: World) -> None:
    for ideal in (True, False):
        core = world(2, mesh(2), mtu=100, ideal=ideal)
        send(core, 0, 5, MS, size=10_001)
        assert [receivers for *_, receivers in run(core)] == [[1]]
        assert counted(core, "receptions") == [0, 101]


def test_a_flood_of_long_messages_passes_on_what_is_whole(world: World) -> None:
    core = world(4, LINE, mtu=100, ideal=True, background_flood=True, **{**BACKGROUND, "record": False})
    run(core, 10_000 * MS)
    assert counted(core, "packets", kind=1) == [12, 12, 12, 12]


def test_a_long_unicast_is_acknowledged_fragment_by_fragment(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, to=1, size=3000)
    arrival = MS + 2 * (LONG + SIFS + ACK + SIFS) + SHORT
    assert run(core) == [(arrival, DELIVERED, 0, 5, [1]), (arrival + SIFS + ACK, FINISHED, 0, 5, [])]
    assert counted(core, "packets") == [3, 0]
    assert counted(core, "packets", kind=0) == [0, 3]
    assert counted(core, "receptions") == [0, 3]


def test_a_fragment_is_retried_alone_and_with_a_window_of_its_own(world: World) -> None:
    # The link is gone when the first and when the second fragment start, and back when their waits time out. With one
    # retry allowed, that is in order: the window is 63 both times.
    core = world(2, mesh(2), retries=1)
    send(core, 0, 5, MS, to=1, size=3000)
    start = MS
    for draw in islice(draws(7, "backoff", 0), 2):
        assert run(core, start) == []
        core.set_link(0, 1, None)
        assert run(core, start + LONG) == []
        core.set_link(0, 1, 0.0)
        again = start + LONG + WAIT + DIFS + (draw & 63) * SLOT
        start = again + LONG + SIFS + ACK + SIFS
    arrival = start + SHORT
    assert run(core) == [(arrival, DELIVERED, 0, 5, [1]), (arrival + SIFS + ACK, FINISHED, 0, 5, [])]
    assert counted(core, "packets") == [5, 0]


def test_a_next_fragment_that_finds_the_node_transmitting_has_failed(world: World) -> None:
    # Only with a threshold below 1 can a node receive two frames at once: here node 0 that of node 2, which does not
    # hear it, and node 1's acknowledgement, which starts later and ends with it. Node 0 answers what started first.
    # At 11 Mb/s the fragment of 1536 bytes takes 192_000 + 1_117_091 ns, node 2's frame of 83 bytes 192_000 + 60_364.
    core = world(at=[(0, 0), (200, 0), (-240, 0)], capture=True, threshold=0.1, kbps=11_000, record=True)
    core.set_range(0, 200.0)
    both_end = MS + 1_309_091 + SIFS + ACK
    send(core, 0, 5, MS, to=1, size=3000)
    send(core, 2, 6, both_end - 252_364, to=0, size=83 - 64)
    first = frames(core, both_end + 1)
    core.set_range(2, 0.0)  # so that its repetitions disturb nobody
    then = frames(core, both_end + 5 * MS)
    retry = both_end + SIFS + ACK + DIFS + (next(draws(7, "backoff", 0)) & 63) * SLOT
    assert [(f.start, f.sender, f.to, f.size) for f in first + then if f.sender == 0][:3] == [
        (MS, 0, 1, 1472),
        (both_end + SIFS, 0, 2, 14),
        (retry, 0, 1, 1472),
    ]


def test_a_message_of_exactly_the_mtu_is_one_frame(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, size=1472)
    assert run(core) == [(MS + LONG, BROADCAST, 0, 5, [1])]


# Chance


def test_a_lossy_link_draws_for_each_receiver_in_order(world: World) -> None:
    # Node 2's link loses nothing and so draws nothing; links are set out of order on purpose.
    core = world(4)
    for receiver, loss in [(3, 0.5), (2, 0.0), (1, 0.5)]:
        core.set_link(0, receiver, loss)
    for handle in range(20):
        send(core, 0, handle, (handle + 1) * 10 * MS)
    chance = uniforms(7, "loss", 0)
    expected = []
    for _ in range(20):
        kept = {receiver: not next(chance) < 0.5 for receiver in (1, 3)} | {2: True}
        expected.append([receiver for receiver in (1, 2, 3) if kept[receiver]])
    assert [receivers for *_, receivers in run(core)] == expected
    assert counted(core, "random_loss") == [0, *(20 - sum(n in r for r in expected) for n in (1, 2, 3))]


def test_what_collides_draws_nothing(world: World) -> None:
    # Node 0's first frame collides at node 1: the first draw is for the second frame.
    core = world(at=[(0, 0), (200, 0), (400, 0)], loss=0.5)
    send(core, 0, 5, MS)
    send(core, 2, 6, MS)
    for handle in range(10, 20):
        send(core, 0, handle, handle * 10 * MS)
    expected = [[1] if u >= 0.5 else [] for u in islice(uniforms(7, "loss", 0), 10)]
    assert [receivers for *_, receivers in run(core)] == [[], [], *expected]


def test_a_loss_by_chance_calls_for_eifs(world: World) -> None:
    core = world(2, mesh(2))
    core.set_link(0, 1, 1.0)
    send(core, 0, 5, MS)
    send(core, 1, 6, END + 1)
    assert run(core) == [(END, BROADCAST, 0, 5, []), (END + EIFS + AIR, BROADCAST, 1, 6, [0])]


# The ideal MAC


def test_the_ideal_mac_sends_at_once_and_nothing_collides(world: World) -> None:
    core = world(3, mesh(3), ideal=True)
    send(core, 0, 5, 0)
    send(core, 1, 6, 0)
    send(core, 0, 7, 1_000)
    assert run(core) == [
        (AIR, BROADCAST, 0, 5, [1, 2]),
        (AIR, BROADCAST, 1, 6, [0, 2]),
        (AIR + 1_000, BROADCAST, 0, 7, [1, 2]),
    ]


@pytest.mark.parametrize("count", [10, 64, 65, 300])
def test_few_events_and_many_come_in_their_order(world: World, count: int) -> None:
    """By time, and of one instant by the order of the sends; the compiled core keeps few events otherwise than many."""
    releases = [MS + 37 * handle % 101 * 1_000 for handle in range(count)]
    core = world(2, mesh(2), ideal=True)
    for handle, release in enumerate(releases):
        send(core, 0, handle, release)
    order = sorted(range(count), key=lambda handle: (releases[handle], handle))
    assert run(core) == [(releases[handle] + AIR, BROADCAST, 0, handle, [1]) for handle in order]
    send(core, 1, 0, 1_001 * MS)
    assert run(core, 1_100 * MS) == [(1_001 * MS + AIR, BROADCAST, 1, 0, [0])]


def test_the_ideal_mac_knows_at_the_end_of_a_unicast_whether_it_arrived(world: World) -> None:
    # 3000 bytes as one burst at 11 Mb/s: 1536 bytes take 1_117_091 ns, 120 bytes 87_273 ns.
    core = world(3, [(0, 1)], ideal=True, kbps=11_000)
    send(core, 0, 5, 0, to=1, size=3000)
    send(core, 0, 6, 0, to=2, size=3000)
    end = 2 * (192_000 + 1_117_091 + SIFS) + 192_000 + 87_273
    assert run(core) == [(end, DELIVERED, 0, 5, [1]), (end, FINISHED, 0, 5, []), (end, UNREACHABLE, 0, 6, [])]
    assert counted(core, "packets") == [6, 0, 0]
    assert counted(core, "packets", kind=0) == [0, 0, 0]


# Background traffic

LINE = [(0, 1), (1, 2), (2, 3)]
BACKGROUND = {"background_interval": 10_000 * MS, "background_size": 256, "background_jitter": 10 * MS, "record": True}


def phases(nodes: int) -> list[int]:
    return [int(next(uniforms(7, "background", node)) * 10_000 * MS) for node in range(nodes)]


def test_background_traffic_for_neighbours_is_not_passed_on(world: World) -> None:
    core = world(4, LINE, **BACKGROUND)
    starts = {frame.sender: frame.start for frame in frames(core, 10_000 * MS)}
    assert [starts[node] for node in range(4)] == phases(4)
    assert counted(core, "packets", kind=1) == [1, 1, 1, 1]
    assert counted(core, "receptions", kind=1) == [1, 2, 2, 1]


def test_who_was_last_heard_in_background_traffic_is_remembered(world: World) -> None:
    core = world(4, LINE, overhear=True, **BACKGROUND)
    assert core.overheard(0, 1) is None
    frames(core, 10_000 * MS)
    at = [phase + AIR for phase in phases(4)]
    assert [[core.overheard(node, sender) for sender in range(4)] for node in range(4)] == [
        [None, at[1], None, None],
        [at[0], None, at[2], None],
        [None, at[1], None, at[3]],
        [None, None, at[2], None],
    ]
    frames(core, 20_000 * MS)
    assert core.overheard(0, 1) == at[1] + 10_000 * MS


def test_a_flood_is_heard_from_whoever_passed_it_on(world: World) -> None:
    core = world(4, LINE, overhear=True, background_flood=True, **BACKGROUND)
    first = frames(core, phases(4)[3] + 5 * AIR + 30 * MS)
    assert [frame.sender for frame in first[:4]] == [3, 2, 1, 0], "that of node 3, down the line"
    assert core.overheard(0, 1) == first[2].start + AIR
    assert core.overheard(0, 3) is None


def test_a_background_flood_passes_every_message_on_once(world: World) -> None:
    # The first to send is node 3 (phase 0.699). It goes down the line, each time with that node's second draw.
    core = world(4, LINE, background_flood=True, **BACKGROUND)
    seen = frames(core, 9_500 * MS)
    first = phases(4)[3]
    assert first == min(phases(4))
    delays = [int(list(islice(uniforms(7, "background", node), 2))[1] * 10 * MS) for node in range(4)]
    second = first + AIR + delays[2]
    assert [(f.start, f.sender, f.kind, f.handle, f.size) for f in seen[:2]] == [
        (first, 3, 1, -1, 256),
        (second, 2, 1, -1, 256),
    ]
    assert seen[1].outcomes == ((1, Outcome.RECEIVED), (3, Outcome.RECEIVED))
    assert (seen[2].start, seen[2].sender) == (second + AIR + delays[1], 1)
    assert counted(core, "packets", kind=1) == [4, 4, 4, 4]
    # Node 2's message is passed on by nodes 1 and 3, hidden from each other, after 5.98 ms (its fourth draw) and
    # 6.55 ms (its third): both collide at node 2. Node 1's is by nodes 0 and 2 after 2.03 ms and 4.46 ms: no collision.
    assert counted(core, "receptions", kind=1) == [4, 8, 8 - 2, 4]
    assert counted(core, "collision", kind=1) == [0, 0, 2, 0]


def test_background_messages_are_repeated_every_interval_and_dropped_without_a_word(world: World) -> None:
    # Every 100 µs a message of 1.472 ms: one is served and one waits, the others find the queue full.
    core = world(1, seed=7, queue=1, background_interval=100_000, background_size=256)
    phase = int(next(uniforms(7, "background", 0)) * 100_000)
    assert run(core, phase + 1_000_001) == []
    assert counted(core, "queue_full", kind=1) == [9]


# The record and the counters


def test_the_record_of_a_unicast(world: World) -> None:
    core = world(3, mesh(3), record=True)
    send(core, 0, 5, MS, to=1)
    upcalls, recorded = [], []
    while (upcall := core.advance(10 * MS)) is not Upcall.REACHED:
        upcalls.append(upcall)
        recorded += [core.frame] if upcall is Upcall.FRAME else []
    assert upcalls == [Upcall.FRAME, DELIVERED, Upcall.FRAME, FINISHED]
    assert recorded == [
        Frame(MS, 0, 1, KIND, 5, 1, 256, ((1, Outcome.RECEIVED),)),
        Frame(END + SIFS, 1, 0, 0, -1, 1, 14, ((0, Outcome.RECEIVED),)),
    ]


def test_the_record_names_every_way_to_lose_a_frame(world: World) -> None:
    core = world(5, [(0, 1), (0, 2), (0, 3), (1, 4), (4, 2)], both=False, record=True, mtu=3000)
    core.set_link(0, 3, 1.0)
    send(core, 0, 5, MS, size=3000)
    send(core, 1, 6, MS)
    send(core, 4, 7, MS)
    assert frames(core)[-1].outcomes == ((1, Outcome.HALF_DUPLEX), (2, Outcome.COLLISION), (3, Outcome.RANDOM_LOSS))


def test_the_series_is_what_was_counted_since_it_was_last_taken(world: World) -> None:
    core = world(3, mesh(3))
    send(core, 0, 5, MS)
    send(core, 1, 6, 10 * MS, to=2)
    run(core, 5 * MS)
    nothing = [0] * len(METRICS)
    assert core.take_series() == [nothing, nothing, [1, 2752, AIR, 2, 0, 0, 0, 0, 0, 1]]
    run(core, 20 * MS)
    assert core.take_series() == [[1, 304, ACK, 1, 0, 0, 0, 0, 0, 0], nothing, [1, 2752, AIR, 1, 0, 0, 0, 0, 0, 1]]
    assert core.take_series() == [nothing] * 3


# Any world

SENDS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-1, 4), st.sampled_from([0, 40, 1472, 3000]), st.integers(0, 20 * MS)),
    max_size=25,
)


@pytest.mark.parametrize("make", CORES, ids=lambda core: core.__module__)
@given(
    rows=SENDS,
    links=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.0, 0.3])), max_size=20),
    seed=st.integers(0, 2**32),
    ideal=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
def test_every_message_is_over_once_and_the_counters_agree_with_the_record(
    make: Callable[[Settings], Core],
    rows: list[tuple[int, int, int, int]],
    links: list[tuple[int, int, float]],
    seed: int,
    ideal: bool,
) -> None:
    core = make(Settings(nodes=5, seed=seed, kinds=3, links=True, record=True, queue=3, ideal=ideal))
    for a, b, loss in links:
        if a != b:
            core.set_link(a, b, loss)
    expected = {}
    for handle, (node, to, size, release) in enumerate(rows):
        unicast = to not in (EVERYONE, node)
        send(core, node, handle, release, to=to if unicast else EVERYONE, size=size)
        expected[handle] = {FINISHED, UNREACHABLE, DROPPED} if unicast else {BROADCAST, DROPPED}
    over: dict[int, Upcall] = {}
    recorded = dict.fromkeys(Outcome, 0)
    packets = 0
    while (upcall := core.advance(100_000 * MS)) is not Upcall.REACHED:
        if upcall is Upcall.FRAME:
            assert core.frame is not None
            packets += core.frame.packets
            for _, outcome in core.frame.outcomes:
                recorded[outcome] += 1
        elif upcall is not DELIVERED:
            assert core.handle not in over
            over[core.handle] = upcall
    assert over.keys() == expected.keys()
    assert all(over[handle] in expected[handle] for handle in over)
    series = [sum(column) for column in zip(*core.take_series(), strict=True)]
    assert series[0] == packets
    assert dict(zip(Outcome, (series[3], series[5], series[4], series[6]), strict=True)) == recorded
