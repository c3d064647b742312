"""A campaign as it was requested: what `campaign.json` has, written when a campaign starts and read by all the rest."""

from typing import Any

import msgspec

from roamcast.campaign.define.experiment import Variant


class SweptAxis(msgspec.Struct, frozen=True):
    """A swept field, or several."""

    label: str
    values: list[Any]
    field: str | None = None
    """The first of the fields, whose unit the values have; none if the values are not the field's own."""


class FigurePlan(msgspec.Struct, frozen=True):
    """A figure of the report. Whatever its file says is only text here: names are shown, never run."""

    id: str
    x: str
    y: str
    title: str = ""
    caption: str = ""
    log: bool = False
    against: str | None = None
    """The variant from which the others' differences are drawn, in per cent of it."""
    minor: bool = False
    """Whether the experiment did not ask for it: the page folds it away, and it gets no file of its own."""


class ReportedExperiment(msgspec.Struct, frozen=True):
    """One sweep, as `campaign.json` describes it."""

    name: str
    seeds: list[int]
    title: str | None = None
    paper: str | None = None
    axes: list[SweptAxis] = []
    variants: list[Variant] = []
    baseline: str | None = None
    """The variant that the others are compared with; none: no differences are shown."""
    measures: list[str] | None = None
    """The measures that it asked for, of all that the campaign has; None: all."""
    figures: list[FigurePlan] = []
    scenario: dict[str, Any] = {}
    source: str = ""
    """The file that it was read from."""
    mode: str = ""
    hashes: dict[str, Any] = {}
    """What identifies it: seeds, points, axes, variants and figures may be added or removed, but the meaning of an
    axis, one of its values, or a variant must not change."""

    def wants(self, measure: str) -> bool:
        return self.measures is None or measure in self.measures


class Campaign(msgspec.Struct, frozen=True):
    """The campaign as it was requested."""

    version: int
    command: str
    experiments: list[ReportedExperiment]
    versions: dict[str, str] = {}
    date: str = ""
    """When it was last run, as text."""
    machine: str = ""

    def experiment(self, name: str) -> ReportedExperiment:
        return next(one for one in self.experiments if one.name == name)
