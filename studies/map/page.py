"""Makes docs/choosing.md and its figures from the tables in `results/`.

    python -m studies.map.page                                 from the tables as they are
    python -m studies.map.page out/map/core out/map/slices     from measured parts, whose tables are written first

What stands in choosing.md between the marks `<!-- NAME -->` and `<!-- /NAME -->` is made; the rest is written by hand.
NAME is `map` for the core, or an experiment, whose tables are in the folder of its name; of one that was not run
nothing is said. The same tables give the same bytes: the tests compare.
"""

import re
import sys
from pathlib import Path
from typing import Final

from roamcast.campaign.folder.layout import read_campaign
from studies.map import PARTS, causes, tables
from studies.map.cells import read_cells
from studies.map.drawings import drawings
from studies.map.words import compared, sentences, worlds

HERE: Final = Path(__file__).parent / "results"
_DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = _DOCS / "choosing.md"
PICTURES: Final = _DOCS / "pictures"
CORE: Final = "map-core"
TUNED: Final = "map-tuned"
DEADLINE: Final = 10
"""That of all parts but the core, which has three."""
_MADE: Final = re.compile(r"(<!-- (map[a-z-]*) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def page(written: str) -> str:
    """The page with its made parts anew."""
    return _MADE.sub(lambda marks: f"{marks[1]}{_made(marks[2])}{marks[3]}", written)


def _made(name: str) -> str:
    if name == "map":
        core = tables.read(HERE)
        lines = [*worlds(core), "", *sentences(core)]
    elif not (HERE / name).is_dir():
        return "\nNot run yet.\n\n"
    elif name in PARTS["causes"]:
        lines = [*causes.lines(causes.read(HERE / name))]
    else:
        found = tables.read(HERE / name)
        lines = [*worlds(found), "", *sentences(found, (DEADLINE,))]
        if name == TUNED:
            lines += compared(found, tables.read(HERE), DEADLINE)
    return "\n" + "\n".join(lines).strip() + "\n\n"


def take(out: Path) -> None:
    """The tables of a measured part of the map."""
    for one in read_campaign(out).experiments:
        name = one.name
        if name in PARTS["causes"]:
            causes.write(causes.rows(read_cells(out, name), one.measures or ()), HERE / name)
        elif name == TUNED:  # with the settings that were best in each cell alone, as they were written
            tables.write(tables.read(out / "map" / name), HERE / name)
        else:
            tables.write(tables.atlas(read_cells(out, name)), HERE if name == CORE else HERE / name)


def main(arguments: list[str]) -> None:
    for out in arguments:
        take(Path(out))
    for name, drawing in drawings(tables.read(HERE)).items():
        (PICTURES / f"map-{name}.svg").write_text(drawing, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
