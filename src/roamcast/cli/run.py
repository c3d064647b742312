"""`roamcast run`: simulates a scenario; writes its facts and prints its summary."""

import contextlib
import importlib.metadata
import json
import platform
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from roamcast.analysis import context_truth
from roamcast.analysis.measures.contexts import truth, with_contexts
from roamcast.analysis.run import Run
from roamcast.analysis.summary import Summary, summarise
from roamcast.campaign.folder.recorded import RUN_FILE, run_in, tables_in
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import say
from roamcast.cli.run_folder import file_name, new_folder
from roamcast.facts.sinks import ParquetSink
from roamcast.sim import run as simulation
from roamcast.sim.core import reference
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.raised import ProtocolRaised
from roamcast.sim.scenario import ending
from roamcast.sim.scenario.overrides import changed
from roamcast.sim.scenario.scenario import Scenario, read_text
from roamcast.sim.world import Progress as Report
from roamcast.units import SECOND

ABSENT: Final = "–"


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.toml")
@click.option("--out", type=LocalPath(), help="Folder for the facts.  [default: out/NAME-SEED]")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of all random numbers.  [default: the scenario's]"
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Override a field of the scenario, such as radio.range=100 or workload.publishers[0].rate=2. VALUE is written "
    "as in TOML; anything else is text. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--quiet", is_flag=True, help="Hide the progress bar.")
@click.option(
    "--reference", "in_python", is_flag=True, help="Use the simulator core in plain Python instead of the compiled one."
)
@click.option(
    "--replay",
    "with_replay",
    is_flag=True,
    help="Record frames and decisions too, and write replay.html, a page that plays the run.",
)
@click.option("--traceback", "with_traceback", is_flag=True, help="If the protocol raises, print the full traceback.")
def run(
    scenario: Path,
    out: Path | None,
    force: bool,
    seed: int | None,
    changes: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    with_replay: bool,
    in_python: bool,
    with_traceback: bool,
) -> None:
    """Simulate a scenario, and print a summary.

    Its facts are written as Parquet. The folder also gets scenario.toml, a copy of the file, and run.json with
    summary, overrides, versions and times.
    """
    if seed is not None:
        changes += (f"seed={seed}",)
    if with_replay:
        changes += tuple(f"record.{what}=true" for what in ("frames", "movement", "decisions"))
    text = read_text(scenario)
    checked = changed(text, scenario, changes)
    out = out or Path("out") / f"{file_name(checked.name)}-{checked.seed}"
    if not in_python:
        load_kernel(say)
    with new_folder(out, force) as folder, progress_bar(checked, shown=not (quiet or as_json)) as report:
        (folder / "scenario.toml").write_text(text, encoding="utf-8")
        with contextlib.closing(ParquetSink(folder)) as sink:
            core = reference.Core if in_python else None
            with _tracebacks(with_traceback):
                cost = simulation.run(checked, sink, folder=scenario.parent, make_core=core, progress=report)
        recorded = run_in(folder, checked).run
        summary, contexts = summarise(recorded), truth(recorded)
        record = {
            **_record(checked, cost, in_python),
            "changes": changes,
            "tables": sorted(tables_in(folder)),
            **named_deliveries(recorded, summary),
            "warnings": list(warnings(checked, summary)),
        }
        (folder / RUN_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    page = _write_replay(out) if with_replay else None
    if as_json:
        click.echo(json.dumps({"out": str(out), **({"replay": str(page)} if page else {}), **record}))
    else:
        show_summary(checked, summary, contexts)
        click.echo(f"{cost.simulated:g} s simulated in {cost.cpu:.2f} s of CPU; facts in {out}")
        if page is not None:
            click.echo(f"replay: {page}")


@contextlib.contextmanager
def _tracebacks(shown: bool) -> Iterator[None]:
    try:
        yield
    except ProtocolRaised as problem:
        if shown:
            traceback.print_exception(problem.__cause__)
            raise
        raise ProtocolRaised(f"{problem}; --traceback prints the calls that led there") from problem


def _write_replay(out: Path) -> Path:
    from roamcast.campaign.folder.recorded import open_run
    from roamcast.report.replay import write_replay

    return write_replay(open_run(out))


def named_deliveries(run: Run, summary: Summary) -> dict[str, Any]:
    """The results of `run.json`, each saying what decides whether a pair counts: filters alone, or contexts too."""
    contexts = truth(run)
    return {
        "summary": {"by_filters_alone": with_contexts(run), **summary.as_dict()},
        "contexts": None if contexts is None else {"delivery": contexts.delivery, **contexts._asdict()},
    }


def _record(checked: Scenario, cost: simulation.RunReport, in_python: bool) -> dict[str, Any]:
    """The content of `run.json`."""
    return {
        "name": checked.name,
        "seed": checked.seed,
        "protocol": checked.protocol.name,
        "core": "reference" if in_python else "compiled",
        "versions": {
            "roamcast": importlib.metadata.version("roamcast"),
            "python": platform.python_version(),
            "numba": importlib.metadata.version("numba"),
        },
        "cpu_s": cost.cpu,
        "simulated_s": cost.simulated,
        "warmup_s": checked.warmup,
        "cooldown_s": checked.cooldown,
    }


# --- Output ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def progress_bar(checked: Scenario, shown: bool) -> Iterator[Report | None]:
    """A bar in simulated time on stderr, if that is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:g} s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(checked.name, total=checked.duration)
        yield lambda now: bar.update(task, completed=now / SECOND)


def show_summary(checked: Scenario, summary: Summary, contexts: context_truth.Outcome | None = None) -> None:
    console = Console(markup=False, highlight=False)
    title = f"{checked.name}: {checked.protocol.name}, seed {checked.seed}, after {checked.warmup:g} s of warm-up"
    title += f", with {checked.cooldown:g} s of cooldown" * (checked.cooldown > 0)
    console.print(title, soft_wrap=True)
    measures = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in (*_contextual(contexts), *_measures(summary)):
        measures.add_row(name, value)
    console.print(measures)
    kinds = Table("sent", box=box.SIMPLE_HEAD)
    for column in ("packets", "bits", "airtime", "packets per pair"):
        kinds.add_column(column, justify="right")
    for kind in summary.sent:
        per_pair = kind.packets / summary.pairs_delivered if summary.pairs_delivered else None
        kinds.add_row(kind.kind, str(kind.packets), str(kind.bits), _time(kind.airtime), _number(per_pair))
    console.print(kinds)
    for text in warnings(checked, summary):
        console.print(f"warning: {text}", soft_wrap=True)


def warnings(checked: Scenario, summary: Summary) -> Iterator[str]:
    """What to know before believing the numbers."""
    if text := ending.warning(checked, summary.delay_p95):
        yield text


def _contextual(contexts: context_truth.Outcome | None) -> Iterator[tuple[str, str]]:
    """The lines for runs with contexts; the lines below them are by filters alone."""
    if contexts is None:
        return
    yield (
        "delivery with contexts",
        f"{_percent(contexts.delivery)}, {contexts.delivered} of {contexts.ideal} ideal pairs",
    )
    yield "delivered beyond the ideal", str(contexts.beyond)
    yield "by filters alone:", ""


def _measures(summary: Summary) -> Iterator[tuple[str, str]]:
    carriers = ", ".join(kind.kind for kind in summary.sent if kind.carrier) or ABSENT
    percentiles = (summary.delay_p50, summary.delay_p95, summary.delay_p99)
    yield "delivery", _percent(summary.delivery)
    yield "events published", f"{summary.events}, wanted by anyone: {summary.events_wanted}"
    yield "pairs (event, subscription) expected", str(summary.pairs_expected)
    yield "pairs delivered", str(summary.pairs_delivered)
    yield "packets per delivered pair", _number(summary.packets_per_pair)
    yield f"  only {carriers}", _number(summary.carrier_packets_per_pair)
    yield "bits per delivered pair", _number(summary.bits_per_pair)
    yield f"  only {carriers}", _number(summary.carrier_bits_per_pair)
    yield "delay, mean", _time(summary.delay_mean)
    yield "delay, 50 / 95 / 99 %", " / ".join(map(_time, percentiles))
    yield "hops, mean", _number(summary.hops_mean)
    yield "delivered again", str(summary.deliveries_repeated)
    yield "delivered unexpectedly", str(summary.deliveries_unexpected)
    yield "frames received", str(summary.receptions)
    yield "frames lost", _listed(summary.losses)
    yield "noted in the whole run", _listed(summary.notes)
    yield "airtime over time", _percent(summary.airtime_share)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or ABSENT


def _percent(share: float | None) -> str:
    return ABSENT if share is None else f"{100 * share:.2f} %"


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ABSENT
    return f"{seconds:.3f} s" if seconds >= 1 else f"{1000 * seconds:.3f} ms"
