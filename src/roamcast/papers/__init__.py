"""The papers' evaluations as data: experiments, the scenarios they start from, and the ledger of claims.

The rule this file owns is what `--quick` means: a preview in minutes. An axis of more than three values keeps every
second value from the first, and the last; there are three seeds, and 200 s measured instead of the scenario's time. If
that would show nothing, an experiment defines its own preview (`quick` in its file). Experiments that neither judge a
claim nor test a supposed cause, but are only shown for comparison, are left out.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from roamcast.campaign.define.experiment import Axis, Experiment, Quick, load_experiment
from roamcast.errors import RoamcastError
from roamcast.papers.claims import load_claims

_HERE: Final = Path(__file__).parent
CLAIMS: Final = _HERE / "claims.toml"
EXPERIMENTS: Final = _HERE / "experiments"

PAPERS: Final = {
    "hint": "Baldoni, Beraldi, Cugola, Migliavacca, Querzoni 2005, Structure-less Content-Based Routing in MANETs",
    "odmrp": "Yoneki, Bacon 2004, An Adaptive Approach to Content-Based Subscription in MANETs",
    "coman": "Mottola, Cugola, Picco, A Self-Repairing Tree Topology Enabling Content-Based Routing in MANETs",
    "opportunistic": "Haillot, Guidec 2008, A Protocol for Content-Based Communication in Disconnected MANETs",
    "context": "Frey, Roman 2007, Context-Aware Publish Subscribe in MANETs",
}

QUICK_SEEDS: Final = 3
QUICK_WHOLE: Final = 3
"""An axis of this many values or fewer is kept whole."""
QUICK_MEASURED: Final = 200.0
"""Seconds after the warm-up."""


def experiment_files(paper: str) -> list[Path]:
    """The experiments of a paper, in the order of its figures; those that are not figures of the paper come last."""
    return sorted(EXPERIMENTS.glob(f"{paper}-*.toml"), key=_by_number)


def _by_number(path: Path) -> tuple[bool, list[int], str]:
    """A sort key: 10 comes after 9, and 9-250 after 9d."""
    numbers = [int(number) for number in re.findall(r"\d+", path.stem)]
    return not numbers, numbers, path.stem


def check_names(papers: Sequence[str]) -> None:
    """Raises if there is no such paper."""
    for name in papers:
        if name not in PAPERS:
            raise RoamcastError(f"no paper is named {name!r}; known are {', '.join(PAPERS)}")


def load(papers: Sequence[str] = ()) -> list[Experiment]:
    """The experiments of the named papers, or of all."""
    check_names(papers)
    found = {name: experiment_files(name) for name in papers or PAPERS}
    for name, files in found.items():
        if papers and not files:
            raise RoamcastError(f"{name}: its figures have no experiments yet; its claims are listed as not measured")
    return [load_experiment(file) for files in found.values() for file in files]


def preview(papers: Sequence[str] = ()) -> list[Experiment]:
    """The previews of the papers' experiments that judge a claim, or test a supposed cause of its failure."""
    checks = [check for claim in load_claims(CLAIMS) for check in claim.checks if check.judged or check.cause]
    judging = {term.experiment for check in checks for term in check.terms}
    return [quick(one) for one in load(papers) if one.name in judging]


def quick(one: Experiment) -> Experiment:
    """The preview of an experiment."""
    own = one.spec.quick
    if own is not None:
        return part(one, own)
    spec = msgspec.structs.replace(one.spec, seeds=QUICK_SEEDS, axes=tuple(map(_thinned, one.spec.axes)))
    around = sum(one.scenario.get(name, 0.0) for name in ("warmup", "cooldown"))
    scenario: dict[str, Any] = {**one.scenario, "duration": around + QUICK_MEASURED}
    return dataclasses.replace(one, spec=spec, scenario=scenario)


def part(one: Experiment, own: Quick) -> Experiment:
    """The part of an experiment that its file describes."""
    spec = msgspec.structs.replace(
        one.spec,
        seeds=tuple(one.seeds(own.seeds)),
        axes=tuple(axis.only(own.values[axis.name]) if axis.name in own.values else axis for axis in one.spec.axes),
        variants=tuple(variant for variant in one.spec.variants if not own.variants or variant.name in own.variants),
        quick=None,
        usual=None,
    )
    return dataclasses.replace(one, spec=spec, scenario={**one.scenario, "duration": own.duration})


def _thinned(axis: Axis) -> Axis:
    if len(axis.values) <= QUICK_WHOLE:
        return axis
    *others, last = axis.values
    return axis.only((*others[::2], last))
