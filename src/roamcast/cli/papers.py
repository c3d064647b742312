"""`roamcast papers`: reproduces the papers' evaluations, and judges their claims."""

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pyarrow.parquet as pq
from msgspec import to_builtins
from msgspec.structs import replace

from roamcast import papers as data
from roamcast.analysis.measures.measure import read_about
from roamcast.campaign.account import Account
from roamcast.campaign.define.plan import Experiment, plan
from roamcast.campaign.folder.layout import MANIFEST_FILE
from roamcast.campaign.folder.results import read_values
from roamcast.cli.campaign_options import (
    CampaignOptions,
    campaign_options,
    explain_experiments,
    print_plan,
    tell_failures,
)
from roamcast.cli.readings import explore_papers
from roamcast.errors import RoamcastError
from roamcast.papers.claims import Claim, load_claims
from roamcast.papers.judge import judge
from roamcast.papers.until import Decided
from roamcast.papers.verdict import Verdict, write_claims
from roamcast.report import write_report
from roamcast.report.ledger import VERDICTS

WIDTH: Final = 100
"""Width of the output, in characters."""
PREVIEW: Final = "A preview with shorter runs, fewer points and fewer seeds: its verdicts do not count."


@click.command()
@click.argument("names", nargs=-1, metavar="[PAPER]...")
@click.option(
    "--quick",
    is_flag=True,
    help=f"A preview in minutes: every second point, {data.QUICK_SEEDS} seeds, {data.QUICK_MEASURED:g} s measured.",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Add seeds only for claims that are not decided yet; --seeds is then the most.  [default: all seeds]",
)
@click.option(
    "--readings",
    is_flag=True,
    help="Find the one reading of the paper under which most of its main points come out, and judge it on fresh seeds.",
)
@campaign_options
@click.option("--plan", "task", flag_value="plan", help="List the runs and estimate their time, without running them.")
@click.option("--explain", "task", flag_value="explain", help="Print the complete scenarios of the experiments.")
@click.option("--list", "task", flag_value="list", help="List the papers, their experiments and their claims.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the verdicts, the plan or the list as JSON.  [default: text]"
)
def papers(
    names: tuple[str, ...],
    quick: bool,
    until_decided: bool,
    readings: bool,
    options: CampaignOptions,
    task: str | None,
    as_json: bool,
) -> None:
    """Reproduce papers' experiments, and judge their claims.

    Without a PAPER, all of them. Prints a verdict on every claim and writes a report. Run the same command again to
    continue an interrupted campaign. The exit code is 1 if a run failed.
    """
    claims = [claim for claim in load_claims(data.CLAIMS) if not names or claim.paper in names]
    if task == "list":
        data.check_names(names)
        listed = _listed(data.load(), claims)
        click.echo(json.dumps(listed, ensure_ascii=False) if as_json else "\n".join(_list(listed)))
        return
    if readings:
        if until_decided or options.seeds is not None or task == "explain":
            raise RoamcastError("--readings cannot be combined with --until-decided, --seeds or --explain")
        data.check_names(names)
        if not explore_papers(names or list(data.PAPERS), claims, options, quick, task == "plan", as_json):
            sys.exit(1)
        return
    experiments = data.preview(names) if quick else data.load(names)
    if task == "explain":
        if as_json:
            raise RoamcastError("--explain prints text only: leave --json out")
        explain_experiments(experiments)
        return
    planned = plan(experiments, options.seeds)
    out = options.out or Path("out") / ("+".join(names or ["papers"]) + ("-quick" if quick else ""))
    if task == "plan":
        print_plan(planned, out, as_json)
        return
    words = ["papers", *names, *["--quick"] * quick, *["--until-decided"] * until_decided]
    decided = Decided(claims) if until_decided else None
    command = options.command(words, out)
    failures = options.run(experiments, planned, out, command, decided)
    if (out / "measures").is_dir():
        _judge(claims, out, options.account, quick, decided, as_json)
        if decided is not None and not as_json:
            done = pq.read_metadata(out / MANIFEST_FILE).num_rows
            click.echo(f"{done} runs, where all seeds everywhere would have been {len(planned.distinct)}")
    options.tell_account()
    tell_failures(planned, failures, command)
    if failures:
        sys.exit(1)


def _judge(
    claims: Sequence[Claim], out: Path, account: Account, quick: bool, decided: Decided | None, as_json: bool
) -> None:
    with account.stage("judge"):
        if decided is None:
            verdicts = judge(claims, read_values(out), read_about(out))
        else:  # each claim was judged at the look that decided it
            verdicts = [decided.verdicts[claim.id] for claim in claims]
    if quick:
        verdicts = [replace(one, explanation=PREVIEW if one.checks else "", tested=None) for one in verdicts]
    write_claims(out, verdicts)
    with account.stage("report"):
        report = write_report(out)
    if as_json:
        found = {"claims": to_builtins(verdicts), "preview": quick, "report": str(report)}
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    _show(verdicts)
    if quick:
        click.echo(PREVIEW)
    click.echo(f"report: {report}")


# --- Output ---------------------------------------------------------------------------------------------------------


def _listed(experiments: Sequence[Experiment], claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """The papers with claims among these, their experiments and their claims."""
    return [
        {
            "paper": name,
            "title": title,
            "experiments": {one.name: one.spec.title for one in experiments if one.spec.paper == name},
            "claims": {claim.id: {"text": claim.text, "checks": len(claim.checks)} for claim in mine},
        }
        for name, title in data.PAPERS.items()
        if (mine := [claim for claim in claims if claim.paper == name])
    ]


def _list(listed: Sequence[dict[str, Any]]) -> Iterator[str]:
    for paper in listed:
        yield f"{paper['paper']}: {paper['title']}"
        widest = max(map(len, paper["experiments"]))
        for name, title in paper["experiments"].items():
            yield f"    {name:<{widest}}  {title}"
        ids, checked = list(paper["claims"]), sum(bool(claim["checks"]) for claim in paper["claims"].values())
        yield f"    claims {ids[0]} to {ids[-1]}, {checked} of them with checks"


def _show(verdicts: Sequence[Verdict]) -> None:
    """Prints the ledger: each claim's verdict, what was measured, and why; claims without checks take one line."""
    for verdict in verdicts:
        click.echo("\n".join(_claim(verdict)))
    counts = Counter[str](verdict.outcome for verdict in verdicts)
    counted = (f"{count} {_in_number(word, count)}" for word in VERDICTS if (count := counts[word]))
    click.echo(f"claims: {', '.join(counted)}")


def _in_number(verdict: str, count: int) -> str:
    """A verdict in singular or plural: one holds, two hold."""
    return verdict if count == 1 else {"holds": "hold", "does not hold": "do not hold"}.get(verdict, verdict)


def _claim(verdict: Verdict) -> Iterator[str]:
    head = [f"{verdict.id:<3} {_marked(verdict.outcome)}"]
    if verdict.of:
        main = _marked(verdict.main or verdict.outcome)
        head += [f"{verdict.held} of {verdict.of} checks hold", f"main point (*): {main}"]
    yield " · ".join(head)
    yield from _wrapped(verdict.text)
    for check in verdict.checks:
        if check.judged:
            mark = f"{VERDICTS[check.outcome]}{'*' if check.main else ' '}"
            missed = f"; misses by {check.misses}" if check.misses else ""
            yield from _wrapped(f"{check.says}: {check.measured}{missed}", f"{mark} ")
        elif check.explains and verdict.outcome != "holds":
            yield from _wrapped(f"{check.explains}: {check.says}: {check.measured}", "→  ")
    beside = sum(not check.judged and not check.explains for check in verdict.checks)
    if beside:
        yield from _wrapped(f"{beside} more for comparison only; see the report", "·  ")
    if verdict.explanation and verdict.explanation != PREVIEW and verdict.outcome != "holds":
        how = "tested" if verdict.tested else "a guess, not tested"
        yield from _wrapped(f"Explanation ({how}): {verdict.explanation}")
    yield ""


def _marked(word: str) -> str:
    return f"{VERDICTS[word]} {word}"


def _wrapped(text: str, mark: str = "") -> list[str]:
    first = " " * 4 + mark
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False)
