"""Scripted links: what they come to, and what is refused."""

from itertools import pairwise

import msgspec
import pytest

from roamcast.sim.scenario.drawn_links import Cycle, RandomTree
from roamcast.sim.scenario.links import LinkChange, ScriptedLinks

S = 1_000_000_000


def test_flips_go_both_ways_in_the_order_of_the_script() -> None:
    links = ScriptedLinks(
        up=((0, 1), (2, 1)),
        loss=0.1,
        change=(LinkChange(at=1.5, down=((0, 1),), up=((0, 2),)), LinkChange(at=2, up=((0, 1),))),
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
    links = ScriptedLinks(change=(LinkChange(at=1, up=((0, 1),), down=((0, 1),)),))
    assert [loss for _, _, _, loss in links.flips()] == [None, None, 0.0, 0.0]


def test_no_links_no_flips() -> None:
    assert list(ScriptedLinks().flips()) == []


@pytest.mark.parametrize(
    ("links", "problems"),
    [
        (ScriptedLinks(up=((0, 1), (1, 2))), []),
        (ScriptedLinks(up=((0, 3),)), [("up", "[0, 3]: nodes are numbered from 0 to 2")]),
        (ScriptedLinks(up=((-1, 0),)), [("up", "[-1, 0]: nodes are numbered from 0 to 2")]),
        (ScriptedLinks(up=((1, 1),)), [("up", "[1, 1]: a node has no link to itself")]),
        (
            ScriptedLinks(change=(LinkChange(at=1, up=((0, 9),), down=((2, 2),)),)),
            [
                ("change[0].up", "[0, 9]: nodes are numbered from 0 to 2"),
                ("change[0].down", "[2, 2]: a node has no link to itself"),
            ],
        ),
        (
            ScriptedLinks(change=(LinkChange(at=2), LinkChange(at=1))),
            [("change[1].at", "1 s comes after 2 s: changes must be sorted by time")],
        ),
        (ScriptedLinks(change=(LinkChange(at=1), LinkChange(at=1))), []),
    ],
)
def test_problems(links: ScriptedLinks, problems: list[tuple[str, str]]) -> None:
    assert list(links.problems(3)) == problems


@pytest.mark.parametrize(
    "raw", [{"loss": 1}, {"loss": -0.1}, {"up": [[0]]}, {"change": [{}]}, {"change": [{"at": -1}]}]
)
def test_values_out_of_range_are_refused(raw: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, ScriptedLinks)


# --- Drawn from the seed ----------------------------------------------------------------------------------------------

TREE = RandomTree(root=0, forwarders=(1, 2, 3, 4), leaves=(5, 6, 7, 8, 9))


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_connects_all_its_nodes_and_no_forwarder_is_an_end(seed: int) -> None:
    pairs = [(a, b) for time, a, b, loss in ScriptedLinks(tree=TREE, loss=0.2).flips(seed) if (time, loss) == (0, 0.2)]
    assert len(pairs) == 2 * 9
    assert all((b, a) in pairs for a, b in pairs)
    reached = {0}
    for _ in range(9):
        reached |= {b for a, b in pairs if a in reached}
    assert reached == set(range(10))
    for leaf in TREE.leaves:
        (above,) = [a for a, b in pairs if b == leaf]
        assert above in TREE.forwarders
    for forwarder in TREE.forwarders:
        assert len([a for a, b in pairs if b == forwarder]) >= 2


def test_trees_of_other_seeds_are_others() -> None:
    assert len({tuple(ScriptedLinks(tree=TREE).flips(seed)) for seed in range(20)}) > 15


def test_links_take_turns() -> None:
    cycle = Cycle(states=(((0, 1), (0, 2)), ((0, 2), (0, 3)), ()), every=2.0)
    links = ScriptedLinks(cycle=(cycle,), up=((4, 5),), change=(LinkChange(at=3, down=((4, 5),)),))
    assert [flip for flip in links.flips(1, 7 * S) if flip[1] < flip[2]] == [
        (0, 4, 5, 0.0),
        (0, 0, 1, 0.0),
        (0, 0, 2, 0.0),
        (2 * S, 0, 1, None),
        (2 * S, 0, 3, 0.0),
        (3 * S, 4, 5, None),
        (4 * S, 0, 2, None),
        (4 * S, 0, 3, None),
        (6 * S, 0, 1, 0.0),
        (6 * S, 0, 2, 0.0),
    ]


def test_turns_with_jitter_do_not_stay_in_step() -> None:
    """Each stretch lasts 0.75 to 1.25 s, from a random start: after 400 of them, runs are anywhere in the period."""
    cycle = Cycle(states=(((0, 1),), ()), every=1.0, jitter=0.5)
    phases = []
    for seed in range(40):
        times = sorted({time for time, *_ in ScriptedLinks(cycle=(cycle,)).flips(seed, 400 * S)})
        first, *stretches = [later - earlier for earlier, later in pairwise(times)]
        assert first < S
        assert min(stretches) >= 0.75 * S
        assert max(stretches) <= 1.25 * S
        assert sum(stretches) / len(stretches) == pytest.approx(S, rel=0.05)
        phases.append(times[-1] % S // (S // 4))
    # Around multiples of the period, quarters 1 and 2 would have none.
    assert all(phases.count(quarter) >= 3 for quarter in range(4))


@pytest.mark.parametrize(
    ("links", "problem"),
    [
        (
            ScriptedLinks(tree=RandomTree(root=0, forwarders=(1, 1), leaves=())),
            ("tree", "a node is named more than once"),
        ),
        (
            ScriptedLinks(tree=RandomTree(root=0, forwarders=(9,), leaves=())),
            ("tree", "9: nodes are numbered from 0 to 2"),
        ),
        (
            ScriptedLinks(cycle=(Cycle(states=(((0, 5),), ()), every=1.0),)),
            ("cycle[0].states", "[0, 5]: nodes are numbered from 0 to 2"),
        ),
    ],
)
def test_drawn_links_that_cannot_be(links: ScriptedLinks, problem: tuple[str, str]) -> None:
    assert list(links.problems(3)) == [problem]
