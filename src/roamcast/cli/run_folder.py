"""One run of a scenario, simulated or in the lab: the options that both have, and the folder of its facts.

The rule this file owns: a folder is complete or not there. It is written to a temporary folder and renamed when it is
complete. A folder is replaced only with `--force`, and only if it was a run's folder.
"""

import contextlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from roamcast.analysis import context_truth
from roamcast.analysis.measures.contexts import truth, with_contexts
from roamcast.analysis.run import Run
from roamcast.analysis.summary import RunSummary, summarise
from roamcast.campaign.folder.recorded import RUN_FILE, run_in, tables_in
from roamcast.cli.completion import complete_fields
from roamcast.cli.options import FILE, gathered
from roamcast.cli.paths import LocalPath
from roamcast.cli.summary import show_summary, warnings
from roamcast.errors import RoamcastError
from roamcast.facts.recorder import Sink
from roamcast.facts.sinks import ParquetSink
from roamcast.files import new_folder
from roamcast.sim.scenario.overrides import changed
from roamcast.sim.scenario.scenario import Scenario, read_text

F = TypeVar("F", bound=Callable[..., Any])


class RunOptions(NamedTuple):
    """What to run, and where its facts go."""

    file: Path
    out: Path | None
    force: bool
    changes: tuple[str, ...]
    as_json: bool
    quiet: bool

    @property
    def shows_progress(self) -> bool:
        return not (self.quiet or self.as_json)

    def read(self) -> tuple[str, Scenario]:
        """The text of the scenario, and the scenario with its changes."""
        text = read_text(self.file)
        return text, changed(text, self.file, self.changes)

    def place(self, scenario: Scenario, what: str) -> Path:
        """The folder asked for, or the usual one; `what` ends its name."""
        name = re.sub(r"[^\w.-]+", "-", scenario.name).strip("-.") or "run"
        return self.out or Path("out") / f"{name}-{what}"


def _run_options(
    scenario: Path,
    out: Path | None,
    force: bool,
    seed: int | None,
    changes: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> RunOptions:
    return RunOptions(scenario, out, force, changes + (() if seed is None else (f"seed={seed}",)), as_json, quiet)


def run_options(default: str) -> Callable[[F], F]:
    """Adds the options of both verbs that run a scenario; the facts go to `default`."""
    return gathered(
        "options",
        _run_options,
        click.argument("scenario", type=FILE, metavar="SCENARIO.toml"),
        click.option("--out", type=LocalPath(), help=f"Folder for the facts.  [default: {default}]"),
        click.option("--force", is_flag=True, help="Replace the folder of an earlier run."),
        click.option(
            "--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of all random numbers.  [default: the scenario's]"
        ),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="FIELD=VALUE",
            help="Override a field of the scenario, such as radio.range=100 or workload.publishers[0].rate=2. VALUE is "
            "written as in TOML; anything else is text. May be repeated.",
            shell_complete=complete_fields,
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."),
        click.option("--quiet", is_flag=True, help="Hide the progress bar."),
    )


# --- The run --------------------------------------------------------------------------------------------------------


class FinishedRun(NamedTuple):
    """A run whose folder is complete."""

    scenario: Scenario
    summary: RunSummary
    contexts: context_truth.ContextCounts | None
    record: dict[str, Any]
    """The content of `run.json`."""

    def show(self) -> None:
        show_summary(self.scenario, self.summary, self.contexts)


def run_into(
    out: Path, options: RunOptions, text: str, scenario: Scenario, work: Callable[[Sink], dict[str, Any]]
) -> FinishedRun:
    """Makes the folder of a run: `work` writes the facts, and returns what else to record of it."""
    _check_free(out, options.force)
    with new_folder(out) as folder:
        (folder / "scenario.toml").write_text(text, encoding="utf-8")
        with contextlib.closing(ParquetSink(folder)) as sink:
            about = work(sink)
        run = run_in(folder, scenario).run
        summary, contexts = summarise(run), truth(run)
        record = {
            "name": scenario.name,
            "seed": scenario.seed,
            "protocol": scenario.protocol.name,
            **about,
            "warmup_s": scenario.warmup,
            "cooldown_s": scenario.cooldown,
            "changes": options.changes,
            "tables": sorted(tables_in(folder)),
            **_results(run, summary, contexts),
            "warnings": list(warnings(scenario, summary)),
        }
        (folder / RUN_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        _check_free(out, options.force)  # again: another run may have created it meanwhile
    return FinishedRun(scenario, summary, contexts, record)


def versions(*packages: str) -> dict[str, str]:
    """The versions of roamcast, of Python and of other packages."""
    others = {name: importlib.metadata.version(name) for name in packages}
    return {"roamcast": importlib.metadata.version("roamcast"), "python": platform.python_version(), **others}


def _results(run: Run, summary: RunSummary, contexts: context_truth.ContextCounts | None) -> dict[str, Any]:
    """The results of `run.json`, each saying what decides whether a pair counts: filters alone, or contexts too."""
    return {
        "summary": {"by_filters_alone": with_contexts(run), **summary.as_dict()},
        "contexts": None if contexts is None else {"delivery": contexts.delivery, **contexts._asdict()},
    }


def _check_free(place: Path, force: bool) -> None:
    if place.exists() and not place.is_dir():
        raise RoamcastError(f"{place}: is a file, not a folder")
    if not place.is_dir() or not any(place.iterdir()):
        return
    if not (place / RUN_FILE).is_file():
        raise RoamcastError(
            f"{place}: is not empty and is not the folder of a run ({RUN_FILE} is missing); choose another with --out"
        )
    if not force:
        raise RoamcastError(f"{place}: holds an earlier run; replace it with --force, or choose another with --out")
