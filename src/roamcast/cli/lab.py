"""`roamcast lab`: runs a scenario on real node processes, alone or together with its simulated twin."""

import asyncio
import contextlib
import importlib.metadata
import json
import platform
import shlex
import signal
import sys
import tomllib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table

from roamcast.analysis.measures.contexts import truth
from roamcast.analysis.summary import summarise
from roamcast.campaign.folder.recorded import RUN_FILE, run_in, tables_in
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import say
from roamcast.cli.run import named_deliveries, progress_bar, show_summary, warnings
from roamcast.cli.run_folder import file_name, new_folder
from roamcast.facts.recorder import Sink
from roamcast.facts.sinks import ParquetSink
from roamcast.sim.core.compilation import compile_if_needed
from roamcast.sim.scenario.overrides import apply, changed
from roamcast.sim.scenario.scenario import Scenario, check, parse, read_text
from roamcast.units import SECOND

T = TypeVar("T")

ABSENT: Final = "–"
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
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.toml")
@click.option("--out", type=LocalPath(), help="Folder for the facts.  [default: out/NAME-lab-SEED]")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of all random numbers.  [default: the scenario's]"
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Override a field of the scenario, as in 'run'. May be repeated.",
)
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
    show_default=True,
    help="With --twin: medium access in the simulator; ideal has no contention, given is the scenario's.",
)
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="With --twin: number of seeds.")
@click.option(
    "--axis",
    metavar="FIELD=V1,V2,…",
    help="With --twin: run both worlds for each of these values of a field.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--quiet", is_flag=True, help="Hide the progress bar.")
def lab(
    scenario: Path,
    out: Path | None,
    force: bool,
    seed: int | None,
    changes: tuple[str, ...],
    in_namespaces: bool,
    twin: bool,
    mac: str,
    runs: int,
    axis: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run a scenario on real node processes, in real time.

    Writes facts and prints a summary as 'roamcast run' does. An emulated ether on loopback delivers datagrams
    according to the scenario's movement, range and loss. Root is needed only for --netns. The exit code is 1 if a
    node died.
    """
    from roamcast.lab import netns
    from roamcast.lab.air import check_possible

    if seed is not None:
        changes += (f"seed={seed}",)
    if runs > 1 and not twin:
        raise click.UsageError("--runs needs --twin; without it, start the lab once per seed")
    if axis is not None and not twin:
        raise click.UsageError("--axis needs --twin; without it, start the lab once per value")
    if in_namespaces and twin:
        raise click.UsageError(
            "--netns excludes --twin: on a bridge every node hears every other, whatever the scenario says"
        )
    text = read_text(scenario)
    checked = changed(text, scenario, changes)
    check_possible(checked, str(scenario))
    if in_namespaces:
        netns.check_possible()
    run_one = _Runner(scenario.parent, in_namespaces, shown=not (quiet or as_json))
    if twin:
        out = out or Path("out") / f"{file_name(checked.name)}-twin"
        _run_twins(scenario, text, changes, out, runs, mac, axis, run_one, as_json)
    else:
        out = out or Path("out") / f"{file_name(checked.name)}-lab-{checked.seed}"
        _run_once(checked, text, changes, out, force, run_one, as_json)
    for problem in run_one.problems:
        click.echo(problem, err=True)
    if run_one.problems:
        sys.exit(1)


class _Runner:
    """Runs scenarios in the lab, and remembers what went wrong."""

    def __init__(self, folder: Path, in_namespaces: bool, shown: bool) -> None:
        self._folder = folder
        self._in_namespaces = in_namespaces
        self._shown = shown
        self.problems: list[str] = []
        self.report: dict[str, Any] = {}

    def __call__(self, scenario: Scenario, sink: Sink) -> list[str]:
        from roamcast.lab.lab import run_lab

        with progress_bar(scenario, self._shown) as bar:

            def watch(what: str, done: float, total: float) -> None:
                if bar is not None and what == "seconds":
                    bar(round(done * SECOND))

            report = _on_a_loop(
                run_lab(scenario, sink, folder=self._folder, in_namespaces=self._in_namespaces, watch=watch)
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


def _run_once(
    checked: Scenario,
    text: str,
    changes: tuple[str, ...],
    out: Path,
    force: bool,
    run_one: _Runner,
    as_json: bool,
) -> None:
    with new_folder(out, force) as folder:
        (folder / "scenario.toml").write_text(text, encoding="utf-8")
        with contextlib.closing(ParquetSink(folder)) as sink:
            run_one(checked, sink)
        recorded = run_in(folder, checked).run
        summary, contexts = summarise(recorded), truth(recorded)
        record = {
            "name": checked.name,
            "seed": checked.seed,
            "protocol": checked.protocol.name,
            "versions": {
                "roamcast": importlib.metadata.version("roamcast"),
                "python": platform.python_version(),
            },
            "lab": run_one.report,
            "warmup_s": checked.warmup,
            "cooldown_s": checked.cooldown,
            "changes": changes,
            "tables": sorted(tables_in(folder)),
            **named_deliveries(recorded, summary),
            "warnings": list(warnings(checked, summary)),
        }
        (folder / RUN_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps({"out": str(out), **record}))
        return
    show_summary(checked, summary, contexts)
    ready, late = run_one.report["setting_up_s"], 1000 * run_one.report["latest_act_s"]
    click.echo(
        f"{checked.nodes} nodes ready after {ready:.1f} s, then ran for {checked.duration:g} s; workload at most "
        f"{late:.0f} ms late; facts in {out}"
    )


# --- Twins ----------------------------------------------------------------------------------------------------------


def _run_twins(
    file: Path,
    text: str,
    changes: tuple[str, ...],
    out: Path,
    runs: int,
    mac: str,
    axis: str | None,
    run_one: _Runner,
    as_json: bool,
) -> None:
    from roamcast.pipeline.twins import run_twins, side_by_side, twins
    from roamcast.report import write_report

    raw = parse(text, str(file))
    for change in changes:
        apply(change, raw)
    check(raw, str(file), file.parent)
    swept = None if axis is None else _axis(axis)
    wanted = twins(raw, str(file), file.parent, runs, ideal=mac == "ideal", axis=swept)
    words = ["roamcast", "lab", str(file), "--twin", "--runs", str(runs), "--mac", mac, "--out", str(out)]
    words += [] if axis is None else ["--axis", axis]
    for change in changes:
        words += ["--set", change]
    compile_if_needed(say)
    failures = run_twins(wanted, out, run_one, shlex.join(words), say)
    run_one.problems = [f"run {failure['run']} failed: {failure['error']}" for failure in failures]
    if len(failures) == len(wanted.plan.distinct):
        return
    found = side_by_side(out)
    report = write_report(out)
    if as_json:
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
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for name in ("measure", "live", "simulated"):
        table.add_column(name, justify="left" if name == "measure" else "right", overflow="fold")
    for name in TWIN_MEASURES:
        cells = [found.get(name, {}).get(variant) for variant in ("live", "simulated")]
        if any(cell is not None and cell["mean"] is not None for cell in cells):
            table.add_row(name, *map(_interval, cells))
    Console(markup=False, highlight=False).print(table)


def _interval(cell: dict[str, Any] | None) -> str:
    """Mean, and half the width of its 95 % interval."""
    if cell is None or cell["mean"] is None:
        return ABSENT
    if cell["low"] is None:
        return f"{cell['mean']:.4g}"
    return f"{cell['mean']:.4g} ± {(cell['high'] - cell['low']) / 2:.2g}"
