"""The map: the experiments that compare all protocols on the same networks, which no paper does.

The rules this file owns:

* An experiment's file has the whole design (`--full`); `usual` in it is the part whose results are in the repository,
  `quick` a preview.
* The core has the protocols and the measures; an experiment that names none has the core's. Context needs positions and
  stays out where there are only links; trees and context stay out among 1,000 nodes, where a run of theirs takes
  minutes.
* `tuned` comes in two steps, since the second depends on the first (`tuning.py`).
"""

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from roamcast.campaign.define.experiment import Experiment, Variant, load_experiment
from roamcast.errors import RoamcastError
from roamcast.papers import part
from roamcast.protocols.catalogue import find

EXPERIMENTS: Final = Path(__file__).parent / "experiments"
Level = Literal["quick", "usual", "full"]

_CORE: Final = "map-core"
_LARGE: Final = "map-worlds-thousand"
_TOO_DEAR: Final = frozenset({"maodv", "coman", "context"})
PARTS: Final = {
    "core": (_CORE,),
    "slices": ("map-rate", "map-subscribers"),
    "tuned": ("map-tuning",),
    "streets": ("map-streets", "map-streets-random"),
    "worlds": (
        "map-streets",
        *(f"map-worlds-{name}" for name in ("subscribers", "filters", "rate", "loss", "hot-spots", "buildings")),
        *(f"map-worlds-{name}" for name in ("contacts", "changing", "thousand")),
    ),
    "causes": ("map-causes-links", "map-causes-trees", "map-causes-carrying"),
}
"""What `python -m studies.map PART` runs: names of experiments."""


def load_part(name: str, level: Level) -> list[Experiment]:
    """The experiments of a part of the map, at a level."""
    return [at_level(_completed(load_experiment(_file(file))), level) for file in PARTS[name]]


def _completed(one: Experiment) -> Experiment:
    core = load_experiment(_file(_CORE)).spec
    spec = msgspec.structs.replace(one.spec, measures=one.spec.measures or core.measures)
    if not spec.variants:
        able = tuple(variant for variant in core.variants if _can_run(variant, one))
        spec = msgspec.structs.replace(spec, variants=able, baseline=core.baseline)
    return dataclasses.replace(one, spec=spec)


def _can_run(variant: Variant, one: Experiment) -> bool:
    protocol = variant.set["protocol.name"]
    if one.name == _LARGE and protocol in _TOO_DEAR:
        return False
    return one.scenario["radio"]["propagation"] != "links" or "positions" not in find(protocol).needs


def with_only(experiments: Sequence[Experiment], protocols: Collection[str]) -> list[Experiment]:
    """The experiments with the variants of these protocols, without those that have none; with no protocol, all."""
    there = {variant.set["protocol.name"] for one in experiments for variant in one.variants}
    if missing := sorted(set(protocols) - there):
        raise RoamcastError(f"{', '.join(missing)}: not on this part of the map; there are {', '.join(sorted(there))}")
    return [_reduced(one, protocols) for one in experiments if _of(one, protocols)] if protocols else [*experiments]


def _of(one: Experiment, protocols: Collection[str]) -> tuple[Variant, ...]:
    return tuple(variant for variant in one.variants if variant.set["protocol.name"] in protocols)


def _reduced(one: Experiment, protocols: Collection[str]) -> Experiment:
    variants = _of(one, protocols)
    baseline = one.spec.baseline if any(variant.name == one.spec.baseline for variant in variants) else None
    return dataclasses.replace(one, spec=msgspec.structs.replace(one.spec, variants=variants, baseline=baseline))


def _file(name: str) -> Path:
    return EXPERIMENTS / f"{name}.toml"


def at_level(one: Experiment, level: Level) -> Experiment:
    chosen = {"quick": one.spec.quick, "usual": one.spec.usual, "full": None}[level]
    return one if chosen is None else part(one, chosen)
