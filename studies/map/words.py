"""What a map says, in sentences: each with the cell and the interval that supports it.

Made from the tables of `tables.py` alone, so that no sentence can say what the data does not.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from studies.map.tables import AND, WORLD, Atlas, Row
from studies.map.winners import COST, DEADLINES, NOBODY, THRESHOLD

ENOUGH: Final = 5
"""Seeds that a map needs, or it is a preview."""
_UNITS: Final = {
    **{"speed": " m/s", "rate": "/s per publisher", "subscribers": " subscribers"},
    "range": " m of range",
}
_NUMBER: Final = re.compile(r"=-?[0-9.]+$")
_SHARE: Final = f"{THRESHOLD:.0%}".replace("%", " %")


def sentences(found: Atlas, deadlines: Sequence[int] = DEADLINES) -> Iterator[str]:
    """Lines of Markdown."""
    for deadline in deadlines:
        cells = [row for row in found.cells if row["deadline"] == str(deadline)]
        if not cells:
            continue
        yield f"### Within {deadline} s"
        yield ""
        yield from (f"- {line}" for line in _of_deadline(found, cells))
        yield ""


def worlds(found: Atlas) -> Iterator[str]:
    """A table in Markdown: what the networks of the cells are like, whatever the protocol."""
    titles = ("neighbours", "hops", "connected pairs", "islands", "link changes/s", "at once", "in 1 s", "10 s", "60 s")
    seeds = sorted({row["seeds"] for row in found.cells}, key=int)
    count = len(found.cells) // len(DEADLINES)
    cells = "One cell," if count == 1 else f"{count} cells, each with"
    yield f"{cells} {_span(seeds)} seeds. Possible: the share of the pairs of"
    yield "an event and a subscriber that any protocol could have delivered, at once or by a deadline."
    if int(seeds[0]) < ENOUGH:
        yield f"**This is a preview**: fewer than {ENOUGH} seeds decide little."
    yield ""
    yield "| " + " | ".join((*found.axes, *titles[:5], *(f"possible {title}" for title in titles[5:]))) + " |"
    yield "|" + "---|" * (len(found.axes) + len(titles))
    for row in found.cells:
        if row["deadline"] == str(DEADLINES[0]):
            yield "| " + " | ".join((*(row[axis] for axis in found.axes), *(row[name] for name in WORLD))) + " |"


def compared(best: Atlas, usual: Atlas, deadline: int = 10) -> Iterator[str]:
    """A table in Markdown: what tuning changed. The settings of `best` beside those that `usual` has in these cells."""
    delivered, cost = f"delivered_of_possible_{deadline}", COST
    yield f"Delivered: of what was possible within {deadline} s. Cost: ms on the air per delivery."
    yield ""
    yield "| " + " | ".join((*best.axes, "best of six", "delivered", "cost", "as in its paper")) + " |"
    yield "|" + "---|" * (len(best.axes) + 4)
    defaults = {(_key(best, row), row["setting"]): row for row in usual.settings}
    for row in best.settings:
        first = defaults.get((_key(best, row), _DEFAULTS.get(row["protocol"], row["protocol"])))
        before = "" if first is None or first["setting"] == row["setting"] else _figures(first, delivered, cost)
        shown = (f"`{row['setting']}`", _range(row, delivered), _range(row, cost), before)
        yield "| " + " | ".join((*(row[axis] for axis in best.axes), *shown)) + " |"


_DEFAULTS: Final = {
    **{"gossip": "gossip p=0.5", "counter": "counter copies=3", "hint": "hint credits=0"},
    **{"odmrp extended": "odmrp mode=extended", "odmrp one-channel": "odmrp mode=one-channel"},
}
"""By protocol: its setting in the core that is the first of those tuned; else it has the protocol's name."""


def _figures(row: Row, delivered: str, cost: str) -> str:
    return f"{row[delivered]} at {row[cost] or '∞'}"


def _range(row: Row, measure: str) -> str:
    return f"{row[measure]} [{row[f'{measure}_low']}, {row[f'{measure}_high']}]" if row[measure] else "∞"


def _of_deadline(found: Atlas, cells: Sequence[Row]) -> Iterator[str]:
    clear = [row for row in cells if row["winner"] and not row["not_separated"]]
    open_ = [row for row in cells if row["winner"] and row["not_separated"]]
    nobody = [row for row in cells if not row["winner"]]
    for protocol in dict.fromkeys(row["winner"] for row in clear):
        mine = [row for row in clear if row["winner"] == protocol]
        yield _wins(found, protocol, mine, len(cells))
    for row in open_:
        yield _undecided(found, row)
    if nobody:
        yield (
            f"**Nobody** delivers {_SHARE} of what was possible in {len(nobody)} of {len(cells)} cells: "
            f"{_places(found, nobody)}. {_closest(found, nobody)}"
        )
    for protocol in dict.fromkeys(row["protocol"] for row in found.standings):
        if all(row["winner"] != protocol and protocol not in row["not_separated"].split(AND) for row in cells):
            yield _never(found, protocol, cells)


def _wins(found: Atlas, protocol: str, cells: Sequence[Row], of: int) -> str:
    knobs = sorted({row["knob"] for row in cells if row["knob"]}, key=float)
    what = f"**{protocol}**" + (f" ({_knob(found, protocol)} {_span(knobs)})" if knobs else "")
    line = f"{what} is the cheapest in {len(cells)} of {of} cells: {_places(found, cells)}."
    beaten = [row for row in cells if row["margin"]]
    if beaten:
        close = min(beaten, key=lambda row: float(row["margin"]))
        far = max(beaten, key=lambda row: float(row["margin"]))
        line += f" The closest call is {_place(found, close)}: {_margin(found, close)}."
        if far is not close:
            line += f" The clearest is {_place(found, far)}: {_margin(found, far)}."
    alone = [row for row in cells if not row["margin"]]
    if alone:
        line += f" No other reaches {_SHARE} of what was possible {_places(found, alone, 'at ')}."
    return line


def _margin(found: Atlas, row: Row) -> str:
    following = row["next"] + (f" ({_knob(found, row['next'])} {row['next_knob']})" if row["next_knob"] else "")
    return f"{following} costs {row['margin']} times as much [{row['margin_low']}, {row['margin_high']}]"


def _undecided(found: Atlas, row: Row) -> str:
    rivals = [name for name in row["not_separated"].split(AND) if name != NOBODY]
    line = f"Not decided {_place(found, row)}: **{row['winner']}** was the cheapest and wins {_percent(row['wins'])} "
    line += "of the draws"
    if rivals:
        line += f"; {_list(rivals)} {'are' if len(rivals) > 1 else 'is'} not separated from it"
    if len(rivals) < len(row["not_separated"].split(AND)):
        line += f"; perhaps nobody reaches {_SHARE}"
    return f"{line}. {_upper(_margin(found, row))}." if row["margin"] else f"{line}."


def _closest(found: Atlas, cells: Sequence[Row]) -> str:
    best = max(cells, key=lambda row: float(row["delivered"]))
    worst = min(cells, key=lambda row: float(row["delivered"]))
    names = list(dict.fromkeys(row["closest"] for row in cells))
    line = f"Closest to it {'come' if len(names) > 1 else 'comes'} {_list(names)}: "
    if len(cells) == 1:
        return f"{line}{best['delivered']}."
    ends = (f"{row['delivered']} ({_place(found, row)}, {row['closest']})" for row in (worst, best))
    return f"{line}from {' to '.join(ends)}."


def _never(found: Atlas, protocol: str, cells: Sequence[Row]) -> str:
    """Of a protocol that is nowhere the cheapest, nor perhaps: what it costs where it reaches the threshold."""
    rows = [row for row in found.standings if row["protocol"] == protocol and row["deadline"] == cells[0]["deadline"]]
    winners = {_key(found, row): row for row in cells}
    reached = [row for row in rows if row["cost"] and winners[_key(found, row)]["cost"]]
    if not reached:
        best = max(rows, key=lambda row: float(row["delivered"]))
        return f"{protocol} nowhere reaches {_SHARE}: at most {best['delivered']} ({_place(found, best)})."

    def times(row: Row) -> float:
        return float(row["cost"]) / float(winners[_key(found, row)]["cost"])

    least, most = min(reached, key=times), max(reached, key=times)
    line = f"{protocol} reaches {_SHARE} in {len(reached)} of {len(cells)} cells, and costs there {times(least):.3g}"
    return (
        f"{line} ({_place(found, least)}) to {times(most):.3g} times ({_place(found, most)}) as much as the cheapest."
    )


# --- Places ---------------------------------------------------------------------------------------------------------


def _key(found: Atlas, row: Row) -> tuple[str, ...]:
    return tuple(row[axis] for axis in found.axes)


def _place(found: Atlas, row: Row) -> str:
    return "at " + ", ".join(_value(axis, row[axis]) for axis in found.axes)


def _value(axis: str, value: str) -> str:
    return f"{value}{_UNITS[axis]}" if axis in _UNITS else f"{axis} {value}"


def _places(found: Atlas, rows: Sequence[Row], before: str = "") -> str:
    """By the last axis: the values of the others there, such as `degree 12 at 0, 1 and 5 m/s`."""
    *others, last = found.axes
    groups: dict[str, list[str]] = {}
    for row in rows:
        values = [row[axis] if len(others) == 1 else _value(axis, row[axis]) for axis in others]
        groups.setdefault(row[last], []).append(", ".join(values))
    unit = _UNITS.get(others[0], "") if len(others) == 1 else ""
    parts = [
        f"{before}{_value(last, value)}" + (f" at {_list(groups[value])}{unit}" if others else "")
        for value in sorted(groups, key=float)
    ]
    return "; ".join(parts)


def _list(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + " and " + values[-1]


def _span(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _knob(found: Atlas, protocol: str) -> str:
    """The parameter that its settings differ in, from their names: `odmrp mode=extended refresh=10.0`."""
    names = [row["setting"] for row in found.settings if row["protocol"] == protocol and row["knob"]]
    return {"gossip": "p", "hint": "credits"}.get(protocol) or next(
        (word.partition("=")[0] for name in names for word in name.split() if _NUMBER.search(word)), "knob"
    )


def _percent(share: str) -> str:
    return f"{float(share):.0%}".replace("%", " %")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
