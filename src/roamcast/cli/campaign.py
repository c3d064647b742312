"""`roamcast campaign`: experiments to facts, measures and a report, on Spark."""

import json
import sys
from collections import Counter
from pathlib import Path

import click
import pyarrow.parquet as pq

from roamcast.campaign.decide.until import Stopping, parse_goal
from roamcast.campaign.define.plan import Plan, load_experiment, plan
from roamcast.campaign.folder.layout import MANIFEST_FILE, RUNS_FILE, SUMMARY_FILE
from roamcast.cli.campaign_options import (
    CampaignOptions,
    campaign_options,
    check_named_measures,
    explain_experiments,
    print_plan,
    tell_failures,
)
from roamcast.cli.completion import complete_fields
from roamcast.cli.screen import example, screen_width
from roamcast.cli.screen_table import answer_lines, show_measures, show_winners
from roamcast.report import answers_of, write_report
from roamcast.report.source import read_report_data


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="EXPERIMENT.toml...")
@campaign_options
@click.option(
    "--until",
    metavar="GOAL",
    help="Add seeds only where needed, until a measure is known well enough ('delivery within 0.02', 'delivery within "
    "5%') or two variants can be told apart ('hint differs from gossip in delivery'); --seeds is then the most.  "
    "[default: the same seeds everywhere]",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Override a field of the scenario, such as radio.range=100, for all variants and points. May be repeated.",
    shell_complete=complete_fields,
)
@click.option("--plan", "task", flag_value="plan", help="List the runs and estimate their time, without running them.")
@click.option(
    "--explain",
    "task",
    flag_value="explain",
    help="Explain every field of an experiment; with a file, print its complete scenario, which roamcast run takes.",
)
@click.option("--example", "task", flag_value="example", help="Print a small, commented experiment to start from.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def campaign(
    files: tuple[Path, ...],
    options: CampaignOptions,
    until: str | None,
    changes: tuple[str, ...],
    task: str | None,
    as_json: bool,
) -> None:
    """Run experiments, measure them, and write a report.

    An experiment sweeps a scenario over axes, variants and seeds. The results are printed as a table too. Run the
    same command again to continue an interrupted campaign. The exit code is 1 if a run failed.
    """
    if task == "example":
        click.echo(example("experiment"), nl=False)
        return
    experiments = [load_experiment(file).changed(changes) for file in files]
    if task == "explain":
        explain_experiments(experiments)
        return
    if not files:
        raise click.UsageError("give at least one experiment file, or --example or --explain")
    goal = parse_goal(until) if until else None
    planned = plan(experiments, options.seeds)
    out = options.out or Path("out") / "+".join(one.name for one in experiments)
    if task == "plan":
        check_named_measures(experiments, goal)
        print_plan(planned, out, as_json)
        return
    settings = [word for change in changes for word in ("--set", change)]
    words = ["campaign", *map(str, files), *settings, *(["--until", until] if until else [])]
    command = options.command(words, out)
    failures = options.run(experiments, planned, out, command, goal)
    results = read_report_data(out) if len(failures) < len(planned.distinct) else None
    with options.account.stage("report"):
        report = write_report(out, results=results) if results else None
    options.tell_account()  # before the answer, which comes last
    found = answers_of(results) if results else []
    if as_json:
        summary = pq.read_table(out / SUMMARY_FILE).to_pylist() if results else []
        told = {"out": str(out), "runs": len(planned.distinct), "failed": failures, "summary": summary}
        written = [one._asdict() for one in found]
        click.echo(json.dumps({**told, "answers": written, "report": str(report) if report else None}))
    else:
        if results and report:
            show_measures(results, report)
            show_winners(results)
        done = pq.read_metadata(out / MANIFEST_FILE).num_rows
        click.echo(f"{done - len(failures)} runs in {out}" + _saved(out, planned, goal))
        if results:
            click.echo(f"report: {report}\n")
            click.echo("\n".join(answer_lines(found, screen_width())))
    tell_failures(planned, failures, command)
    if failures:
        sys.exit(1)


def _saved(out: Path, planned: Plan, goal: Stopping | None) -> str:
    """How many seeds it took to reach the goal, compared with the same seeds everywhere."""
    if goal is None:
        return ""
    rows = pq.read_table(out / RUNS_FILE, columns=["experiment", "variant", "axes"]).to_pylist()
    counts = Counter((row["experiment"], row["variant"], row["axes"]) for row in rows).values()
    return f": {min(counts)} to {max(counts)} seeds per point; all {len(planned.distinct)} runs were not needed" * (
        len(rows) < len(planned.rows)
    )
