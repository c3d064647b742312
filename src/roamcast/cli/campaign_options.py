"""What the verbs that run campaigns share: their options, and what they print before, during and after a campaign."""

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from roamcast.analysis import compilation
from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.measures.measure import counts_to_the_end
from roamcast.campaign.account import Account
from roamcast.campaign.decide.until import Stopping
from roamcast.campaign.define import limits
from roamcast.campaign.define.experiment import Spec, wanted_measures
from roamcast.campaign.define.identity import completed
from roamcast.campaign.define.limits import RunLimits
from roamcast.campaign.define.plan import Experiment, Plan
from roamcast.campaign.folder.survey import Survey, look
from roamcast.campaign.folder.values import with_measures
from roamcast.cli.options import CONF, MASTER, SparkOptions, gathered, make_spark_options
from roamcast.cli.paths import LocalPath
from roamcast.cli.progress import duration, say, shown
from roamcast.cli.screen import plain_console, screen_width, table
from roamcast.config.explain import as_text, explain
from roamcast.config.toml_file import bare, toml_file, toml_value
from roamcast.report.numbers import ABSENT
from roamcast.sim.core.compilation import compile_if_needed
from roamcast.sim.scenario.ending import warning_before
from roamcast.sim.scenario.scenario import Scenario
from roamcast.sim.scenario.unheard import unheard

START_SPARK: Final = 6.0
MEASURE: Final = 10.0
MEASURE_RUN: Final = 0.1
"""Seconds to start Spark, to measure a campaign of any size, and (of CPU) to measure a run."""


class CampaignOptions(NamedTuple):
    """The options of every verb that runs campaigns."""

    out: Path | None
    seeds: int | None
    spark: SparkOptions
    retry_failed: bool
    limits: RunLimits
    account: Account

    def command(self, words: Sequence[str], out: Path, program: Sequence[str] = ("roamcast",)) -> str:
        """The command that starts or continues the campaign."""
        line = [*program, *words, "--out", str(out)]
        settings = (("--conf", f"{key}={value}") for key, value in self.spark.conf.items())
        for option, value in (("--seeds", self.seeds), ("--master", self.spark.given), *settings):
            line += [option, str(value)] if value is not None else []
        return shlex.join(line)

    def run(
        self, experiments: Sequence[Experiment], planned: Plan, out: Path, command: str, goal: Stopping | None = None
    ) -> list[dict[str, Any]]:
        """Simulates and measures, with progress on the screen; returns the rows of the runs that failed."""
        from roamcast.pipeline.run import run_campaign  # Spark takes a second to import, and --help should not

        check_named_measures(experiments)
        console, master, found = plain_console(stderr=True), self.spark.master, look(planned, out)
        at_most = "at most " if goal is not None else ""
        console.print(_announced(planned, found, self.retry_failed, at_most), soft_wrap=True)
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
                    conf=self.spark.conf,
                    retry_failed=self.retry_failed,
                    command=command,
                    on_progress=report,
                    limits=self.limits,
                    goal=goal,
                    account=self.account,
                )
        except KeyboardInterrupt:
            click.echo(f"finished runs are kept; continue with: {command}", err=True)
            raise

    def tell_account(self) -> None:
        """Says what the time went into; nothing if there was nothing to do."""
        spent = ", ".join(f"{name} {duration(took)}" for name, took in self.account.seconds.items())
        if spent:
            click.echo(f"time: {spent}", err=True)


def _campaign_options(
    out: Path | None,
    seeds: int | None,
    master: str | None,
    settings: tuple[str, ...],
    retry_failed: bool,
    run_time: str,
    run_memory: str | None,
) -> CampaignOptions:
    most = RunLimits(limits.seconds(run_time), None if run_memory is None else limits.size(run_memory))
    return CampaignOptions(out, seeds, make_spark_options(master, settings), retry_failed, most, Account())


campaign_options = gathered(
    "options",
    _campaign_options,
    click.option("--out", type=LocalPath(), help="Folder for the results.  [default: out/NAME]"),
    click.option(
        "--seeds", type=click.IntRange(1), help="Number of seeds per point.  [default: as in the experiment files]"
    ),
    MASTER,
    CONF,
    click.option("--retry-failed", is_flag=True, help="Run failed runs again.  [default: leave them as they are]"),
    click.option(
        "--run-time",
        default="6h",
        show_default=True,
        metavar="TIME",
        help="Longest time that a run may take, such as 15min; a longer one counts as failed.",
    ),
    click.option(
        "--run-memory",
        metavar="SIZE",
        help="Most memory that a run may take, such as 4GB; one that takes more counts as failed.  [default: any]",
    ),
)
"""Adds the options of every verb that runs a campaign; the verb gets them as one argument, `options`."""


def check_named_measures(experiments: Sequence[Experiment], goal: Stopping | None = None) -> None:
    """Refuses measures that do not exist, also in the user's own files, and a goal for one that is not measured."""
    named = with_measures(experiments)
    if goal is not None:
        variants = dict.fromkeys(variant.name for one in experiments for variant in one.variants)
        goal.check(wanted_measures(named) or list(CATALOGUE), list(variants))


def _announced(planned: Plan, survey: Survey, retry_failed: bool, at_most: str) -> str:
    settled = len(survey.ok) + (0 if retry_failed else len(survey.failed))
    todo = len(planned.distinct) - settled
    notes = [f"{at_most}{todo} of {len(planned.distinct)} runs to do"]
    if survey.failed:
        notes.append(f"{len(survey.failed)} failed before, {'tried again' if retry_failed else 'left as they are'}")
    return "; ".join([*notes, *(f"added: {addition}" for addition in survey.added)])


def print_plan(planned: Plan, out: Path, as_json: bool) -> None:
    """The runs, and a rough estimate of their time on an otherwise idle machine."""
    survey = look(planned, out)
    forecast = survey.forecast(planned)
    todo = [run for run in planned.distinct if run.run not in survey.ok and run.run not in survey.failed]
    cores = os.cpu_count() or 1
    cpu = sum(map(forecast.of, todo))
    spark = START_SPARK + MEASURE + MEASURE_RUN * len(planned.distinct) / cores if todo else 0.0
    total = spark + cpu / cores
    if as_json:
        rows = [{name: row[name] for name in row if name != "scenario"} for row in planned.rows]
        known = {"to_do": len(todo), "cpu_s": cpu, "total_s": total, "warnings": concerns(planned)}
        click.echo(json.dumps({"out": str(out), "runs": rows, **known}))
        return
    by_run = {run.run: run for run in planned.distinct}
    lines = []
    for (experiment, variant, axes), rows in by_point(planned):
        seeds = ", ".join(str(row["seed"]) for row in rows)
        lines.append((experiment, variant, point(axes), seeds, f"{forecast.of(by_run[rows[0]['run']]):.2g}"))
    head = ("experiment", "variant", "point", "seeds", "CPU s per run")
    plain_console().print(table(head, lines, head[-1:]))
    click.echo(f"{len(planned.rows)} runs planned, {len(planned.distinct)} of them distinct, {len(todo)} to do")
    if todo:
        click.echo(
            f"about {duration(total)} on the {cores} cores here: {duration(cpu / cores)} of simulation "
            f"({duration(cpu)} of CPU), {duration(spark)} for Spark to start and measure"
        )
    else:
        click.echo("nothing to simulate")
    for text in concerns(planned):
        click.echo(f"warning: {text}")


def concerns(planned: Plan) -> list[str]:
    """What is known to mislead before anything is run: a sentence for each experiment and variant."""
    found: dict[tuple[str, str], str] = {}
    asked = {one.name: one.measures for one in planned.experiments}
    for (experiment, variant, _), rows in by_point(planned):
        scenario = msgspec.json.decode(rows[0]["scenario"], type=Scenario)
        for text in unheard(scenario):
            found.setdefault((experiment, text), f"{experiment}: {text}")
        late = warning_before(scenario) if counts_to_the_end(asked[experiment]) else None
        if late:
            found.setdefault((experiment, variant), f"{experiment}, {variant}: {late}")
    return list(found.values())


def by_point(planned: Plan) -> Iterator[tuple[tuple[str, str, str], list[dict[str, Any]]]]:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in planned.rows:
        groups.setdefault((row["experiment"], row["variant"], row["axes"]), []).append(row)
    yield from groups.items()


def point(axes: str) -> str:
    return ", ".join(f"{label} {value}" for label, value in json.loads(axes).items()) or ABSENT


def explain_experiments(experiments: Sequence[Experiment]) -> None:
    if not experiments:
        click.echo(as_text(explain(Spec), screen_width()))
        click.echo("\nEvery field of a scenario: roamcast scenario --explain")
    for one in experiments:
        first, *others = one.variants
        place = one.points(first)[0]
        click.echo(f"# {one.name}: {first.name} at {point(json.dumps(place))}, with all defaults.")
        click.echo(f"# File names are relative to {one.folder.resolve()}; elsewhere these differ:")
        for axis in one.spec.axes:
            values = ", ".join(toml_value(axis.put_as(value)) for value in axis.values)
            click.echo(f"#   {axis.name}: {' and '.join(axis.targets)} = {values}")
        for variant in others:
            settings = ", ".join(f"{name} = {toml_value(value)}" for name, value in variant.set.items())
            click.echo(f"#   variant {variant.name}: {settings}")
        scenario = completed(one.at(first, place), one.folder)
        click.echo(f"\n{toml_file(bare(msgspec.to_builtins(scenario)))}")


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
