"""Makes docs/choosing.md and its figures from the tables of the map in this folder.

    python docs/map/make.py                 from the tables as they are
    python docs/map/make.py out/map/core    from a measured map, whose tables are written here first

What stands in choosing.md between the marks `<!-- map -->` and `<!-- /map -->` is made; the rest is written by hand.
The same tables give the same bytes: the tests compare.
"""

import re
import sys
from pathlib import Path
from typing import Final

from roamcast.papers.atlas import tables
from roamcast.papers.atlas.cells import read_cells
from roamcast.papers.atlas.words import sentences, worlds
from roamcast.report.atlas import drawings

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parent / "choosing.md"
PICTURES: Final = HERE.parent / "pictures"
_MADE: Final = re.compile(r"(<!-- map -->\n).*?(\n<!-- /map -->)", re.DOTALL)


def page(written: str, found: tables.Atlas) -> str:
    """The page with its made part anew."""
    made = "\n".join([*worlds(found), "", *sentences(found)]).strip()
    return _MADE.sub(lambda marks: f"{marks[1]}\n{made}\n{marks[2]}", written)


def main(arguments: list[str]) -> None:
    for out in arguments[:1]:
        tables.write(tables.atlas(read_cells(Path(out), "map-core")), HERE)
    found = tables.read(HERE)
    for name, drawing in drawings(found).items():
        (PICTURES / f"map-{name}.svg").write_text(drawing, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
