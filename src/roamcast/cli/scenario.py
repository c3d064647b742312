"""`roamcast scenario`: explains the fields of a scenario, prints an example, or checks a file."""

from pathlib import Path
from typing import Final

import click

from roamcast.cli.options import FILE
from roamcast.cli.screen import screen_width
from roamcast.config.explain import as_text, explain
from roamcast.outside import is_file_name
from roamcast.sim.scenario.recordings import check_recordings
from roamcast.sim.scenario.scenario import Scenario, load

EXAMPLE: Final = """\
# Thirty people with radios in a park. Run it:  roamcast run this-file.toml
# Every field there is, with its default:       roamcast scenario --explain

name = "park"
seed = 1          # same file and seed, same facts
nodes = 30        # numbered from 0
duration = 60     # simulated seconds
warmup = 10       # events published before this are not measured

[area]            # metres
width = 600
height = 400

[movement]
model = "random-waypoint"
speed = [0.5, 2.0]    # metres per second: minimum, maximum

[radio]
range = 120           # metres

[protocol]
name = "flooding"     # others: roamcast protocols

[[workload.subscribers]]
count = 10                                # of the 30, drawn from the seed
filter = 'type = "offer" and price < 20'

[[workload.publishers]]
count = 2
rate = 0.5                                # events per second and publisher
type = "offer"
attributes.price = { low = 1, high = 40 } # drawn for every event
"""


@click.command()
@click.option(
    "--explain", "task", flag_value="explain", help="Explain every field of a scenario: values, unit, default, meaning."
)
@click.option("--example", "task", flag_value="example", help="Print a small, commented scenario to start from.")
@click.option(
    "--check",
    "file",
    type=FILE,
    help="Check FILE, and the recordings and documents it names, without simulating it. If its protocol is in a Python "
    "file (file.py:NAME), that file is executed: its code says which parameters are valid.",
)
def scenario(task: str | None, file: Path | None) -> None:
    """Explain scenarios, print an example, or check a file. Give exactly one option."""
    if (task is None) == (file is None):
        raise click.UsageError("give exactly one of --explain, --example and --check FILE")
    if file is not None:
        checked = load(file)
        check_recordings(checked, str(file), file.parent)
        click.echo(f"ok: {file}: {_in_one_line(checked)}")
        if is_file_name(checked.protocol.name):
            click.echo(
                f"protocol.name: {checked.protocol.name.rpartition(':')[0]} was executed for this check", err=True
            )
    elif task == "example":
        click.echo(EXAMPLE, nl=False)
    else:
        click.echo(as_text(explain(Scenario), screen_width()))


def _in_one_line(checked: Scenario) -> str:
    subscribers, publishers = checked.workload.subscribers, checked.workload.publishers
    where = f" in {checked.area}" if checked.area else ""
    return (
        f'"{checked.name}", seed {checked.seed}: {checked.nodes} nodes{where} for {checked.duration:g} s, '
        f"{checked.protocol.name}; groups of subscribers: {len(subscribers)}, of publishers: {len(publishers)}"
    )
