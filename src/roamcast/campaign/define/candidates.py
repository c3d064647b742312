"""The candidates in a race: protocols, each with some of its parameters set.

In text a candidate is the name of a protocol and the parameters that differ from its defaults: `gossip p=0.7`.
"""

import dataclasses
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from roamcast.campaign.decide.race import LOOKS
from roamcast.campaign.define.around_trace import moved
from roamcast.campaign.define.experiment import CampaignError, Experiment, Variant, experiment
from roamcast.config.toml_file import toml_file
from roamcast.config.values import typed_value
from roamcast.errors import ConfigError, RoamcastError
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import refuse_experiment

_NAME: Final = "protocol.name"
_PARAMETERS: Final = "protocol.parameters"


def candidate(text: str) -> Variant:
    """A candidate from its text."""
    problem = ConfigError(f"candidate {text!r}: expected NAME or NAME PARAMETER=VALUE, such as 'gossip p=0.7'")
    try:
        name, *words = shlex.split(text) or [""]
    except ValueError:  # an unclosed quotation mark
        raise problem from None
    parameters: dict[str, Any] = {}
    for word in words:
        parameter, equals, value = word.partition("=")
        if not (parameter and equals):
            raise problem
        parameters[parameter] = typed_value(value)
    return Variant(name=" ".join((name, *words)), set={_NAME: name, _PARAMETERS: parameters})


def usual() -> list[Variant]:
    """Every protocol of the catalogue, with the parameters worth comparing."""
    return [_variant(entry.name, dict(some)) for entry in CATALOGUE.values() for some in entry.compared]


def _variant(name: str, parameters: dict[str, Any]) -> Variant:
    text = " ".join((name, *(f"{key}={value}" for key, value in parameters.items())))
    return Variant(name=text, set={_NAME: name, _PARAMETERS: parameters})


def own(one: Experiment) -> Variant | None:
    """The protocol that the scenario itself names, with the scenario's parameters."""
    protocol = one.scenario.get("protocol", {})
    if not isinstance(protocol, dict) or not protocol.get("name"):
        return None
    return _variant(protocol["name"], protocol.get("parameters", {}))


def distinct(variants: Iterable[Variant | None]) -> list[Variant]:
    """The variants without duplicates: of two with the same settings, the first."""
    found: list[Variant] = []
    for variant in variants:
        if variant is not None and all(variant.set != other.set for other in found):
            found.append(variant)
    return found


def able(one: Experiment, candidates: Sequence[Variant]) -> tuple[list[Variant], dict[str, str]]:
    """The candidates that can run the scenario, and why each of the others cannot."""
    fit: list[Variant] = []
    refused: dict[str, str] = {}
    for variant in candidates:
        try:
            one.at(variant, {})
        except RoamcastError as problem:
            refused[variant.name] = str(problem).partition("\n")[0].removeprefix(f"{one.source}: {variant.name}: ")
        else:
            fit.append(variant)
    return fit, refused


def race_experiment(scenario: dict[str, Any], source: str, folder: Path) -> Experiment:
    """A race as an experiment: one scenario, the seeds of the last look, and the candidates as variants."""
    refuse_experiment(scenario, source)
    return experiment({"name": "choose", "seeds": max(LOOKS), "scenario": scenario}, source, folder)


def refuse_nothing_to_deliver(one: Experiment, variant: Variant, deadline: float | None) -> None:
    """Raises `CampaignError` if no protocol could contribute to the goal."""
    scenario = one.at(variant, {})
    for role, verb in (("publishers", "publishes"), ("subscribers", "subscribes")):
        if not getattr(scenario.workload, role):
            raise CampaignError(f"{one.source}: workload.{role}: nobody {verb}: there is nothing to deliver")
    counted = scenario.duration - scenario.warmup
    if deadline is not None and deadline >= counted:
        raise CampaignError(
            f"--within {deadline:g}: {one.source} runs for {counted:g} s after its warm-up, so nothing that is "
            "published in it can be that old: give less, or a longer duration"
        )


def with_candidates(one: Experiment, candidates: Sequence[Variant]) -> Experiment:
    return dataclasses.replace(one, spec=msgspec.structs.replace(one.spec, variants=tuple(candidates)))


def as_scenario(one: Experiment, variant: Variant, to: Path) -> str:
    """The experiment's scenario with this candidate, as a TOML file for the folder `to`."""
    scenario = {key: value for key, value in one.scenario.items() if key != "protocol"}
    protocol = {"name": variant.set[_NAME], "parameters": variant.set[_PARAMETERS]}
    return toml_file(moved(scenario | {"protocol": protocol}, one.folder, to))


def as_node(variant: Variant) -> str:
    """The command that runs this candidate on a device."""
    changes = [f"--set {key}={_typed(value)}" for key, value in variant.set[_PARAMETERS].items()]
    return " ".join(("roamcast node --id 1 --key network.key --protocol", shlex.quote(variant.set[_NAME]), *changes))


def _typed(value: Any) -> str:  # noqa: ANN401  # any value of TOML
    return shlex.quote(str(value).lower() if isinstance(value, bool) else str(value))
