"""Tuned protocols: each gets the same number of settings, tried on seeds of their own; the best runs on the map's.

The rules this file owns:

* Best of a protocol in a cell is the cheapest setting that delivers at least 95 % of what was possible within 10 s; if
  none does, the one that delivers most.
* It is chosen on the seeds of the tuning and shown on others, or its figures would be too good.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from roamcast.campaign.define.experiment import Experiment
from studies.map.cells import Cell, Setting, named
from studies.map.winners import COST, THRESHOLD

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
    """The experiment that shows them, on the first so many seeds of the map. It has every setting that was best
    somewhere; `is_shown` says in which cells each of them runs."""
    names = frozenset[str]().union(*picked.values())
    variants = tuple(variant for variant in tuning.variants if variant.name in names)
    spec = msgspec.structs.replace(tuning.spec, name=TUNED, seeds=seeds, variants=variants, baseline=None)
    return dataclasses.replace(tuning, spec=spec)


def is_shown(picked: Picks, row: Mapping[str, Any]) -> bool:
    """Whether a row of the plan is of a setting that was best in its cell."""
    return row["variant"] in picked[named(json.loads(row["axes"]))]
