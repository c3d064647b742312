"""The claims of papers and their verdicts, as a table."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from roamcast.papers.verdict import CheckResult, Verdict, main_points
from roamcast.report.markup import Markup, join, tag

VERDICTS: Final = {"holds": "✓", "does not hold": "✗", "inconclusive": "?", "not measured": "–"}
"""In the order in which they are counted, each with its symbol."""


def counted(claims: list[Verdict]) -> Markup:
    """The number of claims with each verdict."""
    counts: Counter[str] = Counter(claim.outcome for claim in claims)
    return join(*(_badge(verdict, f": {counts[verdict]}") for verdict in VERDICTS if counts[verdict]))


def ledger(claims: list[Verdict], file: str | None) -> Markup:
    judged = [claim for claim in claims if claim.outcome != "not measured"]
    rest = [claim for claim in claims if claim.outcome == "not measured"]
    later = tag("details", tag("summary", f"Not measured here: {len(rest)} claims"), _claims_table(rest))
    return tag(
        "section",
        tag("h2", "Claims"),
        tag("p", "What the papers say, in our words, and what was measured, with 95 % confidence intervals."),
        *(tag("p", tag("strong", f"{paper}: "), f"{text}.") for paper, text in _by_paper(judged)),
        _claims_table(judged) if judged else tag("p", "None of the claims was measured in this campaign."),
        later if rest else None,
        tag("p", tag("a", "All claims as CSV", href=file), class_="files") if file else None,
        id="claims",
    )


def _by_paper(claims: list[Verdict]) -> Iterator[tuple[str, str]]:
    for paper in dict.fromkeys(claim.paper for claim in claims):
        mine = [claim for claim in claims if claim.paper == paper]
        if any(claim.main for claim in mine):
            yield paper or "", main_points(mine)


def _claims_table(claims: list[Verdict]) -> Markup:
    head = ("Id", "Figure", "Claim", "Measured", "Verdict", "Explanation")
    return tag(
        "table",
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag("tbody", *(tag("tr", *_claim_cells(claim)) for claim in claims)),
        class_="ledger",
    )


def _claim_cells(claim: Verdict) -> Iterator[Markup]:
    yield tag("td", claim.id)
    where = " ".join(filter(None, (claim.paper, claim.figure)))
    yield tag("td", where, class_="where", data_label="Figure")
    yield tag("td", claim.text)
    checks = tag("ul", *map(_check, claim.checks), class_="checks") if claim.checks else claim.measured
    yield tag("td", checks, data_label="Measured")
    beside = [f"{claim.held} of {claim.of} checks hold"] if claim.of else []
    beside += [f"main point: {VERDICTS[claim.main]} {claim.main}"] if claim.main else []
    yield tag("td", _badge(claim.outcome), *(tag("p", text, class_="muted") for text in beside))
    how = "" if claim.tested is None else "Tested: " if claim.tested else "A guess, not tested: "
    explanation = f"{how}{claim.explanation}" if claim.explanation else None
    yield tag("td", *(tag("p", text) for text in (claim.reading, explanation) if text))


def _check(check: CheckResult) -> Markup:
    verdict = check.outcome if check.judged else check.explains or "reported, not judged"
    aside = "→" if check.explains else "·"
    symbol = tag(
        "span", VERDICTS[check.outcome] if check.judged else aside, title=verdict, role="img", aria_label=verdict
    )
    missed = f"; misses by {check.misses}" if check.misses and check.judged else ""
    main = " (main point)" if check.main else ""
    explains = f"{check.explains}: " if check.explains else ""
    return tag("li", symbol, f" {explains}{check.says}{main}: {check.measured}{missed}")


def _badge(verdict: str, count: str = "") -> Markup:
    """Symbol, word and colour; each is enough by itself."""
    return tag("span", f"{VERDICTS[verdict]} {verdict}{count}", class_=f"verdict {verdict.replace(' ', '-')}")
