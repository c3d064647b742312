"""Makes tables.md, and the figures in docs/pictures, from the tables in `results/`.

    python -m studies.map.page                                 from the tables as they are
    python -m studies.map.page out/map/core out/map/slices     from measured parts, whose tables are written first

A section is an experiment, whose tables are in the folder of its name; those of the core are in `results/` itself. The
same tables give the same bytes: the tests compare.
"""

import sys
from pathlib import Path
from typing import Final

from roamcast.campaign.folder.layout import read_campaign
from studies.map import PARTS, causes, tables
from studies.map.cells import read_cells
from studies.map.drawings import drawings
from studies.map.words import compared, sentences, worlds

HERE: Final = Path(__file__).parent / "results"
PAGE: Final = Path(__file__).with_name("tables.md")
PICTURES: Final = Path(__file__).parents[2] / "docs" / "pictures"
CORE: Final = "map-core"
TUNED: Final = "map-tuned"
DEADLINE: Final = 10
"""That of all parts but the core, which has three."""
HEAD: Final = """\
# The map's tables

Made by `python -m studies.map.page` from [`results`](results). [README.md](README.md) says what was compared and found.
"""
SECTIONS: Final = {
    CORE: "Speed and density",
    "map-rate": "Rates",
    "map-subscribers": "Subscribers",
    TUNED: "Tuned",
    "map-streets": "Vehicles in streets",
    "map-streets-random": "Random waypoint of the same degree and speed",
    "map-causes-links": "Trees where beacons collide",
    "map-causes-trees": "Trees at speed",
    "map-causes-carrying": "Carrying, within a minute",
}


def page() -> str:
    sections = (f"## {title}\n\n{_section(name)}" for name, title in SECTIONS.items())
    return "\n".join((HEAD, *sections))


def _section(name: str) -> str:
    if name == CORE:
        core = tables.read(HERE)
        lines = [*worlds(core), "", *sentences(core)]
    elif not (HERE / name).is_dir():
        lines = ["Not run yet."]
    elif name in PARTS["causes"]:
        lines = [*causes.lines(causes.read(HERE / name))]
    else:
        found = tables.read(HERE / name)
        lines = [*worlds(found), "", *sentences(found, (DEADLINE,))]
        if name == TUNED:
            lines += compared(found, tables.read(HERE), DEADLINE)
    return "\n".join(lines).strip() + "\n"


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
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
