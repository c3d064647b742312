"""Loss of power: the store on a disk that forgets what was not synced. `python -m bench power-cuts` has more."""

import random
from pathlib import Path

import pytest

from live.power.cuts import cut_power
from live.power.file import File
from live.power.mount import lacking, mounted

WHY_NOT = lacking()


@pytest.mark.skipif(bool(WHY_NOT), reason=f"no FUSE: {WHY_NOT}")
def test_nothing_that_was_acknowledged_is_lost_in_20_cuts_and_the_disk_bites(tmp_path: Path) -> None:
    with mounted(tmp_path) as power:
        full = cut_power(tmp_path, power, 20, seed=2)
        assert full.acknowledged > 20
        assert full.lost == []
        assert cut_power(tmp_path, power, 10, seed=2, sync="normal").lost, "what is not synced is lost at times"


def test_what_was_synced_survives_and_the_rest_does_not() -> None:
    file = File()
    file.change(0, b"a" * 600)
    file.sync()
    file.change(100, b"b" * 1000)
    file.change(50, None)
    assert bytes(file.content) == b"a" * 50
    file.lose(random.Random(1), 0.0)
    assert bytes(file.content) == b"a" * 600
    file.change(512, b"c" * 512)
    file.lose(random.Random(1), 1.0)
    assert bytes(file.content) == b"a" * 512 + b"c" * 512
