"""The page: one HTML file with all it needs inside, readable on a phone, on paper, in the dark and without a mouse.

Its content-security policy allows nothing but its own style and script, by their hashes: the page cannot fetch
anything, and no text in it can run.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from roamcast.report import svg, tables
from roamcast.report.chart import Chart
from roamcast.report.markup import Markup, join, tag
from roamcast.report.source import Campaign, Check, Claim, Experiment, Failure, Results, Row

VERDICTS: Final = {"holds": "✓", "does not hold": "✗", "inconclusive": "?", "not measured": "–"}
"""In the order in which they are counted, each with its symbol."""


@dataclass(frozen=True)
class DrawnFigure:
    """A chart, and the files beside the page that show the same."""

    chart: Chart
    files: dict[str, str]
    """What it is called -> where it is, from the page."""
    paired: list[Row]


@dataclass(frozen=True)
class DrawnExperiment:
    """An experiment with its figures."""

    experiment: Experiment
    figures: list[DrawnFigure]
    rows: list[Row]
    files: dict[str, str]


def page(results: Results, experiments: list[DrawnExperiment], claims_file: str | None, no_png: str | None) -> str:
    """The whole file. `no_png` says why there are no PNG files, if there are none."""
    title = report_title(results.campaign)
    style, script = join(svg.asset("figure.css"), svg.asset("page.css")), svg.asset("page.js")
    head = page_head(title, style, script)
    main = tag(
        "main",
        _ledger(results.claims, claims_file) if results.claims else None,
        *(_experiment(drawn) for drawn in experiments),
        _failures(results),
        _again(results.campaign, no_png),
        id="main",
    )
    tip = tag("div", id="tip", hidden=True, aria_hidden="true")
    skip = tag("a", "Skip to the results", href="#main", class_="skip")
    body = tag("body", skip, _header(title, results, experiments), main, tip, tag("script", script))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def report_title(campaign: Campaign) -> str:
    experiments = campaign.experiments
    if len(experiments) == 1:
        return experiments[0].title or experiments[0].name
    papers = list(dict.fromkeys(experiment.paper for experiment in experiments if experiment.paper))
    if papers:
        return f"{', '.join(papers)}: the published evaluation, measured again"
    return f"A campaign of {len(experiments)} experiments"


def page_head(title: str, style: Markup, script: Markup) -> Markup:
    """The head of a page of its own: it may run its own script and style, and fetch nothing at all."""
    policy = (
        f"default-src 'none'; style-src '{_policy_hash(style)}'; script-src '{_policy_hash(script)}'; base-uri 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", style),
    )


def _policy_hash(text: str) -> str:
    """A text as a content-security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(title: str, results: Results, experiments: list[DrawnExperiment]) -> Markup:
    failed = len(results.failures)
    seeds = sorted({len(drawn.experiment.seeds) for drawn in experiments})
    key: dict[str, object] = {
        "Runs": f"{results.runs - failed} done, {failed} failed" if failed else f"{results.runs}, none failed",
        "Seeds per point": "–".join(map(str, seeds)),
        "Experiments": str(len(experiments)),
        "Made with": f"roamcast {results.campaign.versions.get('roamcast', '(version unknown)')}",
    }
    counts: Counter[str] = Counter(claim.verdict for claim in results.claims)
    if results.claims:
        key["Claims"] = join(*(_badge(verdict, f": {counts[verdict]}") for verdict in VERDICTS if counts[verdict]))
    links = [("claims", "Claims")] if results.claims else []
    links += [(_anchor(drawn.experiment), drawn.experiment.title or drawn.experiment.name) for drawn in experiments]
    links += [("failures", "Failures"), ("again", "Run it again")]
    return tag(
        "header",
        tag("h1", title),
        tag("p", "Points are means over seeds; bars and bands are 95 % confidence intervals (Student’s t)."),
        tag(
            "p",
            "Point at, tap or focus a point to read it; the arrow keys move between points. "
            "Press a name in a legend to hide its curve.",
            class_="muted screen",
        ),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in key.items()), class_="key"),
        tag(
            "nav",
            tag("ul", *(tag("li", tag("a", text, href=f"#{anchor}")) for anchor, text in links)),
            aria_label="Contents",
        ),
    )


# --- Claims ---------------------------------------------------------------------------------------------------------


def _ledger(claims: list[Claim], file: str | None) -> Markup:
    judged = [claim for claim in claims if claim.verdict != "not measured"]
    rest = [claim for claim in claims if claim.verdict == "not measured"]
    later = tag("details", tag("summary", f"Not measured here: {len(rest)} claims"), _claims_table(rest))
    return tag(
        "section",
        tag("h2", "Claims"),
        tag("p", "What the papers say, in our words, and what was measured, with 95 % confidence intervals."),
        _claims_table(judged) if judged else tag("p", "None of the claims was measured in this campaign."),
        later if rest else None,
        tag("p", tag("a", "All claims as CSV", href=file), class_="files") if file else None,
        id="claims",
    )


def _claims_table(claims: list[Claim]) -> Markup:
    head = ("Id", "Figure", "Claim", "Measured", "Verdict", "Explanation")
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
            tag("tbody", *(tag("tr", *_claim_cells(claim)) for claim in claims)),
            class_="ledger",
        ),
        class_="scroll",
    )


def _claim_cells(claim: Claim) -> Iterator[Markup]:
    yield tag("td", claim.id)
    where = " ".join(filter(None, (claim.paper, claim.figure)))
    yield tag("td", where, class_="where", data_label="Figure:")
    yield tag("td", claim.text)
    checks = tag("ul", *map(_check, claim.checks), class_="checks") if claim.checks else claim.measured
    yield tag("td", checks, data_label="Measured:")
    beside = [f"{claim.held} of {claim.of} checks hold"] if claim.of else []
    beside += [f"main point: {VERDICTS[claim.main]} {claim.main}"] if claim.main else []
    yield tag("td", _badge(claim.verdict), *(tag("p", text, class_="muted") for text in beside))
    how = "" if claim.tested is None else "Tested: " if claim.tested else "A guess, not tested: "
    explanation = f"{how}{claim.explanation}" if claim.explanation else None
    yield tag("td", *(tag("p", text) for text in (claim.reading, explanation) if text))


def _check(check: Check) -> Markup:
    verdict = check.verdict if check.judged else check.explains or "reported, not judged"
    aside = "→" if check.explains else "·"
    symbol = tag(
        "span", VERDICTS[check.verdict] if check.judged else aside, title=verdict, role="img", aria_label=verdict
    )
    missed = f"; misses by {check.misses}" if check.misses and check.judged else ""
    main = " (main point)" if check.main else ""
    explains = f"{check.explains}: " if check.explains else ""
    return tag("li", symbol, f" {explains}{check.says}{main}: {check.measured}{missed}")


def _badge(verdict: str, count: str = "") -> Markup:
    """Symbol, word and colour: each says it alone."""
    return tag("span", f"{VERDICTS[verdict]} {verdict}{count}", class_=f"verdict {_anchor_text(verdict)}")


# --- Experiments ----------------------------------------------------------------------------------------------------


def _experiment(drawn: DrawnExperiment) -> Markup:
    experiment = drawn.experiment
    swept = [f"{axis.label} ({len(axis.values)} values)" for axis in experiment.axes]
    about = f"Experiment {experiment.name}: {' × '.join(swept) or 'one point'}, {len(experiment.seeds)} seeds."
    numbers = None
    if not drawn.figures:
        numbers = tables.experiment_table(experiment, drawn.rows)
    return tag(
        "section",
        tag("h2", experiment.title or experiment.name),
        tag("p", about, class_="muted"),
        tag("div", *map(_figure, drawn.figures), class_="figures") if drawn.figures else numbers,
        tag("p", *_links(drawn.files), class_="files"),
        _scenario(experiment),
        id=_anchor(experiment),
    )


def _figure(drawn: DrawnFigure) -> Markup:
    chart = drawn.chart
    heading = tag("h3", f"Figure {chart.plan.id}: {chart.title}")
    if not chart.curves:
        missing = f"There are no values of {chart.plan.y} over {chart.plan.x}: no run of this figure was measured."
        return tag("figure", heading, tag("p", missing))
    paired = tables.paired_table(drawn.paired) if drawn.paired else None
    linear = None
    if chart.plan.log and not chart.logarithmic:
        linear = tag("p", "Drawn without the logarithmic scale: a value on the axis has no logarithm.", class_="muted")
    return tag(
        "figure",
        heading,
        svg.inline(chart),
        tag("ul", *(_legend_entry(chart, index) for index in range(len(chart.curves))), class_="legend"),
        tag("figcaption", tag("p", chart.plan.caption) if chart.plan.caption else None, linear),
        tag("details", tag("summary", "Numbers"), tables.chart_table(chart), paired),
        tag("p", *_links(drawn.files), class_="files"),
    )


def _legend_entry(chart: Chart, index: int) -> Markup:
    curve = chart.curves[index]
    swatch = tag(
        "svg",
        tag("g", svg.swatch_marks(index, curve), class_=f"curve {svg.colour(index)}"),
        viewBox="0 -6 28 12",
        aria_hidden="true",
    )
    return tag("li", tag("button", swatch, tag("span", curve.name), aria_pressed="true", data_toggles=index))


def _scenario(experiment: Experiment) -> Markup:
    """The fields that all runs share, and what each variant and axis sets."""
    axes = {
        axis.field or axis.label: ", ".join(json.dumps(value, ensure_ascii=False) for value in axis.values)
        for axis in experiment.axes
    }
    parts = [("", scenario_text(experiment.scenario))]
    parts += [(f"# variant: {variant.name}", scenario_text(variant.set)) for variant in experiment.variants]
    parts += [("# swept", "\n".join(f"{field} = {values}" for field, values in axes.items()))]
    text = "\n\n".join("\n".join(filter(None, part)) for part in parts if part[1])
    return tag("details", tag("summary", "The scenario"), tag("pre", tag("code", text), tabindex=0))


def scenario_text(scenario: dict[str, Any], prefix: str = "") -> str:
    """A line a field, as TOML and `--set` write it; what has no value is left out."""
    lines = []
    for name, value in scenario.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            lines.append(scenario_text(value, f"{path}."))
        elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
            lines += [scenario_text(entry, f"{path}[{index}].") for index, entry in enumerate(value)]
        elif value is not None:
            lines.append(f"{path} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(filter(None, lines))


def _links(files: dict[str, str]) -> Iterator[Markup]:
    for name, place in files.items():
        yield tag("a", name, href=place)


def _anchor(experiment: Experiment) -> str:
    return f"experiment-{_anchor_text(experiment.name)}"


def _anchor_text(text: str) -> str:
    return text.replace(" ", "-")


# --- What failed, and how to do it again ----------------------------------------------------------------------------


def _failures(results: Results) -> Markup:
    heading = tag("h2", "Failures")
    if not results.failures:
        return tag("section", heading, tag("p", f"None: all {results.runs} runs are in the figures."), id="failures")
    about = (
        f"{len(results.failures)} of {results.runs} runs raised an error and are in no figure; n counts the seeds left."
    )
    rows = [_failure_cells(failure) for failure in results.failures]
    body = tables.table(("run", "protocol", "wanted by", "error"), rows, numeric=0, caption="Failed runs")
    return tag("section", heading, tag("p", about), body, id="failures")


def _failure_cells(failure: Failure) -> tuple[object, ...]:
    return tag("code", failure.run), failure.protocol, "; ".join(failure.wanted), failure.error


def _again(campaign: Campaign, no_png: str | None) -> Markup:
    versions = tables.table(("software", "version"), list(campaign.versions.items()), numeric=0, caption="Versions")
    missing = f"The figures are there as SVG but not as PNG: {no_png}." if no_png else None
    return tag(
        "section",
        tag("h2", "Run it again"),
        tag("p", "The same versions and the same command give the same numbers:"),
        tag("pre", tag("code", campaign.command), tabindex=0),
        versions if campaign.versions else None,
        tag("p", missing, class_="muted") if missing else None,
        id="again",
    )
