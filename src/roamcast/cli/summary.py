"""Prints the summary of one run: what became of its events, and what they cost."""

from collections.abc import Iterator

from rich.table import Table

from roamcast.analysis import context_truth
from roamcast.analysis.summary import RunSummary
from roamcast.cli.screen import plain_console, table
from roamcast.report.numbers import ABSENT
from roamcast.sim.scenario import ending
from roamcast.sim.scenario.scenario import Scenario


def show_summary(checked: Scenario, summary: RunSummary, contexts: context_truth.ContextCounts | None = None) -> None:
    console = plain_console()
    title = f"{checked.name}: {checked.protocol.name}, seed {checked.seed}, after {checked.warmup:g} s of warm-up"
    title += f", with {checked.cooldown:g} s of cooldown" * (checked.cooldown > 0)
    console.print(title, soft_wrap=True)
    measures = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in (*_contextual(contexts), *_measures(summary)):
        measures.add_row(name, value)
    console.print(measures)
    head = ("sent", "packets", "bits", "airtime", "packets per pair")
    pairs = summary.pairs_delivered
    kinds = (
        (one.kind, str(one.packets), str(one.bits), _time(one.airtime), _number(one.packets / pairs if pairs else None))
        for one in summary.sent
    )
    console.print(table(head, kinds, head[1:]))
    for text in warnings(checked, summary):
        console.print(f"warning: {text}", soft_wrap=True)


def warnings(checked: Scenario, summary: RunSummary) -> Iterator[str]:
    """What to know before believing the numbers."""
    if text := ending.warning(checked, summary.delay_p95):
        yield text


def _contextual(contexts: context_truth.ContextCounts | None) -> Iterator[tuple[str, str]]:
    """The lines for runs with contexts; the lines below them are by filters alone."""
    if contexts is None:
        return
    share = _percent(contexts.delivery)
    yield "delivery with contexts", f"{share}, {contexts.delivered} of {contexts.ideal} ideal pairs"
    yield "delivered beyond the ideal", str(contexts.beyond)
    yield "by filters alone:", ""


def _measures(summary: RunSummary) -> Iterator[tuple[str, str]]:
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
