"""What the verbs that run campaigns share: their options, and what they print before, during and after a campaign."""

import functools
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from roamcast.analysis import compilation
from roamcast.analysis.measures.measure import counts_to_the_end
from roamcast.campaign.decide.until import Stopping
from roamcast.campaign.define import limits
from roamcast.campaign.define.experiment import Spec, wanted_measures
from roamcast.campaign.define.identity import completed
from roamcast.campaign.define.limits import Limits
from roamcast.campaign.define.plan import CampaignError, Experiment, Plan
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import duration, say, shown
from roamcast.cli.screen import screen_width
from roamcast.config.explain import as_text, explain
from roamcast.sim.core.compilation import compile_if_needed
from roamcast.sim.scenario.ending import warning_before
from roamcast.sim.scenario.scenario import Scenario

if TYPE_CHECKING:  # imports Spark
    from roamcast.campaign.folder.survey import Survey

ABSENT: Final = "–"
LOCAL: Final = "local[*,4]"
"""All cores of this machine, and four attempts for a task whose process dies."""

START_SPARK: Final = 6.0
MEASURE: Final = 10.0
MEASURE_RUN: Final = 0.1
"""Seconds to start Spark, to measure a campaign of any size, and (of CPU) to measure a run."""

F = TypeVar("F", bound=Callable[..., Any])

_MASTER: Final = re.compile(r"local(\[.*\])?|spark://.+|k8s://.+|yarn")


def _checked_master(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    """Refuses what Spark would answer with a stack trace of Java."""
    if url is not None and not _MASTER.fullmatch(url):
        raise CampaignError(f"--master {url}: expected spark://HOST:PORT, k8s://URL, yarn, or local[CORES]")
    return url


master_option = click.option(
    "--master",
    metavar="URL",
    callback=_checked_master,
    help=f"URL of the Spark master.  [default: {LOCAL}, this machine]",
)

_OPTIONS: Final = (
    click.option("--out", type=LocalPath(), help="Folder for the results.  [default: out/NAME]"),
    click.option(
        "--seeds", type=click.IntRange(1), help="Number of seeds per point.  [default: as in the experiment files]"
    ),
    master_option,
    click.option("--conf", "settings", multiple=True, metavar="K=V", help="A Spark setting. May be repeated."),
    click.option("--retry-failed", is_flag=True, help="Run failed runs again.  [default: leave them as they are]"),
    click.option(
        "--run-time",
        metavar="TIME",
        help="Longest time that a run may take, such as 15min; a longer one counts as failed.  [default: 6h]",
    ),
    click.option(
        "--run-memory",
        metavar="SIZE",
        help="Most memory that a run may take, such as 4GB; one that takes more counts as failed.  [default: any]",
    ),
)


class CampaignOptions(NamedTuple):
    """The options of every verb that runs campaigns."""

    out: Path | None
    seeds: int | None
    master: str | None
    conf: Mapping[str, str]
    retry_failed: bool
    limits: Limits

    def command(self, words: Sequence[str], out: Path, program: Sequence[str] = ("roamcast",)) -> str:
        """The command that starts or continues the campaign."""
        line = [*program, *words, "--out", str(out)]
        settings = (("--conf", f"{key}={value}") for key, value in self.conf.items())
        for option, value in (("--seeds", self.seeds), ("--master", self.master), *settings):
            line += [option, str(value)] if value is not None else []
        return shlex.join(line)

    def run(
        self, experiments: Sequence[Experiment], planned: Plan, out: Path, command: str, goal: Stopping | None = None
    ) -> list[dict[str, Any]]:
        """Simulates and measures, with progress on the screen; returns the rows of the runs that failed."""
        # Imported here: Spark takes a second to import, and --help should not.
        from roamcast.campaign.folder.survey import look
        from roamcast.pipeline.run import run_campaign

        check_named_measures(experiments)
        console, master = Console(stderr=True), self.master or LOCAL
        found = look(planned, out)
        announce(planned, found, console, self.retry_failed, "at most " if goal is not None else "")
        if len(found.ok) < len(planned.distinct) and master.startswith("local"):
            compile_if_needed(say)  # before the clock starts: compiling says nothing about how long runs take
            compilation.compile_if_needed(say)
        try:
            with shown(console) as report:
                return run_campaign(
                    experiments,
                    out,
                    planned=planned,
                    master=master,
                    conf=self.conf,
                    retry_failed=self.retry_failed,
                    command=command,
                    on_progress=report,
                    limits=self.limits,
                    goal=goal,
                )
        except KeyboardInterrupt:
            click.echo(f"finished runs are kept; continue with: {command}", err=True)
            raise


def campaign_options(verb: F) -> F:
    """Adds the options of every verb that runs a campaign; the verb gets them as one argument, `options`."""

    @functools.wraps(verb)
    def with_options(
        *arguments: Any,  # noqa: ANN401  # of the verb
        out: Path | None,
        seeds: int | None,
        master: str | None,
        settings: Sequence[str],
        retry_failed: bool,
        run_time: str | None,
        run_memory: str | None,
        **others: Any,  # noqa: ANN401  # of the verb
    ) -> Any:  # noqa: ANN401  # of the verb
        limits = limits_from(run_time, run_memory)
        options = CampaignOptions(out, seeds, master, dict(map(setting, settings)), retry_failed, limits)
        return verb(*arguments, options=options, **others)

    decorated: Any = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result


def limits_from(run_time: str | None, run_memory: str | None) -> Limits:
    usual = Limits()
    return Limits(
        usual.seconds if run_time is None else limits.seconds(run_time),
        usual.memory if run_memory is None else limits.size(run_memory),
    )


def check_named_measures(experiments: Sequence[Experiment], goal: Stopping | None = None) -> None:
    """Refuses measures that do not exist, also in the user's own files, and a goal for one that is not measured."""
    from roamcast.analysis.measures.catalogue import CATALOGUE
    from roamcast.campaign.folder.values import with_measures

    named = with_measures(experiments)
    if goal is not None:
        goal.check(wanted_measures(named) or list(CATALOGUE))


def setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise CampaignError(f"--conf {text}: expected K=V, such as spark.executor.memory=2g")
    return key, value


def announce(planned: Plan, survey: "Survey", console: Console, retry_failed: bool, at_most: str = "") -> None:
    settled = len(survey.ok) + (0 if retry_failed else len(survey.failed))
    todo = len(planned.distinct) - settled
    notes = [f"{at_most}{todo} of {len(planned.distinct)} runs to do"]
    if survey.failed:
        notes.append(f"{len(survey.failed)} failed before, {'tried again' if retry_failed else 'left as they are'}")
    notes += [f"added: {addition}" for addition in survey.added]
    console.print("; ".join(notes), markup=False, highlight=False, soft_wrap=True)


def print_plan(planned: Plan, out: Path, as_json: bool) -> None:
    from roamcast.campaign.folder.survey import look

    survey = look(planned, out)
    forecast = survey.forecast(planned)
    todo = [run for run in planned.distinct if run.run not in survey.ok and run.run not in survey.failed]
    cores = os.cpu_count() or 1
    times = Times(sum(map(forecast.of, todo)), len(todo), len(planned.distinct), cores)
    if as_json:
        rows = [{name: row[name] for name in row if name != "scenario"} for row in planned.rows]
        known = {"to_do": len(todo), "cpu_s": times.cpu, "total_s": times.total, "warnings": concerns(planned)}
        click.echo(json.dumps({"out": str(out), "runs": rows, **known}))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("experiment", "variant", "point", "seeds", "CPU s per run"):
        table.add_column(column, justify="right" if column.startswith("CPU") else "left")
    by_run = {run.run: run for run in planned.distinct}
    for (experiment, variant, axes), rows in by_point(planned.rows):
        seeds = ", ".join(str(row["seed"]) for row in rows)
        table.add_row(experiment, variant, point(axes), seeds, f"{forecast.of(by_run[rows[0]['run']]):.2g}")
    console = Console(markup=False, highlight=False)
    console.print(table)
    click.echo(f"{len(planned.rows)} runs planned, {len(planned.distinct)} of them distinct, {len(todo)} to do")
    click.echo(times.in_words())
    for text in concerns(planned):
        click.echo(f"warning: {text}")


def concerns(planned: Plan) -> list[str]:
    """What is known to mislead before anything is run: a sentence for each experiment and variant."""
    found: dict[tuple[str, str], str] = {}
    asked = {one.name: one.measures for one in planned.experiments}
    for (experiment, variant, _), rows in by_point(planned.rows):
        if not counts_to_the_end(asked[experiment]):
            continue
        text = warning_before(msgspec.json.decode(rows[0]["scenario"], type=Scenario))
        if text:
            found.setdefault((experiment, variant), f"{experiment}, {variant}: {text}")
    return list(found.values())


class Times(NamedTuple):
    """A rough estimate of a campaign's time."""

    cpu: float
    """Seconds of CPU for all runs to do."""
    todo: int
    planned: int
    cores: int

    @property
    def total(self) -> float:
        """Seconds from start to end, on an otherwise idle machine."""
        return self.spark + self.cpu / self.cores

    @property
    def spark(self) -> float:
        """Seconds for starting Spark and measuring; 0 if there is nothing to do."""
        return START_SPARK + MEASURE + MEASURE_RUN * self.planned / self.cores if self.todo else 0.0

    def in_words(self) -> str:
        if not self.todo:
            return "nothing to simulate"
        return (
            f"about {duration(self.total)} on the {self.cores} cores here: {duration(self.cpu / self.cores)} of "
            f"simulation ({duration(self.cpu)} of CPU), {duration(self.spark)} for Spark to start and measure"
        )


def by_point(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[tuple[str, str, str], list[dict[str, Any]]]]:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["experiment"], row["variant"], row["axes"]), []).append(row)
    yield from groups.items()


def point(axes: str) -> str:
    return ", ".join(f"{label} {value}" for label, value in json.loads(axes).items()) or ABSENT


def explain_experiments(experiments: Sequence[Experiment]) -> None:
    if not experiments:
        click.echo(as_text(explain(Spec), screen_width()))
        click.echo("\nEvery field of a scenario: roamcast scenario --explain")
    for one in experiments:
        for variant in one.variants:
            first = one.points(variant)[0]
            click.echo(f"{one.name}, {variant.name}, {point(json.dumps(first))}")
            scenario = completed(one.at(variant, first), one.folder)
            for name, value in _flat(msgspec.to_builtins(scenario)):
                click.echo(f"    {name} = {json.dumps(value, ensure_ascii=False)}")


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # any value of JSON
    """The fields of a scenario with their full names."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        for number, part in enumerate(value):
            yield from _flat(part, f"{name}[{number}]")
    else:
        yield name, value


def tell_failures(planned: Plan, failures: Sequence[dict[str, Any]], command: str) -> None:
    if not failures:
        return
    wanted = {row["run"]: row for row in planned.rows}
    click.echo(f"{len(failures)} runs failed:", err=True)
    for failure in failures:
        row = wanted[failure["run"]]
        where = f"{row['experiment']}, {row['variant']}, {point(row['axes'])}, seed {row['seed']}"
        click.echo(f"  {failure['run']} ({where}): {failure['error']}", err=True)
    click.echo(f"run them again with: {command} --retry-failed", err=True)
