"""What the shell completes: measures, fields for --set, protocols and their parameters."""

import click

from roamcast.config.explain import explain


def complete_measures(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from roamcast.analysis.measures.catalogue import CATALOGUE, GROUPS

    return [name for name in (*CATALOGUE, *GROUPS) if name.startswith(typed)]


def complete_fields(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Fields of a scenario as `--set` takes them; after `protocol.name=` the protocols."""
    from roamcast.protocols.catalogue import CATALOGUE
    from roamcast.sim.scenario.scenario import Scenario

    field, equals, begun = typed.partition("=")
    if equals:
        return [f"{field}={name}" for name in CATALOGUE if field == "protocol.name" and name.startswith(begun)]
    sections = [*explain(Scenario)]
    for entry in CATALOGUE.values():
        sections += explain(entry.parameters, "protocol.parameters")
    names = {f"{one.path.replace('[]', '[0]')}=" for section in sections for one in section.fields}
    return sorted(name for name in names if name.startswith(typed))


def complete_protocols(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from roamcast.protocols.catalogue import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(typed)]
