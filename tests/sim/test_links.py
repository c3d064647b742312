"""Scripted links: what they come to, and what is refused."""

import msgspec
import pytest

from roamcast.sim.links import Change, Links

S = 1_000_000_000


def test_flips_go_both_ways_in_the_order_of_the_script() -> None:
    links = Links(
        up=((0, 1), (2, 1)),
        loss=0.1,
        change=(Change(at=1.5, down=((0, 1),), up=((0, 2),)), Change(at=2, up=((0, 1),))),
    )
    assert list(links.flips()) == [
        (0, 0, 1, 0.1),
        (0, 1, 0, 0.1),
        (0, 2, 1, 0.1),
        (0, 1, 2, 0.1),
        (1_500_000_000, 0, 1, None),
        (1_500_000_000, 1, 0, None),
        (1_500_000_000, 0, 2, 0.1),
        (1_500_000_000, 2, 0, 0.1),
        (2 * S, 0, 1, 0.1),
        (2 * S, 1, 0, 0.1),
    ]


def test_a_link_that_goes_and_comes_at_one_time_is_there_afterwards() -> None:
    links = Links(change=(Change(at=1, up=((0, 1),), down=((0, 1),)),))
    assert [loss for _, _, _, loss in links.flips()] == [None, None, 0.0, 0.0]


def test_no_links_no_flips() -> None:
    assert list(Links().flips()) == []


@pytest.mark.parametrize(
    ("links", "problems"),
    [
        (Links(up=((0, 1), (1, 2))), []),
        (Links(up=((0, 3),)), [("up", "[0, 3]: nodes are numbered from 0 to 2")]),
        (Links(up=((-1, 0),)), [("up", "[-1, 0]: nodes are numbered from 0 to 2")]),
        (Links(up=((1, 1),)), [("up", "[1, 1]: a node has no link to itself")]),
        (
            Links(change=(Change(at=1, up=((0, 9),), down=((2, 2),)),)),
            [
                ("change[0].up", "[0, 9]: nodes are numbered from 0 to 2"),
                ("change[0].down", "[2, 2]: a node has no link to itself"),
            ],
        ),
        (
            Links(change=(Change(at=2), Change(at=1))),
            [("change[1].at", "1 s comes after 2 s: changes go by time")],
        ),
        (Links(change=(Change(at=1), Change(at=1))), []),
    ],
)
def test_problems(links: Links, problems: list[tuple[str, str]]) -> None:
    assert list(links.problems(3)) == problems


@pytest.mark.parametrize(
    "raw", [{"loss": 1}, {"loss": -0.1}, {"up": [[0]]}, {"change": [{}]}, {"change": [{"at": -1}]}]
)
def test_values_out_of_range_are_refused(raw: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, Links)
