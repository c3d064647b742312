"""Nodes that are switched off and on, worked out by hand from `docs/model.md` for any core. Times as in `test_core`."""

from roamcast.sim.core.interface import Core, Upcall
from sim.test_core import (
    ACK,
    AIR,
    BROADCAST,
    DELIVERED,
    DIFS,
    END,
    FINISHED,
    LINE,
    LONG,
    MS,
    SIFS,
    SLOT,
    UNREACHABLE,
    WAIT,
    Entry,
    World,
    backoffs,
    counted,
    draws,
    mesh,
    phases,
    run,
    send,
    world,
)

__all__ = ["world"]  # the fixture

GONE = Upcall.GONE


def switched(core: Core, *switches: tuple[int, int, bool, bool], until: int = 1_000 * MS) -> list[Entry]:
    """All upcalls, with (time, node, on, keep_queue) switched in between."""
    log: list[Entry] = []
    for time, node, on, keep_queue in switches:
        log += run(core, time)
        core.set_on(node, on, keep_queue)
    return log + run(core, until)


def test_who_is_off_is_not_in_range(world: World) -> None:
    for core in (world(3, mesh(3)), world(at=[(0, 0), (10, 0), (20, 0)])):
        core.set_on(1, False, True)
        send(core, 0, 5, MS)
        assert run(core) == [(END, BROADCAST, 0, 5, [2])]
        assert counted(core, "receptions") == [0, 0, 1]


def test_a_frame_that_was_being_received_is_lost_and_counted_nowhere(world: World) -> None:
    # Also if the node is back before the frame ends; with the ideal MAC as well.
    for ideal in (False, True):
        core = world(3, mesh(3), ideal=ideal)
        send(core, 0, 5, MS)
        log = switched(core, (MS + 500_000, 1, False, True), (MS + 600_000, 1, True, True))
        assert log == [(END, BROADCAST, 0, 5, [2])]
        for metric in ("receptions", "half_duplex", "collision", "random_loss"):
            assert counted(core, metric)[1] == 0


def test_a_node_that_is_back_does_not_sense_what_was_on_the_air_before(world: World) -> None:
    # It goes DIFS after its return, into the frame of node 0; node 2 gets neither.
    core = world(3, mesh(3))
    send(core, 0, 5, MS)
    send(core, 1, 6, MS + 400_000)
    back = MS + 600_000
    log = switched(core, (MS + 300_000, 1, False, True), (back, 1, True, True))
    assert log == [(END, BROADCAST, 0, 5, []), (back + DIFS + AIR, BROADCAST, 1, 6, [])]
    assert counted(core, "collision") == [0, 0, 2]


def test_a_frame_on_the_air_is_sent_to_its_end(world: World) -> None:
    for keep_queue in (False, True):
        core = world(2, mesh(2))
        send(core, 0, 5, MS)
        assert switched(core, (MS + 1, 0, False, keep_queue)) == [(END, BROADCAST, 0, 5, [1])]


def test_a_queue_that_is_kept_waits_and_so_does_the_backoff(world: World) -> None:
    # Node 0 sends one of two and draws 9 slots. It goes off when two and a half have passed: 7 remain.
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    send(core, 0, 6, MS)
    off, back = END + DIFS + 2 * SLOT + SLOT // 2, 50 * MS
    log = switched(core, (off, 0, False, True), (back, 0, True, True))
    assert log == [(END, BROADCAST, 0, 5, [1]), (back + DIFS + 7 * SLOT + AIR, BROADCAST, 0, 6, [1])]


def test_what_was_to_be_released_meanwhile_is_released_on_return_in_its_order(world: World) -> None:
    core = world(2, mesh(2), queue=1)
    for handle, release in ((5, 4 * MS), (6, 3 * MS), (7, 2 * MS), (8, 60 * MS)):
        send(core, 0, handle, release)
    back = 50 * MS
    log = switched(core, (MS, 0, False, True), (back, 0, True, True))
    # The first, 7, is served, the second waits, the third finds the queue full.
    assert log[:2] == [(back, Upcall.DROPPED, 0, 5, []), (back + DIFS + AIR, BROADCAST, 0, 7, [1])]
    assert [(upcall, handle) for _, upcall, _, handle, _ in log[2:]] == [(BROADCAST, 6), (BROADCAST, 8)]


def test_without_its_queue_everything_is_gone_and_the_host_is_told(world: World) -> None:
    core = world(2, mesh(2))
    for handle, release in ((9, MS), (8, MS), (7, MS), (6, 40 * MS), (5, 90 * MS)):
        send(core, 0, handle, release)
    send(core, 1, 4, 41 * MS)  # another's stays
    off, back = MS + 100_000, 50 * MS
    log = switched(core, (off, 0, False, False), (back, 0, True, True))
    assert log == [
        *((off, GONE, 0, handle, []) for handle in (5, 6, 7, 8)),
        (END, BROADCAST, 0, 9, [1]),
        (41 * MS + AIR, BROADCAST, 1, 4, []),
    ]
    send(core, 0, 5, 1_000 * MS)  # the handle is free, and no backoff is left
    assert run(core, 2_000 * MS) == [(1_000 * MS + AIR, BROADCAST, 0, 5, [1])]


def test_going_off_again_without_the_queue_drops_what_had_waited(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, 2 * MS)
    assert switched(core, (MS, 0, False, True), (3 * MS, 0, False, False)) == [(3 * MS, GONE, 0, 5, [])]


def test_an_unanswered_unicast_is_sent_again_on_return(world: World) -> None:
    # It goes off between its frame and the acknowledgement. On return there is no backoff: the frame goes after DIFS.
    # It is delivered once.
    core = world(2, mesh(2))
    send(core, 0, 5, MS, to=1)
    back = 50 * MS
    log = switched(core, (END + 5_000, 0, False, True), (back, 0, True, True))
    again = back + DIFS + AIR
    assert log == [(END, DELIVERED, 0, 5, [1]), (again + SIFS + ACK, FINISHED, 0, 5, [])]
    assert counted(core, "packets") == [2, 0]
    assert counted(core, "packets", kind=0) == [0, 2]


def test_a_unicast_on_the_air_is_delivered_and_gone(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, to=1)
    log = switched(core, (MS + 1, 0, False, False))
    assert log == [(END, DELIVERED, 0, 5, [1]), (END, GONE, 0, 5, [])]
    assert counted(core, "unreachable") == [0, 0]


def test_an_acknowledgement_that_falls_due_while_off_is_never_sent(world: World) -> None:
    core = world(2, mesh(2), retries=0)
    send(core, 0, 5, MS, to=1)
    log = switched(core, (END + 1, 1, False, True), (END + 100_000, 1, True, True))
    assert log == [(END, DELIVERED, 0, 5, [1]), (END + WAIT, UNREACHABLE, 0, 5, [])]


def test_the_next_fragment_of_a_unicast_does_not_go_while_off(world: World) -> None:
    core = world(2, mesh(2))
    send(core, 0, 5, MS, to=1, size=3000)
    first_over = MS + LONG + SIFS + ACK
    back = 50 * MS
    log = switched(core, (first_over + 1, 0, False, True), (back, 0, True, True))
    arrival = back + DIFS + LONG + 2 * SIFS + ACK + 192_000 + 120 * 4_000
    assert log == [(arrival, DELIVERED, 0, 5, [1]), (arrival + SIFS + ACK, FINISHED, 0, 5, [])]
    assert counted(core, "packets") == [3, 0]


def test_who_went_off_and_on_during_its_own_frame_still_transmits(world: World) -> None:
    # What comes meanwhile finds the medium busy and backs off; there is no backoff after the frame that was cut.
    core = world(2, mesh(2))
    send(core, 0, 5, MS)
    send(core, 0, 6, MS + 300_000)
    log = switched(core, (MS + 100_000, 0, False, False), (MS + 200_000, 0, True, True))
    assert log[0] == (MS + 100_000, GONE, 0, 6, [])
    assert log[1] == (END, BROADCAST, 0, 5, [1])
    send(core, 0, 7, 1_000 * MS)
    send(core, 0, 8, 1_000 * MS)
    end = 1_000 * MS + AIR
    assert run(core, 2_000 * MS) == [
        (end, BROADCAST, 0, 7, [1]),
        (end + DIFS + backoffs(0, 1)[0] * SLOT + AIR, BROADCAST, 0, 8, [1]),
    ]


def test_a_node_that_left_is_given_up_with_the_ideal_mac_too(world: World) -> None:
    core = world(2, mesh(2), ideal=True)
    send(core, 0, 5, MS, to=1)
    assert switched(core, (MS + 1, 1, False, True)) == [(END, UNREACHABLE, 0, 5, [])]


def test_with_the_ideal_mac_messages_wait_or_are_gone(world: World) -> None:
    core = world(2, mesh(2), ideal=True)
    send(core, 0, 5, 2 * MS)
    send(core, 1, 6, 2 * MS)
    send(core, 0, 7, 0, to=1)
    core.set_on(0, False, True)
    log = switched(core, (MS, 1, False, False), (9 * MS, 0, True, True), (9 * MS, 1, True, True))
    assert log == [
        (MS, GONE, 1, 6, []),
        (9 * MS + AIR, DELIVERED, 0, 7, [1]),
        (9 * MS + AIR, FINISHED, 0, 7, []),
        (9 * MS + AIR, BROADCAST, 0, 5, [1]),
    ]


def test_no_background_traffic_is_made_while_off(world: World) -> None:
    # Over three intervals of 10 s: node 3 is off at the second, and makes its third when it would have.
    core = world(4, LINE, background_interval=10_000 * MS, background_size=256)
    second = phases(4)[3] + 10_000 * MS
    run(core, second - MS)
    core.set_on(3, False, True)
    run(core, second + MS)
    core.set_on(3, True, True)
    run(core, 30_000 * MS)
    assert counted(core, "packets", kind=1) == [3, 3, 3, 2]


def test_a_flood_that_was_to_be_passed_on_is_forgotten_or_waits(world: World) -> None:
    for keep_queue, packets in ((True, [1, 1, 1, 1]), (False, [0, 0, 0, 1])):
        core = world(
            4,
            LINE,
            background_interval=10_000 * MS,
            background_size=256,
            background_jitter=10 * MS,
            background_flood=True,
        )
        first = phases(4)[3]  # node 3's, at 6.99 s; node 2 passes it on a few ms after its end
        run(core, first + AIR + 1)
        core.set_on(2, False, keep_queue)
        run(core, first + 100 * MS)
        core.set_on(2, True, True)
        run(core, first + 200 * MS)
        assert counted(core, "packets", kind=1) == packets


def test_who_was_off_has_forgotten_the_fragments_it_had(world: World) -> None:
    # Nodes 1 and 2 get the first of three fragments. Node 1 is off for a moment, and gets the others.
    for bulk, receivers, masks in ((False, [2], []), (True, [1, 2], [0b110, 0b111])):
        core = world(3, mesh(3))
        if bulk:
            core.send_bulk(0, 5, 3, 1472, 56, 2, MS, False)
        else:
            send(core, 0, 5, MS, size=3000)
        run(core, MS + LONG + 1)
        core.set_on(1, False, True)
        run(core, MS + LONG + 2)
        core.set_on(1, True, True)
        assert [entry[-1] for entry in run(core)] == [receivers]
        assert not bulk or core.masks == masks


def test_a_bulk_that_breaks_off_has_ended_with_what_was_sent(world: World) -> None:
    # Between the first and the second piece, or during the second, which is then sent to its end.
    between, second = MS + LONG + 1, MS + LONG + DIFS + 9 * SLOT
    for off, end, mask in ((between, between, 0b1), (second + 1, second + LONG, 0b11)):
        core = world(2, mesh(2))
        core.send_bulk(0, 6, 3, 1472, 56, 2, MS, False)
        send(core, 0, 5, MS)
        assert switched(core, (off, 0, False, False)) == [(off, GONE, 0, 5, []), (end, BROADCAST, 0, 6, [1])]
        assert core.masks == [mask]


def test_a_bulk_that_is_kept_goes_on_on_return(world: World) -> None:
    for ideal in (False, True):
        core = world(2, mesh(2), ideal=ideal)
        core.send_bulk(0, 5, 3, 1472, 56, 2, MS, False)
        back = 900 * MS
        log = switched(core, (2 * MS, 0, False, True), (back, 0, True, True))
        assert [entry[1:] for entry in log] == [(BROADCAST, 0, 5, [1])]
        assert core.masks == [0b111]
        assert log[0][0] > back + LONG


def test_the_draw_this_page_counts_on() -> None:
    assert next(draws(7, "backoff", 0)) & 31 == 9
