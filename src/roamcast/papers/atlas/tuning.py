"""Tuned protocols: each gets the same number of settings, tried on seeds of their own; the best runs on the map's.

The rules this file owns:

* Best of a protocol in a cell is the cheapest setting that delivers at least 95 % of what was possible within 10 s; if
  none does, the one that delivers most.
* It is chosen on the seeds of the tuning and shown on others, or its figures would be too good.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from roamcast.campaign.experiment import Experiment
from roamcast.papers.atlas.cells import Cell, Setting
from roamcast.papers.atlas.winners import COST, THRESHOLD

TUNED: Final = "map-tuned"
_MEASURE: Final = "delivered_of_possible_10"

Picks = Mapping[str, frozenset[str]]
"""By cell: the names of the settings that were best there."""


def picks(cells: Sequence[Cell]) -> Picks:
    return {str(cell): frozenset(best(cell, settings).name for settings in cell.protocols().values()) for cell in cells}


def best(cell: Cell, settings: Sequence[Setting]) -> Setting:
    def rank(setting: Setting) -> tuple[bool, float]:
        delivered = float(np.mean(cell.column(setting, _MEASURE)))
        if delivered < THRESHOLD:
            return True, -delivered
        return False, float(np.mean(np.log(cell.column(setting, COST))))

    return min(settings, key=rank)


def tuned(tuning: Experiment, picked: Picks, seeds: int) -> Experiment:
    """The experiment that shows them, on the first so many seeds of the map. Every setting that was best somewhere runs
    in every cell; `only` leaves those that were best there."""
    names = frozenset[str]().union(*picked.values())
    variants = tuple(variant for variant in tuning.variants if variant.name in names)
    spec = msgspec.structs.replace(tuning.spec, name=TUNED, seeds=seeds, variants=variants, baseline=None)
    return dataclasses.replace(tuning, spec=spec)


def only(cells: Sequence[Cell], picked: Picks) -> list[Cell]:
    return [
        dataclasses.replace(cell, settings=tuple(one for one in cell.settings if one.name in picked[str(cell)]))
        for cell in cells
    ]
