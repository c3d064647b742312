"""The compiled core against the plain one: two implementations of one page must give one story.

`core_scripts` makes the stories: all propagation models and collision rules, unicast and broadcast, fragments, links,
background traffic, withdrawn sends, movement with jumps.
"""

from random import Random

import pytest

from roamcast.sim.core import kernel, reference
from roamcast.sim.core.interface import EVERYONE, METRICS, Core, Frame, Settings, Upcall
from sim.core_scripts import Script, settings_for

GRID_FROM = 4
"""In every other story the grid serves networks of more nodes than this; else they would all be too small for it."""


def _uses_grid(seed: int) -> bool:
    settings = settings_for(Random(seed))
    return seed % 2 == 1 and settings.nodes > GRID_FROM and not settings.links


@pytest.mark.parametrize("block", range(8))
def test_generated_stories_are_the_same_to_the_bit(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10 * block, 10 * block + 10):
        settings = settings_for(Random(seed))
        monkeypatch.setattr(kernel, "SMALL_NETWORK", GRID_FROM if seed % 2 else 256)
        compiled = Script(kernel.Core(settings), settings, seed).run(1.0)
        plain = Script(reference.Core(settings), settings, seed).run(1.0)
        assert len(compiled) > 10
        assert compiled == plain, f"seed {seed}: {settings}"


def test_the_stories_cover_what_they_claim() -> None:
    """A generator that never made a collision, say, would prove nothing."""
    stories = [settings_for(Random(seed)) for seed in range(80)]
    for choose in (
        lambda s: s.links,
        lambda s: s.ideal,
        lambda s: s.capture and not s.links,
        lambda s: s.range_high > 0,
        lambda s: s.surroundings,
        lambda s: s.background_flood,
        lambda s: s.loss > 0,
        lambda s: s.nodes > GRID_FROM and not s.links,
        lambda s: s.mtu < 256,
        lambda s: s.cca == 0,
        lambda s: s.cca == 4_000,
    ):
        assert sum(map(choose, stories)) >= 5
    assert sum(map(_uses_grid, range(80))) >= 15
    counted = [0] * len(METRICS)
    skipped = silent = 0
    for seed, settings in enumerate(stories[:30]):
        log = Script(kernel.Core(settings), settings, seed).run(1.0)
        totals = log[-1]
        skipped += sum(log[-2])
        silent += sum(1 for entry in log if entry[1] == "over")
        counted = [
            known + sum(metrics[place] for kinds in totals for metrics in kinds) for place, known in enumerate(counted)
        ]
    assert min(counted) > 50, counted
    assert skipped > 50
    assert silent > 50


def test_a_crowd_is_put_in_order_as_a_few_are() -> None:
    """Of more than 256 nodes that sense a frame, the grid sorts the numbers; of fewer it counts who is before whom."""
    settings = Settings(nodes=400, seed=1, kinds=3, record=True, width=400.0, height=400.0)
    compiled, plain = _frames_in_a_crowd(kernel.Core(settings)), _frames_in_a_crowd(reference.Core(settings))
    assert compiled == plain
    sizes = [len(frame.outcomes) for frame in plain]
    assert min(sizes) < 256 < max(sizes)


def _frames_in_a_crowd(core: Core) -> list[Frame]:
    rng, frames = Random(1), []
    for node in range(400):
        core.set_range(node, 250.0 if node % 2 else 150.0)
        core.set_leg(node, 0, rng.uniform(0, 400), rng.uniform(0, 400), 0.0, 0.0)
    for node in range(6):
        core.send(node, node, EVERYONE, 100, 2, node * 10_000_000, False)
    while (upcall := core.advance(100_000_000)) is not Upcall.REACHED:
        if upcall is Upcall.FRAME:
            assert core.frame is not None
            frames.append(core.frame)
    return frames
