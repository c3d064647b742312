"""Makes verdicts.md, readings.md, verdicts.svg, and README's verdicts, from the results in this folder.

    python docs/ledger/make.py                         from the results as they are
    python docs/ledger/make.py out/hint out/coman      from measured papers, whose verdicts are written here first
    python docs/ledger/make.py out/hint-readings       from explored readings, in the same way

README says of each paper which claims hold between `<!-- PAPER -->` and `<!-- /PAPER -->`, and of all together between
`<!-- all -->` and `<!-- /all -->`; the rest is written by hand. Explanations are those of claims.toml, filled with what
was measured. The same verdicts give the same bytes: the tests compare.
"""

import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from roamcast.papers import CLAIMS, PAPERS
from roamcast.papers.claims import Check, Claim, load_claims
from roamcast.papers.readings import load_readings
from roamcast.papers.verdict import OTHER_READING, Verdict, filled, main_point, main_points

HERE: Final = Path(__file__).parent
PAGE: Final = HERE / "verdicts.md"
PICTURE: Final = HERE / "verdicts.svg"
READINGS: Final = HERE / "readings.md"
BEFORE: Final = HERE / "before.json"
"""By claim: its main point and its strict verdict before COMAN was compared with MAODV as its drafts have it."""
README: Final = HERE.parents[1] / "README.md"
WORDS: Final = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "not measured": ("was not measured", "were not measured"),
}
"""Each verdict, said of one claim and of several."""
HEAD: Final = """\
# The ledger: what the papers claim, and what we measured

Made by `python docs/ledger/make.py` from the verdicts in this folder, which `roamcast papers` wrote;
[papers.md](../papers.md) says how claims are judged. A preview has shorter runs, fewer points and fewer seeds: it shows
a tendency, and decides nothing. In the tables, the main point of a claim is in bold, and an arrow is an experiment
without the supposed cause of a miss.
"""


def take(out: Path) -> None:
    """The verdicts of a measured campaign, paper by paper, and where they come from; or what readings came to."""
    if (out / "readings.json").exists():
        take_readings(out)
        return
    campaign = json.loads((out / "campaign.json").read_bytes())
    claims = json.loads((out / "claims.json").read_bytes())
    runs = pq.read_table(out / "runs.parquet", columns=["run", "experiment", "variant", "axes", "seed"]).to_pylist()
    papers = {one["name"]: one["paper"] for one in campaign["experiments"]}
    for paper in dict.fromkeys(claim["paper"] for claim in claims):
        mine = [run for run in runs if papers[run["experiment"]] == paper]
        seeds = Counter((run["experiment"], run["variant"], run["axes"]) for run in mine)
        about = {
            "command": _public(campaign["command"]),
            "date": campaign["date"],
            "runs": len({run["run"] for run in mine}),
            "seeds": [min(seeds.values()), max(seeds.values())],
        }
        _keep(paper, about | {"claims": [claim for claim in claims if claim["paper"] == paper]})


def take_readings(out: Path) -> None:
    """What the readings of a paper came to; of the confirmed ones, the main points."""
    found = json.loads((out / "readings.json").read_bytes())
    stages = [out / name for name in ("alone", "together", "confirming") if (out / name / "runs.parquet").exists()]
    campaigns = [json.loads((stage / "campaign.json").read_bytes()) for stage in stages]
    runs = {
        run for stage in stages for run in pq.read_table(stage / "runs.parquet", columns=["run"])["run"].to_pylist()
    }
    found["confirmed"] = {
        name: {one["id"]: _main_alone(one) for one in verdicts} for name, verdicts in found["confirmed"].items()
    }
    about = {"command": _public(campaigns[0]["command"]), "date": campaigns[-1]["date"], "runs": len(runs)}
    _keep(f"{found['paper']}-readings", about | found)


def _main_alone(verdict: dict[str, Any]) -> dict[str, str]:
    measured = next((check["measured"] for check in verdict["checks"] if check["main"]), "")
    return {"main": verdict["main"], "verdict": verdict["verdict"], "measured": measured}


def _keep(name: str, found: dict[str, Any]) -> None:
    (HERE / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _public(command: str) -> str:
    """Without the folder that it wrote to, which is nobody else's business."""
    words = shlex.split(command)
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return shlex.join(words)


def read() -> dict[str, dict[str, Any]]:
    """The ledger of each paper, with what its readings came to, if they were explored."""
    found = {paper: json.loads(file.read_bytes()) for paper in PAPERS if (file := HERE / f"{paper}.json").is_file()}
    templates = {claim.id: claim for claim in load_claims(CLAIMS)}
    for paper, ledger in found.items():
        if (explored := HERE / f"{paper}-readings.json").is_file():
            ledger["readings"] = json.loads(explored.read_bytes())
        for claim in ledger["claims"]:
            if claim["id"] in templates:
                template = templates[claim["id"]]
                claim["possible"] = _filled(template.possible, template, claim["checks"])
                claim["explanation"] = _filled(template.explanation, template, claim["checks"])
    return found


def _filled(text: str, template: Claim, checks: list[dict[str, Any]]) -> str:
    """An explanation with the numbers of these verdicts. A check that was not measured may be missing among them."""

    def measured(check: Check) -> str:
        same = [
            one["measured"]
            for one in checks
            if one["says"] == check.says
            and one["explains"].endswith(check.cause)
            and bool(one["explains"]) == bool(check.cause)
        ]
        return same[0] if same else ""

    return filled(text, {number: measured(check) for number, check in enumerate(template.checks, 1)})


def _claims(ledger: dict[str, Any]) -> list[Verdict]:
    return msgspec.convert(ledger["claims"], list[Verdict])


def in_short(claims: list[dict[str, Any]]) -> str:
    """Which claims hold, and which do not. One without checks is about code: not for a campaign to measure."""
    parts = []
    for verdict, (one, several) in WORDS.items():
        ids = [claim["id"] for claim in claims if claim["verdict"] == verdict and claim["checks"]]
        if ids:
            parts.append(f"{_listed(ids)} {one if len(ids) == 1 else several}")
    return "; ".join(parts)


def _listed(ids: list[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{', '.join(ids[:-1])} and {ids[-1]}"


def _how(ledger: dict[str, Any]) -> str:
    least, most = ledger["seeds"]
    seeds = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    preview = ", a preview" if "--quick" in ledger["command"] else ""
    return f"`{ledger['command']}`{preview}: {ledger['runs']:,} runs, {seeds} per point"


def page(ledgers: dict[str, dict[str, Any]]) -> str:
    lines = [HEAD, "![Every claim, its main point and its strict verdict](verdicts.svg)", "", f"{in_all(ledgers)}.", ""]
    if missing := [paper for paper in PAPERS if paper not in ledgers]:
        lines += [f"Not here yet: {_listed(missing)}; README has the verdicts of previews.", ""]
    for paper, ledger in ledgers.items():
        lines += [f"## {paper}: {PAPERS[paper]}", "", f"{_how(ledger)}; {ledger['date']}.", ""]
        lines += [f"{main_points(_claims(ledger))}. To the letter: {in_short(ledger['claims'])}.", ""]
        for claim in ledger["claims"]:
            lines += _claim(claim)
            lines += _under_readings(claim, ledger.get("readings"))
    return "\n".join(lines).rstrip() + "\n"


def _claim(claim: dict[str, Any]) -> Iterator[str]:
    where = "text" if claim["figure"] == "text" else f"figure {claim['figure']}"
    beside = f" ({claim['held']} of {claim['of']} checks hold)" if claim["of"] else ""
    yield f"### {claim['id']}, {where}: {claim['verdict'] if claim['checks'] else 'not for a campaign'}{beside}"
    yield ""
    yield claim["text"]
    yield ""
    if claim["reading"]:
        yield claim["reading"]
        yield ""
    corrected = [check for check in claim["checks"] if "before the correction" in check["says"]]
    shown = [check for check in claim["checks"] if check["judged"] or check["explains"] or check in corrected]
    if shown:
        yield "| check | measured | verdict |"
        yield "|---|---|---|"
        yield from map(_row, shown)
        yield ""
    if claim["explanation"] and claim["verdict"] != "holds":
        guess = "" if claim["tested"] else "A guess, not tested: "
        yield f"{guess}{claim['explanation']}"
        yield ""


def _row(check: dict[str, Any]) -> str:
    says = f"**{check['says']}**" if check["main"] else check["says"]
    if check["judged"]:
        missed = f"; misses by {check['misses']}" if check["misses"] else ""
        verdict = f"{check['verdict']}{missed}"
    elif check["explains"]:
        says, verdict = f"→ {says}", check["explains"]
    else:
        verdict = f"not judged: {check['verdict']}"
    return "| " + " | ".join(text.replace("|", "\\|") for text in (says, check["measured"], verdict)) + " |"


# --- Readings -------------------------------------------------------------------------------------------------------

READINGS_HEAD: Final = """\
# Readings: what the papers may have meant, and which of their main points come out

Made by `python docs/ledger/make.py` from the results of `roamcast papers NAME --readings` in this folder;
[papers.md](../papers.md#readings-what-a-paper-may-have-meant) has the procedure, and [verdicts.md](verdicts.md) what
was measured under the ledger's reading. ✓ and ✗ are by the means of the exploring seeds, – was not measured; a word is
a verdict of the strict judge.
"""


def _under_readings(claim: dict[str, Any], readings: dict[str, Any] | None) -> Iterator[str]:
    """Under how many readings a main point comes out; if under none, how near it comes, and whether it could."""
    if readings is None or claim["id"] not in readings["tried"][0]["points"]:
        return
    points = {one["reading"]: one["points"][claim["id"]] for one in readings["tried"]}
    met = [name for name, point in points.items() if point["met"]]
    if met:
        yield f"Readings: the main point comes out under {len(met)} of {len(points)} (by the means of a preview)."
    else:
        measured = {name: point["miss"] for name, point in points.items() if point["miss"] is not None}
        nearest = min(measured, key=measured.__getitem__, default="")
        best = f"; the nearest is *{nearest}*, {points[nearest]['measured']}" if measured else ", nor was it measured"
        yield f"Readings: the main point comes out under none of {len(points)} (by the means of a preview){best}."
        yield ""
        yield claim["possible"] or "Whether it could: no argument is known that does not rest on these runs."
    yield ""


def readings_page(ledgers: dict[str, dict[str, Any]]) -> str:
    lines = [READINGS_HEAD, *_together(ledgers), *_before_and_now(ledgers)]
    for paper, ledger in ledgers.items():
        lines += [f"## {paper}", ""]
        lines += _explored(ledger["readings"]) if "readings" in ledger else ["Not explored.", ""]
        lines += [
            f"- *{one.name}* ({one.kind}). {one.text}{one.why and ' Plausible all the same: '}{one.why}"
            for one in load_readings(paper).settings
        ] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _together(ledgers: dict[str, dict[str, Any]]) -> Iterator[str]:
    """How many main points come out with one reading per paper."""
    explored = {paper: ledger["readings"] for paper, ledger in ledgers.items() if "readings" in ledger}
    for key, words in (("open", "With open settings only"), ("departure", "With departures too")):
        met = points = confirmed = asked = 0
        for found in explored.values():
            best = found["best"][key]
            points += len(found["tried"][0]["points"])
            met += next(one["met"] for one in found["tried"] if one["reading"] == best)
            verdicts = found["confirmed"].get(best, {}).values()
            asked += len(verdicts)
            confirmed += sum(one["main"] == "holds" for one in verdicts)
        yield f"- {words}, the best reading of each paper meets {met} of {points} main points by the means of the"
        yield f"  exploring seeds; of the {asked} that were judged on fresh seeds {confirmed} hold."
    left = [paper for paper in ledgers if paper not in explored]
    yield f"- Not explored: {', '.join(left) or 'none'}."
    yield ""


def _before_and_now(ledgers: dict[str, dict[str, Any]]) -> Iterator[str]:
    """All claims in one table."""
    before = json.loads(BEFORE.read_bytes())
    yield "## All claims, before and now"
    yield ""
    yield "*Before* is before COMAN was compared with MAODV as its drafts have it, and before readings were tried. What"
    yield "changed is in bold. The last columns are about main points: how many readings meet them, and the verdicts on"
    yield "fresh seeds under the paper's best reading."
    yield ""
    yield _cells(
        "claim", "main point before", "now", "to the letter before", "now", "met by", "best open", "best of all"
    )
    yield "|---" * 8 + "|"
    for ledger in ledgers.values():
        readings = ledger.get("readings")
        for claim in (one for one in ledger["claims"] if one["checks"]):
            was, now = before[claim["id"]], [main_point(msgspec.convert(claim, Verdict)), claim["verdict"]]
            shown = [now[0] if was["main"] == now[0] else f"**{now[0]}**"]
            shown += [was["verdict"], now[1] if was["verdict"] == now[1] else f"**{now[1]}**"]
            yield _cells(claim["id"], was["main"], *shown, *_best(claim["id"], readings))
    yield ""


def _best(claim: str, readings: dict[str, Any] | None) -> list[str]:
    if readings is None:
        return ["not explored", "", ""]
    met = sum(one["points"][claim]["met"] for one in readings["tried"])
    confirmed = [readings["confirmed"].get(readings["best"][key]) for key in ("open", "departure")]
    return [
        f"{met} of {len(readings['tried'])}",
        *(one[claim]["main"] if one else "not confirmed" for one in confirmed),
    ]


def _cells(*texts: object) -> str:
    return "| " + " | ".join(str(text).replace("|", "\\|") for text in texts) + " |"


UNFINISHED: Final = {
    "alone": "Readings of several settings were not tried, and none was confirmed.",
    "together": "None was confirmed on fresh seeds.",
    "confirming": "",
}


def _explored(found: dict[str, Any]) -> Iterator[str]:
    """The readings of a paper, the best first; the choice, its confirmation, and *leave one claim out*."""
    claims = list(found["tried"][0]["points"])
    spread = ", ".join(f"{count} meet {met}" for met, count in found["distribution"].items())
    seeds = {name: f"{some[0]} to {some[-1]}" for name, some in found["seeds"].items()}
    yield f"`{found['command']}`: {found['runs']:,} runs, exploring seeds {seeds['exploring']}; {found['date']}."
    tried = f"{len(found['tried'])} readings, of {len(claims)} main points: {spread}."
    yield f"{tried} {UNFINISHED[found['stage']]}".strip()
    yield ""
    yield _cells("reading", "kind", "met", "misses", *claims)
    yield "|---" * (4 + len(claims)) + "|"
    for one in found["tried"]:
        marks = [_mark(point) for point in one["points"].values()]
        yield _cells(one["reading"], "open" if one["open"] else "departure", one["met"], f"{one['misses']:.2f}", *marks)
    for key, words in (("left_out_open", "open settings only"), ("left_out", "all settings")):
        left = [found[key][claim]["met"] for claim in claims]
        yield _cells(f"chosen without the claim, {words}", "", sum(left), "", *("✓" if met else "✗" for met in left))
    for name, verdicts in found["confirmed"].items():
        mains = [verdicts[claim]["main"] for claim in claims]
        yield _cells(f"confirmed on fresh seeds: {name}", "", mains.count("holds"), "", *mains)
    yield ""
    best = found["best"]
    yield f"Best with open settings only: *{best['open']}*; with departures: *{best['departure']}*."
    if found["same"]:
        yield f"Every number as under another reading: {', '.join(found['same'])}."
    yield ""


def _mark(point: dict[str, Any]) -> str:
    return "–" if point["miss"] is None else "✓" if point["met"] else "✗"


# --- README ---------------------------------------------------------------------------------------------------------


def readme(written: str, ledgers: dict[str, dict[str, Any]]) -> str:
    """README with its verdicts anew."""
    for paper, ledger in ledgers.items():
        made = f"{_how(ledger)}. {main_points(_claims(ledger))}. To the letter: {in_short(ledger['claims'])}."
        written = _put(written, paper, made)
    return _put(written, "all", f"{in_all(ledgers)}.")


def _put(written: str, mark: str, made: str) -> str:
    written, found = re.subn(
        rf"(<!-- {mark} -->).*?(<!-- /{mark} -->)",
        lambda marks: f"{marks[1]}{made}{marks[2]}",
        written,
        flags=re.DOTALL,
    )
    if not found:
        raise SystemExit(f"README has no place for the verdicts of {mark}: <!-- {mark} --><!-- /{mark} -->")
    return written


def in_all(ledgers: dict[str, dict[str, Any]]) -> str:
    """Both counts, over all papers."""
    claims = [claim for ledger in ledgers.values() for claim in _claims(ledger)]
    judged = [claim for claim in claims if claim.checks]
    points = Counter(main_point(claim) for claim in judged)
    strict = sum(claim.outcome == "holds" for claim in judged)
    return (
        f"Of {len(judged)} claims that runs can judge, the main point holds in {points['holds']}, and in "
        f"{points[OTHER_READING]} more under another reading; {strict} {'holds' if strict == 1 else 'hold'} "
        "to the letter"
    )


# --- The picture ----------------------------------------------------------------------------------------------------

LOOKS: Final = {
    "holds": ("✓", "#1a7f37"),
    OTHER_READING: ("~", "#4a90b8"),
    "inconclusive": ("?", "#9a6b00"),
    "does not hold": ("✗", "#b3261e"),
    "not measured": ("–", "#777777"),
}
WIDE, HIGH, NAMES = 44, 56, 120


def picture(ledgers: dict[str, dict[str, Any]]) -> str:
    """A row for each paper, a column for each claim: above its main point, below the strict verdict."""
    columns = max(len(ledger["claims"]) for ledger in ledgers.values())
    width, height = max(NAMES + WIDE * columns + 10, 640), HIGH * len(ledgers) + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for row, (paper, ledger) in enumerate(ledgers.items()):
        top = 10 + HIGH * row
        parts.append(f'<text x="8" y="{top + 28}" fill="#222222">{paper}</text>')
        for column, claim in enumerate(_claims(ledger)):
            left = NAMES + WIDE * column
            main, strict = main_point(claim) or "not measured", claim.outcome
            parts += [
                f'<rect x="{left}" y="{top}" width="{WIDE - 4}" height="28" rx="4" fill="{LOOKS[main][1]}"/>',
                f'<text x="{left + 6}" y="{top + 19}" fill="#ffffff">{claim.id} {LOOKS[main][0]}</text>',
                f'<rect x="{left}" y="{top + 30}" width="{WIDE - 4}" height="12" rx="3" fill="{LOOKS[strict][1]}"/>',
                f'<text x="{left + 16}" y="{top + 40}" font-size="10" fill="#ffffff">{LOOKS[strict][0]}</text>',
            ]
    at = 8
    for word, (symbol, colour) in LOOKS.items():
        parts.append(f'<text x="{at}" y="{height - 28}" fill="{colour}">{symbol} {word}</text>')
        at += 30 + 7 * len(word)
    parts.append(f'<text x="8" y="{height - 10}" fill="#222222">large: the main point; small: to the letter</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str]) -> None:
    for out in arguments:
        take(Path(out))
    ledgers = read()
    PAGE.write_text(page(ledgers), encoding="utf-8")
    READINGS.write_text(readings_page(ledgers), encoding="utf-8")
    PICTURE.write_text(picture(ledgers), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8"), ledgers), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
