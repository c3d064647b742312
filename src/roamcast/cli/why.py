"""`roamcast why`: explains why an event did not reach a node, or sums up the causes of all missed pairs."""

import json
from pathlib import Path

import click

from roamcast.analysis.why import text
from roamcast.analysis.why.causes import MEANING
from roamcast.analysis.why.missed import missed
from roamcast.analysis.why.wishes import explain
from roamcast.campaign.folder.recorded import RecordedRun, open_run
from roamcast.cli.screen import plain_console, table
from roamcast.content.event import event_name
from roamcast.errors import RoamcastError
from roamcast.units import SECOND


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("event", required=False, metavar="[EVENT]")
@click.argument("node", required=False, type=int, metavar="[NODE]")
@click.option("--missed", "all_missed", is_flag=True, help="Sum up the causes of all missed pairs instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: text and tables]")
def why(run: Path, event: str | None, node: int | None, all_missed: bool, as_json: bool) -> None:
    """Explain why an event did not reach a node.

    Prints a paragraph, and a table of the nodes that had the event and what each did with it.

    RUN is the folder of a run, or CAMPAIGN/RUN. EVENT is an id, or PUBLISHER:SERIAL such as 3:7. Record the run with
    `roamcast run --replay`: frames and decisions show what became of each copy.

    \b
    Examples:
      roamcast why out/flooding-1 3:7 12
      roamcast why out/flooding-1 --missed
    """
    recorded = open_run(run)
    if all_missed:
        if event is not None:
            raise click.UsageError("--missed is about all events: leave EVENT and NODE out")
        _sum_up(run, recorded, as_json)
    elif event is None or node is None:
        raise click.UsageError("give EVENT and NODE, or --missed for all")
    else:
        _explain(recorded, _event_id(event), node, as_json)


def _event_id(typed: str) -> int:
    publisher, colon, serial = typed.partition(":")
    if not (publisher.isdecimal() and (serial.isdecimal() if colon else True)):
        raise RoamcastError(f"EVENT {typed!r}: expected PUBLISHER:SERIAL, such as 3:7, or an id")
    return int(publisher) << 32 | int(serial) if colon else int(publisher)


def _explain(recorded: RecordedRun, event: int, node: int, as_json: bool) -> None:
    record = recorded.record
    if not 0 <= node < recorded.scenario.nodes:
        raise RoamcastError(f"NODE {node}: the run has {recorded.scenario.nodes} nodes, numbered from 0")
    if event not in record.published:
        known = ", ".join(event_name(one) for one in list(record.published)[:5])
        raise RoamcastError(f"EVENT {event_name(event)}: was not published in this run; there are {known or 'none'} …")
    found = explain(record, event, node)
    words, rows = text.paragraph(record, found), list(text.rows(record, found))
    if as_json:
        told = {
            "event": found.published.event,
            "node": found.node,
            "delivered_s": None if found.delivered is None else found.delivered / SECOND,
            "cause": None if found.cause is None else str(found.cause),
            "text": words,
            "steps": [dict(zip(text.HEAD, row, strict=True)) for row in rows],
        }
        click.echo(json.dumps(told))
        return
    console = plain_console()
    console.print(words, soft_wrap=not console.is_terminal)
    if found.attempts:
        console.print(table(text.HEAD, rows))


def _sum_up(run: Path, recorded: RecordedRun, as_json: bool) -> None:
    found = missed(recorded.record)
    counts, total = found.counts(), len(found.explanations)
    if as_json:
        pairs = [
            {"event": one.published.event, "node": one.node, "cause": str(one.cause)} for one in found.explanations
        ]
        by_cause = {str(cause): count for cause, count in counts.most_common()}
        click.echo(json.dumps({"expected": found.expected, "missed": total, "causes": by_cause, "pairs": pairs}))
        return
    console = plain_console()
    if not total:
        console.print(f"{found.expected} pairs (event, node) were expected, and none was missed.", soft_wrap=True)
        return
    share = total / found.expected
    console.print(f"{total} of {found.expected} pairs (event, node) were missed, {share:.1%}:", soft_wrap=True)
    rows = []
    for cause, count in counts.most_common():
        one = next(one for one in found.explanations if one.cause is cause)
        example = f"{event_name(one.published.event)} {one.node}"
        rows.append((str(cause), str(count), f"{count / total:.1%}", MEANING[cause], example))
    head = ("cause", "pairs", "share", "meaning", "for example")
    console.print(table(head, rows, ("pairs", "share"), unbroken=["for example"]))
    console.print(f"One of them in detail: roamcast why {run} EVENT NODE", soft_wrap=True)
    if not found.recorded:
        console.print("What is not recorded needs frames and decisions: roamcast run … --replay", soft_wrap=True)
