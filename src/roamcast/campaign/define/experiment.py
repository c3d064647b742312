"""An experiment: a scenario, axes to sweep, variants to compare, seeds, and figures, from a TOML file.

The rule this file owns: a file that is unknown, out of range or contradictory in any part is refused with the file,
the field, the value and the rule. `roamcast campaign --explain` prints the descriptions below.
"""

import copy
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from roamcast.config.errors import decode, suggestion
from roamcast.config.fields import is_field, put
from roamcast.errors import ConfigError
from roamcast.sim.scenario.overrides import apply
from roamcast.sim.scenario.scenario import Scenario, check, read

_NAME: Final = r"^[A-Za-z0-9_-]+$"
MAX_SEED: Final = 2**63 - 1
NUMBERS: Final = "{}"
"""Stands for any number in the measures of a figure."""


class CampaignError(ConfigError):
    """An experiment that cannot be run, or a folder that cannot take it."""


class TomlTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Axis(TomlTable, frozen=True, kw_only=True):
    """A field of the scenario that is swept, or several that get the same value."""

    field: Annotated[str, Meta(description="such as radio.range or workload.publishers[0].rate")] = ""
    fields: Annotated[tuple[str, ...], Meta(description="instead of `field`: several that get the same value")] = ()
    label: Annotated[str, Meta(description="what people call it; empty: the last part of the field's name")] = ""
    values: Annotated[tuple[Any, ...], Meta(min_length=1, description="as in a scenario")]
    template: Annotated[
        str | None,
        Meta(description='what the field gets, with the value in place of the label, such as "veh-{speed}.trace"'),
    ] = None

    puts: Annotated[
        tuple[Any, ...],
        Meta(description="what the field gets, value by value, such as areas that give a degree; none: the value"),
    ] = ()

    def put_as(self, value: Any) -> Any:  # noqa: ANN401  # any value of TOML
        """The value that the field gets for a value of the axis."""
        if self.puts:
            return self.puts[self.values.index(value)]
        return value if self.template is None else self.template.replace(f"{{{self.name}}}", str(value))

    def only(self, values: tuple[Any, ...]) -> "Axis":
        """The axis with these of its values."""
        puts = tuple(self.put_as(value) for value in values) if self.puts else ()
        return msgspec.structs.replace(self, values=values, puts=puts)

    @property
    def targets(self) -> tuple[str, ...]:
        return self.fields or (self.field,)

    @property
    def name(self) -> str:
        return self.label or self.targets[0].rpartition(".")[2]


class Variant(TomlTable, frozen=True, kw_only=True):
    """One of the things compared: a curve in a figure."""

    name: Annotated[str, Meta(min_length=1, description="what people call it")]
    set: Annotated[
        dict[str, Any], Meta(description="fields of the scenario and their values, set before the axes")
    ] = {}
    fixed: Annotated[bool, Meta(description="the axes have no effect on it: one point, a level line in figures")] = (
        False
    )
    seeds: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="at most so many of the experiment's seeds, if that gives their number; none: all"),
    ] = None


class Figure(TomlTable, frozen=True, kw_only=True):
    """A figure of the report."""

    id: Annotated[str, Meta(pattern=_NAME, description="letters, digits, - and _")]
    title: str = ""
    x: Annotated[str, Meta(description="the label of an axis; with {} in `y`, what to call the numbers in its place")]
    y: Annotated[str, Meta(description="a measure, or several that differ in a number, such as by_age_{}")]
    caption: str = ""
    log: Annotated[bool, Meta(description="a logarithmic x axis")] = False
    against: Annotated[
        str | None,
        Meta(description="a variant: the others are drawn as differences from it, seed by seed, in per cent"),
    ] = None


class Quick(TomlTable, frozen=True, kw_only=True):
    """A part of an experiment: what `roamcast papers --quick` runs of one that needs more time than others to show
    anything, and what the study of all protocols (`studies/map`) runs."""

    duration: Annotated[float, Meta(gt=0, description="of a run with its warm-up, s")]
    seeds: Annotated[int, Meta(ge=1, description="how many")] = 3
    values: Annotated[
        dict[str, tuple[Any, ...]], Meta(description="by the label of an axis: which of its values; else all")
    ] = {}
    variants: Annotated[tuple[str, ...], Meta(description="which; none: all")] = ()


class Spec(TomlTable, frozen=True, kw_only=True):
    """An experiment file."""

    name: Annotated[str, Meta(pattern=_NAME, description="letters, digits, - and _")]
    title: Annotated[str, Meta(description="for people")] = ""
    paper: Annotated[str | None, Meta(description="the paper it repeats")] = None
    seeds: Annotated[int | tuple[int, ...], Meta(description="how many (1, 2, …), or a list of them")] = 10
    measures: Annotated[
        tuple[str, ...] | None,
        Meta(description="names of measures, `file.py:NAME` for one of your own; none: all there are"),
    ] = None
    baseline: Annotated[str | None, Meta(description="the variant that the others are compared with by seed")] = None
    mode: Annotated[
        Literal["grid", "paired"], Meta(description="grid: all combinations of the axes; paired: their values in step")
    ] = "grid"
    scenario: Annotated[
        dict[str, Any] | str, Meta(description="a table as in a scenario file, or the name of such a file")
    ]
    axes: tuple[Axis, ...] = ()
    variants: Annotated[tuple[Variant, ...], Meta(description="if there are none: one, named after the protocol")] = ()
    figures: Annotated[
        tuple[Figure, ...], Meta(description="of the report; if there are none: each measure over each axis")
    ] = ()
    quick: Annotated[
        Quick | None,
        Meta(description="the preview; none: fewer points, three seeds and 200 s after the warm-up"),
    ] = None
    usual: Annotated[
        Quick | None, Meta(description="of the map: what runs without --quick and --full; none: everything")
    ] = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """(field, rule with the values)."""
        yield from _seed_problems(self.seeds)
        for number, axis in enumerate(self.axes):
            yield from ((f"axes[{number}].{name}", rule) for name, rule in _axis_problems(axis))
        lengths = [len(axis.values) for axis in self.axes]
        if self.mode == "paired" and len(set(lengths)) > 1:
            yield "axes", f"paired axes need the same number of values, but have {', '.join(map(str, lengths))}"
        labels, variants = [axis.name for axis in self.axes], [variant.name for variant in self.variants]
        for where, names in (
            ("axes", labels),
            ("variants", variants),
            ("figures", [figure.id for figure in self.figures]),
        ):
            yield from ((where, f"two are named {name!r}") for name in repeated(names))
        for number, figure in enumerate(self.figures):
            if figure.x not in labels and NUMBERS not in figure.y:
                yield f"figures[{number}].x", f"there is no axis {figure.x!r}; {_known(figure.x, labels)}"
            if figure.against is not None:
                yield from ((f"figures[{number}].against", rule) for rule in self._against_problems(figure.against))
        if self.baseline is not None and self.variants and self.baseline not in variants:
            yield "baseline", f"there is no variant {self.baseline!r}; {_known(self.baseline, variants)}"
        for level, part in (("quick", self.quick), ("usual", self.usual)):
            if part is not None:
                yield from ((f"{level}.{name}", rule) for name, rule in self._quick_problems(part))

    def _quick_problems(self, quick: Quick) -> Iterator[tuple[str, str]]:
        """A preview is a part of the experiment: its points are points of the figures."""
        axes = {axis.name: axis for axis in self.axes}
        for label, values in quick.values.items():
            if label not in axes:
                yield "values", f"there is no axis {label!r}; {_known(label, axes)}"
                continue
            if not values:
                yield f"values.{label}", "[]: at least one value"
            for value in values:
                if value not in axes[label].values:
                    yield f"values.{label}", f"{value!r} is not a value of this axis"
        lengths = {len(quick.values.get(axis.name, axis.values)) for axis in self.axes}
        if self.mode == "paired" and len(lengths) > 1:
            yield "values", "paired axes need the same number of values each"
        known = [variant.name for variant in self.variants]
        for name in quick.variants:
            if name not in known:
                yield "variants", f"there is no variant {name!r}; {_known(name, known)}"
        if self.baseline is not None and quick.variants and self.baseline not in quick.variants:
            yield "variants", f"the baseline {self.baseline!r} must be among them"
        for figure in self.figures:
            if figure.against is not None and quick.variants and figure.against not in quick.variants:
                yield "variants", f"{figure.against!r}, which figure {figure.id} compares with, must be among them"

    def _against_problems(self, name: str) -> Iterator[str]:
        """A level line has only one point, so it cannot be compared at the others, on either side."""
        swept = [variant.name for variant in self.variants if not variant.fixed]
        if name not in (variant.name for variant in self.variants):
            yield f"there is no variant {name!r}; {_known(name, swept)}"
        elif name not in swept:
            yield f"{name!r} is fixed: it has only one point"
        elif len(swept) < 2:
            yield f"there is no other variant to compare with {name!r}"


def _seed_problems(seeds: int | tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(seeds, int):
        if seeds < 1:
            yield "seeds", f"{seeds}: at least one seed"
        return
    if not seeds:
        yield "seeds", "[]: at least one seed"
    for seed in seeds:
        if not 0 <= seed <= MAX_SEED:
            yield "seeds", f"{seed}: seeds go from 0 to 2^63 - 1"
    for seed in repeated(seeds):
        yield "seeds", f"{seed} is listed twice: its run would count twice"


def _axis_problems(axis: Axis) -> Iterator[tuple[str, str]]:
    if bool(axis.field) == bool(axis.fields):
        yield "field", "give either field or fields"
        return
    if axis.template is not None and f"{{{axis.name}}}" not in axis.template:
        yield "template", f"{axis.template!r}: expected {{{axis.name}}} in it, the label of the axis"
    if axis.puts and len(axis.puts) != len(axis.values):
        yield "puts", f"{len(axis.puts)} for {len(axis.values)} values: there must be one for each"
    for target in axis.targets:
        if not is_field(target):
            yield "field", f"{target!r}: expected a name such as radio.range or workload.publishers[0].rate"
        if target == "seed":
            yield "field", "the seed is not an axis: `seeds` says which there are"


def number_in(names: str, name: str) -> float | None:
    """The number that stands in a name in the place of `NUMBERS`; None if the name is another."""
    before, _, after = names.partition(NUMBERS)
    found = re.fullmatch(rf"{re.escape(before)}(\d+(?:\.\d+)?){re.escape(after)}", name)
    return None if found is None else float(found[1])


def repeated(values: Sequence[Any]) -> list[Any]:
    return sorted({value for value in values if values.count(value) > 1})


def _known(name: str, known: Iterable[str]) -> str:
    return suggestion(name, sorted(known))


@dataclass(frozen=True)
class Experiment:
    """A checked experiment, and where it came from."""

    spec: Spec
    source: str
    """Its name in error messages."""
    scenario: dict[str, Any]
    """The scenario as read, before variants and axes change it."""
    folder: Path
    """The folder that the scenario's file names are relative to."""

    def __str__(self) -> str:
        axes = [f"{axis.name} {', '.join(map(str, axis.values))}" for axis in self.spec.axes]
        variants = f"{len(self.variants)} variant{'s' * (len(self.variants) > 1)}"
        return f"{self.name}: {', '.join([variants, *axes])}, {len(self.seeds())} seeds"

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def variants(self) -> tuple[Variant, ...]:
        protocol = self.scenario.get("protocol", {}).get("name", "flooding")
        return self.spec.variants or (Variant(name=protocol),)

    def changed(self, changes: Sequence[str]) -> "Experiment":
        """The experiment with fields of its scenario set, `FIELD=VALUE`; what an axis or a variant sets goes last."""
        scenario = copy.deepcopy(self.scenario)
        for change in changes:
            apply(change, scenario)
        source = " --set ".join((f"{self.source} with", *changes)) if changes else self.source
        return replace(self, scenario=scenario, source=source)

    def seeds(self, count: int | None = None) -> list[int]:
        """The seeds, or `count` of them: a file that gives only a number of seeds can supply any number."""
        seeds = self.spec.seeds
        if isinstance(seeds, int):
            return list(range(1, (count or seeds) + 1))
        if count is not None and count > len(seeds):
            raise CampaignError(f"{self.source}: seeds: {count} are requested, but the file lists {len(seeds)}")
        return list(seeds[:count])

    def seeds_of(self, variant: Variant, count: int | None = None) -> list[int]:
        """The seeds of one variant. Listed seeds are for all variants: the list says which are wanted."""
        seeds = self.seeds(count)
        return seeds[: variant.seeds] if isinstance(self.spec.seeds, int) else seeds

    def points(self, variant: Variant) -> list[dict[str, Any]]:
        """The points, each as the value of every axis by its label."""
        axes = () if variant.fixed else self.spec.axes
        values = [axis.values for axis in axes]
        rows = zip(*values, strict=True) if self.spec.mode == "paired" and axes else itertools.product(*values)
        return [dict(zip((axis.name for axis in axes), row, strict=True)) for row in rows]

    def at(self, variant: Variant, point: dict[str, Any]) -> Scenario:
        """The scenario of a variant at a point, checked."""
        raw = copy.deepcopy(self.scenario)
        raw.setdefault("name", self.name)
        source = ", ".join((f"{self.source}: {variant.name}", *(f"{label} = {point[label]}" for label in point)))
        for name, value in variant.set.items():
            put(raw, name, copy.deepcopy(value), source)
        for axis in self.spec.axes if point else ():
            for target in axis.targets:
                put(raw, target, axis.put_as(copy.deepcopy(point[axis.name])), source)
        return check(raw, source, self.folder)


# --- From a file ----------------------------------------------------------------------------------------------------


def load_experiment(path: Path) -> Experiment:
    """Reads and checks an experiment file; its scenarios are checked when it is planned."""
    return experiment(read(path), str(path), path.parent)


def experiment(raw: dict[str, Any], source: str, folder: Path) -> Experiment:
    """Checks the contents of an experiment file; its file names are relative to `folder`."""
    if "nodes" in raw and "scenario" not in raw:
        raise CampaignError(f"{source}: this is a scenario, not an experiment: roamcast run {source}")
    spec = decode(raw, Spec, source, CampaignError, whole="the experiment")
    broken = [f"{source}: {name}: {rule}" for name, rule in spec.problems()]
    if broken:
        raise CampaignError("\n".join(broken))
    if isinstance(spec.scenario, str):
        place = folder / spec.scenario
        return Experiment(spec, source, read(place), place.parent)
    return Experiment(spec, source, spec.scenario, folder)


def check_measures(experiments: Sequence[Experiment], known: Iterable[str]) -> None:
    """Refuses unknown measures."""
    known = list(known)
    for one in experiments:
        named = [(f"figure {figure.id}", figure.y) for figure in one.spec.figures]
        for where, name in [*(("measures", name) for name in one.spec.measures or ()), *named]:
            if NUMBERS in name and any(number_in(name, other) is not None for other in one.spec.measures or known):
                continue
            if name not in known:
                raise CampaignError(f"{one.source}: {where}: there is no measure {name!r}; {_known(name, known)}")
            if one.spec.measures is not None and name not in one.spec.measures:
                raise CampaignError(f"{one.source}: {where}: {name!r} is not among the experiment's measures")


def wanted_measures(experiments: Sequence[Experiment]) -> list[str] | None:
    """The measures that the experiments name, in order; None: all measures."""
    named = [one.spec.measures for one in experiments]
    return None if None in named else list(dict.fromkeys(name for names in named for name in names or ()))
