"""Power cuts, for a few seconds; `bench/lab_chaos.py` has them for a minute."""

import pytest

from lab.chaos import WINDOW, ChaosReport, chaos, ring


@pytest.mark.parametrize("protocol", ["flooding", pytest.param("hint", marks=pytest.mark.slow)])
async def test_what_was_acknowledged_survives_and_nothing_comes_twice(protocol: str) -> None:
    report = await chaos(ring(4, protocol, 5.0, seed=1), interval=0.8, rate=10)
    assert len(report.killed) >= 2  # how many there is time for, the machine says
    assert report.lost == []
    assert report.repeated == []
    assert report.disturbed == []
    # The applications of those that lived on heard of the others all the time.
    assert all(len(acknowledged) >= 10 for acknowledged in report.acknowledged)
    assert all(len(got) > len(mine) for got, mine in zip(report.got, report.acknowledged, strict=True))


def test_a_loss_and_a_repetition_would_be_noticed() -> None:
    report = ChaosReport([0], [{1, 2}, {5}], [{2, 3}, {5}], [[1, 2, 1], [5]])
    assert report.lost == [1]
    assert report.repeated == [(0, 1)]


def test_beyond_what_a_node_remembers_nothing_is_promised() -> None:
    others = list(range(1, WINDOW))
    assert ChaosReport(got=[[0, *others, 0]]).repeated == [(0, 0)]
    assert ChaosReport(got=[[0, *others, WINDOW, 0]]).repeated == []
