"""What waits to be sent: urgent first, bounded, and no lane at the cost of another."""

from hypothesis import given
from hypothesis import strategies as st

from roamcast.live.link.outbox import LETTER_COST, Letter, Outbox


def letter(to: int, token: str, urgent: bool = False, size: int = 0) -> Letter:
    return Letter(to, bytes(size), token, urgent)


def tokens(letters: list[Letter]) -> list[object]:
    return [letter.token for letter in letters]


def taken(outbox: Outbox, to: int) -> list[object]:
    found = []
    while (letter := outbox.take(to)) is not None:
        outbox.release(letter)
        found.append(letter.token)
    return found


def test_urgent_first_and_otherwise_in_order() -> None:
    outbox = Outbox(10, 10**6)
    for token, urgent in (("a", False), ("B", True), ("c", False), ("D", True)):
        assert outbox.put(letter(1, token, urgent)) == []
    assert taken(outbox, 1) == ["B", "D", "a", "c"]
    assert (len(outbox), outbox.cost, outbox._lanes) == (0, 0, {})


def test_a_full_lane_refuses_the_newcomer_and_leaves_others_alone() -> None:
    outbox = Outbox(2, 10**6)
    assert [tokens(outbox.put(letter(1, token))) for token in "abc"] == [[], [], ["c"]]
    assert outbox.put(letter(2, "d")) == []


def test_an_urgent_one_pushes_out_the_newest_ordinary_one() -> None:
    outbox = Outbox(2, 10**6)
    outbox.put(letter(1, "a"))
    outbox.put(letter(1, "b"))
    assert tokens(outbox.put(letter(1, "C", True))) == ["b"]
    assert tokens(outbox.put(letter(1, "D", True))) == ["a"]
    assert tokens(outbox.put(letter(1, "E", True))) == ["E"]
    assert taken(outbox, 1) == ["C", "D"]


def test_a_neighbour_that_does_not_answer_cannot_take_the_room_of_others() -> None:
    outbox = Outbox(100, 10 * (LETTER_COST + 100))
    for number in range(10):
        assert outbox.put(letter(1, f"dead {number}", size=100)) == []
    assert tokens(outbox.put(letter(2, "alive", size=100))) == ["dead 9"]
    assert tokens(outbox.put(letter(1, "dead 10", size=100))) == ["dead 10"]
    assert taken(outbox, 2) == ["alive"]


def test_a_promised_one_is_never_dropped() -> None:
    outbox = Outbox(2, 3 * LETTER_COST)
    promised = [Letter(1, b"", f"P{number}", promised=True) for number in range(4)]
    assert tokens(outbox.put(letter(1, "a"))) == []
    assert [tokens(outbox.put(each)) for each in promised] == [[], ["a"], [], []]
    assert tokens(outbox.put(letter(1, "b", urgent=True))) == ["b"]
    assert tokens(outbox.put(letter(2, "c"))) == ["c"], "all room is taken"
    assert taken(outbox, 1) == ["P0", "P1", "P2", "P3"]
    assert (len(outbox), outbox.cost) == (0, 0)


def test_of_two_lanes_that_are_equally_heavy_the_one_that_wants_to_grow_loses() -> None:
    for first, second in ((1, 2), (2, 1)):
        outbox = Outbox(100, 3 * LETTER_COST)
        for to, token in ((first, "a"), (first, "b"), (second, "c")):
            outbox.put(letter(to, token))
        assert tokens(outbox.put(letter(second, "d"))) == ["d"]


def test_one_that_is_larger_than_all_room_goes_itself() -> None:
    outbox = Outbox(100, 5000)
    outbox.put(letter(1, "small", size=10))
    assert tokens(outbox.put(letter(2, "large", size=6000))) == ["large"]
    assert taken(outbox, 1) == ["small"]


def test_what_is_taken_counts_until_it_is_released_and_is_never_pushed_out() -> None:
    outbox = Outbox(100, 2 * LETTER_COST)
    outbox.put(letter(1, "flying"))
    flying = outbox.take(1)
    assert flying is not None
    outbox.put(letter(1, "waiting"))
    assert tokens(outbox.put(letter(1, "too much"))) == ["too much"]
    assert tokens(outbox.put(letter(2, "of another"))) == ["waiting"]
    outbox.release(flying)
    assert (len(outbox), outbox.cost) == (1, LETTER_COST)


def test_draining_gives_everything_once() -> None:
    outbox = Outbox(100, 10**6)
    for token in "abc":
        outbox.put(letter(1, token))
    outbox.put(letter(2, "d", True))
    outbox.take(1)
    assert tokens(outbox.drain()) == ["a", "b", "c", "d"]
    assert (len(outbox), outbox.cost, outbox.take(1)) == (0, 0, None)


steps = st.lists(
    st.tuples(st.sampled_from(["put", "take", "release"]), st.integers(0, 3), st.booleans(), st.integers(0, 900))
)


@given(steps)
def test_nothing_is_lost_or_doubled_and_the_bounds_hold(steps: list[tuple[str, int, bool, int]]) -> None:
    outbox = Outbox(3, 6 * LETTER_COST)
    put: list[Letter] = []
    gone: list[Letter] = []
    flying: list[Letter] = []
    for what, to, urgent, size in steps:
        if what == "put":
            new = Letter(to, bytes(size), len(put), urgent)
            put.append(new)
            gone += outbox.put(new)
        elif what == "take":
            flying += [letter for letter in [outbox.take(to)] if letter is not None]
        elif flying:
            gone.append(flying.pop())
            outbox.release(gone[-1])
        held = [letter for letter in put if letter not in gone]
        assert outbox.cost == sum(letter.cost for letter in held) <= 6 * LETTER_COST
        assert len(outbox) == len(held)
        assert all(sum(letter.to == lane for letter in held if letter not in flying) <= 3 for lane in range(4))
    assert sorted(tokens(gone + outbox.drain()), key=str) == sorted(tokens(put), key=str)
