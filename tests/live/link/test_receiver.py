"""What comes in, by a clock of our own: floods, replays, repetitions, and a store that fails."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.link.disk import Disk
from roamcast.live.key import NetworkKey
from roamcast.live.link.frame import ACK, BROADCAST, BROADCAST_DATA, FRAGMENT, REASONS, UNICAST_DATA, Sealer
from roamcast.live.link.limits import Rate
from roamcast.live.link.neighbours import Address
from roamcast.live.link.payload import Ack, Fragment, Skip, seal_ack, seal_bundle, seal_fragment, seal_skip
from roamcast.live.link.receiver import MAX_HELD, Receiver
from roamcast.live.link.replay import Replay
from roamcast.live.link.settings import LinkSettings

KEY = NetworkKey(bytes(range(32)))
ANYWHERE = ("10.0.0.9", 9)
AIR = ("127.0.0.1", 1)


def node(number: int, key: NetworkKey | None = KEY, counter: int = 0, replay: Replay | None = None) -> Sealer:
    return Sealer(key, number, counter=counter, replay=replay)


class Ear:
    """Node 5's receiver, and everything that came out of it."""

    def __init__(
        self, settings: LinkSettings | None = None, key: NetworkKey | None = KEY, replay: Replay | None = None
    ) -> None:
        self.messages: list[tuple[int, bytes]] = []
        self.answers: list[tuple[int, Address, Ack]] = []
        self.acks: list[tuple[int, Ack]] = []
        self.skips: list[tuple[int, Skip]] = []
        self.failures: list[str] = []
        self.useful = True
        self.counters: Counter[str] = Counter()
        self.receiver = Receiver(
            node(5, key, replay=replay),
            settings or LinkSettings(air=AIR),
            self.counters,
            hand_up=lambda sender, payload: self.messages.append((sender, payload)),
            answer=lambda to, address, answer: self.answers.append((to, address, answer)),
            answered=self._answered,
            skip=lambda to, skip: self.skips.append((to, skip)),
            failed=lambda what, problem: self.failures.append(what),
            vouch=lambda sender, payload: payload == b"signed by %d" % sender,
        )

    def _answered(self, now: float, sender: int, answer: Ack) -> bool:
        self.acks.append((sender, answer))
        return self.useful

    def hear(self, *datagrams: bytes, now: float = 0.0) -> list[int]:
        return self.receiver.take(now, [(datagram, ANYWHERE) for datagram in datagrams])

    def drops(self) -> dict[str, int]:
        return {name: self.counters[name] for name in REASONS if self.counters[name]}


def tell(sender: Sealer, octets: bytes, message: int, attempt: int = 1, place: int = 0, fragments: int = 1) -> bytes:
    return seal_fragment(sender, 5, Fragment(octets, message, attempt, place, fragments), ask=place == fragments - 1)


def test_a_broadcast_and_a_unicast() -> None:
    ear, three = Ear(), node(3)
    assert ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"to all"), tell(three, b"to you", 7)) == [3, 3]
    assert ear.messages == [(3, b"to all"), (3, b"to you")]
    assert ear.answers == [(3, ANYWHERE, Ack(7, 1, 1))]
    assert ear.receiver.neighbours.times() == {3: 0}


def test_a_repetition_is_acknowledged_again_but_handed_up_once() -> None:
    ear, three = Ear(), node(3)
    for attempt in (1, 2, 3):
        ear.hear(tell(three, b"x", 7, attempt))
    assert ear.messages == [(3, b"x")]
    assert [answer for _, _, answer in ear.answers] == [Ack(7, 1, 1), Ack(7, 2, 1), Ack(7, 3, 1)]
    assert ear.counters["duplicate"] == 2


def test_what_was_overtaken_by_the_next_message_is_neither_handed_up_nor_acknowledged() -> None:
    ear, three = Ear(), node(3)
    late = tell(three, b"given up", 7)
    ear.hear(tell(three, b"next", 8), late)
    assert ear.messages == [(3, b"next")]
    assert (len(ear.answers), ear.drops()) == (1, {"stale": 1})


def test_parts_are_acknowledged_when_asked_and_when_complete() -> None:
    ear, three = Ear(), node(3)
    first, second, third = (tell(three, octets, 7, 1, place, 3) for place, octets in enumerate((b"a", b"b", b"c")))
    ear.hear(first)
    assert ear.answers == []
    ear.hear(third)  # asks
    assert ear.answers == [(3, ANYWHERE, Ack(7, 1, 0b101))]
    ear.hear(second)
    assert ear.answers[1:] == [(3, ANYWHERE, Ack(7, 1, 0b111))]
    ear.hear(tell(three, b"b", 7, 2, 1, 3))
    assert ear.answers[2:] == [(3, ANYWHERE, Ack(7, 2, 0b111))]
    assert ear.messages == [(3, b"abc")]


def test_a_broadcast_in_parts() -> None:
    ear, three = Ear(), node(3)
    for place, octets in ((1, b"b"), (0, b"a")):
        ear.hear(seal_fragment(three, BROADCAST, Fragment(octets, 7, 0, place, 2)))
    assert (ear.messages, ear.answers) == ([(3, b"ab")], [])


def test_acknowledgements_are_passed_on() -> None:
    ear = Ear()
    ear.hear(seal_ack(node(3), 5, Ack(9, 2, 0b11)))
    assert ear.acks == [(3, Ack(9, 2, 0b11))]
    ear.useful = False
    ear.hear(seal_ack(node(4), 5, Ack(9, 2, 0b11)))
    assert ear.drops() == {"stale": 1}


def test_everything_refused_is_counted_by_name() -> None:
    ear, three = Ear(), node(3)
    good = three.seal(BROADCAST_DATA, BROADCAST, b"x")
    ear.hear(
        good,
        good,
        node(3, NetworkKey(bytes(32)), 50).seal(BROADCAST_DATA, BROADCAST, b"x"),
        node(3, None, 50).seal(BROADCAST_DATA, BROADCAST, bytes(40)),
        good[:50],
        bytes(9001),
        three.seal(UNICAST_DATA, 6, bytes(20)),
        node(5, counter=9).seal(BROADCAST_DATA, BROADCAST, b"x"),
        three.seal(UNICAST_DATA, 5, b"short"),
        three.seal(ACK, 5, b"short"),
        three.seal(BROADCAST_DATA, BROADCAST, b"short", flags=FRAGMENT),
    )
    assert ear.drops() == {
        "replay": 1, "key": 1, "version": 1, "short": 1, "long": 1, "others": 1, "twin": 1, "malformed": 3,
    }  # fmt: skip
    assert ear.counters["received"] == 11
    assert ear.messages == [(3, b"x")]


def test_a_flood_of_garbage_leaves_no_trace_and_stops_nobody() -> None:
    ear, three, stranger = Ear(), node(3), node(3, NetworkKey(bytes(32)), counter=10**6)
    rng = random.Random(1)
    for number in range(2000):
        forged = Sealer(NetworkKey(bytes(32)), rng.randrange(2**31 - 1), counter=rng.randrange(2**62))
        ear.hear(
            rng.randbytes(rng.randrange(60)),
            forged.seal(BROADCAST_DATA, BROADCAST, b"x"),
            stranger.seal(BROADCAST_DATA, BROADCAST, b"x"),
        )
        if number % 100 == 0:
            ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"%d" % number))
    assert ear.messages == [(3, b"%d" % number) for number in range(0, 2000, 100)]
    assert (len(ear.receiver.neighbours), len(ear.receiver.reassembly), len(ear.receiver._sealer.replay)) == (1, 0, 1)


def test_a_neighbour_that_is_too_fast_is_held_to_its_rate_and_others_are_heard() -> None:
    ear = Ear(LinkSettings(air=AIR, rate=Rate(frames=100, octets=1e6, burst=0.1)))
    loud, quiet = node(3), node(4)
    for tick in range(1000):  # one second: 10,000 frames of the one, 10 of the other
        now = tick / 1000
        ear.hear(*(loud.seal(BROADCAST_DATA, BROADCAST, b"!") for _ in range(10)), now=now)
        if tick % 100 == 0:
            ear.hear(quiet.seal(BROADCAST_DATA, BROADCAST, b"."), now=now)
    heard = Counter(sender for sender, _ in ear.messages)
    assert heard[4] == 10
    assert 100 <= heard[3] <= 111  # a burst of 10, and 100 in a second
    assert ear.counters["rate"] == 10_000 - heard[3]


def test_the_messages_of_a_bundle_count_as_frames() -> None:
    ear = Ear(LinkSettings(air=AIR, rate=Rate(frames=100, octets=1e6, burst=0.1)))
    loud = node(3)
    for tick in range(1000):  # one second: 5,000 messages
        ear.hear(seal_bundle(loud, [b"!"] * 5), now=tick / 1000)
    assert 100 <= len(ear.messages) <= 110 + 4


def test_octets_count_too() -> None:
    ear = Ear(LinkSettings(air=AIR, rate=Rate(frames=1e6, octets=10_000, burst=1)))
    loud = node(3)
    ear.hear(*(loud.seal(BROADCAST_DATA, BROADCAST, bytes(949)) for _ in range(50)))  # 1000 octets each
    assert (len(ear.messages), ear.counters["rate"]) == (10, 40)


def test_nobody_without_the_key_can_use_up_the_rate_of_another() -> None:
    ear = Ear(LinkSettings(air=AIR, rate=Rate(frames=10, octets=1e6, burst=1)))
    three, forger = node(3), node(3, NetworkKey(bytes(32)), counter=1000)
    ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"a"))
    ear.hear(*(forger.seal(BROADCAST_DATA, BROADCAST, b"z") for _ in range(100)))
    ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"b"))
    assert ear.messages == [(3, b"a"), (3, b"b")]
    assert ear.drops() == {"key": 100}


def test_an_insider_of_many_names_does_not_push_out_who_keeps_talking() -> None:
    ear = Ear(LinkSettings(air=AIR, neighbours=10))
    friend = node(3)
    for number in range(200):
        ear.hear(
            node(1000 + number).seal(BROADCAST_DATA, BROADCAST, b"spam"),
            friend.seal(BROADCAST_DATA, BROADCAST, b"hi"),
            now=number / 10,
        )
    assert ear.messages.count((3, b"hi")) == 200
    assert len(ear.receiver.neighbours) == 10
    assert ear.drops() == {"crowded": 191}


def test_an_insider_that_begins_messages_without_end_fills_only_its_own_share() -> None:
    ear = Ear(LinkSettings(air=AIR, partials=2))
    friend, insider = node(3), node(4)
    ear.hear(seal_fragment(friend, BROADCAST, Fragment(b"a", 1, 0, 0, 2)))
    for message in range(100):
        ear.hear(seal_fragment(insider, BROADCAST, Fragment(b"z", message, 0, 0, 2)))
    ear.hear(seal_fragment(friend, BROADCAST, Fragment(b"b", 1, 0, 1, 2)))
    assert ear.messages == [(3, b"ab")]
    assert (len(ear.receiver.reassembly), ear.counters["parts-evicted"]) == (2, 98)


def test_the_first_frames_of_a_session_wait_for_the_disk_and_no_others() -> None:
    disk = Disk()
    ear, three, four = Ear(replay=disk.replay()), node(3), node(4)
    disk.slow = True
    ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"a"), three.seal(BROADCAST_DATA, BROADCAST, b"b"))
    ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"c"))
    assert ear.messages == []
    disk.write()
    assert ear.messages == [(3, b"a"), (3, b"b"), (3, b"c")]
    writes = disk.writes
    for number in range(100):
        ear.hear(three.seal(BROADCAST_DATA, BROADCAST, b"%d" % number))
    assert (len(ear.messages), disk.writes) == (103, writes), "nothing is written per frame"
    ear.hear(four.seal(BROADCAST_DATA, BROADCAST, b"x"), three.seal(BROADCAST_DATA, BROADCAST, b"y"))
    assert ear.messages[103:] == [(3, b"y")], "a new neighbour holds up nobody else"


def test_what_waits_for_the_disk_is_bounded() -> None:
    disk = Disk()
    disk.slow = True
    ear, three = Ear(replay=disk.replay()), node(3)
    ear.hear(*(three.seal(BROADCAST_DATA, BROADCAST, b"x") for _ in range(MAX_HELD + 10)))
    disk.write()
    assert (len(ear.messages), ear.counters["held-full"]) == (MAX_HELD, 10)


def test_when_sessions_cannot_be_written_down_nothing_is_handed_up_or_acknowledged() -> None:
    disk = Disk()
    disk.problem = OSError("disk full")
    ear, three = Ear(replay=disk.replay()), node(3)
    ear.hear(tell(three, b"x", 7, 1))
    assert (ear.messages, ear.answers, ear.counters["persist-failed"]) == ([], [], 1)
    assert ear.failures == ["heard sessions could not be written down"]
    disk.problem = None
    ear.hear(tell(three, b"x", 7, 2))
    assert ear.messages == [(3, b"x")]


def test_a_recording_is_refused_after_a_restart_and_the_sender_goes_on() -> None:
    disk = Disk()
    before, three = Ear(replay=disk.replay()), node(3)
    recording = [three.seal(BROADCAST_DATA, BROADCAST, b"%d" % number) for number in range(5)]
    before.hear(*recording)
    after = Ear(replay=disk.replay())
    after.hear(*recording, three.seal(BROADCAST_DATA, BROADCAST, b"lost"))
    assert (after.messages, after.drops()) == ([], {"behind": 6})
    ((to, skip),) = after.skips  # one for all
    assert to == 3
    there = Ear(replay=Replay())
    there.receiver._sealer = three
    there.hear(seal_skip(node(5), 3, skip))
    after.hear(three.seal(BROADCAST_DATA, BROADCAST, b"new"), *recording)
    assert after.messages == [(3, b"new")]
    assert after.counters["replay"] == 5


def test_a_restarted_sender_counts_its_messages_from_anywhere() -> None:
    ear = Ear()
    ear.hear(tell(node(3), b"first life", 1000))
    ear.hear(tell(node(3), b"second life", 5))
    assert ear.messages == [(3, b"first life"), (3, b"second life")]
    assert len(ear.answers) == 2


def test_parts_of_two_lives_are_not_put_together() -> None:
    ear = Ear()
    ear.hear(seal_fragment(node(3), BROADCAST, Fragment(b"a", 7, 0, 0, 2)))
    ear.hear(seal_fragment(node(3), BROADCAST, Fragment(b"b", 7, 0, 1, 2)))
    assert ear.messages == []


@pytest.mark.parametrize("key", [KEY, None])
@given(st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=6), st.integers(0, 60)), max_size=20))
def test_changed_frames_never_raise(key: NetworkKey | None, changes: list[tuple[int, bytes, int]]) -> None:
    three = node(3, key)
    seeds = [
        three.seal(BROADCAST_DATA, BROADCAST, b"hello"),
        seal_fragment(three, BROADCAST, Fragment(b"part", 1, 0, 0, 2)),
        tell(three, b"hello", 7),
        tell(three, b"part", 8, 1, 1, 3),
        seal_ack(three, 5, Ack(1, 1, 3)),
        b"",
    ]
    ear = Ear(key=key)
    for which, replacement, at in changes:
        seed = seeds[which]
        ear.hear(seed[:at] + replacement + seed[at + len(replacement) :])
    assert ear.counters["received"] == len(changes)
    assert ear.failures == []


def test_a_flood_of_invented_senders_does_not_keep_out_who_shows_a_signature() -> None:
    ear = Ear(LinkSettings(air=AIR, neighbours=3))
    ear.hear(*(node(number).seal(BROADCAST_DATA, BROADCAST, b"invented") for number in range(100, 200)))
    honest = node(7)
    ear.hear(honest.seal(BROADCAST_DATA, BROADCAST, b"nothing to show"), now=1.0)
    assert (len(ear.messages), ear.counters["crowded"]) == (3, 98)
    ear.hear(honest.seal(BROADCAST_DATA, BROADCAST, b"signed by 7"), now=1.1)
    ear.hear(honest.seal(BROADCAST_DATA, BROADCAST, b"and nothing more"), now=1.2)
    assert ear.messages[3:] == [(7, b"signed by 7"), (7, b"and nothing more")]
    ear.hear(*(node(number).seal(BROADCAST_DATA, BROADCAST, b"signed by 7") for number in range(200, 210)), now=1.3)
    assert 7 in ear.receiver.neighbours.times()
    assert len(ear.messages) == 5


def test_signatures_of_newcomers_are_checked_so_often_and_no_more() -> None:
    asked: list[int] = []
    ear = Ear(LinkSettings(air=AIR, neighbours=1))

    def refuse(sender: int, payload: bytes) -> bool:
        asked.append(sender)
        return False

    ear.receiver._vouch = refuse
    for number in range(100, 500):
        ear.hear(node(number).seal(BROADCAST_DATA, BROADCAST, b"?"), now=5.0)
    assert len(asked) == 100
    ear.hear(node(600).seal(BROADCAST_DATA, BROADCAST, b"?"), now=5.02)
    assert len(asked) == 101
