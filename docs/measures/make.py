"""Makes table.md, the table of our own measures, from their declarations: `python docs/measures/make.py`."""

import sys
from pathlib import Path
from typing import Final

from roamcast.analysis.measures import contexts
from roamcast.analysis.measures.catalogue import FAMILIES
from roamcast.analysis.measures.measure import Measure

PAGE: Final = Path(__file__).with_name("table.md")
HEAD: Final = """\
# All measures

Made by `python docs/measures/make.py` from declarations in the code. [measures.md](../measures.md) defines the words
and says what is counted. *Better* is the better direction, if there is one.
"""


def page() -> str:
    sections: dict[str, list[Measure]] = {}
    for family in FAMILIES:
        sections.setdefault(family.function.__module__, []).extend(family.measures)
    sections[contexts.__name__].append(contexts.DELIVERY.measure)
    return "\n".join([HEAD, *(line for module, measures in sections.items() for line in _section(module, measures))])


def _section(module: str, measures: list[Measure]) -> list[str]:
    about = (sys.modules[module].__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    source = f"../../src/{module.replace('.', '/')}.py"
    title = module.rpartition(".")[2].replace("_", " ").capitalize()
    rows = [f"| `{one.name}` | {one.unit} | {one.description} | {one.good or ''} |" for one in measures]
    head = ["| measure | unit | what it is | better |", "|---|---|---|---|"]
    return [f"## {title}", "", f"{about} [The code]({source}).", "", *head, *rows, ""]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
