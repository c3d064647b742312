"""Acknowledged unicast by a clock of our own: when fragments are sent, repeated and given up."""

import random
from collections.abc import Sequence

import pytest

from roamcast.live.link.outbox import Letter, Outbox
from roamcast.live.link.unicast import BURST, JITTER, MAX_GONE, RETRIES_UNHEARD, UnicastSender


class Post:
    """A unicast_sender, what it sent (token, indices) and what became of it."""

    def __init__(self, retries: int = 3) -> None:
        self.sent: list[tuple[object, list[int]]] = []
        self.times: list[float] = []
        self.done: list[tuple[object, bool]] = []
        self.now = 0.0
        self.outbox = Outbox(1000, 10**9)
        self.unicast_sender = UnicastSender(
            self.outbox,
            retries,
            0.1,
            0.4,
            random.Random(1),
            send=self._send,
            done=lambda letter, delivered: self.done.append((letter.token, delivered)),
        )
        self.numbers = 0

    def _send(self, letter: Letter, indices: Sequence[int]) -> None:
        if letter.message < 0:
            self.numbers += 1
            letter.message = self.numbers
        self.sent.append((letter.token, list(indices)))
        self.times.append(self.now)

    def put(self, to: int, token: str, fragments: int = 1, urgent: bool = False) -> Letter:
        letter = Letter(to, b"", token, urgent, fragments=fragments, missing=(1 << fragments) - 1)
        self.outbox.put(letter)
        self.unicast_sender.start(self.now, to)
        return letter

    def ack(self, letter: Letter, have: int = 1, attempt: int | None = None) -> bool:
        attempt = letter.attempt if attempt is None else attempt
        return self.unicast_sender.answered(self.now, letter.to, letter.message, attempt, have)

    def run_until(self, end: float) -> None:
        while (at := self.unicast_sender.next_wake()) is not None and at <= end:
            self.now = at
            self.unicast_sender.wake(at)
        self.now = end


def test_an_acknowledged_message_is_done_and_nothing_is_repeated() -> None:
    post = Post()
    letter = post.put(1, "a")
    assert (post.sent, post.done) == ([("a", [0])], [])
    assert post.ack(letter)
    post.run_until(100)
    assert (post.sent, post.done) == ([("a", [0])], [("a", True)])
    assert (len(post.outbox), post.unicast_sender.next_wake()) == (0, None)


def test_retries_back_off_with_jitter_and_then_it_is_given_up() -> None:
    post = Post(retries=3)
    post.put(1, "a")
    post.run_until(100)
    assert (len(post.sent), post.done) == (4, [("a", False)])
    gaps = [after - before for before, after in zip(post.times, post.times[1:], strict=False)]
    for gap, interval in zip(gaps, (0.1, 0.2, 0.4), strict=True):
        assert interval * (1 - JITTER) <= gap <= interval * (1 + JITTER)
    assert gaps != [0.1, 0.2, 0.4]


def test_one_at_a_time_to_a_neighbour_and_neighbours_side_by_side() -> None:
    post = Post()
    first = post.put(1, "a")
    post.put(1, "b")
    post.put(2, "c")
    assert [token for token, _ in post.sent] == ["a", "c"]
    post.ack(first)
    assert [token for token, _ in post.sent] == ["a", "c", "b"]


def test_urgent_goes_before_what_waits() -> None:
    post = Post()
    first = post.put(1, "a")
    post.put(1, "b")
    post.put(1, "C", urgent=True)
    post.ack(first)
    assert [token for token, _ in post.sent] == ["a", "C"]


def test_acknowledgements_of_something_else_are_of_no_use() -> None:
    post = Post()
    letter = post.put(1, "a")
    assert not post.unicast_sender.answered(0, 2, letter.message, 1, 1)
    assert not post.unicast_sender.answered(0, 1, letter.message + 1, 1, 1)
    assert not post.ack(letter, have=0, attempt=99)
    post.ack(letter)
    assert not post.ack(letter)
    assert post.done == [("a", True)]


def test_a_late_acknowledgement_of_an_earlier_try_counts() -> None:
    post = Post()
    letter = post.put(1, "a")
    post.run_until(0.2)
    assert letter.attempt == 2
    assert post.ack(letter, attempt=1)
    assert post.done == [("a", True)]


def test_only_what_is_missing_is_repeated_and_at_once() -> None:
    post = Post()
    letter = post.put(1, "a", fragments=5)
    assert post.ack(letter, have=0b10101)
    assert post.sent == [("a", [0, 1, 2, 3, 4]), ("a", [1, 3])]
    assert not post.ack(letter, have=0b10111, attempt=1)  # a copy of an old answer starts nothing
    assert post.ack(letter, have=0b11111)
    assert (len(post.sent), post.done) == (2, [("a", True)])


def test_long_messages_go_in_bursts_and_progress_starts_the_tries_anew() -> None:
    post = Post(retries=1)
    fragments = 3 * BURST
    letter = post.put(1, "a", fragments=fragments)
    for burst in range(1, 4):
        assert post.sent[-1][1] == list(range((burst - 1) * BURST, burst * BURST))
        retry = post.unicast_sender.next_wake()
        assert retry is not None
        post.run_until(retry)  # all tries but the last one, each time
        assert (letter.tries, post.done) == (2, [])
        assert post.ack(letter, have=(1 << burst * BURST) - 1)
    assert post.done == [("a", True)]


def test_a_neighbour_that_forgot_parts_gets_them_again() -> None:
    post = Post()
    letter = post.put(1, "a", fragments=3)
    post.ack(letter, have=0b110)
    assert post.ack(letter, have=0b001)  # it had to drop the others
    assert post.sent[-1] == ("a", [1, 2])
    assert post.done == []
    post.ack(letter, have=0b111)
    assert post.done == [("a", True)]


def test_one_that_answers_without_ever_getting_further_is_given_up() -> None:
    post = Post(retries=3)
    letter = post.put(1, "a", fragments=3)
    answers = 0
    while not post.done and answers < 1000:
        if not post.ack(letter, have=0b001):
            post.run_until(post.now + 1)
        answers += 1
    assert post.done == [("a", False)]
    assert len(post.sent) <= 1 + 4


def test_a_queue_to_somebody_who_left_fails_faster() -> None:
    post = Post(retries=7)
    for token in "abc":
        post.put(1, token)
    post.run_until(100)
    assert post.done == [("a", False), ("b", False), ("c", False)]
    assert [sum(token == sent for sent, _ in post.sent) for token in "abc"] == [
        8,
        1 + RETRIES_UNHEARD,
        1 + RETRIES_UNHEARD,
    ]


def test_one_who_is_heard_again_gets_all_tries_again() -> None:
    post = Post(retries=7)
    post.put(1, "a")
    post.run_until(100)
    post.unicast_sender.heard(1)
    post.put(1, "b")
    post.run_until(200)
    assert len(post.sent) == 16


@pytest.mark.parametrize("retries", [0, 1])
def test_few_retries_stay_few(retries: int) -> None:
    post = Post(retries)
    post.put(1, "a")
    post.put(1, "b")
    post.run_until(100)
    assert len(post.sent) == 2 * (1 + retries)


def test_those_given_up_are_remembered_within_bounds() -> None:
    post = Post(retries=0)
    for to in range(MAX_GONE + 50):
        post.put(to, str(to))
    post.run_until(100)
    assert len(post.done) == MAX_GONE + 50
    assert len(post.unicast_sender._gone) == MAX_GONE


def test_stopping_forgets_what_flies() -> None:
    post = Post()
    letter = post.put(1, "a")
    post.unicast_sender.stop()
    assert (post.unicast_sender.next_wake(), post.ack(letter), len(post.outbox)) == (None, False, 1)
