"""A campaign: one or more experiments, and the table of runs planned from them.

No Spark here: errors are found before Spark starts. The rules this file owns:

* Seeds are paired: every variant and every point of an experiment runs with the same seeds, or with the first of them
  if the variant takes fewer. Movement and workload follow from the scenario and the seed alone, so variants that differ
  in their protocol see the same world.
* A run that several rows need is simulated once (`identity.run_id`).
* Every scenario is checked when the campaign is planned, so that none turns out to be wrong hours later.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from roamcast.campaign.define import described
from roamcast.campaign.define.estimate import estimated
from roamcast.campaign.define.experiment import CampaignError, Experiment, load_experiment, repeated
from roamcast.campaign.define.identity import canonical_hash, completed, find_files, run_id
from roamcast.campaign.define.inputs import Files, Sources
from roamcast.sim.scenario.recordings import check_recordings

__all__ = ["CampaignError", "Experiment", "Plan", "PlannedRun", "load_experiment", "plan"]


@dataclass(frozen=True)
class PlannedRun:
    """One scenario with one seed, and everything needed to run it."""

    run: str
    scenario: str
    """JSON of the completed scenario."""
    estimate: float
    """CPU seconds, roughly."""
    files: Files
    protocol: str = ""


@dataclass(frozen=True)
class Plan:
    """The planned runs of a campaign."""

    experiments: tuple[described.ReportedExperiment, ...]
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the table RUNS: one per experiment, variant, point and seed."""
    distinct: list[PlannedRun] = field(default_factory=list)
    """The runs, in the order to start them: the longest first, or one started last would run alone at the end."""
    sources: Sources = field(default_factory=Sources)
    """Where the runs' input files come from."""

    def only(self, wanted: Callable[[dict[str, Any]], bool]) -> "Plan":
        """The part of the plan whose rows are wanted."""
        rows = [row for row in self.rows if wanted(row)]
        runs = {row["run"] for row in rows}
        return replace(self, rows=rows, distinct=[run for run in self.distinct if run.run in runs])

    def with_seeds(self, count: Mapping[tuple[str, str], int]) -> "Plan":
        """The part of the plan with the first `count` seeds of each point, by experiment and axes."""
        order = {one.name: {seed: place for place, seed in enumerate(one.seeds)} for one in self.experiments}
        return self.only(lambda row: order[row["experiment"]][row["seed"]] < count[row["experiment"], row["axes"]])


def plan(experiments: Sequence[Experiment], seeds: int | None = None) -> Plan:
    """The runs of the experiments; `seeds` overrides the number of seeds in the files."""
    for name in repeated([one.name for one in experiments]):
        raise CampaignError(f"two experiments are named {name!r}: their results could not be told apart")
    if seeds is not None and seeds < 1:
        raise CampaignError(f"seeds: {seeds}: at least one seed")
    planned = Plan(tuple(_description(one, one.seeds(seeds)) for one in experiments))
    runs: dict[str, PlannedRun] = {}
    for one in experiments:
        for row, run in _rows(one, seeds, planned.sources):
            planned.rows.append(row)
            runs.setdefault(run.run, run)
    planned.distinct.extend(sorted(runs.values(), key=lambda run: (-run.estimate, run.run)))
    return planned


def _rows(one: Experiment, count: int | None, sources: Sources) -> Iterator[tuple[dict[str, Any], PlannedRun]]:
    opened = set()
    for variant in one.variants:
        seeds = one.seeds_of(variant, count)
        for number, point in enumerate(one.points(variant)):
            scenario = completed(one.at(variant, point), one.folder)
            recordings = (scenario.movement, scenario.links, scenario.area, scenario.nodes)
            if recordings not in opened:
                check_recordings(msgspec.structs.replace(scenario, seed=seeds[0]), one.source, one.folder)
                opened.add(recordings)
            files, estimate = find_files(scenario, one.folder, sources), estimated(scenario)
            for seed in seeds:
                seeded = msgspec.structs.replace(scenario, seed=seed)
                encoded = msgspec.json.encode(seeded).decode()
                run = PlannedRun(run_id(seeded, files), encoded, estimate, files, scenario.protocol.name)
                yield (
                    {
                        "run": run.run,
                        "experiment": one.name,
                        "variant": variant.name,
                        "point": number,
                        "axes": json.dumps(point, ensure_ascii=False),
                        "seed": seed,
                        "scenario": run.scenario,
                        "folder": str(one.folder),
                        "estimate": estimate,
                    },
                    run,
                )


def _description(one: Experiment, seeds: list[int]) -> described.ReportedExperiment:
    spec = one.spec
    axes = [
        described.SweptAxis(axis.name, list(axis.values), None if axis.puts else axis.targets[0]) for axis in spec.axes
    ]
    hashes = {
        "scenario": canonical_hash(one.scenario),
        "axes": {axis.name: canonical_hash([axis.targets, axis.template]) for axis in spec.axes},
        "axis values": {
            f"{axis.name} = {value}": canonical_hash(axis.put_as(value)) for axis in spec.axes for value in axis.values
        },
        "variants": {
            variant.name: canonical_hash({"name": variant.name, "set": variant.set, "fixed": variant.fixed})
            for variant in one.variants
        },
    }
    own = {
        "seeds": seeds,
        "axes": axes,
        "variants": one.variants,
        "scenario": one.scenario,
        "source": one.source,
        "hashes": hashes,
    }
    return msgspec.convert(msgspec.to_builtins(msgspec.structs.asdict(spec) | own), described.ReportedExperiment)
