"""Links on real sockets: over an air that loses, repeats and reorders, and by real broadcast on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from live.link.disk import Disk
from live.link.relay import KEY, Relay, Station, until
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import ACK, HEADER_SIZE, MAX_DATAGRAM, TAG_SIZE, UNICAST_DATA, Sealer
from roamcast.live.link.link import Link, LinkProblem, LinkSettings
from roamcast.live.link.outbox import LETTER_COST
from roamcast.live.link.reassembly import CHUNK_COST, MAX_FRAGMENTS

PATIENT = LinkSettings(
    air=("127.0.0.1", 9), bind="127.0.0.1", retries=60, retry_interval=0.004, retry_longest=0.01, neighbours=16
)
"""Tries again soon and often: over any air of these tests everything arrives."""
HASTY = replace(PATIENT, retries=2)
CALM = replace(PATIENT, retry_interval=5.0, retry_longest=5.0)
"""On a busy machine an acknowledgement takes longer than PATIENT waits: where one frame must be enough, wait."""


def on(relay: Relay, settings: LinkSettings = PATIENT) -> LinkSettings:
    return replace(settings, air=relay.address)


@asynccontextmanager
async def stations(relay: Relay, *nodes: int, settings: LinkSettings = PATIENT) -> AsyncIterator[list[Station]]:
    async with relay, AsyncExitStack() as stack:
        made = [await stack.enter_async_context(Station(node, on(relay, settings))) for node in nodes]
        for station in made:
            relay.join(station.link)
        yield made


def test_a_broadcast_reaches_everybody_else() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2, 3) as (one, two, three):
            one.link.broadcast(b"hello", token="t")
            assert one.done == []  # never from within
            await until(lambda: two.heard and three.heard and one.done)
            assert two.heard == three.heard == [(1, b"hello")]
            assert one.done == [("t", True, 1, HEADER_SIZE + TAG_SIZE + 5)]
            assert (list(two.link.neighbours), two.link.counters["received"]) == ([1], 1)

    asyncio.run(main())


def test_a_unicast_is_acknowledged_and_only_its_receiver_gets_it() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2, 3, settings=CALM) as (one, two, three):
            one.link.unicast(2, b"psst", token="t")
            await until(lambda: one.done)
            assert one.done == [("t", True, 1, HEADER_SIZE + TAG_SIZE + 9 + 4)]
            assert (two.heard, three.heard) == ([(1, b"psst")], [])
            await until(lambda: three.link.counters["others"] == 2)  # the message and its acknowledgement
            acknowledged = two.link.counters["acknowledged"], two.link.counters["acknowledged-octets"]
            assert acknowledged == (1, HEADER_SIZE + TAG_SIZE + 9 + 1)

    asyncio.run(main())


@pytest.mark.parametrize("seed", [1, 2])
def test_over_a_bad_air_every_unicast_arrives_once_and_in_order(seed: int) -> None:
    async def main() -> None:
        async with stations(Relay(drop=0.3, repeat=0.2, reorder=0.2, seed=seed), 1, 2, 3) as (one, two, three):
            for number in range(40):
                one.link.unicast(2, b"to two %d" % number, token=("2", number))
                one.link.unicast(3, b"to three %d" % number, token=("3", number))
                two.link.unicast(1, b"to one %d" % number, token=number)
            await until(lambda: len(one.done) == 80 and len(two.done) == 40)
            assert sorted(one.endings) == sorted(((to, n), True) for to in "23" for n in range(40))
            assert two.endings == [(n, True) for n in range(40)]
            assert two.heard == [(1, b"to two %d" % number) for number in range(40)]
            assert three.heard == [(1, b"to three %d" % number) for number in range(40)]
            assert one.heard == [(2, b"to one %d" % number) for number in range(40)]
            assert one.link.counters["host-failed"] == 0

    asyncio.run(main())


def test_a_message_of_many_parts_over_a_bad_air() -> None:
    async def main() -> None:
        payload = bytes(range(256)) * 400  # 102,400 octets
        async with stations(Relay(drop=0.2, repeat=0.1, reorder=0.2), 1, 2) as (one, two):
            one.link.unicast(2, payload, token="long")
            one.link.unicast(2, b"short", token="next")
            await until(lambda: len(one.done) == 2)
            assert one.endings == [("long", True), ("next", True)]
            assert two.heard == [(1, payload), (1, b"short")]
            assert one.done[0][2] >= 76  # fragments of 1,354 octets

    asyncio.run(main())


def test_a_broadcast_of_many_parts() -> None:
    async def main() -> None:
        payload = bytes(range(256)) * 80
        async with stations(Relay(repeat=0.3, reorder=0.3), 1, 2, 3) as (one, two, three):
            one.link.broadcast(payload, token="long")
            for _ in range(20):
                one.link.broadcast(b".", token="next")  # so that nothing is held back for want of a successor
            await until(lambda: (1, payload) in two.heard and (1, payload) in three.heard)
            assert one.done[0][:3] == ("long", True, 16)

    asyncio.run(main())


def test_lost_acknowledgements_make_repetitions_that_are_handed_up_once() -> None:
    async def main() -> None:
        relay, lost = Relay(), list[bytes]()

        def first_three_acks(datagram: bytes) -> bool:
            if datagram[1] == ACK and len(lost) < 3:
                lost.append(datagram)
                return True
            return False

        relay.refuse = first_three_acks
        async with stations(relay, 1, 2) as (one, two):
            one.link.unicast(2, b"x", token="t")
            await until(lambda: one.done)
            assert two.heard == [(1, b"x")]
            assert one.done[0][:2] == ("t", True)
            assert one.done[0][2] >= 4
            assert two.link.counters["duplicate"] >= 3

    asyncio.run(main())


def test_nobody_there_is_given_up_after_all_tries() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, settings=HASTY) as (one,):
            one.link.unicast(9, b"x", token="t")
            await until(lambda: one.done)
            assert one.done == [("t", False, 3, 3 * (HEADER_SIZE + TAG_SIZE + 9 + 1))]

    asyncio.run(main())


def test_one_who_did_not_answer_gets_fewer_tries_until_heard_again() -> None:
    async def main() -> None:
        relay = Relay()
        relay.refuse = lambda datagram: datagram[1] == UNICAST_DATA
        async with stations(relay, 1, 2, settings=replace(PATIENT, retries=5)) as (one, two):
            one.link.unicast(2, b"x", token="a")
            one.link.unicast(2, b"x", token="b")
            await until(lambda: len(one.done) == 2)
            two.link.broadcast(b"I am here", token="t")
            await until(lambda: one.heard)
            one.link.unicast(2, b"x", token="c")
            await until(lambda: len(one.done) == 3)
            assert [ending[:3] for ending in one.done] == [("a", False, 6), ("b", False, 3), ("c", False, 6)]

    asyncio.run(main())


def test_a_full_queue_fails_at_once_and_urgent_ones_push_out_ordinary_ones() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2, settings=replace(HASTY, queue=3)) as (one, two):
            for token in "abcd":
                one.link.unicast(2, token.encode(), token=token)
            one.link.unicast(2, b"E", token="E", urgent=True)
            await until(lambda: len(one.done) == 5)
            assert sorted(one.endings) == [("E", True), ("a", True), ("b", True), ("c", False), ("d", False)]
            assert [payload for _, payload in two.heard] == [b"E", b"a", b"b"]
            assert one.link.counters["queue-full"] == 2

    asyncio.run(main())


def test_urgent_broadcasts_go_first() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2) as (one, two):
            for payload, urgent in ((b"a", False), (b"b", False), (b"C", True)):
                one.link.broadcast(payload, token=payload, urgent=urgent)
            await until(lambda: len(two.heard) == 3)
            assert [payload for _, payload in two.heard] == [b"C", b"a", b"b"]

    asyncio.run(main())


def test_a_message_too_long_for_all_parts() -> None:
    async def main() -> None:
        async with stations(Relay(), 1) as (one,):
            one.link.broadcast(bytes(PATIENT.longest_message + 1), token="b")
            one.link.unicast(2, bytes(PATIENT.longest_message + 1), token="u")
            await until(lambda: len(one.done) == 2)
            assert one.done == [("b", False, 0, 0), ("u", False, 0, 0)]
            assert one.link.counters["too-long"] == 2

    asyncio.run(main())


def test_closing_ends_everything_once_and_sends_broadcasts_still() -> None:
    async def main() -> None:
        relay = Relay()
        async with stations(relay, 1, 2) as (one, two):
            relay.refuse = lambda datagram: datagram[1] == UNICAST_DATA
            for number in range(5):
                one.link.unicast(2, b"never", token=number)
                one.link.unicast(3 + number, b"never", token=10 + number)
            await until(lambda: one.link.counters["sent"] >= 6)
            one.link.unicast(2, b"never", token="last")
            one.link.broadcast(b"farewell", token="farewell")
            await one.link.close()
            assert len(one.done) == 12
            assert sorted(map(str, one.endings)) == sorted(
                [f"({n}, False)" for n in (*range(5), *range(10, 15))] + ["('last', False)", "('farewell', True)"]
            )
            await until(lambda: two.heard)
            assert two.heard == [(1, b"farewell")]
            await one.link.close()
            assert (len(one.done), one.link.waiting) == (12, 0)

    asyncio.run(main())


def test_a_host_that_sends_again_whatever_fails_does_not_hold_up_the_closing() -> None:
    async def main() -> None:
        done: list[Hashable] = []

        def again(token: Hashable, delivered: bool, datagrams: int, octets: int) -> None:
            done.append(token)
            link.unicast(9, b"again", token="again")

        link = Link(Sealer(KEY, 1), PATIENT, on_message=lambda *_: None, on_done=again)
        await link.open()
        link.unicast(9, b"x", token="first")
        await link.close()
        assert done == ["first"]
        await until(lambda: len(done) > 2)

    asyncio.run(main())


def test_a_link_that_is_not_open_fails_what_it_is_given() -> None:
    async def main() -> None:
        station = Station(1, PATIENT)
        station.link.broadcast(b"x", token="b")
        station.link.unicast(2, b"x", token="u")
        await until(lambda: len(station.done) == 2)
        assert station.done == [("b", False, 0, 0), ("u", False, 0, 0)]
        assert station.link.counters["closed"] == 2
        with pytest.raises(LinkProblem, match="not open"):
            _ = station.link.own_address
        async with station:
            with pytest.raises(LinkProblem, match="open already"):
                await station.link.open()

    asyncio.run(main())


def test_a_link_can_be_opened_again() -> None:
    async def main() -> None:
        relay = Relay()
        async with stations(relay, 1, 2) as (one, two):
            await two.link.close()
            await two.link.open()
            relay.join(two.link)
            one.link.unicast(2, b"after", token="t")
            await until(lambda: one.done)
            assert (one.endings, two.heard) == ([("t", True)], [(1, b"after")])

    asyncio.run(main())


def test_what_the_host_raises_is_told_to_the_loop_and_survived() -> None:
    async def main() -> None:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(str(context["exception"])))
        async with stations(Relay(), 1, 2) as (one, two):

            def refuse(sender: int, payload: bytes) -> None:
                raise RuntimeError(f"not this: {payload!r}")

            two.link._on_message = refuse
            one.link.unicast(2, b"x", token="t")
            await until(lambda: one.done)
            assert one.endings == [("t", True)]  # it was handed up; what came of it is not the link's affair
            assert (told, two.link.counters["host-failed"]) == (["not this: b'x'"], 1)

    asyncio.run(main())


def test_another_key_is_not_heard_and_gets_no_answer() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, settings=HASTY) as (one,):
            relay_address = one.link._settings.air
            stranger_key = Sealer(NetworkKey(bytes(32)), 2)
            async with Station(2, replace(HASTY, air=relay_address), sealer=stranger_key) as stranger:
                stranger.link.unicast(1, b"let me in", token="t")
                await until(lambda: stranger.done)
                await until(lambda: one.link.counters["key"] == 3)
                assert (one.heard, one.link.neighbours) == ([], {})
                assert stranger.endings == [("t", False)]

    asyncio.run(main())


def test_without_a_key_on_both_sides_it_works_the_same() -> None:
    async def main() -> None:
        async with Relay(drop=0.2) as relay, AsyncExitStack() as stack:
            one, two = [
                await stack.enter_async_context(Station(node, on(relay), sealer=Sealer(None, node))) for node in (1, 2)
            ]
            relay.join(one.link)
            relay.join(two.link)
            one.link.unicast(2, bytes(5000), token="t")
            await until(lambda: one.done)
            assert (one.endings, two.heard) == ([("t", True)], [(1, bytes(5000))])

    asyncio.run(main())


def test_everything_that_was_on_the_air_once_more_is_refused_also_after_a_restart() -> None:
    async def main() -> None:
        relay, disk = Relay(), Disk()
        async with relay, Station(1, on(relay)) as one:
            receiver = Sealer(KEY, 2, replay=disk.replay())
            async with Station(2, on(relay), sealer=receiver) as two:
                relay.join(two.link)
                for number in range(10):
                    one.link.broadcast(b"%d" % number, token=number)
                await until(lambda: len(two.heard) == 10)
                recording = list(relay.passed)
                replay_to(two.link.own_address, recording)
                await until(lambda: two.link.counters["replay"] == 10)
            reborn = Sealer(KEY, 2, replay=disk.replay())
            async with Station(2, on(relay), sealer=reborn) as two:
                relay.join(two.link)
                relay.join(one.link)
                replay_to(two.link.own_address, recording)
                await until(lambda: two.link.counters["behind"] == 10)
                assert two.link.counters["skips"] == 1
                await until(lambda: one.link.counters["received"])  # where to go on
                one.link.broadcast(b"new", token="new")
                await until(lambda: two.heard)
                assert two.heard == [(1, b"new")]

    asyncio.run(main())


def replay_to(address: tuple[str, int], recording: list[bytes]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
        for datagram in recording:
            attacker.sendto(datagram, address)


def test_a_sender_that_was_killed_is_heard_again() -> None:
    async def main() -> None:
        relay = Relay()
        async with stations(relay, 2) as (two,):
            for life in range(3):
                async with Station(1, on(relay)) as one:
                    relay.join(one.link)
                    one.link.unicast(2, b"life %d" % life, token=life)
                    await until(lambda: one.done)
                    assert one.endings == [(life, True)]
            assert two.heard == [(1, b"life 0"), (1, b"life 1"), (1, b"life 2")]

    asyncio.run(main())


class Stubborn:
    """A socket that fails to send some times before it does."""

    def __init__(self, real: socket.socket, *problems: OSError) -> None:
        self._real = real
        self._problems = list(problems)

    def sendto(self, datagram: bytes, address: tuple[str, int]) -> int:
        if self._problems:
            raise self._problems.pop(0)
        return self._real.sendto(datagram, address)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._real, name)


def make_stubborn(link: Link, *problems: OSError) -> None:
    link._own = Stubborn(link._own, *problems)  # type: ignore[arg-type, assignment]


def test_a_socket_that_is_full_holds_up_broadcasts_but_loses_none() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2) as (one, two):
            make_stubborn(one.link, BlockingIOError(), BlockingIOError())
            one.link.broadcast(b"a", token="a")
            one.link.broadcast(b"b", token="b")
            await until(lambda: len(two.heard) == 2)
            assert [payload for _, payload in two.heard] == [b"a", b"b"]
            await until(lambda: len(one.done) == 2)
            assert one.endings == [("a", True), ("b", True)]
            make_stubborn(one.link, BlockingIOError())
            one.link.unicast(2, b"c", token="c")
            await until(lambda: len(one.done) == 3)
            assert (one.endings[2], one.link.counters["send-blocked"]) == (("c", True), 1)

    asyncio.run(main())


def test_a_network_that_is_down_fails_broadcasts_and_unicasts_try_again() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2) as (one, two):
            down = OSError(101, "Network is unreachable")
            make_stubborn(one.link, down, down)
            one.link.broadcast(b"a", token="a")
            one.link.unicast(2, b"b", token="b")
            await until(lambda: len(one.done) == 2)
            assert (one.endings, two.heard) == ([("a", False), ("b", True)], [(1, b"b")])
            assert one.link.counters["send-failed"] == 2

    asyncio.run(main())


def test_deadlines_are_kept_by_the_clock_that_is_given() -> None:
    async def main() -> None:
        now = [1000.0]
        async with Relay() as relay, Station(1, on(relay, HASTY), clock=lambda: now[0]) as one:
            one.link.unicast(9, b"x", token="t")
            await until(lambda: one.link.counters["sent"] == 1)
            for _ in range(5):
                one.link.wake()
            assert one.link.counters["sent"] == 1  # the clock stands still
            for tries in (2, 3):
                now[0] += 1
                one.link.wake()
                assert one.link.counters["sent"] == tries
            now[0] += 1
            one.link.wake()
            await until(lambda: one.done)
            assert one.endings == [("t", False)]

    asyncio.run(main())


def test_parts_that_lead_nowhere_are_forgotten_in_time() -> None:
    async def main() -> None:
        relay = Relay()
        relay.refuse = lambda datagram: bool(relay.passed)  # only the first fragment comes through
        async with stations(relay, 1, 2, settings=replace(PATIENT, partial_lifetime=0.05)) as (one, two):
            one.link.broadcast(bytes(3000), token="t")
            await until(lambda: two.link.counters["received"] == 1)
            await until(lambda: two.link.counters["parts-expired"] == 1)
            assert two.heard == []

    asyncio.run(main())


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def broadcasting() -> LinkSettings:
    return replace(PATIENT, air=None, address="127.255.255.255", port=free_port())


def test_several_nodes_of_one_host_hear_one_broadcast_and_unicast_goes_to_one() -> None:
    async def main() -> None:
        settings = broadcasting()
        async with Station(1, settings) as one, Station(2, settings) as two, Station(3, settings) as three:
            two.link.broadcast(b"here I am", token="b")
            await until(lambda: one.heard and three.heard and two.link.counters["self"])
            assert one.heard == three.heard == [(2, b"here I am")]
            one.link.unicast(2, b"to where you are", token="u")
            await until(lambda: one.done)
            assert two.heard == [(1, b"to where you are")]
            assert one.done[0][:3] == ("u", True, 1)
            assert three.link.counters["received"] == 1

    asyncio.run(main())


def test_broadcasts_that_wait_for_each_other_go_in_one_datagram_as_far_as_they_fit() -> None:
    async def main() -> None:
        settings = broadcasting()
        long, room = b"l" * 3000, settings.room
        messages = [b"%d" % number for number in range(20)] + [b"x" * (room - 10), b"y", long, b"z"]
        async with Station(1, settings) as one, Station(2, settings) as two:
            for number, message in enumerate(messages):
                one.link.broadcast(message, token=number)
            await until(lambda: len(two.heard) == len(messages) and len(one.done) == len(messages))
            assert [payload for _, payload in two.heard] == messages  # each, in order
            assert one.endings == [(number, True) for number in range(len(messages))]
            # Eight; eight; four; the long one and y, which just fit; three fragments; z.
            assert [number for number, _, datagrams, _ in one.done if datagrams] == [0, 8, 16, 20, 22, 23]
            sent = one.link.counters["sent"]
            assert sent == sum(datagrams for _, _, datagrams, _ in one.done) == 8
            assert two.link.counters["received"] == sent
            overhead = HEADER_SIZE + TAG_SIZE
            assert sum(octets for *_, octets in one.done[:8]) == overhead + sum(2 + len(m) for m in messages[:8])

    asyncio.run(main())


def test_over_an_ether_every_message_is_a_frame_of_its_own() -> None:
    async def main() -> None:
        async with stations(Relay(), 1, 2) as (one, two):
            for number in range(10):
                one.link.broadcast(b"%d" % number, token=number)
            await until(lambda: len(two.heard) == 10)
            assert two.link.counters["received"] == 10

    asyncio.run(main())


@pytest.mark.parametrize("problem", [BlockingIOError(), OSError(101, "Network is unreachable")])
def test_a_bundle_that_could_not_be_sent_is_sent_again_or_fails_as_a_whole(problem: OSError) -> None:
    async def main() -> None:
        settings = broadcasting()
        async with Station(1, settings) as one, Station(2, settings) as two:
            make_stubborn(one.link, problem)
            for number in range(5):
                one.link.broadcast(b"%d" % number, token=number, promised=number == 4)
            if not isinstance(problem, BlockingIOError):  # one of them is promised: all wait for the interface
                await until(lambda: one.link.counters["send-failed"])
                assert one.done == []
                one.link.check()
            await until(lambda: len(one.done) == 5)
            assert one.endings == [(number, True) for number in range(5)]
            await until(lambda: len(two.heard) == 5)

    asyncio.run(main())


def test_a_neighbour_that_was_never_heard_is_found_by_broadcast() -> None:
    async def main() -> None:
        settings = broadcasting()
        async with Station(1, settings) as one, Station(2, settings) as two:
            one.link.unicast(2, b"who are you", token="u")
            await until(lambda: one.done)
            assert (one.endings, two.heard) == ([("u", True)], [(1, b"who are you")])

    asyncio.run(main())


def test_a_neighbour_that_restarted_elsewhere_is_found_again() -> None:
    async def main() -> None:
        settings = broadcasting()
        async with Station(1, settings) as one:
            async with Station(2, settings) as two:
                two.link.broadcast(b"here", token="b")
                await until(lambda: one.heard)
            async with Station(2, settings, sealer=Sealer(KEY, 2, counter=10**6)) as two:
                one.link.unicast(2, b"still there?", token="u")
                await until(lambda: one.done)
                assert (one.endings, two.heard) == ([("u", True)], [(1, b"still there?")])

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(socket, "SO_BINDTODEVICE"), reason="only Linux can bind to an interface")
def test_an_interface_can_be_chosen_and_must_exist() -> None:
    async def main() -> None:
        settings = broadcasting()
        with pytest.raises(LinkProblem, match=r"there is no interface nosuch0: this machine has .*lo"):
            await Station(1, replace(settings, interface="nosuch0")).link.open()
        async with Station(1, replace(settings, interface="lo")) as one, Station(2, settings) as two:
            one.link.broadcast(b"x", token="b")
            await until(lambda: two.heard)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"air": ("no such host.invalid", 1)}, "is not an IPv4 address"),
        ({"bind": "203.0.113.1"}, "no socket on 203.0.113.1"),
    ],
)
def test_sockets_that_cannot_be(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(LinkProblem, match=problem):
        asyncio.run(Station(1, replace(PATIENT, **change)).link.open())


@pytest.mark.parametrize("change", [{"port": 65536}, {"port": 0, "air": None}])
def test_a_port_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(LinkProblem, match=r"^port must be"):
        replace(PATIENT, **change)


def test_a_message_of_the_greatest_length_fits_into_the_queue_and_into_reassembly() -> None:
    settings = LinkSettings()
    assert settings.queue_octets >= MAX_FRAGMENTS * settings.mtu + LETTER_COST
    assert settings.partial_octets >= MAX_FRAGMENTS * (MAX_DATAGRAM + CHUNK_COST)


@pytest.mark.parametrize("to", [-1, 2**31, 2**32 - 1])
def test_a_unicast_to_no_node(to: int) -> None:
    with pytest.raises(ValueError, match=f"not {to}"):
        Station(1, PATIENT).link.unicast(to, b"x", token="t")
