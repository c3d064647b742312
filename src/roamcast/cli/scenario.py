"""`roamcast scenario`: explains the fields of a scenario, prints an example, or checks a file."""

from pathlib import Path

import click

from roamcast.cli.options import FILE
from roamcast.cli.progress import say
from roamcast.cli.screen import example, screen_width
from roamcast.config.explain import as_text, explain
from roamcast.outside import is_file_name
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.scenario.recordings import check_recordings
from roamcast.sim.scenario.scenario import Scenario, load
from roamcast.sim.scenario.unheard import unheard
from roamcast.sim.trial import SECONDS, without_effect


@click.command()
@click.option(
    "--explain", "task", flag_value="explain", help="Explain every field of a scenario: values, unit, default, meaning."
)
@click.option("--example", "task", flag_value="example", help="Print a small, commented scenario to start from.")
@click.option(
    "--check",
    "file",
    type=FILE,
    help="Check FILE, and the recordings and documents it names. Warns of filters that no event matches and, after a "
    "short trial, of parameters without effect. If its protocol is in a Python file (file.py:NAME), that file is "
    "executed: its code says which parameters are valid.",
)
def scenario(task: str | None, file: Path | None) -> None:
    """Explain scenarios, print an example, or check a file. Give exactly one option."""
    if (task is None) == (file is None):
        raise click.UsageError("give exactly one of --explain, --example and --check FILE")
    if file is not None:
        checked = load(file)
        check_recordings(checked, str(file), file.parent)
        click.echo(f"ok: {file}: {_in_one_line(checked)}")
        for text in (*unheard(checked), *_without_effect(checked, file)):
            click.echo(f"warning: {text}", err=True)
        if is_file_name(checked.protocol.name):
            click.echo(
                f"protocol.name: {checked.protocol.name.rpartition(':')[0]} was executed for this check", err=True
            )
    elif task == "example":
        click.echo(example("scenario"), nl=False)
    else:
        click.echo(as_text(explain(Scenario), screen_width()))


def _without_effect(checked: Scenario, file: Path) -> list[str]:
    """Parameters that make no difference; without a trial if none is set."""
    if not checked.protocol.parameters:
        return []
    load_kernel(say)
    return [
        f"protocol.parameters.{name}: makes no difference in a trial of {SECONDS:g} s"
        for name in without_effect(checked, str(file), file.parent)
    ]


def _in_one_line(checked: Scenario) -> str:
    subscribers, publishers = checked.workload.subscribers, checked.workload.publishers
    where = f" in {checked.area}" if checked.area else ""
    return (
        f'"{checked.name}", seed {checked.seed}: {checked.nodes} nodes{where} for {checked.duration:g} s, '
        f"{checked.protocol.name}; groups of subscribers: {len(subscribers)}, of publishers: {len(publishers)}"
    )
