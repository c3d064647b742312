"""The map: the experiments that compare all protocols on the same networks, which no paper does.

The rule this file owns is what the levels mean. An experiment's file has the whole design (`--full`); `usual` in it is
the part whose results are in the repository, `quick` a preview.
"""

from typing import Final, Literal

from roamcast.campaign.experiment import Experiment, load_experiment
from roamcast.papers import EXPERIMENTS, part

Level = Literal["quick", "usual", "full"]

PARTS: Final = {
    "core": ("map-core",),
}
"""What `roamcast map PART` runs: names of experiments."""


def load_part(name: str, level: Level) -> list[Experiment]:
    """The experiments of a part of the map, at a level."""
    return [at_level(load_experiment(EXPERIMENTS / f"{file}.toml"), level) for file in PARTS[name]]


def at_level(one: Experiment, level: Level) -> Experiment:
    chosen = {"quick": one.spec.quick, "usual": one.spec.usual, "full": None}[level]
    return one if chosen is None else part(one, chosen)
