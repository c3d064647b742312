"""The page: one HTML file with all it needs inside, readable on a phone, on paper, in the dark and without a mouse.

It opens with the answer in words. Its content-security policy allows nothing but its own style and script, by their
hashes: the page cannot fetch anything, and no text in it can run.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Final

from roamcast.campaign.define.described import Campaign
from roamcast.report import tables
from roamcast.report.ledger import counted, ledger
from roamcast.report.markup import Markup, asset, join, tag
from roamcast.report.section import DrawnExperiment, section
from roamcast.report.source import ReportData
from roamcast.report.titles import first_upper

_MANY_ANSWERS: Final = 4
"""With more answers, the lines below those of all experiments but the first are folded away."""


def page(results: ReportData, experiments: list[DrawnExperiment], claims_file: str | None) -> str:
    """The whole file."""
    title = report_title(results.campaign)
    style, script = join(asset("figure.css"), asset("page.css")), asset("page.js")
    head = page_head(title, style, script)
    main = tag(
        "main",
        _answers(experiments),
        ledger(results.claims, claims_file) if results.claims else None,
        *map(section, experiments),
        _failures(results) if results.failures else None,
        _again(results),
        id="main",
    )
    tip = tag("div", id="tip", hidden=True, aria_hidden="true")
    skip = tag("a", "Skip to the results", href="#main", class_="skip")
    body = tag("body", skip, _header(title, results, experiments), main, tip, tag("script", script))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def report_title(campaign: Campaign) -> str:
    experiments = campaign.experiments
    if len(experiments) == 1:
        return first_upper(experiments[0].title or experiments[0].name)
    papers = list(dict.fromkeys(experiment.paper for experiment in experiments if experiment.paper))
    if papers:
        several = len(papers) > 1
        named = f"{', '.join(papers[:-1])} and {papers[-1]}" if several else papers[0]
        return f"The published evaluation{'s' if several else ''} of {named}, measured again"
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


def _seeds(results: ReportData) -> str:
    """How many seeds the points have, from the fewest to the most; those that add seeds where needed differ."""
    measured: dict[str, int] = {}
    for row in results.rows:
        point = f"{row.experiment} {row.variant} {row.axes}"
        measured[point] = max(row.n, measured.get(point, 0))
    found = sorted(set(measured.values()))
    return "–".join(map(str, [found[0], found[-1]] if len(found) > 1 else found)) or "none"


def _header(title: str, results: ReportData, experiments: list[DrawnExperiment]) -> Markup:
    campaign, failed = results.campaign, len(results.failures)
    key: dict[str, object] = {
        "Runs": f"{results.runs - failed} done, {failed} failed" if failed else f"{results.runs}, none failed",
        "Seeds per point": _seeds(results),
        "Date": campaign.date,
        "Machine": campaign.machine,
        "Made with": f"roamcast {campaign.versions.get('roamcast', '(version unknown)')}",
        "Claims": counted(results.claims) if results.claims else None,
    }
    links = [("answers", "Answers")] if any(drawn.answer for drawn in experiments) else []
    links += [("claims", "Claims")] if results.claims else []
    links += [(drawn.anchor, drawn.title) for drawn in experiments]
    links += [("failures", "Failures")] if failed else []
    links += [("again", "Run it again")]
    return tag(
        "header",
        tag("h1", title),
        key_list(key),
        tag(
            "nav",
            tag("ul", *(tag("li", tag("a", text, href=f"#{anchor}")) for anchor, text in links)),
            aria_label="Contents",
        ),
    )


def key_list(key: Mapping[str, object]) -> Markup:
    """The key figures at the top of a page; those that are empty are left out."""
    entries = (tag("div", tag("dt", name), tag("dd", text)) for name, text in key.items() if text)
    return tag("dl", *entries, class_="key")


# --- The answer -----------------------------------------------------------------------------------------------------


def _answers(experiments: list[DrawnExperiment]) -> Markup | None:
    told = [drawn for drawn in experiments if drawn.answer is not None]
    if not told:
        return None
    parts = [part for index, drawn in enumerate(told) for part in _answer(drawn, len(told), index)]
    how = (
        "Variants are compared at each point, seed by seed. “95 % sure”: if you repeated this campaign many times, at "
        "most 5 in 100 would contain any wrong statement about what is best; the same holds for each further goal. "
        "Bars and bands in figures are 95 % each and less strict (without Bonferroni’s correction), so curves that "
        "look apart can still be undecided."
    )
    reading = (
        "Point at, tap or focus a point of a figure to read it; the arrow keys move between points. Press a name in a "
        "legend to hide its curve."
    )
    notes = (tag("p", how, class_="muted"), tag("p", reading, class_="muted screen"))
    return tag("section", tag("h2", "What these runs say"), *parts, *notes, id="answers")


def _answer(drawn: DrawnExperiment, count: int, index: int) -> list[Markup | None]:
    """The answer of an experiment; if there are many, the lines of all but the first are folded away."""
    assert drawn.answer is not None
    lines = tag("ul", *(tag("li", *_with_command(text)) for text in drawn.answer.lines), class_="answers")
    if count > _MANY_ANSWERS and index:
        lines = tag("details", tag("summary", "More"), lines)
    title = tag("h3", tag("a", drawn.title, href=f"#{drawn.anchor}")) if count > 1 else None
    return [title, tag("p", drawn.answer.sentence, class_="sentence"), lines if drawn.answer.lines else None]


def _with_command(text: str) -> list[object]:
    """A line, with the command at its end as code."""
    words, colon, command = text.partition(": roamcast ")
    return [words, ": ", _code(f"roamcast {command}")] if colon else [text]


def _code(command: str) -> Markup:
    """A command whose lines break between its words only, not after the hyphens of `--out`."""
    first, *others = (tag("span", word) for word in command.split(" "))
    return tag("code", first, *(join(" ", word) for word in others))


# --- What failed, and how to do it again ----------------------------------------------------------------------------


def _failures(results: ReportData) -> Markup:
    about = (
        f"{len(results.failures)} of {results.runs} runs raised an error and are in no figure; n counts the seeds left."
    )
    rows = [(tag("code", one.run), one.protocol, "; ".join(one.wanted), one.error) for one in results.failures]
    body = tables.table(("run", "protocol", "wanted by", "error"), rows, "Failed runs")
    return tag("section", tag("h2", "Failures"), tag("p", about), body, id="failures")


def _again(results: ReportData) -> Markup:
    campaign = results.campaign
    versions = ", ".join(f"{software} {version}" for software, version in campaign.versions.items())
    return tag(
        "section",
        tag("h2", "Run it again"),
        None if results.failures else tag("p", f"No run failed: all {results.runs} are in the figures."),
        tag("p", "The same versions and the same command give the same numbers:"),
        tag("pre", _code(campaign.command), tabindex=0),
        tag("p", f"Made with {versions}.", class_="muted") if versions else None,
        id="again",
    )
