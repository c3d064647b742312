"""Source routes: back the way that a broadcast came."""

import pytest

from roamcast.protocols.source_route import MAX_LENGTH, Path, back, extended, onward, origin

A, B, C, D = 1, 2, 3, 4


def test_an_answer_takes_the_way_of_the_broadcast_backwards() -> None:
    """A's broadcast reaches D by B and C, as in Figure 2b of Haillot and Guidec."""
    at_b: Path | None = ()
    assert at_b is not None
    at_c = extended(at_b, A)
    assert at_c == (A,)
    at_d = extended(at_c, B)
    assert at_d == (A, B)
    assert origin(at_d, C) == A
    step: tuple[int, Path] | None = back(at_d, C)
    passed = []
    while step is not None:
        node, route = step
        passed.append(node)
        step = onward(route, node)
    assert passed == [C, B, A]


def test_who_hears_the_origin_itself_answers_directly() -> None:
    assert (origin((), A), back((), A)) == (A, (A, ()))


def test_a_path_neither_grows_without_end_nor_runs_in_a_circle() -> None:
    assert extended((A, B), A) is None
    assert extended(tuple(range(MAX_LENGTH - 1)), 99) == (*range(MAX_LENGTH - 1), 99)
    assert extended(tuple(range(MAX_LENGTH)), 99) is None


@pytest.mark.parametrize("route", [(), (B, A, B), (C, D, A)])
def test_a_route_that_ends_or_runs_in_a_circle_leads_nowhere(route: Path) -> None:
    assert onward(route, D) is None
