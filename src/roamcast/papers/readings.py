"""Readings of a paper: what its evaluation may have meant, as data, and its experiments under one of them.

A paper leaves things open, and some of what it says may not be what was done. `readings/PAPER.toml` names *settings*,
each *open* (the text is silent or ambiguous) or a *departure* (the text says otherwise). A reading is a set of them;
the one without any is that of the ledger. docs/papers.md has the procedure by which one reading per paper is chosen.

The rules this file owns:

* A setting changes every experiment of the paper alike, or those it names: never one claim alone.
* Settings that answer the same question (`question`) exclude each other.
* Under a reading, an experiment gets a name of its own, and so do the terms of the claims: the judge stays the same.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from roamcast.campaign.define.experiment import Axis, Experiment, TomlTable, Variant
from roamcast.errors import RoamcastError
from roamcast.papers.claims import Check, Claim, Reaching, Term, Where, read_toml
from roamcast.protocols.catalogue import CATALOGUE

M = TypeVar("M", Term, Reaching | None, Where | None)
READINGS: Final = Path(__file__).parent / "readings"
AS_IN_THE_LEDGER: Final = "as in the ledger"
PARAMETERS: Final = "protocol.parameters."


class ReadingError(RoamcastError):
    """A file of readings is not valid."""


class Setting(TomlTable, frozen=True, kw_only=True):
    """One thing that the paper may have meant."""

    name: str
    kind: Literal["open", "departure"]
    text: str
    """What the paper says about it, or that it says nothing, and where."""
    why: str = ""
    """Of a departure: why it is plausible all the same."""
    question: str = ""
    """Settings with the same question exclude each other."""
    set: dict[str, Any] = msgspec.field(default_factory=dict)
    """Fields of the scenario, set after those of a variant; parameters that a variant's protocol lacks are left out."""
    protocols: tuple[str, ...] = ()
    """Only variants with these protocols; none: all."""
    only: tuple[str, ...] = ()
    """Only variants with these names; none: all."""
    where: str = ""
    """Only where the scenario has this table; empty: everywhere."""
    experiments: tuple[str, ...] = ()
    """Only these; none: all of the paper."""
    variants: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """By experiment: a variant that the claims name, and the one that is run instead."""
    measures: dict[str, str] = msgspec.field(default_factory=dict)
    """A measure that the claims name, and the one that is judged instead."""


class Readings(TomlTable, frozen=True, kw_only=True):
    """A file of readings."""

    paper: str
    exploring: tuple[int, ...]
    """Seeds with which readings are compared."""
    confirming: tuple[int, ...]
    """Fresh seeds, with which the chosen ones are judged."""
    settings: tuple[Setting, ...]

    def problems(self) -> Iterator[str]:
        names = [setting.name for setting in self.settings]
        yield from (f"two settings are named {name!r}" for name in sorted({n for n in names if names.count(n) > 1}))
        if set(self.exploring) & set(self.confirming):
            yield "a seed cannot be combined with itself: exploring and confirming need different seeds"
        for setting in self.settings:
            if (setting.kind == "departure") != bool(setting.why):
                yield f"{setting.name}: a departure says why it is plausible, and only a departure does"
            if not (setting.set or setting.variants or setting.measures):
                yield f"{setting.name}: changes nothing"


def load_readings(paper: str, folder: Path = READINGS) -> Readings:
    """Reads and checks the readings of a paper."""
    path = folder / f"{paper}.toml"
    if not path.exists():
        raise ReadingError(f"{path}: there are no readings of {paper}")
    found = read_toml(path, Readings, ReadingError, "the readings")
    broken = [f"{path}: {rule}" for rule in found.problems()]
    if broken:
        raise ReadingError("\n".join(broken))
    return found


@dataclass(frozen=True)
class Reading:
    """A set of settings."""

    settings: tuple[Setting, ...] = ()

    @property
    def name(self) -> str:
        return " + ".join(setting.name for setting in self.settings) or AS_IN_THE_LEDGER

    @property
    def is_open(self) -> bool:
        """Whether it contradicts nothing that the paper says."""
        return all(setting.kind == "open" for setting in self.settings)

    @property
    def is_possible(self) -> bool:
        questions = [setting.question for setting in self.settings if setting.question]
        return len(set(questions)) == len(questions)


def alone(settings: Iterable[Setting]) -> list[Reading]:
    """The reading of the ledger, and one for each setting."""
    return [Reading(), *(Reading((setting,)) for setting in settings)]


def together(settings: Sequence[Setting]) -> list[Reading]:
    """All possible readings of two or more of these settings."""
    sizes = range(2, len(settings) + 1)
    every = (Reading(some) for size in sizes for some in itertools.combinations(settings, size))
    return [reading for reading in every if reading.is_possible]


# --- What the claims need -------------------------------------------------------------------------------------------


@dataclass
class Need:
    """What checks read of an experiment."""

    variants: dict[str, None] = field(default_factory=dict)
    measures: dict[str, None] = field(default_factory=dict)
    points: list[dict[str, Any] | None] = field(default_factory=list)
    """Values on axes, by term; None: all points."""


def main_checks(claim: Claim) -> Sequence[Check]:
    return [claim.main] if claim.main else []


def judged_checks(claim: Claim) -> Sequence[Check]:
    return [check for check in claim.checks if check.judged]


def needs(claims: Sequence[Claim], of: Callable[[Claim], Sequence[Check]]) -> dict[str, Need]:
    """What the checks of claims read, by experiment."""
    found: dict[str, Need] = {}
    for check in (check for claim in claims for check in of(claim)):
        for term, measure in check.measures:
            need = found.setdefault(term.experiment, Need())
            need.variants[term.variant] = None
            need.measures[measure] = None
            need.points.append(term.at if isinstance(term.at, dict) else None)
    return found


def only_needed(one: Experiment, need: Need, seeds: Sequence[int], whole: Experiment) -> Experiment:
    """An experiment with the variants, points and measures that are needed; variants are those of the whole one."""
    spec = msgspec.structs.replace(
        one.spec,
        variants=tuple(variant for variant in whole.variants if variant.name in need.variants),
        axes=_axes(one, need.points),
        measures=tuple(need.measures),
        seeds=tuple(seeds),
        baseline=None,
        figures=(),
        quick=None,
        usual=None,
    )
    return dataclasses.replace(one, spec=spec)


def _axes(one: Experiment, points: Sequence[Mapping[str, Any] | None]) -> tuple[Axis, ...]:
    """The axes with the values that some term reads; of paired axes, the places."""

    def wanted(place: Mapping[str, Any]) -> bool:
        return any(
            point is None or all(point.get(name, value) == value for name, value in place.items()) for point in points
        )

    axes = one.spec.axes
    if one.spec.mode == "paired" and axes:
        names = [axis.name for axis in axes]
        rows = zip(*(axis.values for axis in axes), strict=True)
        places = [row for row in rows if wanted(dict(zip(names, row, strict=True)))]
        return tuple(axis.only(tuple(row[number] for row in places)) for number, axis in enumerate(axes))
    return tuple(axis.only(tuple(value for value in axis.values if wanted({axis.name: value}))) for axis in axes)


# --- Under a reading ------------------------------------------------------------------------------------------------


def under(reading: Reading, one: Experiment, number: int, whole: Experiment) -> Experiment:
    """An experiment under a reading, with a name of its own. Variants that are run instead come from the whole one."""
    settings = [setting for setting in reading.settings if not setting.experiments or one.name in setting.experiments]
    renamed = _measures(reading)
    spec = msgspec.structs.replace(
        one.spec,
        name=numbered(one.name, number),
        variants=tuple(_variant(settings, one, whole, variant) for variant in one.variants),
        measures=tuple(dict.fromkeys(renamed.get(name, name) for name in one.spec.measures or ())),
    )
    return dataclasses.replace(one, spec=spec)


def _variant(settings: Sequence[Setting], one: Experiment, whole: Experiment, variant: Variant) -> Variant:
    known = {other.name: other for other in whole.variants}
    changed = dict(variant.set)
    for setting in settings:
        instead = setting.variants.get(one.name, {}).get(variant.name)
        if instead is not None:
            changed = dict(known[instead].set)
    for setting in settings:
        protocol = _protocol(one, changed)
        there = not setting.where or setting.where in changed or setting.where in one.scenario
        named = not setting.only or variant.name in setting.only
        if there and named and (not setting.protocols or protocol in setting.protocols):
            changed |= {field: value for field, value in setting.set.items() if _has(protocol, field)}
    return msgspec.structs.replace(variant, set=changed)


def _has(protocol: str, field: str) -> bool:
    """Whether a protocol has the parameter that a field names; True for any other field."""
    parameter = field.removeprefix(PARAMETERS).partition(".")[0]
    known = (one.name for one in msgspec.structs.fields(CATALOGUE[protocol].parameters))
    return not field.startswith(PARAMETERS) or parameter in known


def _protocol(one: Experiment, changed: Mapping[str, Any]) -> str:
    whole = changed.get("protocol", one.scenario.get("protocol", {}))
    return str(changed.get("protocol.name", whole.get("name", "")))


def _measures(reading: Reading) -> dict[str, str]:
    return {name: instead for setting in reading.settings for name, instead in setting.measures.items()}


def numbered(experiment: str, number: int) -> str:
    return f"{experiment}_reading{number}"


def claims_under(reading: Reading, claims: Sequence[Claim], number: int) -> list[Claim]:
    """The claims, about the experiments under a reading."""
    renamed = _measures(reading)

    def measured(one: M) -> M:
        return one if one is None else msgspec.structs.replace(one, measure=renamed.get(one.measure, one.measure))

    def term(one: Term) -> Term:
        name = numbered(one.experiment, number)
        return msgspec.structs.replace(measured(one), experiment=name, reaching=measured(one.reaching))

    def check(one: Check) -> Check:
        than = None if one.than is None else term(one.than)
        return msgspec.structs.replace(one, of=term(one.of), than=than, where=measured(one.where))

    return [msgspec.structs.replace(claim, checks=tuple(map(check, claim.checks))) for claim in claims]
