"""`roamcast lab`: runs a scenario on real node processes, alone or together with its simulated twin."""

import asyncio
import json
import shlex
import signal
import sys
import tomllib
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from roamcast.cli.progress import progress_bar, say
from roamcast.cli.run_folder import RunOptions, run_into, run_options, versions
from roamcast.cli.screen import plain_console, table
from roamcast.facts.recorder import Sink
from roamcast.report.numbers import plus_minus
from roamcast.sim.core.compilation import compile_if_needed
from roamcast.sim.scenario.overrides import apply
from roamcast.sim.scenario.scenario import Scenario, parse
from roamcast.units import SECOND

T = TypeVar("T")

TWIN_MEASURES: Final[tuple[str, ...]] = (
    "delivery",
    "overhead",
    "overhead_data",
    "delay_mean",
    "delay_p95",
    "hops_mean",
    "duplicates",
    "mdr",
    "control",
    "control_all",
    "link_breaks",
)
"""The measures that the table of both worlds shows if they have a value; the last four only with a tree."""


@click.command()
@run_options("out/NAME-lab-SEED")
@click.option(
    "--netns",
    "in_namespaces",
    is_flag=True,
    help="Put each node into its own network namespace, on one bridge: real broadcasts, but every node hears every "
    "other. Needs root.  [default: nodes hear each other as in the scenario]",
)
@click.option("--twin", is_flag=True, help="Also simulate the scenario, and measure both as one campaign.")
@click.option(
    "--mac",
    type=click.Choice(["ideal", "given"]),
    default="ideal",
    help="With --twin: medium access in the simulator; ideal has no contention, given is the scenario's.",
)
@click.option("--runs", type=click.IntRange(1), default=1, help="With --twin: number of seeds.")
@click.option(
    "--axis", metavar="FIELD=V1,V2,…", help="With --twin: run both worlds for each of these values of a field."
)
def lab(options: RunOptions, in_namespaces: bool, twin: bool, mac: str, runs: int, axis: str | None) -> None:
    """Run a scenario on real node processes, in real time.

    Writes facts and prints a summary as 'roamcast run' does. An emulated ether on loopback delivers datagrams
    according to the scenario's movement, range and loss. Root is needed only for --netns. The exit code is 1 if a
    node died.
    """
    from roamcast.lab import netns
    from roamcast.lab.air import check_possible

    if runs > 1 and not twin:
        raise click.UsageError("--runs needs --twin; without it, start the lab once per seed")
    if axis is not None and not twin:
        raise click.UsageError("--axis needs --twin; without it, start the lab once per value")
    if in_namespaces and twin:
        raise click.UsageError(
            "--netns excludes --twin: on a bridge every node hears every other, whatever the scenario says"
        )
    text, checked = options.read()
    check_possible(checked, str(options.file))
    if in_namespaces:
        netns.check_possible()
    run_one = _Runner(options.file.parent, in_namespaces, options.shows_progress)
    if twin:
        _run_twins(options, text, options.place(checked, "twin"), runs, mac, axis, run_one)
    else:
        _run_once(options, text, checked, run_one)
    for problem in run_one.problems:
        click.echo(problem, err=True)
    if run_one.problems:
        sys.exit(1)


@dataclass
class _Runner:
    """Runs scenarios in the lab, and remembers what went wrong."""

    folder: Path
    in_namespaces: bool
    shown: bool
    problems: list[str] = field(default_factory=list)
    report: dict[str, Any] = field(default_factory=dict)

    def __call__(self, scenario: Scenario, sink: Sink) -> list[str]:
        from roamcast.lab.lab import run_lab

        with progress_bar(scenario, self.shown) as bar:

            def watch(what: str, done: float, total: float) -> None:
                if bar is not None and what == "seconds":
                    bar(round(done * SECOND))

            report = _on_a_loop(
                run_lab(scenario, sink, folder=self.folder, in_namespaces=self.in_namespaces, watch=watch)
            )
        problems = [*report.problems()]
        self.problems += problems
        self.report = {
            "setting_up_s": report.setting_up,
            "latest_act_s": report.latest,
            "missed": report.missed,
            "air": dict(sorted(report.air.items())),
            "problems": problems,
        }
        return problems


def _on_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work`; on SIGINT or SIGTERM, everything that was started is stopped first."""

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _run_once(options: RunOptions, text: str, checked: Scenario, run_one: _Runner) -> None:
    def work(sink: Sink) -> dict[str, Any]:
        run_one(checked, sink)
        return {"versions": versions(), "lab": run_one.report}

    out = options.place(checked, f"lab-{checked.seed}")
    finished = run_into(out, options, text, checked, work)
    if options.as_json:
        click.echo(json.dumps({"out": str(out), **finished.record}))
        return
    finished.show()
    ready, late = run_one.report["setting_up_s"], 1000 * run_one.report["latest_act_s"]
    click.echo(
        f"{checked.nodes} nodes ready after {ready:.1f} s, then ran for {checked.duration:g} s; workload at most "
        f"{late:.0f} ms late; facts in {out}"
    )


# --- Twins ----------------------------------------------------------------------------------------------------------


def _run_twins(
    options: RunOptions, text: str, out: Path, runs: int, mac: str, axis: str | None, run_one: _Runner
) -> None:
    from roamcast.pipeline.twins import run_twins, side_by_side, twins
    from roamcast.report import write_report

    file = options.file
    raw = parse(text, str(file))
    for change in options.changes:
        apply(change, raw)
    swept = None if axis is None else _axis(axis)
    wanted = twins(raw, str(file), file.parent, runs, ideal=mac == "ideal", axis=swept)
    words = ["roamcast", "lab", str(file), "--twin", "--runs", str(runs), "--mac", mac, "--out", str(out)]
    words += [] if axis is None else ["--axis", axis]
    for change in options.changes:
        words += ["--set", change]
    compile_if_needed(say)
    failures = run_twins(wanted, out, run_one, shlex.join(words), say)
    run_one.problems = [f"run {failure['run']} failed: {failure['error']}" for failure in failures]
    if len(failures) == len(wanted.plan.distinct):
        return
    found = side_by_side(out)
    report = write_report(out)
    if options.as_json:
        click.echo(json.dumps({"out": str(out), "measures": found, "report": str(report)}))
        return
    for axes, measured in found.items():
        places = [f"{label} = {value}" for label, value in json.loads(axes).items()]
        _show_twins(measured, ", ".join([wanted.experiment.spec.title, *places]))
    click.echo(f"{len(wanted.live)} live runs and as many simulated in {out}; report: {report}")


def _axis(text: str) -> tuple[str, list[Any]]:
    """A field and its values, each as in TOML."""
    field, equals, values = text.partition("=")
    if not equals:
        raise click.UsageError(f"--axis {text}: expected FIELD=V1,V2,…, such as radio.range=100,200")
    try:
        return field.strip(), list(tomllib.loads(f"values = [{values}]")["values"])
    except tomllib.TOMLDecodeError as problem:
        raise click.UsageError(f"--axis {text}: {values} is not a list of TOML values: {problem}") from None


def _show_twins(found: dict[str, dict[str, dict[str, Any]]], title: str) -> None:
    head = ("measure", "live", "simulated")
    rows = []
    for name in TWIN_MEASURES:
        cells = [found.get(name, {}).get(variant) or {} for variant in head[1:]]
        if any(cell.get("mean") is not None for cell in cells):
            rows.append((name, *(plus_minus(*map(cell.get, ("mean", "low", "high"))) for cell in cells)))
    plain_console().print(table(head, rows, head[1:], title=title))
